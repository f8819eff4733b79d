// The state of the files, and what changed between two of them. With git: trees of the whole working directory, written
// beside its index and touching neither index nor branch. Without: a listing with a mark of the content of each file.
import { createHash } from "node:crypto"
import type { PlanState } from "../machine/State.ts"
import type { FileChange, WorkspaceBase } from "../rune/kinds/plan.ts"
import { type Git, makeGit } from "./Git.ts"
import type { Tools } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"

const tree = /^[0-9a-f]{40,64}$/u

/** How a directory stands now; nothing when that cannot be told. */
export const standingOf = async (tools: Tools, git: Git, directory: string): Promise<WorkspaceBase | undefined> => {
  const written = await git.writeTree(directory)
  if (written !== undefined && tree.test(written)) return { tree: written }
  const files = await tools.look.listing(directory, limits.listedFilesMax)
  return files === undefined ? undefined : { files }
}

/** A name for a state of the files: the same files, the same name. */
export const treeNameOf = (standing: WorkspaceBase | undefined): string | undefined => {
  const files = standing?.files
  if (files === undefined) return standing?.tree
  const lines = Object.keys(files)
    .sort()
    .map((path) => `${path}\0${files[path]}\n`)
  return `files:${createHash("sha256").update(lines.join("")).digest("hex")}`
}

const count = (text: string | undefined): number | undefined => {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : undefined
}

/** A line of `git diff --numstat`: added, removed, path; binary files have no counts. */
const ofNumstat = (line: string, statuses: ReadonlyMap<string, FileChange["status"]>): FileChange => {
  const [added, removed, ...rest] = line.split("\t")
  const plus = count(added)
  const minus = count(removed)
  const path = rest.join("\t")
  const status = statuses.get(path)
  return {
    path,
    ...(plus === undefined ? {} : { added: plus }),
    ...(minus === undefined ? {} : { removed: minus }),
    ...(status === undefined ? {} : { status })
  }
}

const statusNames: Readonly<Record<string, FileChange["status"]>> = { A: "added", D: "deleted" }

/** `--raw --numstat -z`-less output: raw lines begin with a colon, then the counts. */
const ofDiff = (text: string): ReadonlyArray<FileChange> => {
  const lines = text.split("\n").filter((line) => line !== "")
  const raw = lines.filter((line) => line.startsWith(":"))
  const statuses = new Map(
    raw.map((line) => {
      const [facts = "", ...path] = line.split("\t")
      return [path.join("\t"), statusNames[facts.split(" ").at(-1) ?? ""] ?? "modified"] as const
    })
  )
  return lines.filter((line) => !line.startsWith(":")).map((line) => ofNumstat(line, statuses))
}

type Listing = Readonly<Record<string, string>>

const statusOf = (before: string | undefined, after: string | undefined): NonNullable<FileChange["status"]> =>
  before === undefined ? "added" : after === undefined ? "deleted" : "modified"

const ofListings = (before: Listing, after: Listing): ReadonlyArray<FileChange> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((path) => before[path] !== after[path])
    .sort()
    .map((path) => ({ path, status: statusOf(before[path], after[path]) }))

/** The files that differ; nothing when that cannot be told. */
export const changesBetween = async (
  git: Git,
  workspace: string,
  before: WorkspaceBase | undefined,
  after: WorkspaceBase | undefined
): Promise<ReadonlyArray<FileChange> | undefined> => {
  if (before?.files !== undefined && after?.files !== undefined) return ofListings(before.files, after.files)
  if (before?.tree === undefined || after?.tree === undefined) return undefined
  if (before.tree === after.tree) return []
  const flags = ["--no-ext-diff", "--no-textconv", "--no-renames", "--raw", "--numstat"]
  const stat = await git.run(workspace, ["diff", ...flags, before.tree, after.tree])
  return stat?.exit_code === 0 ? ofDiff(stat.stdout) : undefined
}

/** What changed in the workspace while the goal was pursued. */
export const changesSince = async (
  tools: Tools,
  workspace: string | undefined,
  { base }: Pick<PlanState, "base">,
  signal: AbortSignal
): Promise<ReadonlyArray<FileChange> | undefined> => {
  if (workspace === undefined || base === null) return undefined
  const git = makeGit(tools, workspace, signal)
  return changesBetween(git, workspace, base as WorkspaceBase, await standingOf(tools, git, workspace))
}
