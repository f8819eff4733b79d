/** Deciding about tool calls: asking a person, starting, progress, the one result. */
import type { CallId } from "../../rune/Ids.ts"
import type { PayloadOf } from "../../rune/Kinds.ts"
import { canonicalHash, isDeeperThan } from "../Canonical.ts"
import type { ToolRequest } from "../Command.ts"
import { errorInfo, errorTable } from "../ErrorTable.ts"
import { effectiveLimits, limits } from "../MachineLimits.ts"
import type { CallState } from "../State.ts"
import { type ToolCommand, tool } from "../table/Tool.ts"
import { turn as turnMachine } from "../table/Turn.ts"
import { askingCall } from "../view/Questions.ts"
import { callOf, isAlive } from "../view/Select.ts"
import { type Deciders, type Drafting, placeOf } from "./Drafting.ts"
import { draft } from "./Drafts.ts"
import { endInside, failTurn, interruptTurn, placeOfCall, resultOf } from "./Ending.ts"
import { type Running, requireAgent, requireCall, turnOfCall } from "./Require.ts"
import { rerunCall } from "./rerun.ts"
import { startRetry } from "./retry.ts"

type Of<Tag extends ToolRequest["_tag"]> = Extract<ToolRequest, { readonly _tag: Tag }>

/** Arguments that did not come through a model are held to the same shape. */
const requireArguments = (sheet: Drafting, value: unknown): undefined => {
  const isObject = value !== null && typeof value === "object" && !Array.isArray(value)
  if (!isObject) return sheet.refuse("bad_request", "arguments are not a JSON object")
  if (!isDeeperThan(value, limits.argumentsDepthMax)) return undefined
  return sheet.refuse("bad_request", `arguments nest deeper than ${limits.argumentsDepthMax} levels`)
}

/** The hash of arguments, unless they were refused. */
const hashOf = (sheet: Drafting, value: unknown): string => (sheet.refusal === undefined ? canonicalHash(value) : "")

/** Nothing is asked in the course of a call that is over: nobody would wait for the answer. */
const requireAsking = (sheet: Drafting, callId: CallId): undefined => {
  const asking = askingCall(callId)
  if (asking === undefined || callOf(sheet.state, asking)?.status === "executing") return undefined
  return sheet.refuse("invalid_state", `${asking} is no longer running`)
}

const open = (sheet: Drafting, command: Of<"OpenCall">): undefined => {
  const agent = requireAgent(sheet, command.agent_id)
  if (agent === undefined) return
  if (!isAlive(agent)) sheet.refuse("invalid_state", `Agent is ${agent.status}`, { state: agent.status })
  if (callOf(sheet.state, command.call_id) !== undefined) {
    sheet.refuse("invalid_state", `${command.call_id} is already open`)
  }
  requireAsking(sheet, command.call_id)
  requireArguments(sheet, command.arguments)
  const payload = {
    call_id: command.call_id,
    tool_name: command.tool_name,
    arguments: command.arguments,
    arguments_hash: hashOf(sheet, command.arguments),
    ...command.tool
  }
  sheet.write(draft("tool.call", payload, { agent_id: agent.agent_id }))
}

const requireApproval = (sheet: Drafting, command: Of<"RequireApproval">): undefined => {
  const call = requireCall(sheet, command.call_id)
  if (call === undefined) return
  const { _tag, ...payload } = command
  sheet.step(tool, call.status, { _tag, payload, place: placeOfCall(call) })
}

/** The call waits for a decision; if it was decided before, the refusal says how and by whom. */
const requireUndecided = (sheet: Drafting, callId: Of<"ApproveCall">["call_id"]): CallState | undefined => {
  const call = callOf(sheet.state, callId)
  if (call?.status === "awaiting_approval") return call
  const decided = sheet.state.decisions.findLast((one) => one.call_id === callId)
  if (decided !== undefined) {
    const { decision } = decided
    const note = decision === "cancelled" ? ": nobody waits for an answer any more" : ""
    return sheet.refuse("already_decided", `${callId} was ${decision}${note}`, { decision: decided })
  }
  if (call === undefined) return sheet.refuse("not_found", `no open call ${callId}`)
  return sheet.refuse("invalid_state", `Tool is ${call.status}: it does not wait for an approval`, {
    state: call.status
  })
}

/** The question says what may be answered; a longer permission than it offers cannot be taken. */
const requireOffered = (sheet: Drafting, call: CallState, { scope }: Of<"ApproveCall">): undefined => {
  const choices = call.approval?.choices ?? ["once"]
  if (scope === "once" || choices.includes(scope)) return undefined
  return sheet.refuse("bad_request", `"${scope}" is not offered for this call, only ${choices.join(", ")}`, { choices })
}

/** What a longer permission is bound to. Changed arguments are not those that the question was about. */
const ruleOf = (call: CallState, command: Of<"ApproveCall">): { readonly rule?: unknown } => {
  if (command.scope === "once") return {}
  const asked = command.arguments === undefined ? call.approval?.learns?.[command.scope] : undefined
  const rule = command.rule ?? asked
  return rule === undefined ? {} : { rule }
}

const approve = (sheet: Drafting, command: Of<"ApproveCall">): undefined => {
  const call = requireUndecided(sheet, command.call_id)
  if (call === undefined) return
  requireOffered(sheet, call, command)
  if (command.arguments_hash !== undefined && command.arguments_hash !== call.arguments_hash) {
    sheet.refuse("bad_request", "the arguments differ from those that were shown", {
      arguments_hash: call.arguments_hash
    })
  }
  const expiresMs = call.approval?.expires_ms ?? null
  if (expiresMs !== null && sheet.atMs >= expiresMs) {
    sheet.refuse("invalid_state", "the question has expired", { state: "expired" })
  }
  const { _tag, arguments_hash: _, rule: _rule, ...answer } = command
  if (command.arguments !== undefined) requireArguments(sheet, command.arguments)
  const hash = command.arguments === undefined ? call.arguments_hash : hashOf(sheet, command.arguments)
  sheet.step(tool, call.status, {
    _tag: "Approve",
    payload: { ...answer, arguments_hash: hash, ...ruleOf(call, command) },
    place: placeOfCall(call)
  })
}

const deniedResult = (sheet: Drafting, call: CallState, reason: string): PayloadOf<"tool.result"> =>
  resultOf(sheet, call, { status: "denied", error: errorInfo("tool_denied", reason) })

/** A policy may deny a call before anyone is asked. */
const deny = (sheet: Drafting, command: Of<"DenyCall">): undefined => {
  const pending = callOf(sheet.state, command.call_id)
  const call = pending?.status === "pending_call" ? pending : requireUndecided(sheet, command.call_id)
  if (call === undefined) return
  const place = placeOfCall(call)
  const channel = command.channel === undefined ? {} : { channel: command.channel }
  const denied = { call_id: call.call_id, approver: command.approver, reason: command.reason, ...channel }
  sheet.step(tool, call.status, {
    _tag: "Deny",
    denied: { payload: denied, place },
    result: { payload: deniedResult(sheet, call, command.reason), place }
  })
  const running = turnOfCall(sheet, call)
  if (command.interrupt !== true || running === undefined) return
  interruptTurn(sheet, running, { reason: "approval_denied", except: call.call_id })
}

const expire = (sheet: Drafting, command: Of<"ExpireApproval">): undefined => {
  const call = requireUndecided(sheet, command.call_id)
  if (call === undefined) return
  const error = errorInfo("approval_timeout", "no answer in time")
  const payload = resultOf(sheet, call, { status: "timeout", error })
  sheet.step(tool, call.status, { _tag: "ExpireApproval", payload, place: placeOfCall(call) })
}

/** The turn that holds this call back until its retry is due. */
const waitsForRetry = (sheet: Drafting, call: CallState): Running | undefined => {
  const running = turnOfCall(sheet, call)
  const target = running?.turn.retry?.target
  return target?.type === "tool" && target.call_id === call.call_id ? running : undefined
}

/** It has had its one start: of an effect there is no second, whoever asks. */
const isSpent = (call: CallState): boolean => call.attempt > 0 && call.effect_class === "effect"

const start = (sheet: Drafting, command: Of<"StartCall">): undefined => {
  const call = requireCall(sheet, command.call_id)
  if (call === undefined) return
  const { status } = sheet.state.session
  if (status === "suspended") {
    sheet.refuse("invalid_state", "Session is suspended: nothing starts", { state: status })
  }
  if (waitsForRetry(sheet, call) !== undefined) {
    sheet.refuse("invalid_state", `${call.call_id} waits for its retry`, { state: "retry_waiting" })
  }
  if (isSpent(call)) {
    sheet.refuse("invalid_state", `${call.call_id} has started and must not run twice`, { state: call.status })
  }
  const payload = { call_id: call.call_id, attempt: call.attempt + 1, sandbox: command.sandbox }
  sheet.step(tool, call.status, { _tag: "Start", payload, place: placeOfCall(call) })
}

/** Only what has started can tell of itself; an approved call that never ran cannot. */
const requireStarted = (sheet: Drafting, call: CallState): undefined => {
  if (call.status !== "executing" || call.attempt > 0) return undefined
  return sheet.refuse("invalid_state", `${call.call_id} has not started`, { state: call.status })
}

const progress = (sheet: Drafting, command: Of<"AppendProgress">): undefined => {
  const call = requireCall(sheet, command.call_id)
  if (call === undefined) return
  requireStarted(sheet, call)
  const { _tag: _, ...payload } = command
  sheet.step(tool, call.status, { _tag: "Progress", payload, place: placeOfCall(call) })
}

const commandOfStatus = {
  success: "Succeed",
  error: "Fail",
  sandbox_violation: "Fail",
  timeout: "TimeOut",
  cancelled: "Cancel",
  unknown: "Lose"
} as const satisfies Readonly<Record<Of<"FinishCall">["status"], ToolCommand["_tag"]>>

const finish = (sheet: Drafting, command: Of<"FinishCall">): undefined => {
  const call = requireCall(sheet, command.call_id)
  if (call === undefined) return
  if (command.status !== "error" && command.status !== "cancelled") requireStarted(sheet, call)
  if (command.status === "sandbox_violation" && call.attempt === 0) {
    sheet.refuse("invalid_state", `${call.call_id} has not started`, { state: call.status })
  }
  const { _tag: _, ...payload } = command
  sheet.step(tool, call.status, { _tag: commandOfStatus[command.status], payload, place: placeOfCall(call) })
}

/** Running it again is safe, allowed, and the turn is in a state to wait for it. */
const canRetry = (sheet: Drafting, call: CallState, running: Running): boolean =>
  call.effect_class !== "effect" &&
  call.attempt <= effectiveLimits(sheet.state.session.config).maxToolRetries &&
  running.turn.status === "tool_executing"

const crash = (sheet: Drafting, command: Of<"CrashCall">): undefined => {
  const call = requireCall(sheet, command.call_id)
  if (call === undefined) return
  const running = turnOfCall(sheet, call)
  const { message } = command
  const { source } = errorTable.tool_execution_failed
  if (running !== undefined && call.status === "executing" && canRetry(sheet, call, running)) {
    const target = { type: "tool", call_id: call.call_id } as const
    const delayMs = limits.toolRetryDelayMs
    const payload = {
      attempt: call.attempt + 1,
      delay_ms: delayMs,
      target,
      error_type: "tool_execution_failed",
      message,
      source
    }
    const place = placeOf(running.agent, running.turn)
    sheet.step(turnMachine, running.turn.status, { _tag: "ScheduleRetry", payload, place })
    return
  }
  endCrashed(sheet, call, message)
  // Another call already waits for its retry: this one's failure is told to the model instead.
  if (running === undefined || running.turn.status === "retry_waiting") return
  endInside(sheet, running, { reason: message, end: "lose_effects", except: call.call_id })
  failTurn(sheet, running, { error_type: "tool_execution_failed", message, retryable: true, source })
}

const endCrashed = (sheet: Drafting, call: CallState, message: string): undefined => {
  const place = placeOfCall(call)
  if (isSpent(call)) {
    const error = errorInfo("tool_outcome_unknown", `${message}; it is not known whether the call took effect`)
    sheet.step(tool, call.status, { _tag: "Lose", payload: resultOf(sheet, call, { status: "unknown", error }), place })
    return
  }
  const error = errorInfo("tool_execution_failed", message)
  sheet.step(tool, call.status, { _tag: "Fail", payload: resultOf(sheet, call, { status: "error", error }), place })
}

const retry = (sheet: Drafting, command: Of<"RetryCall">): undefined => {
  const { call_id: callId } = command
  const call = callOf(sheet.state, callId)
  const running = call === undefined ? undefined : waitsForRetry(sheet, call)
  if (running !== undefined) return startRetry(sheet, running)
  if (rerunCall(sheet, command) === undefined) return undefined
  if (call !== undefined)
    return sheet.refuse("invalid_state", `${callId} is not waiting for a retry`, { state: call.status })
  return sheet.refuse("not_found", `no failed call ${callId}: it succeeded, was retried already, or is too old`)
}

export const toolDeciders: Deciders<ToolRequest> = {
  OpenCall: open,
  RequireApproval: requireApproval,
  ApproveCall: approve,
  DenyCall: deny,
  ExpireApproval: expire,
  StartCall: start,
  AppendProgress: progress,
  FinishCall: finish,
  CrashCall: crash,
  RetryCall: retry
}
