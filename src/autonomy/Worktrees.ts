// A git worktree for each worker: it starts from the workspace as it is, uncommitted changes included, and is merged back
// into the working directory when its task is shown to be done. Three-way: what others merged meanwhile stays, and what
// two of them changed differently is a conflict, told by file. The person's index, branches and commits are not touched.
// No worktree goes whose changes are neither merged nor kept in a ref.
import { join } from "node:path"
import type { AgentId } from "../rune/Ids.ts"
import type { Git } from "./Git.ts"

export const worktreePath = (workspace: string, agentId: AgentId): string =>
  join(workspace, ".echs", "worktrees", agentId)

const refOf = (agentId: AgentId): string => `refs/echs/${agentId}`
/** What of a worktree is in the working directory already. */
const mergedRef = (agentId: AgentId): string => `refs/echs/merged/${agentId}`

const linesOf = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line !== "")

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
git worktree add -q --detach --force --no-checkout "$path" "$base"
`

/** In the worktree, whose settings may be others than those of the workspace; its index is there when its files are. */
const fillScript = `
index="$(git rev-parse --absolute-git-dir)/index" || exit 3
[ -f "$index" ] || git reset -q --hard --no-recurse-submodules HEAD
`

const failed = (ended: { readonly output: string } | undefined): string =>
  ended === undefined ? "git cannot be run here" : ended.output.trim() || "git failed"

/** Why no worktrees can be made of a workspace; nothing when they can. */
export const worktreesIssue = async (git: Git, workspace: string): Promise<string | undefined> => {
  const prefix = await git.run(workspace, ["rev-parse", "--show-prefix"])
  if (prefix === undefined) return "git cannot be run here, or nothing would hold it"
  if (prefix.exit_code !== 0) return "the workspace is no git repository"
  const below = prefix.stdout.trim()
  return below === "" ? undefined : `the workspace is ${below} of a repository, and worktrees need its top`
}

export const openWorktree = async (git: Git, workspace: string, agentId: AgentId): Promise<Opened> => {
  const path = worktreePath(workspace, agentId)
  const issue = await worktreesIssue(git, workspace)
  if (issue !== undefined) return { _tag: "Failed", reason: issue }
  const tree = await git.writeTree(workspace)
  if (tree === undefined) return { _tag: "Failed", reason: "the workspace is no git repository" }
  const made = await git.script(workspace, openScript, [path, refOf(agentId), tree])
  if (made?.exit_code !== 0) return { _tag: "Failed", reason: failed(made) }
  const ended = await git.script(path, fillScript, [])
  return ended?.exit_code === 0 ? { _tag: "Opened", path } : { _tag: "Failed", reason: failed(ended) }
}

export type Merged =
  | { readonly _tag: "Merged" }
  | { readonly _tag: "Conflict"; readonly files: ReadonlyArray<string> }
  | { readonly _tag: "Failed"; readonly reason: string }

/** Exit 10 and the names of the files: a conflict, and nothing was changed. */
const mergeScript = `
set -e
ref="$1"; ours="$2"; theirs="$3"; mark="$4"
base=$(git rev-parse -q --verify "$ref")
left=$(git commit-tree "$ours" -p "$base" -m 'workspace')
right=$(git commit-tree "$theirs" -p "$base" -m 'task')
if ! out=$(git merge-tree --write-tree --name-only "$left" "$right"); then
  printf '%s\\n' "$out" | sed -n '2,/^$/p'
  exit 10
fi
merged=$(printf '%s\\n' "$out" | head -n 1)
if [ "$merged" != "$ours" ]; then
  git diff --no-ext-diff --no-textconv --binary "$ours" "$merged" | git apply --whitespace=nowarn
fi
git update-ref "$mark" "$right"
`

/** Merges the work as it was taken, else as it is now. Merging again what was merged already changes nothing. */
export const mergeWorktree = async (git: Git, workspace: string, agentId: AgentId, taken?: string): Promise<Merged> => {
  const theirs = taken ?? (await git.writeTree(worktreePath(workspace, agentId)))
  const ours = await git.writeTree(workspace)
  if (theirs === undefined || ours === undefined) return { _tag: "Failed", reason: "the worktree is gone" }
  const ended = await git.script(workspace, mergeScript, [refOf(agentId), ours, theirs, mergedRef(agentId)])
  if (ended?.exit_code === 0) return { _tag: "Merged" }
  if (ended?.exit_code !== 10) return { _tag: "Failed", reason: failed(ended) }
  return { _tag: "Conflict", files: linesOf(ended.stdout) }
}

const listScript = `
{
  git for-each-ref --format='%(refname:lstrip=2)' "refs/echs/$1*"
  cd .echs/worktrees 2>/dev/null && for one in "$1"*; do [ -e "$one" ] && printf '%s\\n' "$one"; done
} | sort -u
`

/**
 * Exit 7: a repository of its own was made in it, which no ref of this one can keep, and it stays. The index of the
 * worktree knows which files have not changed; one whose link is broken is read as files of the workspace's repository.
 */
const removeScript = `
path=".echs/worktrees/$1"
mine=$(git rev-parse --absolute-git-dir) || exit 3
if [ -e "$path" ]; then
  place=$(mktemp -d "$mine/echs-index.XXXXXX") || exit 3
  trap 'rm -rf "$place"' EXIT
  own=$(cd "$path" && git rev-parse --absolute-git-dir 2>/dev/null)
  [ "$own" != "$mine" ] && [ -f "$own/index" ] && cp -p "$own/index" "$place/index"
  tree=$(cd "$path" && export GIT_DIR="$mine" GIT_WORK_TREE="$PWD" GIT_INDEX_FILE="$place/index" &&
    stage . >/dev/null 2>&1 && git write-tree) || exit 4
  base=$(git rev-parse -q --verify "refs/echs/$1" || true)
  start=$(git rev-parse -q --verify "$base^{tree}" || git hash-object -t tree /dev/null)
  merged=$(git rev-parse -q --verify "refs/echs/merged/$1^{tree}" || true)
  if [ "$tree" != "$start" ] && [ "$tree" != "$merged" ]; then
    git diff-tree -r --raw "$start" "$tree" | grep -q '^:[0-7]* 160000' && exit 7
    kept=$(git commit-tree "$tree" \${base:+-p "$base"} -m 'work of a task that was not merged') || exit 5
    git update-ref "refs/echs/kept/$1" "$kept" || exit 5
    echo "refs/echs/kept/$1"
  fi
  git worktree remove --force "$path" 2>/dev/null || rm -rf "$path" || exit 6
fi
git update-ref -d "refs/echs/$1"
git update-ref -d "refs/echs/merged/$1"
git worktree prune
rmdir .echs/worktrees .echs 2>/dev/null
exit 0
`

export interface Swept {
  /** Refs that hold what nobody had merged. */
  readonly kept: ReadonlyArray<string>
  /** Worktrees that could not be removed without losing something. */
  readonly left: ReadonlyArray<string>
}

/**
 * Removes the worktrees and refs whose agents' ids begin so, except those that are still worked in. What was changed in one
 * and not merged is kept in a ref first. Nothing when git cannot be run.
 */
export const sweepWorktrees = async (
  git: Git,
  workspace: string,
  prefix: string,
  working: ReadonlyArray<AgentId>
): Promise<Swept | undefined> => {
  const listed = await git.script(workspace, listScript, [prefix])
  if (listed?.exit_code !== 0) return undefined
  const names = linesOf(listed.stdout).filter((name) => !working.includes(name as AgentId))
  const kept: Array<string> = []
  const left: Array<string> = []
  for (const name of names) {
    const ended = await git.script(workspace, removeScript, [name])
    if (ended?.exit_code === 0) kept.push(...linesOf(ended.stdout))
    else left.push(name)
  }
  return { kept, left }
}
