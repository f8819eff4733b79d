// How the repository of a workspace stands when an agent begins, in a few lines: branch, commit, changed files.
import type { Git } from "../tool/builtin/git/Git.ts"
import { limits } from "./Limits.ts"

export type GitState = (workspace: string, signal: AbortSignal) => Promise<string | undefined>

const status = ["status", "--short", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty", "--", "."]

const branchOf = (line: string): string => line.replace(/^## /u, "").replace(/^No commits yet on /u, "")

const described = (printed: string, commit: string): string => {
  const [first = "", ...changed] = printed.split("\n").filter((line) => line !== "")
  const head = commit === "" ? "without a commit yet" : `at ${commit}`
  const shown = changed.slice(0, limits.gitLinesMax).map((line) => `  ${line}`)
  const more = changed.length > shown.length ? [`  … and ${changed.length - shown.length} more`] : []
  const files = changed.length === 0 ? "nothing changed" : "changed files:"
  return [`- Git, when you began: branch ${branchOf(first)}, ${head}, ${files}`, ...shown, ...more].join("\n")
}

export const makeGitState =
  (git: Git): GitState =>
  async (workspace, outer) => {
    const signal = AbortSignal.any([outer, AbortSignal.timeout(limits.gitTimeoutMs)])
    try {
      const repository = await git.open({ root: workspace, signal })
      const printed = await repository.run(status)
      const commit = await repository.attempt(["rev-parse", "-q", "--verify", "--short", "HEAD"])
      return described(printed.stdout, commit.exit_code === 0 ? commit.stdout.trim() : "")
    } catch {
      // The agent has tools to find out why; its work does not wait for it.
      return undefined
    }
  }
