// The proof of a met goal, again: the tree that `plan.goal_met` names is made anew from the objects of the repository, in a
// clean copy, and every check of its evidence runs there. What cannot be repeated is said with the reason, not passed.
import type { ConversationState, PlanState } from "../machine/State.ts"
import { specText } from "../rune/EvidenceText.ts"
import type { PayloadOf } from "../rune/Kinds.ts"
import type { Evidence, EvidenceSpec } from "../rune/kinds/evidence.ts"
import { checkEvidence } from "./Evidence.ts"
import type { Place } from "./evidence/Place.ts"
import { type Git, makeGit } from "./Git.ts"
import type { Tools } from "./GoalContext.ts"
import { placeIn, withCleanCopy } from "./ProofPlace.ts"

export interface RepeatedCheck {
  readonly check: string
  readonly outcome: "passed" | "failed" | "not_repeated"
  readonly detail: string
  readonly origin?: Evidence["origin"]
}

export interface RepeatedProof {
  readonly plan_id: string
  readonly goal: string
  readonly workspace: string | null
  readonly tree: string | null
  readonly checks: ReadonlyArray<RepeatedCheck>
}

const proofRef = (planId: string): string => `refs/echs/proof/${planId}`

const keepScript = `
set -e
if [ "$3" = "" ]; then base=""; else base=$(git commit-tree "$3" -m 'workspace at the start of a goal'); fi
proof=$(git commit-tree "$2" \${base:+-p "$base"} -m 'tree that a goal was proved on')
git update-ref "$1" "$proof"
`

/** Keeps the tree of a proof, and the one the goal began with, from being collected as garbage. */
export const keepProof = async (
  tools: Tools,
  { session }: ConversationState,
  plan: PlanState,
  of: { readonly tree: string | undefined; readonly signal: AbortSignal }
): Promise<void> => {
  const { workspace } = session.config
  if (workspace === undefined || of.tree === undefined || of.tree.startsWith("files:")) return
  const base = plan.base?.tree ?? ""
  await makeGit(tools, workspace, of.signal).script(workspace, keepScript, [proofRef(plan.plan_id), of.tree, base])
}

/** Checks whose outcome depends on how things stood when the goal began. */
const needsBase = ({ type }: EvidenceSpec): boolean => type === "diff" || type === "unchanged"

interface Request {
  readonly tools: Tools
  readonly state: ConversationState
  readonly plan: PlanState
  readonly met: PayloadOf<"plan.goal_met">
  readonly workspace: string
  readonly signal: AbortSignal
}

const unrepeated = (evidence: ReadonlyArray<Evidence>, reason: string): ReadonlyArray<RepeatedCheck> =>
  evidence.map(({ origin, spec }) => ({
    check: specText(spec),
    outcome: "not_repeated",
    detail: reason,
    ...(origin === undefined ? {} : { origin })
  }))

const has = async (git: Git, workspace: string, tree: string): Promise<boolean> =>
  (await git.run(workspace, ["cat-file", "-e", `${tree}^{tree}`]))?.exit_code === 0

/** Why one check cannot be repeated although the tree is there. */
const issueOf = (spec: EvidenceSpec, place: Place, knowsBase: boolean): string | undefined => {
  if (needsBase(spec) && !knowsBase) return "the tree that the goal began with is not in the repository"
  return spec.type === "delta" && place.baseline(spec)?.value === undefined
    ? "the number at the beginning is not on record"
    : undefined
}

const runAll = async (request: Request, place: Place, knowsBase: boolean): Promise<ReadonlyArray<RepeatedCheck>> => {
  const checks: Array<RepeatedCheck> = []
  for (const { origin, spec } of request.met.evidence) {
    const issue = issueOf(spec, place, knowsBase)
    const of = { check: specText(spec), ...(origin === undefined ? {} : { origin }) }
    if (issue !== undefined) {
      checks.push({ ...of, outcome: "not_repeated", detail: issue })
      continue
    }
    const [found] = await checkEvidence(request.tools, [{ spec, origin: origin ?? "person" }], place)
    checks.push({ ...of, outcome: found?.passed === true ? "passed" : "failed", detail: found?.detail ?? "" })
  }
  return checks
}

const repeatInGit = async (request: Request, git: Git, tree: string): Promise<ReadonlyArray<RepeatedCheck>> => {
  const { met, plan, workspace } = request
  if (!(await has(git, workspace, tree))) {
    const from = `git fetch REPOSITORY ${proofRef(plan.plan_id)}`
    return unrepeated(met.evidence, `the repository does not have tree ${tree}; get it with ${from}`)
  }
  const knowsBase = plan.base?.tree !== undefined && (await has(git, workspace, plan.base.tree))
  const copy = { name: `${plan.plan_id}-verify`, tree }
  return withCleanCopy(request.tools, request, workspace, copy, (place) =>
    place.copy === undefined
      ? Promise.resolve(unrepeated(met.evidence, "no clean copy of the tree could be made"))
      : runAll(request, place, knowsBase)
  )
}

/** Without git the files themselves are the state: it can be repeated only while they are as they were. */
const repeatHere = async (request: Request, name: string): Promise<ReadonlyArray<RepeatedCheck>> => {
  const { met, plan, tools, workspace } = request
  const place = await placeIn(tools, request, workspace, { name: `${plan.plan_id}-verify` })
  if (place.tree !== name) return unrepeated(met.evidence, "the files were not in git, and are others by now")
  return runAll(request, place, plan.base?.files !== undefined)
}

/** Runs every check of a met goal again; the state is the one right after it was met. */
export const verifyGoal = async (
  tools: Tools,
  state: ConversationState,
  met: PayloadOf<"plan.goal_met">,
  at: { readonly workspace: string | undefined; readonly signal: AbortSignal }
): Promise<RepeatedProof> => {
  const { plan } = state
  const { signal, workspace } = at
  const facts = {
    plan_id: met.plan_id,
    goal: plan?.goal ?? "",
    workspace: workspace ?? null,
    tree: met.tree ?? null
  }
  const refuse = (reason: string): RepeatedProof => ({ ...facts, checks: unrepeated(met.evidence, reason) })
  if (plan === null || workspace === undefined) return refuse("the goal had no workspace; name one with --workspace")
  if (met.tree === undefined) return refuse("the log names no tree: the files could not be told apart")
  if (tools.runner?.contained !== true)
    return refuse("no sandbox holds commands here; --without-sandbox runs them anyway")
  const request: Request = { tools, state, plan, met, workspace, signal }
  const git = makeGit(tools, workspace, signal)
  const checks = met.tree.startsWith("files:")
    ? await repeatHere(request, met.tree)
    : await repeatInGit(request, git, met.tree)
  return { ...facts, checks }
}
