/**
 * As much of a conversation's state as its attention rests on, small enough for a
 * row of a list. It is folded by the one fold and judged by the one judgment: what
 * a list says is what the state says, at every rune.
 */
import type { AgentId, CallId, ConversationId, PlanId, TurnId } from "../../rune/Ids.ts"
import { type AnyRune, isKnown } from "../../rune/Rune.ts"
import { blankAgent, blankHarness } from "../evolve/agent.ts"
import { evolve } from "../evolve/Evolve.ts"
import { blankPlan } from "../evolve/plan.ts"
import { blankCall } from "../evolve/tool.ts"
import { blankRetry, blankTurn } from "../evolve/turn.ts"
import {
  type AgentState,
  type CallState,
  type ConversationState,
  emptyConversation,
  type MutableAgent,
  type MutableCall,
  type MutableConversation,
  type MutablePlan,
  type PlanState
} from "../State.ts"
import type { AgentStatus } from "../table/Agent.ts"
import type { AttentionStatus } from "../table/Attention.ts"
import type { AutonomyStatus } from "../table/Autonomy.ts"
import type { SessionStatus } from "../table/Session.ts"
import type { ToolStatus } from "../table/Tool.ts"
import type { TurnStatus } from "../table/Turn.ts"
import { isAlive, isOpen } from "./Select.ts"
import { attentionOf } from "./Supervision.ts"

interface AgentView {
  readonly id: string
  readonly status: AgentStatus
  readonly turn?: { readonly id: string; readonly status: TurnStatus; readonly waits_for_person?: true }
  readonly failed?: true
  readonly harness?: AttentionStatus
}

interface CallView {
  readonly id: string
  readonly agent?: string
  readonly turn?: string
  readonly tool: string
  readonly status: ToolStatus
  readonly started?: true
}

interface PlanView {
  readonly id: string
  readonly status: AutonomyStatus
  readonly auto_start: boolean
  readonly proposed?: true
  readonly needs_approval?: true
  readonly waiting?: true
}

/** Plain JSON. */
export interface AttentionView {
  readonly session: SessionStatus
  readonly attention: AttentionStatus
  /** Those alive. */
  readonly agents: ReadonlyArray<AgentView>
  /** There were others. */
  readonly ended?: true
  /** Those not over. */
  readonly calls: ReadonlyArray<CallView>
  readonly plan?: PlanView
}

const agentView = ({ agent_id, harness, last_error, status, turn }: AgentState): AgentView => ({
  id: agent_id,
  status,
  ...(turn === null
    ? {}
    : {
        turn: {
          id: turn.turn_id,
          status: turn.status,
          ...(turn.retry?.waits_for_person === true ? { waits_for_person: true as const } : {})
        }
      }),
  ...(last_error === null ? {} : { failed: true as const }),
  ...(harness === null ? {} : { harness: harness.attention })
})

const callView = ({ agent_id, attempt, call_id, status, tool_name, turn_id }: CallState): CallView => ({
  id: call_id,
  ...(agent_id === null ? {} : { agent: agent_id }),
  ...(turn_id === null ? {} : { turn: turn_id }),
  tool: tool_name,
  status,
  ...(attempt > 0 ? { started: true as const } : {})
})

const planView = ({ auto_start, needs_approval, plan_id, proposed, status, waiting }: PlanState): PlanView => ({
  id: plan_id,
  status,
  auto_start,
  ...(proposed === null ? {} : { proposed: true as const }),
  ...(needs_approval === null ? {} : { needs_approval: true as const }),
  ...(waiting === null ? {} : { waiting: true as const })
})

export const attentionView = (state: ConversationState): AttentionView => {
  const agents = state.agents.filter(isAlive)
  return {
    session: state.session.status,
    attention: attentionOf(state),
    agents: agents.map(agentView),
    ...(agents.length < state.agents.length ? { ended: true as const } : {}),
    calls: state.calls.filter(isOpen).map(callView),
    ...(state.plan === null ? {} : { plan: planView(state.plan) })
  }
}

const agentOf = ({ failed, harness, id, status, turn }: AgentView): MutableAgent => {
  const agent = blankAgent(id as AgentId)
  agent.status = status
  if (turn !== undefined) {
    agent.turn = { ...blankTurn(turn.id as TurnId), status: turn.status }
    if (turn.waits_for_person === true) agent.turn.retry = blankRetry()
  }
  if (failed === true) agent.last_error = { code: "", message: "", event_id: 0 }
  if (harness !== undefined) agent.harness = { ...blankHarness(""), attention: harness }
  return agent
}

const callOf = ({ agent, id, started, status, tool, turn }: CallView): MutableCall => ({
  ...blankCall(id as CallId, tool),
  agent_id: (agent as AgentId | undefined) ?? null,
  turn_id: (turn as TurnId | undefined) ?? null,
  status,
  attempt: started === true ? 1 : 0
})

const planOf = ({ auto_start, id, needs_approval, proposed, status, waiting }: PlanView): MutablePlan => ({
  ...blankPlan(id as PlanId),
  status,
  auto_start,
  proposed: proposed === true ? 0 : null,
  needs_approval: needs_approval === true ? "" : null,
  waiting: waiting === true ? { cause: "provider", question: "", event_id: 0 } : null
})

const nobody = (): MutableAgent => ({ ...blankAgent("agt_ended" as AgentId), status: "terminated" })

/** A state that goes on like the one the view was taken of, as far as attention goes. */
const stateOf = (view: AttentionView): ConversationState => {
  const state = emptyConversation("" as ConversationId) as MutableConversation
  state.session.status = view.session
  state.agents = [...(view.ended === true ? [nobody()] : []), ...view.agents.map(agentOf)]
  state.calls = view.calls.map(callOf)
  state.plan = view.plan === undefined ? null : planOf(view.plan)
  return state
}

/** Kinds that come often and move nothing that a person would have to know. */
const idle: ReadonlySet<string> = new Set([
  "turn.assistant_delta",
  "turn.reasoning_delta",
  "turn.model_requested",
  "turn.queued",
  "turn.compacted",
  "tool.progress",
  "hook.started",
  "hook.completed"
])

/** Folds one rune in. */
export const evolveAttention = (view: AttentionView, rune: AnyRune): AttentionView =>
  !isKnown(rune) || idle.has(rune.kind) ? view : attentionView(evolve(stateOf(view), rune))

/** The view before the first rune. */
export const emptyAttention = (): AttentionView => attentionView(emptyConversation("" as ConversationId))
