/**
 * What each rune means in the view `state_events`. Completions of tools and hooks
 * come before the change of state they lead to, and an error is told before the
 * state that it causes.
 */
import { toolRunIdOf } from "../../rune/Ids.ts"
import type { Kind, KindIn } from "../../rune/Kinds.ts"
import type { HookStatus } from "../../rune/kinds/hook.ts"
import type { ErrorSource } from "../../rune/kinds/shared.ts"
import type { ToolResultStatus } from "../../rune/kinds/tool.ts"
import type { Rune, RuneOf } from "../../rune/Rune.ts"
import { signalOfTool } from "../table/Attention.ts"
import { sessionLands } from "../table/Session.ts"
import type {
  ProjectedAgent,
  ProjectedCall,
  ProjectedHook,
  RunStatus,
  StateEventBody,
  StateKind,
  StateProjection,
  StateReason
} from "./StateEvent.ts"

type Bodies = ReadonlyArray<StateEventBody>
type StepOf<K extends Kind> = (projection: StateProjection, rune: RuneOf<K>) => Bodies

const agentOf = (projection: StateProjection, agentId: string | undefined): ProjectedAgent | undefined =>
  projection.agents.find((agent) => agent.agent_id === agentId)

const isOver = (agent: ProjectedAgent): boolean => agent.kind === "Stopping" || agent.kind === "Stopped"

/** Moves the agent; a move to where it is already is none. */
const move = (agent: ProjectedAgent, to: StateKind, reason: StateReason, streamId?: string): Bodies => {
  const from = agent.kind
  if (from === to) return []
  agent.kind = to
  const stream = streamId === undefined ? {} : { streamId }
  return [{ type: "state_changed", agentId: agent.agent_id, from, to, reason, ...stream }]
}

/** Moves the agent of the rune unless it is being stopped: a stop always wins. */
const moves =
  (to: StateKind, reason: StateReason) =>
  (projection: StateProjection, rune: Rune): Bodies => {
    const agent = agentOf(projection, rune.agent_id)
    return agent === undefined || isOver(agent) ? [] : move(agent, to, reason, rune.turn_id)
  }

type Failure = { readonly message: string; readonly retryable: boolean; readonly source?: ErrorSource | undefined }

const ofDesign: ReadonlySet<string> = new Set([
  "session_not_found",
  "state_transition_invalid",
  "harness_failed",
  "tool_execution_failed",
  "hook_execution_failed",
  "streaming_failed"
])

/** The design's own words for what went wrong, by where it did. */
const codeOf = (code: string, source: ErrorSource, agent: ProjectedAgent | undefined): string => {
  if (ofDesign.has(code)) return code
  if (source === "tool") return "tool_execution_failed"
  if (source === "hook") return code === "hook_config_invalid" ? code : "hook_execution_failed"
  if (source === "harness") return agent?.is_streaming === true ? "streaming_failed" : "harness_failed"
  return code
}

const sessionError = (detail: string, error: Failure, agent?: ProjectedAgent): StateEventBody => {
  const { message, retryable, source = "orchestrator" } = error
  const code = codeOf(detail, source, agent)
  return { type: "session_error", code, ...(code === detail ? {} : { detail }), message, retryable, source }
}

export const newProjectedAgent = (agentId: string): ProjectedAgent => ({
  agent_id: agentId,
  kind: "Idle",
  calls: [],
  hooks: [],
  asking: [],
  is_waiting: false,
  is_streaming: false
})

const spawning: StepOf<"agent.spawning"> = (projection, { payload }) => {
  const agent = newProjectedAgent(payload.agent_id)
  projection.agents.push(agent)
  return move(agent, "Starting", "spawn_requested")
}

const failed: StepOf<"agent.failed"> = (projection, { payload }) => {
  const agent = agentOf(projection, payload.agent_id)
  if (agent === undefined) return []
  const { error } = payload
  const told = sessionError(error.code, {
    message: error.message,
    retryable: error.retryable ?? false,
    source: error.source ?? "harness"
  })
  return [told, ...move(agent, "Error", "error")]
}

/** Moves the conversation; a move to where it is already is none. */
const sessionMoves = (projection: StateProjection, rune: Rune): Bodies => {
  const from = projection.session
  const to = sessionLands(from, rune)
  if (from === to) return []
  projection.session = to
  const { reason } = rune.payload as { readonly reason?: string }
  return [{ type: "session_changed", from, to, ...(reason === undefined ? {} : { reason }) }]
}

const closing: StepOf<"session.closing"> = (projection, rune) => [
  ...sessionMoves(projection, rune),
  ...projection.agents.flatMap((agent) => (isOver(agent) ? [] : move(agent, "Stopping", "stop_requested")))
]

const terminated: StepOf<"agent.terminated"> = (projection, { payload }) => {
  const agent = agentOf(projection, payload.agent_id)
  if (agent === undefined) return []
  return [...move(agent, "Stopping", "stop_requested"), ...move(agent, "Stopped", "harness_exited")]
}

/** An answer without calls ends the stream and the turn in one step, told when the turn ends. */
const answered: StepOf<"turn.assistant_final"> = (projection, rune) =>
  rune.payload.items.some((item) => item.type === "tool_call")
    ? moves("ProcessingResponse", "stream_completed")(projection, rune)
    : []

const toolsFinished: StepOf<"turn.tools_finished"> = (projection, rune) => {
  const hasHooks = (rune.payload.hooks ?? []).length > 0
  const agent = agentOf(projection, rune.agent_id)
  for (const planned of rune.payload.hooks ?? []) {
    agent?.hooks.push({
      hook_run_id: planned.hook_run_id,
      hook_name: planned.hook_name,
      tool_run_ids: [],
      attempt: 0,
      started_ms: rune.ts_ms
    })
  }
  if (rune.payload.ends_turn === true) return []
  const queued = hasHooks ? (agent?.hooks ?? []).map((hook) => hookEvent(hook, "Queued")) : []
  return [...moves(hasHooks ? "PostToolsHook" : "CallingLlm", "tools_completed")(projection, rune), ...queued]
}

const forget = (projection: StateProjection, rune: Rune): void => {
  const agent = agentOf(projection, rune.agent_id)
  if (agent === undefined) return
  agent.calls = []
  agent.hooks = []
}

/** The wait for a provider is over, if there was one. */
const waitOver = (projection: StateProjection, rune: Rune): Bodies => {
  const agent = agentOf(projection, rune.agent_id)
  if (agent?.is_waiting !== true) return []
  agent.is_waiting = false
  return [{ type: "waiting", on: "nothing" }]
}

const completed: StepOf<"turn.completed"> = (projection, rune) => {
  const agent = agentOf(projection, rune.agent_id)
  forget(projection, rune)
  const reason =
    agent?.kind === "CallingLlm" || agent?.kind === "ProcessingResponse" ? "stream_completed" : "tools_completed"
  return moves("Ready", reason)(projection, rune)
}

const interrupted: StepOf<"turn.interrupted"> = (projection, rune) => {
  forget(projection, rune)
  return [...waitOver(projection, rune), ...moves("Ready", "interrupted")(projection, rune)]
}

const retryScheduled: StepOf<"turn.retry_scheduled"> = (projection, rune) => {
  const { delay_ms: delayMs, error_type: code, message, source, target, waits_for: whom } = rune.payload
  const agent = agentOf(projection, rune.agent_id)
  const told = sessionError(code, { message, retryable: true, source: source ?? sourceOf[target.type] }, agent)
  const moved = [told, ...moves("Error", "error")(projection, rune)]
  if (agent === undefined || target.type !== "llm") return moved
  agent.is_waiting = true
  const waiting: StateEventBody =
    whom === "person"
      ? { type: "waiting", on: "person" }
      : { type: "waiting", on: "provider", untilMs: rune.ts_ms + delayMs }
  return [...moved, waiting]
}

const sourceOf = { llm: "harness", tool: "tool", hook: "hook" } as const
const retryKinds = { llm: "CallingLlm", tool: "ExecutingTools", hook: "PostToolsHook" } as const

const turnError: StepOf<"turn.error"> = (projection, rune) => {
  const { error_type: code, message, retryable, source } = rune.payload
  forget(projection, rune)
  return [
    ...waitOver(projection, rune),
    sessionError(code, { message, retryable, source }, agentOf(projection, rune.agent_id)),
    ...moves("Error", "error")(projection, rune),
    ...moves("Ready", "retries_exhausted")(projection, rune)
  ]
}

const runStatusOfTool: Readonly<Record<ToolResultStatus, RunStatus>> = {
  success: "Succeeded",
  error: "Failed",
  timeout: "Failed",
  cancelled: "Canceled",
  denied: "Canceled",
  unknown: "Failed",
  sandbox_violation: "Failed"
}

const runStatusOfHook: Readonly<Record<HookStatus, RunStatus>> = {
  succeeded: "Succeeded",
  failed: "Failed",
  canceled: "Canceled"
}

const toolEvent = (call: ProjectedCall, status: RunStatus): StateEventBody & { readonly type: "tool_lifecycle" } => ({
  type: "tool_lifecycle",
  runId: call.run_id,
  callId: call.call_id,
  toolName: call.tool_name,
  mutating: call.mutating,
  status,
  attempt: call.attempt,
  startedAtMs: call.started_ms
})

const toolCall: StepOf<"tool.call"> = (projection, rune) => {
  const { call_id: callId, tool_name: toolName, mutating } = rune.payload
  const call = {
    call_id: callId,
    run_id: toolRunIdOf(rune.rune_id),
    tool_name: toolName,
    mutating,
    attempt: 0,
    started_ms: rune.ts_ms
  }
  const agent = agentOf(projection, rune.agent_id)
  agent?.calls.push(call)
  return agent === undefined ? [] : [toolEvent(call, "Queued")]
}

/** A call asks somebody something. */
const asks = (agent: ProjectedAgent | undefined, callId: string, on: "approval" | "answer"): Bodies => {
  if (agent === undefined || agent.asking.includes(callId)) return []
  agent.asking.push(callId)
  return [{ type: "waiting", on, callId }]
}

const asked = (agent: ProjectedAgent | undefined, callId: string): Bodies => {
  if (agent === undefined || !agent.asking.includes(callId)) return []
  agent.asking = agent.asking.filter((one) => one !== callId)
  return [{ type: "waiting", on: "nothing", callId }]
}

const answers = (projection: StateProjection, rune: RuneOf<"tool.approved"> | RuneOf<"tool.denied">): Bodies =>
  asked(agentOf(projection, rune.agent_id), rune.payload.call_id)

/** What comes now is a part of the answer. */
const streams = (projection: StateProjection, rune: Rune): Bodies => {
  const agent = agentOf(projection, rune.agent_id)
  if (agent !== undefined) agent.is_streaming = true
  return []
}

const requested = (projection: StateProjection, rune: Rune): Bodies => {
  const agent = agentOf(projection, rune.agent_id)
  if (agent !== undefined) agent.is_streaming = false
  return []
}

const callOf = (projection: StateProjection, rune: RuneOf<"tool.started"> | RuneOf<"tool.result">) =>
  agentOf(projection, rune.agent_id)?.calls.find((call) => call.call_id === rune.payload.call_id)

const toolStarted: StepOf<"tool.started"> = (projection, rune) => {
  const call = callOf(projection, rune)
  if (call === undefined) return []
  call.attempt = rune.payload.attempt
  call.started_ms = rune.ts_ms
  const isQuestion = signalOfTool(call.tool_name) === "tool_start_question"
  const question = isQuestion ? asks(agentOf(projection, rune.agent_id), call.call_id, "answer") : []
  return [toolEvent(call, "Running"), ...question]
}

const toolResult: StepOf<"tool.result"> = (projection, rune) => {
  const call = callOf(projection, rune)
  if (call === undefined) return []
  const { status, error } = rune.payload
  const message = error === undefined ? {} : { error: error.message, errorCode: error.code }
  const done = { ...toolEvent(call, runStatusOfTool[status]), finishedAtMs: rune.ts_ms, ...message }
  return [...asked(agentOf(projection, rune.agent_id), call.call_id), done]
}

const hookOf = (
  projection: StateProjection,
  rune: RuneOf<"hook.started"> | RuneOf<"hook.completed">
): ProjectedHook | undefined =>
  agentOf(projection, rune.agent_id)?.hooks.find((hook) => hook.hook_run_id === rune.payload.hook_run_id)

const hookEvent = (hook: ProjectedHook, status: RunStatus): StateEventBody & { readonly type: "hook_lifecycle" } => ({
  type: "hook_lifecycle",
  runId: hook.hook_run_id,
  hookName: hook.hook_name,
  toolRunIds: hook.tool_run_ids,
  status,
  attempt: hook.attempt,
  startedAtMs: hook.started_ms
})

const hookStarted: StepOf<"hook.started"> = (projection, rune) => {
  const agent = agentOf(projection, rune.agent_id)
  const hook = hookOf(projection, rune)
  if (agent === undefined || hook === undefined) return []
  hook.tool_run_ids = agent.calls.flatMap((call) =>
    rune.payload.call_ids.some((id) => id === call.call_id) ? [call.run_id] : []
  )
  hook.attempt = rune.payload.attempt
  hook.started_ms = rune.ts_ms
  return [hookEvent(hook, "Running")]
}

const hookCompleted: StepOf<"hook.completed"> = (projection, rune) => {
  const hook = hookOf(projection, rune)
  if (hook === undefined) return []
  const { status, error } = rune.payload
  const message = error === undefined ? {} : { error: error.message, errorCode: error.code }
  return [{ ...hookEvent(hook, runStatusOfHook[status]), finishedAtMs: rune.ts_ms, ...message }]
}

const steps: { readonly [K in KindIn<"state_events">]: StepOf<K> } = {
  "agent.spawning": spawning,
  "agent.ready": moves("Ready", "harness_ready"),
  "agent.failed": failed,
  "agent.terminated": terminated,
  "session.activated": sessionMoves,
  "session.paused": sessionMoves,
  "session.resumed": sessionMoves,
  "session.suspended": sessionMoves,
  "session.unsuspended": sessionMoves,
  "session.closing": closing,
  "session.closed": sessionMoves,
  "session.archived": sessionMoves,
  "session.restored": sessionMoves,
  "turn.started": (projection, rune) => {
    const { target } = rune.payload
    const reason = target === undefined ? "user_input" : "retry_timeout"
    return moves(retryKinds[target?.type ?? "llm"], reason)(projection, rune)
  },
  "turn.model_requested": requested,
  "turn.assistant_delta": streams,
  "turn.reasoning_delta": streams,
  "turn.assistant_final": answered,
  "turn.tool_calls_received": moves("ExecutingTools", "tools_requested"),
  "turn.tools_finished": toolsFinished,
  "turn.hooks_finished": (projection, rune) => {
    forget(projection, rune)
    return rune.payload.ends_turn === true ? [] : moves("CallingLlm", "hooks_completed")(projection, rune)
  },
  "turn.completed": completed,
  "turn.interrupted": interrupted,
  "turn.retry_scheduled": retryScheduled,
  "turn.retry_started": (projection, rune) => [
    ...waitOver(projection, rune),
    ...moves(retryKinds[rune.payload.target.type], "retry_timeout")(projection, rune)
  ],
  "turn.error": turnError,
  "tool.call": toolCall,
  "tool.approval_requested": (projection, rune) =>
    asks(agentOf(projection, rune.agent_id), rune.payload.call_id, "approval"),
  "tool.approved": answers,
  "tool.denied": answers,
  "tool.started": toolStarted,
  "tool.result": toolResult,
  "hook.started": hookStarted,
  "hook.completed": hookCompleted,
  "system.error": (_, { payload }) => [sessionError(payload.code, payload)]
}

export const stateEventsOf = (projection: StateProjection, rune: Rune): Bodies => {
  // The one widening: the step is looked up by the very kind that the rune carries.
  const step = (steps as { readonly [K in Kind]?: unknown })[rune.kind] as
    | ((projection: StateProjection, rune: Rune) => Bodies)
    | undefined
  return step?.(projection, rune) ?? []
}
