// What the person asked for beside the goal: checks that no plan can drop, checks that no model sees, and paths that no
// worker may change. The policy keeps tools from writing to those; whatever else changed them is found by comparing.
import type { ConversationState, PlanState } from "../machine/State.ts"
import type { EvidenceSpec } from "../rune/kinds/evidence.ts"
import type { Asked } from "./Evidence.ts"

/** The protected paths as a check; nothing when there are none. */
export const protectionOf = ({ demands: { protect } }: Pick<PlanState, "demands">): ReadonlyArray<Asked> =>
  protect.length === 0 ? [] : [{ spec: { type: "unchanged", paths: protect }, origin: "person" }]

/** All that the person demands, as checks. */
export const demandsOf = (plan: Pick<PlanState, "demands">): ReadonlyArray<Asked> => [
  ...plan.demands.evidence.map((spec) => ({ spec: spec as EvidenceSpec, origin: "person" as const })),
  ...protectionOf(plan),
  ...plan.demands.hidden_evidence.map((spec) => ({ spec: spec as EvidenceSpec, origin: "hidden" as const }))
]

/** Built-in tools whose arguments tell what they would write. Of others, such as shells, only the outcome tells. */
const writers = ["write_file", "edit_file", "apply_patch"]

const rules = new WeakMap<object, unknown>()

/** One rule for each list of paths: rules are read once and known by identity. */
const ruleFor = (protect: ReadonlyArray<string>): unknown => {
  const known = rules.get(protect)
  if (known !== undefined) return known
  const path = protect.flatMap((one) => [one, `${one.replace(/\/+$/u, "")}/**`])
  const made = { decision: "deny", tool: writers, path, access: "write", reason: "the goal protects it" }
  rules.set(protect, made)
  return made
}

/** The state as the policy sees it for a worker: protected paths are denied before any other rule speaks. */
export const withProtection = (state: ConversationState): ConversationState => {
  const { plan, session } = state
  if (plan === null || plan.demands.protect.length === 0) return state
  const { policy } = session.config
  const guarded = { ...policy, rules: [ruleFor(plan.demands.protect), ...(policy?.rules ?? [])] }
  return { ...state, session: { ...session, config: { ...session.config, policy: guarded } } } as ConversationState
}
