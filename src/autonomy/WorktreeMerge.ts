// Merges the work of a worktree into the working directory, three ways: what others did meanwhile stays. What cannot be
// merged goes back to its worker with both sides, and a person's own change stands; nothing is thrown away.
import { textBefore } from "../rune/Elements.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { Git } from "./Git.ts"
import { failed, fillFunction, linesOf, mergedRef, refOf, worktreePath } from "./Worktrees.ts"

export interface Conflict {
  readonly _tag: "Conflict"
  readonly files: ReadonlyArray<string>
  /** Those of the files that a person changed: theirs stand, and what the worker did there is not in them any more. */
  readonly persons: ReadonlyArray<string>
  /** What the worker had done to those, to be done again around it. */
  readonly lost: string
}

export type Merged =
  /** The files of the workspace with the work in them. */
  { readonly _tag: "Merged"; readonly tree: string } | Conflict | { readonly _tag: "Failed"; readonly reason: string }

/**
 * Exit 10: a conflict. The working directory is as it was; the worktree starts from it now and holds both sides, between
 * marks, and of files that differ from the last known state of the workspace, which a person changed, theirs alone. Marks that are still in
 * there are a conflict, too. Nothing else of the worktree is lost, and no merge is ever half done.
 */
const mergeScript = `${fillFunction}
set -e
ref="$1"; mark="$2"; path="$3"; theirs="$4"; known="$5"; copy="$6"
[ -z "$copy" ] || rm -rf "$copy"
base=$(git rev-parse -q --verify "$ref")
[ -n "$theirs" ] || theirs=$(tree_of "$path")
ours=$(tree_of .)
left=$(git commit-tree "$ours" -p "$base" -m 'workspace')
right=$(git commit-tree "$theirs" -p "$base" -m 'task')
diff() { git diff --no-ext-diff --no-textconv --no-renames "$@"; }
marks=$(diff "$base" "$right" | sed -n -e 's/^+++ b\\//:/p' -e 's/^+<<<<<<< \\([0-9a-f]\\{40,\\}\\)$/\\1/p')
left_at=$(printf '%s\\n' "$marks" | grep -v '^:' | head -n 1 || true)
if [ -n "$left_at" ]; then
  # Whoever put them there may have been cut off before it said what they start from.
  git rev-parse -q --verify "$left_at^{commit}" >/dev/null && git update-ref "$ref" "$left_at"
  printf '%s\\n' "$marks" | awk '/^:/ { file = substr($0, 2); next } file != "" { print "both " file; file = "" }'
  exit 10
fi
if out=$(git merge-tree --write-tree --name-only --no-messages "$left" "$right"); then
  merged=$(printf '%s\\n' "$out" | head -n 1)
  if [ "$merged" != "$ours" ]; then
    diff --binary "$ours" "$merged" | git apply --whitespace=nowarn
  fi
  git update-ref "$mark" "$right"
  printf '%s\\n' "$merged"
  exit 0
fi
both=$(printf '%s\\n' "$out" | head -n 1)
files=$(printf '%s\\n' "$out" | sed 1d)
[ -n "$known" ] || known="$base"
place=$(mktemp -d "$(git rev-parse --absolute-git-dir)/echs-index.XXXXXX")
trap 'rm -rf "$place"' EXIT
GIT_INDEX_FILE="$place/index"; export GIT_INDEX_FILE
git read-tree "$both"
printf '%s\\n' "$files" | while IFS= read -r file; do
  if git diff --quiet "$known" "$ours" -- "$file"; then printf 'both %s\\n' "$file"; continue; fi
  git update-index --force-remove -- "$file"
  git ls-tree "$ours" -- "$file" | git update-index --index-info
  printf 'person %s\\n' "$file"
  printf '%s\\n' "$file" >> "$place/persons"
done
both=$(git write-tree)
unset GIT_INDEX_FILE
fill "$path" "$both"
own=$(cd "$path" && git rev-parse --absolute-git-dir)
(GIT_DIR="$own"; export GIT_DIR; git update-ref --no-deref HEAD "$left")
git update-ref "$ref" "$left"
echo
[ ! -f "$place/persons" ] || while IFS= read -r file; do diff "$base" "$right" -- "$file"; done < "$place/persons"
exit 10
`

export interface MergeRequest {
  /** The work as it was taken; as it is now when nothing is said. */
  readonly taken?: string
  /** How the workspace stood when it was last looked at: what differs from that, a person changed. */
  readonly known?: string
  /** A copy that is no longer needed. */
  readonly copy?: string
}

/** Merges the work of a worktree into the working directory. Merging again what was merged already changes nothing. */
export const mergeWorktree = async (
  git: Git,
  workspace: string,
  agentId: AgentId,
  { copy = "", known = "", taken = "" }: MergeRequest = {}
): Promise<Merged> => {
  const path = worktreePath(workspace, agentId)
  const args = [refOf(agentId), mergedRef(agentId), path, taken, known, copy]
  const ended = await git.script(workspace, mergeScript, args)
  if (ended?.exit_code === 0) return { _tag: "Merged", tree: ended.stdout.trim() }
  return ended?.exit_code === 10 ? conflictIn(ended.stdout) : { _tag: "Failed", reason: failed(ended) }
}

const conflictIn = (text: string): Conflict => {
  const list = linesOf(textBefore(text, "\n\n"))
  const named = (mark: string) => list.flatMap((line) => (line.startsWith(mark) ? [line.slice(mark.length)] : []))
  const persons = named("person ")
  const end = text.indexOf("\n\n")
  return { _tag: "Conflict", files: [...named("both "), ...persons], persons, lost: end < 0 ? "" : text.slice(end + 2) }
}
