// How the repository of a workspace stands when an agent begins, in a few lines: branch, commit, changed files.
import * as Effect from "effect/Effect"
import type { Git } from "../tool/builtin/git/Git.ts"
import { limits } from "./PromptLimits.ts"

export type GitState = (workspace: string) => Effect.Effect<string | undefined>

const status = ["status", "--short", "--branch", "--untracked-files=normal", "--ignore-submodules=dirty", "--", "."]

const branchOf = (line: string): string => line.replace(/^## /u, "").replace(/^No commits yet on /u, "")

/** Why git looks strange to commands in a part of a repository. */
const partText = (prefix: string): string =>
  `- The workspace is ${prefix} of its repository. Commands can look at its history but not commit, and do not have the other files, which plain \`git status\` lists as deleted (\`git status .\` does not); git_commit commits what is in the workspace.`

const described = (printed: string, commit: string): string => {
  const [first = "", ...changed] = printed.split("\n").filter((line) => line !== "")
  const head = commit === "" ? "without a commit yet" : `at ${commit}`
  const shown = changed.slice(0, limits.gitLinesMax).map((line) => `  ${line}`)
  const more = changed.length > shown.length ? [`  … and ${changed.length - shown.length} more`] : []
  const files = changed.length === 0 ? "nothing changed" : "changed files:"
  return [`- Git, when you began: branch ${branchOf(first)}, ${head}, ${files}`, ...shown, ...more].join("\n")
}

export const makeGitState = (git: Git, { contained }: { readonly contained: boolean }): GitState => {
  const describe = Effect.fnUntraced(function* (workspace: string) {
    const repository = yield* git.open(workspace)
    const printed = yield* repository.run(status)
    const commit = yield* repository.attempt(["rev-parse", "-q", "--verify", "--short", "HEAD"])
    const text = described(printed.stdout, commit.exit_code === 0 ? commit.stdout.trim() : "")
    return contained && repository.prefix !== "" ? `${text}\n${partText(repository.prefix)}` : text
  })
  return (workspace) =>
    describe(workspace).pipe(
      Effect.timeout(limits.gitTimeoutMs),
      // The agent has tools to find out why; its work does not wait for it.
      Effect.catch(() => Effect.succeed(undefined)),
      Effect.catchDefect(() => Effect.succeed(undefined))
    )
}
