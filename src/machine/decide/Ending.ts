/**
 * Ending things that are under way: calls that have no result yet, hooks that run,
 * the turn around them, the agent around that. Every end writes exactly one
 * terminal rune for each thing it ends, in the order inside to outside.
 */
import type { CallId } from "../../rune/Ids.ts"
import type { PayloadOf } from "../../rune/Kinds.ts"
import type { Usage } from "../../rune/kinds/shared.ts"
import { usageOf } from "../../rune/UsageTotals.ts"
import type { CallFailure } from "../Command.ts"
import { errorInfo } from "../ErrorTable.ts"
import { effectiveLimits } from "../MachineLimits.ts"
import type { AgentState, CallState } from "../State.ts"
import { agent as agentMachine } from "../table/Agent.ts"
import { hook as hookMachine } from "../table/Hook.ts"
import { session as sessionMachine } from "../table/Session.ts"
import { tool } from "../table/Tool.ts"
import { type TurnStatus, turn as turnMachine } from "../table/Turn.ts"
import { batchOf, familyOf, isOpen } from "../view/Select.ts"
import { type Drafting, placeOf } from "./Drafting.ts"
import type { Running } from "./Require.ts"
import { settlementOf } from "./Settlement.ts"

type ResultPayload = PayloadOf<"tool.result">

export const durationOf = (sheet: Drafting, startedMs: number | null): number =>
  startedMs === null ? 0 : Math.max(0, sheet.atMs - startedMs)

/** Envelope fields of a call's runes. */
export const placeOfCall = (call: CallState) => ({
  agent_id: call.agent_id ?? undefined,
  turn_id: call.turn_id ?? undefined
})

/** A result that carries what the call had printed so far. */
export const resultOf = (
  sheet: Drafting,
  call: CallState,
  result: Pick<ResultPayload, "status" | "error">
): ResultPayload => ({
  call_id: call.call_id,
  ...result,
  ...(call.progress_tail === "" ? {} : { output: call.progress_tail }),
  duration_ms: durationOf(sheet, call.started_ms)
})

/** How an open call ends when its turn ends under it. */
export type CallEnd = "cancel" | "lose_effects"

const mayHaveHappened = (call: CallState): boolean => call.attempt > 0 && call.effect_class === "effect"

export const endCall = (sheet: Drafting, call: CallState, reason: string, end: CallEnd): undefined => {
  const place = placeOfCall(call)
  if (end === "lose_effects" && mayHaveHappened(call)) {
    const error = errorInfo("tool_outcome_unknown", `${reason}; it is not known whether the call took effect`)
    const payload = resultOf(sheet, call, { status: "unknown", error })
    sheet.step(tool, call.status, { _tag: "Lose", payload, place })
    return
  }
  const message =
    call.attempt > 0 ? `${reason}; it had started and may have taken effect` : `${reason}; it never started`
  const payload = resultOf(sheet, call, { status: "cancelled", error: errorInfo("tool_cancelled", message) })
  sheet.step(tool, call.status, { _tag: "Cancel", payload, place })
}

export interface EndInside {
  readonly reason: string
  readonly end: CallEnd
  /** A call that this sheet has ended already. */
  readonly except?: CallId | undefined
}

/** Ends what the turn has open inside: calls and the running hook. */
export const endInside = (sheet: Drafting, running: Running, options: EndInside): undefined => {
  const { agent, turn } = running
  for (const call of batchOf(sheet.state, turn)) {
    if (isOpen(call) && call.call_id !== options.except) endCall(sheet, call, options.reason, options.end)
  }
  for (const hook of turn.hooks) {
    if (hook.status !== "running") continue
    const payload = {
      hook_run_id: hook.hook_run_id,
      status: "canceled",
      duration_ms: durationOf(sheet, hook.started_ms)
    } as const
    sheet.step(hookMachine, hook.status, { _tag: "Cancel", payload, place: placeOf(agent, turn) })
  }
}

/** Cancels the calls of the batch that have not started; those that run are left to finish. */
export const cancelUnstarted = (sheet: Drafting, { turn }: Running, reason: string): undefined => {
  for (const call of batchOf(sheet.state, turn)) {
    if (isOpen(call) && call.attempt === 0) endCall(sheet, call, reason, "cancel")
  }
}

export interface InterruptOptions {
  readonly reason: string
  readonly principal?: string | undefined
  readonly usage?: Usage | undefined
  /** The turn's status when it differs from the state's, because this sheet already moved it. */
  readonly status?: TurnStatus
  readonly command?: "Interrupt" | "Steer"
  /** A call that this sheet has ended already. */
  readonly except?: CallId
}

/** Ends the turn and everything open inside it. */
export const interruptTurn = (sheet: Drafting, running: Running, options: InterruptOptions): undefined => {
  endInside(sheet, running, { reason: `interrupted (${options.reason})`, end: "cancel", except: options.except })
  markInterrupted(sheet, running, options)
}

/** Ends a turn that has nothing open inside as interrupted, keeping what it had said. */
export const markInterrupted = (sheet: Drafting, running: Running, options: InterruptOptions): undefined => {
  const { agent, turn } = running
  const payload = {
    reason: options.reason,
    partial_output: turn.partial,
    usage: usageOf(turn.usage, options.usage ?? settlementOf(turn.request)),
    ...(options.principal === undefined ? {} : { principal: options.principal })
  }
  const place = placeOf(agent, turn)
  sheet.guard(agentMachine, agent.status, { _tag: "EndTurnInterrupted", payload, place })
  sheet.step(turnMachine, options.status ?? turn.status, { _tag: options.command ?? "Interrupt", payload, place })
}

/** Ends the turn in an error, keeping what it had said. */
export const failTurn = (
  sheet: Drafting,
  running: Running,
  error: CallFailure,
  options: { readonly status?: TurnStatus; readonly usage?: Usage | undefined } = {}
): undefined => {
  const { agent, turn } = running
  const payload = {
    error_type: error.error_type,
    message: error.message,
    retryable: error.retryable,
    ...(error.source === undefined ? {} : { source: error.source }),
    ...(turn.partial === "" ? {} : { partial_output: turn.partial }),
    usage: usageOf(turn.usage, options.usage)
  }
  const place = placeOf(agent, turn)
  sheet.guard(agentMachine, agent.status, { _tag: "EndTurnError", payload, place })
  sheet.step(turnMachine, options.status ?? turn.status, { _tag: "Fail", payload, place })
  suspendAfterErrors(sheet)
}

/** One turn after the other failed, and none went well: a person has to look before the next one. */
const suspendAfterErrors = (sheet: Drafting): undefined => {
  const { errors_in_row: before, session } = sheet.state
  const { errorThreshold } = effectiveLimits(session.config)
  if (session.status !== "active" || errorThreshold === 0 || before + 1 < errorThreshold) return
  sheet.step(sessionMachine, session.status, { _tag: "Suspend", payload: { reason: "error_threshold" } })
}

const statsOf = (agent: AgentState) => ({
  turns: agent.turns,
  tool_calls: agent.tool_calls,
  usage: usageOf(agent.usage, settlementOf(agent.turn?.request))
})

export const terminatedPayload = (agent: AgentState, reason: string): PayloadOf<"agent.terminated"> => ({
  agent_id: agent.agent_id,
  reason,
  stats: statsOf(agent)
})

/** Ends what hangs on an agent and would outlive it: those it spawned, then its calls outside any turn. */
export const endDependants = (sheet: Drafting, agent: AgentState, reason: string): undefined => {
  for (const one of familyOf(sheet.state, agent.agent_id)) {
    if (one === agent) continue
    endLooseCalls(sheet, one, "parent_closed")
    endOne(sheet, one, { reason: "parent_closed", force: true })
  }
  endLooseCalls(sheet, agent, reason)
}

const endLooseCalls = (sheet: Drafting, agent: AgentState, reason: string): undefined => {
  for (const call of sheet.state.calls) {
    const isLoose = call.agent_id === agent.agent_id && call.turn_id === null && isOpen(call)
    if (isLoose) endCall(sheet, call, reason, "cancel")
  }
}

interface AgentEnd {
  readonly reason: string
  readonly force: boolean
}

/** Ends an agent and all it spawned, children first. */
export const endAgent = (sheet: Drafting, agent: AgentState, options: AgentEnd): undefined => {
  endDependants(sheet, agent, options.reason)
  endOne(sheet, agent, options)
}

/** Ends an agent: by force it may be in the middle of a turn, otherwise not. */
const endOne = (sheet: Drafting, agent: AgentState, options: AgentEnd): undefined => {
  if (options.force && agent.turn !== null) {
    interruptTurn(sheet, { agent, turn: agent.turn }, { reason: options.reason })
  }
  sheet.step(agentMachine, agent.status, {
    _tag: options.force ? "ForceKill" : "Kill",
    payload: terminatedPayload(agent, options.reason),
    place: { agent_id: agent.agent_id }
  })
}
