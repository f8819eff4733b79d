// Where the evidence of a goal is checked: a clean copy of the files as they are, made by git and gone afterwards, so that
// nothing counts which the tree does not hold, and what a check leaves behind reaches nobody. Where git cannot make one,
// the directory itself is the place.
import { join } from "node:path"
import type { ConversationState, PlanState } from "../machine/State.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { EvidenceSpec } from "../rune/kinds/evidence.ts"
import type { WorkspaceBase } from "../rune/kinds/plan.ts"
import { changesBetween, standingOf, treeNameOf } from "./Changes.ts"
import type { Place } from "./evidence/Place.ts"
import { markOf } from "./evidence/Spec.ts"
import { type Git, makeGit } from "./Git.ts"
import type { Tools } from "./GoalContext.ts"

/** Installed packages that git ignores and checks need: found where they are, and not to be changed. */
const installed = [".venv", "venv", "vendor"]

/** Prints the tree of the directory that was copied. */
const copyScript = `
set -e
source="$1"; copy="$2"; shift 2
if [ -d "$source" ]; then tree=$(tree_of "$source"); else tree=$(git rev-parse -q --verify "$source^{tree}"); fi
exclude_echs
rm -rf "$copy"
mkdir -p "$copy"
GIT_INDEX_FILE="$copy.index"; export GIT_INDEX_FILE
git read-tree "$tree"
git checkout-index --all --force --prefix="$copy/"
rm -f "$copy.index"
for one in "$@"; do
  if [ -e "$one" ] && [ ! -e "$copy/$one" ]; then ln -s "$PWD/$one" "$copy/$one"; fi
done
printf '%s\\n' "$tree"
`

const removeScript = `
rm -rf "$1" "$1.index"
rmdir .echs/proof .echs 2>/dev/null
exit 0
`

export const copyPath = (workspace: string, name: string): string => join(workspace, ".echs", "proof", name)

/** A place, and how its files stand. */
export interface ProofPlace extends Place {
  readonly standing: WorkspaceBase | undefined
  /** The copy that it is, until somebody removed it. */
  copy?: string | undefined
}

interface ProofScene {
  readonly state: ConversationState
  readonly plan: PlanState
  readonly signal: AbortSignal
}

export interface ProofRequest {
  /** Of the copy: the same piece of work finds and replaces its own. */
  readonly name: string
  /** Where the files are; the workspace unless told. */
  readonly directory?: string
  /** A tree of the repository instead. */
  readonly tree?: string
  readonly agentId?: AgentId
  readonly isBaseline?: boolean
}

const baselineOf = (plan: PlanState): Place["baseline"] => {
  const byMark = new Map(plan.baseline.map((one) => [markOf(one.spec), one]))
  return (spec: EvidenceSpec) => byMark.get(markOf(spec))
}

/** A place for files of which it is known how they stand. */
const placeOf = (
  git: Git,
  scene: ProofScene,
  workspace: string,
  request: ProofRequest,
  standing: WorkspaceBase | undefined
): ProofPlace => {
  const { plan, signal, state } = scene
  const { agentId = null, directory = workspace, isBaseline = false } = request
  let changes: ReturnType<Place["changes"]> | undefined
  return {
    ...{ state, agentId, workspace, directory, standing, isBaseline, signal },
    tree: treeNameOf(standing),
    baseline: baselineOf(plan),
    changes: () => {
      changes ??= changesBetween(git, workspace, (plan.base ?? undefined) as WorkspaceBase | undefined, standing)
      return changes
    }
  }
}

/** A place to check in, for the files as they stand, without a copy. */
export const placeIn = async (
  tools: Tools,
  scene: ProofScene,
  workspace: string,
  request: ProofRequest
): Promise<ProofPlace> => {
  const git = makeGit(tools, workspace, scene.signal)
  const standing = await standingOf(tools, git, request.directory ?? workspace)
  return placeOf(git, scene, workspace, request, standing)
}

/** Runs the work on a clean copy where one can be made. */
export const withCleanCopy = async <A>(
  tools: Tools,
  scene: ProofScene,
  workspace: string,
  request: ProofRequest,
  work: (place: ProofPlace) => Promise<A>
): Promise<A> => {
  const git = makeGit(tools, workspace, scene.signal)
  const copy = copyPath(workspace, request.name)
  const source = request.tree ?? request.directory ?? workspace
  const made = await git.script(workspace, copyScript, [source, copy, ...installed])
  const tree = made?.stdout.trim()
  if (made?.exit_code !== 0 || tree === undefined) return work(await placeIn(tools, scene, workspace, request))
  const place: ProofPlace = { ...placeOf(git, scene, workspace, request, { tree }), directory: copy, copy }
  try {
    return await work(place)
  } finally {
    // A check that was cut off leaves the copy for its next run, which replaces it.
    if (place.copy !== undefined) await git.script(workspace, removeScript, [copy]).catch(() => undefined)
  }
}
