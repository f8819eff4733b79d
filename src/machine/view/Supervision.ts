/**
 * What a person who supervises sees of a conversation: what each agent does, who is
 * waited for, and the list of things that need a human. Derived on demand.
 */
import type { AgentId, CallId } from "../../rune/Ids.ts"
import { limits } from "../MachineLimits.ts"
import type { AgentState, CallState, ConversationState, RetryState } from "../State.ts"
import { type AttentionStatus, signalOfTool } from "../table/Attention.ts"
import type { MonitorStatus } from "../table/Monitor.ts"
import { awaitsPerson } from "../work/PlanWork.ts"
import { aliveAgents, isAlive, pathOf, pendingApprovals } from "./Select.ts"

const isRunning = (call: CallState): boolean => call.status === "executing" && call.attempt > 0

const callsOf = (state: ConversationState, agent: AgentState): ReadonlyArray<CallState> =>
  state.calls.filter((call) => call.agent_id === agent.agent_id)

/** What the agent does: told by its events when it runs outside, by its turn when it is ours. */
export const monitorOf = (state: ConversationState, agent: AgentState): MonitorStatus => {
  if (agent.harness !== null) return agent.harness.monitor
  if (!isAlive(agent)) return "exited"
  if (agent.status === "spawning") return "initialized"
  if (agent.turn === null) return "idle"
  const calls = callsOf(state, agent)
  if (calls.some(isRunning)) return "tool_use"
  if (calls.some((call) => call.status === "awaiting_approval")) return "waiting_for_permission"
  return agent.turn.status === "tool_executing" || agent.turn.status === "hooks_running" ? "tool_use" : "thinking"
}

/** The first retries come and go faster than anyone could look. */
const isWaitForProvider = ({ attempt, held, target, waits_for_person: forPerson }: RetryState): boolean =>
  target.type === "llm" && (forPerson || held || attempt > limits.llmRetryDelaysMs.length + 1)

const asksPerson = (call: CallState): boolean =>
  isRunning(call) && signalOfTool(call.tool_name) === "tool_start_question"

/** Whether this agent needs a person. */
export const attentionOfAgent = (state: ConversationState, agent: AgentState): AttentionStatus => {
  if (!isAlive(agent)) return "closed"
  const calls = callsOf(state, agent)
  if (calls.some((call) => call.status === "awaiting_approval")) return "awaiting_approval"
  if (calls.some(asksPerson)) return "awaiting_input"
  if (agent.harness !== null) return agent.harness.attention
  if (agent.status === "spawning") return "starting"
  if (agent.turn?.retry?.waits_for_person === true) return "awaiting_input"
  if (agent.turn !== null) return "running"
  return agent.last_error === null ? "idle" : "error"
}

/** The most urgent first. */
const urgency: ReadonlyArray<AttentionStatus> = [
  "awaiting_approval",
  "awaiting_input",
  "error",
  "running",
  "starting",
  "idle",
  "closed"
]

/** The conversation's own status is that of its most urgent agent; an over one is closed. */
export const attentionOf = (state: ConversationState): AttentionStatus => {
  const { status } = state.session
  if (status === "closed" || status === "archived") return "closed"
  if (status === "suspended") return "error"
  if (state.plan !== null && awaitsPerson(state.plan)) return "awaiting_approval"
  // Also one that belongs to no agent, or to none that is alive.
  if (pendingApprovals(state).length > 0) return "awaiting_approval"
  const statuses = new Set(aliveAgents(state).map((agent) => attentionOfAgent(state, agent)))
  if (state.plan !== null && state.plan.waiting !== null) statuses.add("awaiting_input")
  return urgency.find((one) => statuses.has(one)) ?? (state.agents.length === 0 ? "starting" : "error")
}

export interface AttentionItem {
  /** What it is known by in its conversation for as long as it waits, whatever else happens there. */
  readonly key: string
  readonly type: "approval" | "question" | "plan" | "provider" | "suspended" | "notice"
  readonly event_id: number
  readonly agent_id: AgentId | null
  /** From the root agent down to the one that asks. */
  readonly agent_path: ReadonlyArray<AgentId>
  readonly call_id: CallId | null
  readonly title: string
  readonly since_ms: number | null
  readonly expires_ms: number | null
}

const pathTo = (state: ConversationState, agentId: AgentId | null): ReadonlyArray<AgentId> =>
  agentId === null ? [] : pathOf(state, agentId)

const ofCall = (state: ConversationState, call: CallState, type: "approval" | "question"): AttentionItem => ({
  key: `${type} ${call.call_id}`,
  type,
  event_id: call.approval?.asked_event_id ?? call.event_id,
  agent_id: call.agent_id,
  agent_path: pathTo(state, call.agent_id),
  call_id: call.call_id,
  title: call.approval?.shown_as.title ?? call.tool_name,
  since_ms: call.approval?.asked_ms ?? call.started_ms,
  expires_ms: call.approval?.expires_ms ?? null
})

const plans = ({ plan }: ConversationState): ReadonlyArray<AttentionItem> =>
  plan !== null && plan.proposed !== null && awaitsPerson(plan)
    ? [
        {
          key: "plan",
          type: "plan",
          event_id: plan.proposed,
          agent_id: null,
          agent_path: [],
          call_id: null,
          title: `a plan of ${plan.tasks.length} tasks waits for approval: ${plan.goal}`.slice(
            0,
            limits.noticeCharsMax
          ),
          since_ms: null,
          expires_ms: null
        }
      ]
    : []

/** A goal that waits for somebody to see to what keeps it from being pursued. */
const goalWaits = ({ plan }: ConversationState): ReadonlyArray<AttentionItem> =>
  plan === null || plan.waiting === null
    ? []
    : [
        {
          key: "goal",
          type: "suspended",
          event_id: plan.waiting.event_id,
          agent_id: null,
          agent_path: [],
          call_id: null,
          title: plan.waiting.question.slice(0, limits.noticeCharsMax),
          since_ms: null,
          expires_ms: null
        }
      ]

const suspension = (state: ConversationState): ReadonlyArray<AttentionItem> =>
  state.session.status === "suspended"
    ? [
        {
          key: "suspended",
          type: "suspended",
          event_id: state.session.suspended_event_id,
          agent_id: state.session.budget_info?.agent_id ?? null,
          agent_path: pathTo(state, state.session.budget_info?.agent_id ?? null),
          call_id: null,
          title: state.session.reason ?? "suspended",
          since_ms: null,
          expires_ms: null
        }
      ]
    : []

const waitText = ({ error_type: code, message, provider, waits_for_person: forPerson }: RetryState): string => {
  const whom = provider ?? "the provider"
  return forPerson ? `${whom} needs a person (${code}): ${message}` : `waiting for ${whom} (${code}): ${message}`
}

/** Turns that wait for a provider: for a time, or for somebody to mend a key or a bill. `expires_ms` is the next try. */
const providerWaits = (state: ConversationState): ReadonlyArray<AttentionItem> =>
  aliveAgents(state).flatMap((agent): ReadonlyArray<AttentionItem> => {
    const retry = agent.turn?.retry
    if (retry == null || !isWaitForProvider(retry)) return []
    return [
      {
        key: `provider ${agent.agent_id}`,
        type: "provider",
        event_id: retry.event_id,
        agent_id: agent.agent_id,
        agent_path: pathTo(state, agent.agent_id),
        call_id: null,
        title: waitText(retry).slice(0, limits.noticeCharsMax),
        since_ms: agent.turn?.failing_since_ms ?? retry.scheduled_ms,
        expires_ms: retry.waits_for_person ? null : retry.due_ms
      }
    ]
  })

const outsideTitles: Partial<Record<AttentionStatus, string>> = {
  awaiting_approval: "waits for an approval in its own terminal",
  awaiting_input: "asks something in its own terminal",
  error: "ended its turn with an error"
}

/** Outside agents that wait where only they can be answered; what can be answered here is a call of its own. */
const outsideWaits = (state: ConversationState): ReadonlyArray<AttentionItem> =>
  aliveAgents(state).flatMap((agent): ReadonlyArray<AttentionItem> => {
    const { harness } = agent
    const title = harness === null ? undefined : outsideTitles[harness.attention]
    if (harness === null || title === undefined) return []
    if (callsOf(state, agent).some((call) => call.status === "awaiting_approval")) return []
    return [
      {
        key: `outside ${agent.agent_id}`,
        type: "notice",
        event_id: state.head,
        agent_id: agent.agent_id,
        agent_path: pathTo(state, agent.agent_id),
        call_id: null,
        title: `${harness.harness} ${title}`,
        since_ms: harness.last_event_ms,
        expires_ms: null
      }
    ]
  })

/** Everything that waits for a person or should be known to one: questions first, newest notices last. */
export const attentionItems = (state: ConversationState): ReadonlyArray<AttentionItem> => [
  ...pendingApprovals(state).map((call) => ofCall(state, call, "approval")),
  ...state.calls.filter(asksPerson).map((call) => ofCall(state, call, "question")),
  ...plans(state),
  ...goalWaits(state),
  ...providerWaits(state),
  ...outsideWaits(state),
  ...suspension(state),
  ...state.notices.map(
    (notice): AttentionItem => ({
      key: `notice ${notice.event_id}`,
      type: "notice",
      event_id: notice.event_id,
      agent_id: notice.agent_id,
      agent_path: pathTo(state, notice.agent_id),
      call_id: notice.call_id,
      title: notice.message,
      since_ms: null,
      expires_ms: null
    })
  )
]
