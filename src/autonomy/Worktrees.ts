// A git worktree for each worker: it starts from the workspace as it is, uncommitted changes included, and is merged back
// into the working directory when its task is shown to be done. Three-way: what others merged meanwhile stays, and what
// two of them changed differently is a conflict, for which the worker gets both sides. The person's index, branches and commits are not touched.
// No worktree goes whose changes are neither merged nor kept in a ref.
import { join } from "node:path"
import type { AgentId } from "../rune/Ids.ts"
import type { ProcessEnded } from "../sandbox/process/ProcessPort.ts"
import type { Git } from "./Git.ts"

export const worktreePath = (workspace: string, agentId: AgentId): string =>
  join(workspace, ".echs", "worktrees", agentId)

export const refOf = (agentId: AgentId): string => `refs/echs/${agentId}`
/** What of a worktree is in the working directory already. */
export const mergedRef = (agentId: AgentId): string => `refs/echs/merged/${agentId}`

export const linesOf = (text: string): ReadonlyArray<string> => text.split("\n").filter((line) => line !== "")

export type Opened =
  | { readonly _tag: "Opened"; readonly path: string }
  | { readonly _tag: "Failed"; readonly reason: string }

export const failed = (ended: { readonly output: string } | undefined): string =>
  ended === undefined ? "git cannot be run here" : ended.output.trim() || "git failed"

/** Exit 20 and 21: there is no repository, or this is a part of one. */
const topScript = `
prefix=$(git rev-parse --show-prefix 2>/dev/null) || exit 20
[ -z "$prefix" ] || { printf '%s\\n' "$prefix"; exit 21; }
`

const topIssue = (ended: ProcessEnded | undefined): string | undefined => {
  if (ended === undefined) return "git cannot be run here, or nothing would hold it"
  if (ended.exit_code === 20) return "the workspace is no git repository"
  if (ended.exit_code !== 21) return undefined
  return `the workspace is ${ended.stdout.trim()} of a repository, and worktrees need its top`
}

/** Why no worktrees can be made of a workspace; nothing when they can. */
export const worktreesIssue = async (git: Git, workspace: string): Promise<string | undefined> =>
  topIssue(await git.script(workspace, topScript, []))

/**
 * `fill PATH TREE` makes the files of a worktree those of a tree, with the settings of the workspace; what git ignores
 * there stays.
 */
export const fillFunction = `
fill() (
  own=$(cd "$1" && git rev-parse --absolute-git-dir) || exit 3
  mine=$(git rev-parse --absolute-git-dir) || exit 3
  cd "$1" || exit 3
  GIT_DIR="$mine"; GIT_WORK_TREE="$PWD"; GIT_INDEX_FILE="$own/index"; export GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
  git read-tree --reset -u --no-recurse-submodules "$2"
)
`

/** Clears away what nobody works in, then finds the worktree that an interrupted start left behind, or makes one. */
const openScript = `${fillFunction}
path="$1"; ref="$2"
own=$(cd "$path" 2>/dev/null && git rev-parse --absolute-git-dir)
if [ -e "$path/.git" ] && [ -f "$own/index" ] && git rev-parse -q --verify "$ref" >/dev/null; then exit 0; fi
set -e
tree=$(tree_of .)
exclude_echs
mkdir -p "$(dirname "$path")"
parent=$(git rev-parse -q --verify HEAD || true)
base=$(git commit-tree "$tree" \${parent:+-p "$parent"} -m 'workspace at the start of a task')
git update-ref "$ref" "$base"
git worktree prune
rm -rf "$path"
git worktree add -q --detach --force --no-checkout "$path" "$base"
fill "$path" "$tree"
`

/** Worktrees of agents whose ids begin so go, except those that are still worked in. */
export interface Sweep {
  readonly prefix: string
  readonly working: ReadonlyArray<AgentId>
}

export const openWorktree = async (git: Git, workspace: string, agentId: AgentId, sweep?: Sweep): Promise<Opened> => {
  const path = worktreePath(workspace, agentId)
  const script = `${topScript}\n(${sweepScript})\nshift "$((2 + $2))"\n${openScript}`
  const { prefix = "", working = [] } = sweep ?? {}
  const args = [prefix, `${working.length}`, ...working, path, refOf(agentId)]
  const made = await git.script(workspace, script, args)
  const issue = topIssue(made)
  if (issue !== undefined) return { _tag: "Failed", reason: issue }
  return made?.exit_code === 0 ? { _tag: "Opened", path } : { _tag: "Failed", reason: failed(made) }
}

/** Prints the names that nobody works in. `$1` is how their agents' ids begin, `$2` how many of the rest stay. */
const listFunction = `
listed() {
  {
    git for-each-ref --format='%(refname:lstrip=2)' "refs/echs/$1*"
    (cd .echs/worktrees 2>/dev/null && for one in "$1"*; do [ -e "$one" ] && printf '%s\\n' "$one"; done)
  } | sort -u
}
`

/**
 * Exit 7: a repository of its own was made in it, which no ref of this one can keep, and it stays. The index of the
 * worktree knows which files have not changed; one whose link is broken is read as files of the workspace's repository.
 */
const removeFunction = `
remove() (
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
      echo "kept refs/echs/kept/$1"
    fi
    git worktree remove --force "$path" 2>/dev/null || rm -rf "$path" || exit 6
  fi
  git update-ref -d "refs/echs/$1"
  git update-ref -d "refs/echs/merged/$1"
  git worktree prune
  rmdir .echs/worktrees .echs 2>/dev/null
  exit 0
)
`

/** Arguments: how the ids begin, how many agents still work, and these agents. */
const sweepScript = `${listFunction}${removeFunction}
prefix="$1"; count="$2"; shift 2
[ -n "$prefix" ] || exit 0
working=" "
while [ "$count" -gt 0 ]; do working="$working$1 "; shift; count=$((count - 1)); done
listed "$prefix" | while IFS= read -r name; do
  case "$working" in *" $name "*) continue ;; esac
  remove "$name" </dev/null || echo "left $name"
done
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
  const ended = await git.script(workspace, `git rev-parse >/dev/null 2>&1 || exit 3\n${sweepScript}`, [
    ...[prefix, `${working.length}`],
    ...working
  ])
  if (ended?.exit_code !== 0) return undefined
  const lines = linesOf(ended.stdout)
  const named = (mark: string) => lines.flatMap((line) => (line.startsWith(mark) ? [line.slice(mark.length)] : []))
  return { kept: named("kept "), left: named("left ") }
}
