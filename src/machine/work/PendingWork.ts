/**
 * What is to be done, derived from what is so. Side effects hang on state alone:
 * whoever runs them starts what is listed and not running, and stops what is
 * running and no longer listed. After a crash the same list says how to go on.
 */
import type { AgentId, CallId, HookRunId, RequestId, TurnId } from "../../rune/Ids.ts"
import type { ErrorInfo } from "../../rune/kinds/shared.ts"
import type { RetryTarget } from "../../rune/kinds/turn.ts"
import { callTimeoutMs, effectiveLimits } from "../MachineLimits.ts"
import type { AgentState, CallState, ConversationState, TurnState } from "../State.ts"
import { aliveAgents, batchOf, callOf, isOpen, nextHook } from "../view/Select.ts"
import { type PendingPlanWork, pendingPlanWork } from "./PlanWork.ts"

interface InTurn {
  /** The same while it is the same piece of work, whatever progress it makes. */
  readonly key: string
  readonly agent_id: AgentId
  readonly turn_id: TurnId
}

/** Work that the suspension of the conversation found under way. */
interface Holdable {
  /** It may finish where it runs, and is not started where it does not. */
  readonly held?: true
}

/** Work of a turn, an agent or the conversation. */
export type TurnWork =
  /** Bring the agent up, then CompleteAgentInit or FailAgentInit. */
  | { readonly _tag: "StartAgent"; readonly key: string; readonly agent_id: AgentId }
  /** StartQueued: the agent is idle and input waits. */
  | { readonly _tag: "StartQueued"; readonly key: string; readonly agent_id: AgentId }
  /** RequestModel, then the call, then ReceiveResponse or FailModelCall. */
  | (InTurn &
      Holdable & {
        readonly _tag: "CallModel"
        readonly model: string
        readonly attempt: number
        readonly timeout_ms: number
        /** A request under way when this process was not: re-join it where the provider can, else replace it. */
        readonly cut_off: { readonly request_id: RequestId; readonly provider: string; readonly model: string } | null
      })
  | (InTurn & { readonly _tag: "FinaliseResponse" })
  /** Ask the policy: RequireApproval, StartCall (then run it), DenyCall or FinishCall. */
  | (InTurn & { readonly _tag: "RouteTool"; readonly call_id: CallId })
  /** ExpireApproval when the time has come; no timer when it is null. */
  | {
      readonly _tag: "AwaitApproval"
      readonly key: string
      readonly call_id: CallId
      readonly agent_id: AgentId | null
      readonly expires_ms: number | null
    }
  /** StartCall, then run it, then FinishCall or CrashCall. */
  | (InTurn &
      Holdable & {
        readonly _tag: "RunTool"
        readonly call_id: CallId
        readonly timeout_ms: number
      })
  /** SettleTools with the hooks that the batch has to go through. */
  | (InTurn & { readonly _tag: "SettleTools"; readonly call_ids: ReadonlyArray<CallId>; readonly mutating: boolean })
  /** StartHook, then run it, then FinishHook. */
  | (InTurn & { readonly _tag: "RunHook"; readonly hook_run_id: HookRunId; readonly timeout_ms: number })
  /** RetryDue at the given time. */
  | (InTurn & {
      readonly _tag: "RetryAfter"
      readonly due_ms: number
      /** The provider that has to be tried by somebody before this goes on. */
      readonly held_by?: string
      readonly target: RetryTarget
      readonly error: Pick<ErrorInfo, "code" | "message">
    })
  | { readonly _tag: "FinishClosing"; readonly key: string }

/** All there is: the above, and what the goal being pursued needs. */
export type PendingWork = TurnWork | PendingPlanWork

export type PendingWorkTag = PendingWork["_tag"]

const inTurn = (agent: AgentState, turn: TurnState, key: string): InTurn => ({
  key,
  agent_id: agent.agent_id,
  turn_id: turn.turn_id
})

/** Nothing new starts while the conversation is suspended; what runs may finish. */
const isHeld = (state: ConversationState): boolean => state.session.status === "suspended"
const holding = (state: ConversationState): Holdable => (isHeld(state) ? { held: true } : {})

/** A call that was held is another piece of work than the one before it. */
const heldOf = ({ holds }: TurnState): string => (holds === 0 ? "" : ` held ${holds}`)

const modelEffects = (state: ConversationState, agent: AgentState, turn: TurnState): ReadonlyArray<PendingWork> => {
  const { request } = turn
  if (isHeld(state) && request === null) return []
  const attempt = turn.llm_failures + 1
  return [
    {
      _tag: "CallModel",
      ...inTurn(agent, turn, `model ${turn.turn_id} ${turn.model_calls} ${attempt}${heldOf(turn)}`),
      ...holding(state),
      model: agent.model,
      attempt,
      timeout_ms: effectiveLimits(state.session.config).llmTimeoutMs,
      cut_off:
        request === null ? null : { request_id: request.request_id, provider: request.provider, model: request.model }
    }
  ]
}

/**
 * Calls run side by side where that is safe: one that changes something waits for
 * every earlier call, and every later call waits for it.
 */
const mayRun = (batch: ReadonlyArray<CallState>, call: CallState): boolean =>
  batch.slice(0, batch.indexOf(call)).every((earlier) => !isOpen(earlier) || (!earlier.mutating && !call.mutating))

/** Whether the calls before this one in its batch let it run. */
export const mayRunNow = (state: ConversationState, callId: CallId): boolean => {
  const call = callOf(state, callId)
  if (call === undefined) return true
  const batch = state.calls.filter((one) => one.turn_id === call.turn_id)
  return mayRun(batch, call)
}

const awaitApproval = (call: CallState): PendingWork => ({
  _tag: "AwaitApproval",
  key: `approval ${call.call_id}`,
  call_id: call.call_id,
  agent_id: call.agent_id,
  expires_ms: call.approval?.expires_ms ?? null
})

interface Work {
  readonly state: ConversationState
  readonly agent: AgentState
  readonly turn: TurnState
  readonly batch: ReadonlyArray<CallState>
}

const callEffect = (work: Work, call: CallState): PendingWork | undefined => {
  const { state, agent, turn, batch } = work
  const id = { call_id: call.call_id }
  if (call.status === "awaiting_approval") return awaitApproval(call)
  if (call.status === "pending_call") {
    return isHeld(state) ? undefined : { _tag: "RouteTool", ...inTurn(agent, turn, `route ${call.call_id}`), ...id }
  }
  if (call.status !== "executing" || !mayRun(batch, call)) return undefined
  const target = turn.retry?.target
  const isHeldBack = target?.type === "tool" && target.call_id === call.call_id
  if (isHeldBack || (isHeld(state) && call.attempt === 0)) return undefined
  const timeoutMs = callTimeoutMs(state.session.config, call.timeout_ms)
  const place = { ...inTurn(agent, turn, `tool ${call.call_id}`), ...holding(state) }
  return { _tag: "RunTool", ...place, ...id, timeout_ms: timeoutMs }
}

const callEffects = (work: Work): ReadonlyArray<PendingWork> =>
  work.batch.flatMap((call) => callEffect(work, call) ?? [])

const batchEffects = (work: Work): ReadonlyArray<PendingWork> => {
  const { agent, turn, batch } = work
  if (batch.some(isOpen)) return callEffects(work)
  const mutating = batch.some((call) => call.mutating && call.attempt > 0)
  const callIds = batch.map((call) => call.call_id)
  const key = `settle ${turn.turn_id} ${turn.model_calls}`
  return [{ _tag: "SettleTools", ...inTurn(agent, turn, key), call_ids: callIds, mutating }]
}

/** The hooks of other agents wait for theirs. */
const hookEffects = (state: ConversationState, agent: AgentState, turn: TurnState): ReadonlyArray<PendingWork> => {
  const next = nextHook(state)
  if (next === undefined || !turn.hooks.includes(next)) return []
  const id = { hook_run_id: next.hook_run_id, timeout_ms: next.timeout_ms }
  return [{ _tag: "RunHook", ...inTurn(agent, turn, `hook ${next.hook_run_id}`), ...id }]
}

const retryEffects = (work: Work): ReadonlyArray<PendingWork> => {
  const { agent, turn } = work
  if (turn.retry === null) return []
  // Other calls of the batch go on while one of them waits for its retry.
  if (turn.retry.waits_for_person) return callEffects(work)
  const { target, due_ms: dueMs, attempt, error_type: code, message } = turn.retry
  const timer: PendingWork = {
    _tag: "RetryAfter",
    ...inTurn(agent, turn, `retry ${turn.turn_id} ${turn.model_calls} ${target.type} ${attempt}${heldOf(turn)}`),
    ...(turn.retry.held && turn.retry.provider !== null ? { held_by: turn.retry.provider } : {}),
    due_ms: dueMs,
    target,
    error: { code, message }
  }
  return [timer, ...callEffects(work)]
}

const turnEffects = (state: ConversationState, agent: AgentState, turn: TurnState): ReadonlyArray<PendingWork> => {
  const work: Work = { state, agent, turn, batch: batchOf(state, turn) }
  switch (turn.status) {
    case "streaming":
      return modelEffects(state, agent, turn)
    case "processing":
      return [{ _tag: "FinaliseResponse", ...inTurn(agent, turn, `finalise ${turn.turn_id} ${turn.model_calls}`) }]
    case "tool_executing":
      return batchEffects(work)
    case "hooks_running":
      return hookEffects(state, agent, turn)
    case "retry_waiting":
      return retryEffects(work)
    default:
      return []
  }
}

const startsTurns: ReadonlySet<string> = new Set(["created", "active"])

const agentEffects = (state: ConversationState, agent: AgentState): ReadonlyArray<PendingWork> => {
  if (agent.turn !== null) return turnEffects(state, agent, agent.turn)
  if (agent.status === "spawning") {
    return [{ _tag: "StartAgent", key: `agent ${agent.agent_id}`, agent_id: agent.agent_id }]
  }
  const next = agent.queue[0]
  if (agent.status !== "idle" || next === undefined || !startsTurns.has(state.session.status)) return []
  return [{ _tag: "StartQueued", key: `start ${agent.agent_id} ${next.event_id}`, agent_id: agent.agent_id }]
}

/** Everything that has to happen next, in a stable order. Keys are unique in the list. */
export const pendingWork = (state: ConversationState): ReadonlyArray<PendingWork> => {
  if (state.head === 0) return []
  const alive = aliveAgents(state)
  if (state.session.status === "closing") {
    return alive.length === 0 ? [{ _tag: "FinishClosing", key: "finish closing" }] : []
  }
  const loose = state.calls.filter((call) => call.turn_id === null && call.status === "awaiting_approval")
  return [
    ...alive.flatMap((agent) => agentEffects(state, agent)),
    ...loose.map(awaitApproval),
    ...pendingPlanWork(state)
  ]
}
