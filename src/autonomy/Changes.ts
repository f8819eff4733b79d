// What changed in the workspace while the goal was pursued. With git: trees of the whole working directory, before and
// after, written beside its index and touching neither index nor branch. Without: a listing before and after.
import type { ConversationState, PlanState } from "../machine/State.ts"
import type { FileChange, WorkspaceBase } from "../rune/kinds/plan.ts"
import { makeGit } from "./Git.ts"
import type { Tools } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"

const tree = /^[0-9a-f]{40,64}$/u

/** How the workspace stands now; nothing when that cannot be told. */
export const baseOf = async (
  tools: Tools,
  state: ConversationState,
  signal: AbortSignal
): Promise<WorkspaceBase | undefined> => {
  const { workspace } = state.session.config
  if (workspace === undefined) return undefined
  const written = await makeGit(tools, workspace, signal).writeTree(workspace)
  if (written !== undefined && tree.test(written)) return { tree: written }
  const files = await tools.look.listing(workspace, limits.listedFilesMax)
  return files === undefined ? undefined : { files }
}

const count = (text: string | undefined): number | undefined => {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : undefined
}

/** A line of `git diff --numstat`: added, removed, path; binary files have no counts. */
const ofNumstat = (line: string): FileChange => {
  const [added, removed, ...path] = line.split("\t")
  const plus = count(added)
  const minus = count(removed)
  return {
    path: path.join("\t"),
    ...(plus === undefined ? {} : { added: plus }),
    ...(minus === undefined ? {} : { removed: minus })
  }
}

type Listing = Readonly<Record<string, string>>

const ofListings = (before: Listing, after: Listing): ReadonlyArray<FileChange> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((path) => before[path] !== after[path])
    .sort()
    .map((path) => ({ path }))

/** The files that changed since; nothing when that cannot be told. */
export const changesSince = async (
  tools: Tools,
  state: ConversationState,
  plan: PlanState,
  signal: AbortSignal
): Promise<ReadonlyArray<FileChange> | undefined> => {
  const { workspace } = state.session.config
  const { base } = plan
  if (workspace === undefined || base === null) return undefined
  if (base.tree === undefined) {
    const now = await tools.look.listing(workspace, limits.listedFilesMax)
    return now === undefined || base.files === undefined ? undefined : ofListings(base.files, now)
  }
  const git = makeGit(tools, workspace, signal)
  const now = await git.writeTree(workspace)
  const stat =
    now === undefined
      ? undefined
      : await git.run(workspace, ["diff", "--no-ext-diff", "--no-textconv", "--numstat", base.tree, now])
  return stat?.exit_code === 0
    ? stat.stdout
        .split("\n")
        .filter((line) => line !== "")
        .map(ofNumstat)
    : undefined
}
