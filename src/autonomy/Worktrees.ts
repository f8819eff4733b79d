// A git worktree for each worker: it starts from the workspace as it is, uncommitted changes included, and is merged back
// into the working directory when its task is shown to be done. Three-way: what others merged meanwhile stays, and what
// two of them changed differently is a conflict, told by file. The person's index, branches and commits are not touched.
import { join } from "node:path"
import type { AgentId } from "../rune/Ids.ts"
import type { Git } from "./Git.ts"

export const worktreePath = (workspace: string, agentId: AgentId): string =>
  join(workspace, ".echs", "worktrees", agentId)

const refOf = (agentId: AgentId): string => `refs/echs/${agentId}`

export type Opened =
  | { readonly _tag: "Opened"; readonly path: string }
  | { readonly _tag: "Failed"; readonly reason: string }

/** Finds the one that an interrupted start left behind, too. */
const openScript = `
set -e
path="$1"; ref="$2"; tree="$3"
[ -e "$path/.git" ] && git rev-parse -q --verify "$ref" >/dev/null && exit 0
exclude="$(git rev-parse --git-common-dir)/info/exclude"
mkdir -p "$(dirname "$exclude")" "$(dirname "$path")"
grep -qxF '/.echs/' "$exclude" 2>/dev/null || echo '/.echs/' >> "$exclude"
parent=$(git rev-parse -q --verify HEAD || true)
base=$(git commit-tree "$tree" \${parent:+-p "$parent"} -m 'workspace at the start of a task')
git update-ref "$ref" "$base"
git worktree prune
rm -rf "$path"
git worktree add -q --detach --force "$path" "$base"
`

const failed = (ended: { readonly output: string } | undefined): string =>
  ended === undefined ? "git cannot be run here" : ended.output.trim() || "git failed"

export const openWorktree = async (git: Git, workspace: string, agentId: AgentId): Promise<Opened> => {
  const path = worktreePath(workspace, agentId)
  const prefix = await git.run(workspace, ["rev-parse", "--show-prefix"])
  if (prefix === undefined) return { _tag: "Failed", reason: "git cannot be run here, or nothing would hold it" }
  const below = prefix.stdout.trim()
  if (below !== "") {
    return { _tag: "Failed", reason: `the workspace is ${below} of a repository, and worktrees need its top` }
  }
  const tree = await git.writeTree(workspace)
  if (tree === undefined) return { _tag: "Failed", reason: "the workspace is no git repository" }
  const ended = await git.script(workspace, openScript, [path, refOf(agentId), tree])
  return ended?.exit_code === 0 ? { _tag: "Opened", path } : { _tag: "Failed", reason: failed(ended) }
}

export type Merged =
  | { readonly _tag: "Merged" }
  | { readonly _tag: "Conflict"; readonly files: ReadonlyArray<string> }
  | { readonly _tag: "Failed"; readonly reason: string }

/** Exit 10 and the names of the files: a conflict, and nothing was changed. */
const mergeScript = `
set -e
ref="$1"; ours="$2"; theirs="$3"
base=$(git rev-parse -q --verify "$ref")
left=$(git commit-tree "$ours" -p "$base" -m 'workspace')
right=$(git commit-tree "$theirs" -p "$base" -m 'task')
if ! out=$(git merge-tree --write-tree --name-only "$left" "$right"); then
  printf '%s\\n' "$out" | sed -n '2,/^$/p'
  exit 10
fi
merged=$(printf '%s\\n' "$out" | head -n 1)
[ "$merged" = "$ours" ] && exit 0
git diff --no-ext-diff --no-textconv --binary "$ours" "$merged" | git apply --whitespace=nowarn
`

/** Merging again what was merged already changes nothing. */
export const mergeWorktree = async (git: Git, workspace: string, agentId: AgentId): Promise<Merged> => {
  const theirs = await git.writeTree(worktreePath(workspace, agentId))
  const ours = await git.writeTree(workspace)
  if (theirs === undefined || ours === undefined) return { _tag: "Failed", reason: "the worktree is gone" }
  const ended = await git.script(workspace, mergeScript, [refOf(agentId), ours, theirs])
  if (ended?.exit_code === 0) return { _tag: "Merged" }
  if (ended?.exit_code !== 10) return { _tag: "Failed", reason: failed(ended) }
  return { _tag: "Conflict", files: ended.stdout.split("\n").filter((line) => line !== "") }
}

const sweepScript = `
prefix="$1"; shift
cd .echs/worktrees 2>/dev/null || exit 0
for one in "$prefix"*; do
  [ -e "$one" ] || continue
  case " $* " in *" $one "*) continue ;; esac
  git worktree remove --force "$one" 2>/dev/null || rm -rf "$one"
  git update-ref -d "refs/echs/$one" 2>/dev/null
done
cd ../.. && git worktree prune
rmdir .echs/worktrees .echs 2>/dev/null
exit 0
`

/** Removes the worktrees whose agents' ids begin so, except those that are still worked in. */
export const sweepWorktrees = async (
  git: Git,
  workspace: string,
  prefix: string,
  kept: ReadonlyArray<AgentId>
): Promise<void> => {
  await git.script(workspace, sweepScript, [prefix, ...kept])
}
