// Whether a critic looked at what it passes: its calls are on record, and one of them has to be about what changed. It is
// asked once; a critic that passes again without a look is believed no more than the checks are, which ran either way.
import type { AgentState, CallRecord, ConversationState, PlanState } from "../machine/State.ts"
import { agentOf } from "../machine/view/Select.ts"
import { changesSince } from "./Changes.ts"
import type { Tools } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"

const asked = "you have not looked at what changed"

export const notLooked = (paths: ReadonlyArray<string>): string => {
  const shown = paths.slice(0, limits.changesShownMax).join(", ")
  return `${asked} (${shown}): read it, then hand in your verdict`
}

const callsOf = (agent: AgentState): ReadonlyArray<CallRecord> =>
  agent.transcript.flatMap((item) => (item.type === "assistant" ? item.calls : []))

/** Tools that show every change without being told a path. */
const showsAll: ReadonlySet<string> = new Set(["git_diff"])

const isLook = ({ arguments: input, result, tool_name: name }: CallRecord, paths: ReadonlyArray<string>): boolean => {
  if (result?.status !== "success" || name === "submit_review") return false
  const given = JSON.stringify(input ?? {})
  return showsAll.has(name) || paths.some((path) => given.includes(JSON.stringify(path).slice(1, -1)))
}

const wasAsked = ({ result, tool_name: name }: CallRecord): boolean =>
  name === "submit_review" && result?.error?.message.includes(asked) === true

/** The files that changed, when the critic read none of them and was not asked to before. */
export const unreadChanges = async (
  tools: Tools,
  state: ConversationState,
  plan: PlanState,
  signal: AbortSignal
): Promise<ReadonlyArray<string>> => {
  const critic = plan.critic_id === null ? undefined : agentOf(state, plan.critic_id)
  const calls = critic === undefined ? [] : callsOf(critic)
  if (critic === undefined || calls.some(wasAsked)) return []
  const changes = (await changesSince(tools, state.session.config.workspace, plan, signal)) ?? []
  const paths = changes.filter(({ status }) => status !== "deleted").map(({ path }) => path)
  return calls.some((call) => isLook(call, paths)) ? [] : paths
}
