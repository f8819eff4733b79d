/** Deciding about the conversation with the model: asking, listening, failing, asking again. */
import type { PayloadOf } from "../../rune/Kinds.ts"
import type { Usage } from "../../rune/kinds/shared.ts"
import { usageOf } from "../../rune/UsageTotals.ts"
import type { TurnRequest } from "../Command.ts"
import { effectiveLimits, limits, llmRetryDelayMs } from "../MachineLimits.ts"
import type { AgentState, ConversationState, TurnState } from "../State.ts"
import { agent as agentMachine } from "../table/Agent.ts"
import { autonomy } from "../table/Autonomy.ts"
import { tool } from "../table/Tool.ts"
import { turn as turnMachine } from "../table/Turn.ts"
import { type Deciders, type Drafting, placeOf } from "./Drafting.ts"
import { endInside, failTurn } from "./Ending.ts"
import { type Running, requireAgent, requireTurn } from "./Require.ts"
import { finalOutput, type PlannedResponse, planResponse, refusedResult } from "./response.ts"
import { startRetry } from "./retry.ts"
import { settlementOf } from "./Settlement.ts"

type Of<Tag extends TurnRequest["_tag"]> = Extract<TurnRequest, { readonly _tag: Tag }>

/** What the request before this moment had used, where there is one: as told, else estimated. */
const settled = ({ request }: TurnState, told: Usage | undefined): { readonly usage?: Usage } => {
  const usage = request === null ? undefined : (told ?? settlementOf(request))
  return usage === undefined ? {} : { usage }
}

const requestModel = (sheet: Drafting, command: Of<"RequestModel">): undefined => {
  const running = requireTurn(sheet, command.agent_id)
  if (running === undefined) return
  const { agent, turn } = running
  const { status } = sheet.state.session
  if (status === "suspended") {
    sheet.refuse("invalid_state", "Session is suspended: no model is called", { state: status })
  }
  if (turn.model_calls >= limits.modelCallsPerTurnMax) {
    sheet.refuse("limit_exceeded", `the turn called the model ${turn.model_calls} times, the limit`, {
      limit: limits.modelCallsPerTurnMax
    })
  }
  const replaced = turn.request?.request_id ?? turn.abandoned_request_id
  const payload = {
    request_id: command.request_id,
    provider: command.provider,
    model: command.model,
    attempt: turn.llm_failures + 1,
    ...(replaced === null ? {} : { replaces: replaced }),
    ...(turn.partial === "" ? {} : { partial_output: turn.partial }),
    ...(command.estimate === undefined ? {} : { estimate: command.estimate }),
    ...(command.purpose === undefined ? {} : { purpose: command.purpose }),
    ...settled(turn, command.usage)
  }
  sheet.step(turnMachine, turn.status, { _tag: "RequestModel", payload, place: placeOf(agent, turn) })
}

/** Words must belong to the request that is running; those of a replaced one come too late. */
const requireRequest = (sheet: Drafting, { turn }: Running, requestId: string | undefined): undefined => {
  const { request } = turn
  const isRunning = request !== null && (requestId === undefined || requestId === request.request_id)
  if (isRunning) return undefined
  return sheet.refuse("invalid_state", `${requestId ?? "no request"} is not being answered`, { state: turn.status })
}

const append = (sheet: Drafting, command: Of<"AppendText" | "AppendReasoning">): undefined => {
  const running = requireTurn(sheet, command.agent_id)
  if (running === undefined) return
  const { agent, turn } = running
  requireRequest(sheet, running, command.request_id)
  const id = command.request_id === undefined ? {} : { request_id: command.request_id }
  const payload = { content: command.content, ...id, ...(command.usage === undefined ? {} : { usage: command.usage }) }
  sheet.step(turnMachine, turn.status, { _tag: command._tag, payload, place: placeOf(agent, turn) })
}

const respondWithCalls = (
  sheet: Drafting,
  { agent, turn }: Running,
  final: PayloadOf<"turn.assistant_final">,
  planned: PlannedResponse
): undefined => {
  const place = placeOf(agent, turn)
  sheet.step(turnMachine, turn.status, {
    _tag: "RespondWithCalls",
    final: { payload: final, place },
    received: { payload: { call_ids: planned.calls.map((one) => one.call.call_id) }, place },
    calls: planned.calls.map((one) => ({ payload: one.call, place }))
  })
  for (const one of planned.calls) {
    const payload = refusedResult(one)
    if (payload !== undefined) sheet.step(tool, "pending_call", { _tag: "Fail", payload, place })
  }
}

const receive = (sheet: Drafting, command: Of<"ReceiveResponse">): undefined => {
  const running = requireTurn(sheet, command.agent_id)
  if (running === undefined) return
  const { agent, turn } = running
  requireRequest(sheet, running, command.request_id)
  const planned = planResponse(command.items, sheet.state.next_call)
  const usage = command.usage ?? settlementOf(turn.request)
  const final = {
    content: planned.content,
    items: planned.items,
    ...(command.request_id === undefined ? {} : { request_id: command.request_id }),
    ...(usage === undefined ? {} : { usage }),
    ...(command.stop_reason === undefined ? {} : { stop_reason: command.stop_reason })
  }
  if (planned.calls.length > 0) return respondWithCalls(sheet, running, final, planned)
  const place = placeOf(agent, turn)
  const completed = { ...finalOutput(planned.content), usage: usageOf(turn.usage, usage) }
  sheet.guard(agentMachine, agent.status, { _tag: "EndTurnCompleted", payload: completed, place })
  sheet.step(turnMachine, turn.status, {
    _tag: "RespondAndComplete",
    final: { payload: final, place },
    completed: { payload: completed, place }
  })
}

const newestAnswer = (agent: AgentState) => {
  const item = agent.transcript.at(-1)
  return item?.type === "assistant" ? item : undefined
}

/** Only an answer whose calls were stored with it can be gone on from. */
const finalise = (sheet: Drafting, command: Of<"FinaliseResponse">): undefined => {
  const running = requireTurn(sheet, command.agent_id)
  if (running === undefined) return
  const { agent, turn } = running
  const answer = newestAnswer(agent)
  const hasCalls = answer?.items.some((item) => item.type === "tool_call") ?? false
  if (turn.status === "processing" && hasCalls) {
    const message = "the answer was stored without the calls it asks for"
    failTurn(sheet, running, { error_type: "response_incomplete", message, retryable: true, source: "orchestrator" })
    return
  }
  const payload = { ...finalOutput(answer?.content ?? ""), usage: usageOf(turn.usage) }
  sheet.step(turnMachine, turn.status, { _tag: "Complete", payload, place: placeOf(agent, turn) })
}

/** How long this conversation waits out an outage of a provider. */
export const outageMs = ({ plan, session }: ConversationState): number => {
  const isGoal = plan !== null && !autonomy.terminal.includes(plan.status)
  const { llmRetryGoalMs, llmRetryMs } = effectiveLimits(session.config)
  return isGoal ? (llmRetryGoalMs ?? limits.llmRetryGoalMs) : (llmRetryMs ?? limits.llmRetryMs)
}

/** A call of which nothing was sent is no failure; it is held for so long as an outage would be waited out. */
const isHeld = (sheet: Drafting, turn: TurnState): boolean => {
  const patienceMs = Math.max(outageMs(sheet.state), limits.llmRetryMs)
  return sheet.atMs - (turn.failing_since_ms ?? sheet.atMs) <= patienceMs
}

/**
 * Whether the call is tried again. A conversation that sets a number of retries has just these. Otherwise an outage is
 * waited out, what only a person can mend waits for one, and anything else is tried the usual number of times.
 */
const isTriedAgain = (sheet: Drafting, { turn }: Running, command: Of<"FailModelCall">, delayMs: number): boolean => {
  if (command.held === true) return isHeld(sheet, turn)
  const { error, outage, waits_for: waitsFor } = command
  const retriesMax = effectiveLimits(sheet.state.session.config).maxLlmRetries
  if (retriesMax !== undefined) return error.retryable && turn.llm_failures < retriesMax
  const patienceMs = outageMs(sheet.state)
  if (waitsFor === "person") return patienceMs > 0
  if (outage !== true) return error.retryable && turn.llm_failures < limits.maxLlmRetries
  return error.retryable && sheet.atMs + delayMs - (turn.failing_since_ms ?? sheet.atMs) <= patienceMs
}

const failCall = (sheet: Drafting, command: Of<"FailModelCall">): undefined => {
  const running = requireTurn(sheet, command.agent_id)
  if (running === undefined) return
  const { agent, turn } = running
  const { error, provider, usage } = command
  const retry = turn.llm_failures + 1
  const waits = command.waits_for === undefined ? {} : { waits_for: command.waits_for }
  const delayMs = command.waits_for === "person" ? 0 : (command.delay_ms ?? llmRetryDelayMs(retry))
  if (turn.status !== "streaming") {
    sheet.refuse("invalid_state", `Turn is ${turn.status}: no model call can fail`, { state: turn.status })
    return
  }
  if (!isTriedAgain(sheet, running, command, delayMs)) return failTurn(sheet, running, error, { usage })
  const payload = {
    attempt: command.held === true ? retry : retry + 1,
    delay_ms: delayMs,
    target: { type: "llm" },
    error_type: error.error_type,
    message: error.message,
    ...(error.source === undefined ? {} : { source: error.source }),
    ...(provider === undefined ? {} : { provider }),
    ...waits,
    ...(command.held === true ? { held: true } : {}),
    ...(usage === undefined ? {} : { usage })
  } as const
  sheet.step(turnMachine, turn.status, { _tag: "ScheduleRetry", payload, place: placeOf(agent, turn) })
}

const fail = (sheet: Drafting, command: Of<"FailTurn">): undefined => {
  const running = requireTurn(sheet, command.agent_id)
  if (running === undefined) return
  endInside(sheet, running, { reason: command.error.message, end: "lose_effects" })
  failTurn(sheet, running, command.error, { usage: command.usage ?? settlementOf(running.turn.request) })
}

const retryDue = (sheet: Drafting, command: Of<"RetryDue">): undefined => {
  const running = requireTurn(sheet, command.agent_id)
  if (running !== undefined) startRetry(sheet, running)
}

/** Between two model calls, or between turns: never under a request that is being answered. */
const compact = (sheet: Drafting, command: Of<"Compact">): undefined => {
  const agent = requireAgent(sheet, command.agent_id)
  if (agent === undefined) return
  const { _tag: _, agent_id: agentId, usage, ...compacted } = command
  const { turn } = agent
  if (turn !== null && turn.request !== null && turn.request.purpose === "answer") {
    sheet.refuse("invalid_state", "a request is being answered", { state: turn.status })
  }
  if (command.upto > sheet.state.head) {
    sheet.refuse("bad_request", `event ${command.upto} has not happened`, { head: sheet.state.head })
  }
  const payload = { ...compacted, ...(turn === null ? {} : settled(turn, usage)) }
  const place = { agent_id: agentId, turn_id: turn?.turn_id }
  sheet.step(turnMachine, turn?.status ?? "idle", { _tag: "Compact", payload, place })
}

type ModelCommand = Exclude<
  TurnRequest,
  Of<"PostMessage" | "StartQueued" | "InterruptTurn" | "RetryTurn" | "SettleTools">
>

export const modelDeciders: Deciders<ModelCommand> = {
  RequestModel: requestModel,
  AppendText: append,
  AppendReasoning: append,
  ReceiveResponse: receive,
  FinaliseResponse: finalise,
  FailModelCall: failCall,
  FailTurn: fail,
  RetryDue: retryDue,
  Compact: compact
}
