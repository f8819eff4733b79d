/** How tool and hook runes change the state. */
import { type CallId, ordinalOf, toolRunIdOf } from "../../rune/Ids.ts"
import type { AnyRune, RuneOf } from "../../rune/Rune.ts"
import { limits } from "../MachineLimits.ts"
import type {
  MutableCall,
  MutableCallRecord,
  MutableConversation,
  MutableHook,
  MutableResult,
  MutableTurn
} from "../State.ts"
import { hookLands } from "../table/Hook.ts"
import { toolLands } from "../table/Tool.ts"
import { rememberEffect } from "./DoneEffects.ts"
import { keepFailedCall, keepFailedHook } from "./FailedRuns.ts"
import { findAgent, findCall, findTurn, type Handlers, notice, pushBounded, recordDecision, tailOf } from "./Parts.ts"

/** A call that waits to be looked at. */
export const blankCall = (callId: CallId, toolName: string): MutableCall => ({
  call_id: callId,
  run_id: "",
  agent_id: null,
  turn_id: null,
  event_id: 0,
  tool_name: toolName,
  arguments: null,
  arguments_hash: "",
  effect_class: "effect",
  mutating: true,
  timeout_ms: null,
  provenance: null,
  status: "pending_call",
  attempt: 0,
  started_ms: null,
  approval: null,
  progress_tail: "",
  result: null,
  duration_ms: 0
})

const newCall = (rune: RuneOf<"tool.call">): MutableCall => ({
  ...blankCall(rune.payload.call_id, rune.payload.tool_name),
  run_id: toolRunIdOf(rune.rune_id),
  agent_id: rune.agent_id ?? null,
  turn_id: rune.turn_id ?? null,
  event_id: rune.event_id,
  arguments: rune.payload.arguments,
  arguments_hash: rune.payload.arguments_hash,
  effect_class: rune.payload.effect_class,
  mutating: rune.payload.mutating,
  timeout_ms: rune.payload.timeout_ms ?? null,
  provenance: rune.payload.provenance ?? null,
  ...(rune.payload.origin === undefined ? {} : { origin: rune.payload.origin }),
  ...(rune.payload.arguments_text === undefined ? {} : { unreadable: true })
})

const newRecord = ({ payload }: RuneOf<"tool.call">): MutableCallRecord => ({
  call_id: payload.call_id,
  tool_name: payload.tool_name,
  arguments: payload.arguments,
  ...(payload.provider_call_id === undefined ? {} : { provider_call_id: payload.provider_call_id })
})

const resultOf = ({ payload }: RuneOf<"tool.result">): MutableResult => ({
  status: payload.status,
  ...(payload.output === undefined ? {} : { output: payload.output }),
  ...(payload.output_blob === undefined ? {} : { output_blob: payload.output_blob }),
  ...(payload.attachments === undefined ? {} : { attachments: payload.attachments }),
  ...(payload.error === undefined ? {} : { error: payload.error })
})

/** The answer that asked for the calls of the running batch: the newest one of that turn. */
const callsOfAnswer = (state: MutableConversation, rune: AnyRune): Array<MutableCallRecord> | undefined => {
  const item = findAgent(state, rune.agent_id)?.transcript.at(-1)
  return item?.type === "assistant" && item.turn_id === rune.turn_id ? item.calls : undefined
}

const wasAsked = (call: MutableCall): boolean => call.approval !== null

const settle = (state: MutableConversation, call: MutableCall, rune: RuneOf<"tool.result">): void => {
  const { status } = rune.payload
  const wasAwaiting = call.status === "awaiting_approval"
  call.status = toolLands(call.status, rune)
  call.result = resultOf(rune)
  call.duration_ms = rune.payload.duration_ms
  call.progress_tail = ""
  if (wasAwaiting && wasAsked(call) && status !== "denied") {
    const decision = status === "timeout" ? "expired" : "cancelled"
    recordDecision(state, { call_id: call.call_id, decision, approver: "", channel: "", event_id: rune.event_id })
  }
  if (status !== "unknown") return
  notice(state, {
    event_id: rune.event_id,
    type: "unknown_outcome",
    agent_id: call.agent_id,
    call_id: call.call_id,
    message: `${call.tool_name}: it is not known whether it took effect`
  })
}

const approve = (state: MutableConversation, call: MutableCall, rune: RuneOf<"tool.approved">): void => {
  const { approver, channel, scope, arguments: edited, arguments_hash: hash, expires_ms: expires, rule } = rune.payload
  call.status = toolLands(call.status, rune)
  if (edited !== undefined) call.arguments = edited
  if (hash !== undefined) call.arguments_hash = hash
  recordDecision(state, { call_id: call.call_id, decision: "approved", approver, channel, event_id: rune.event_id })
  if (scope === "once") return
  const grant = {
    event_id: rune.event_id,
    tool_name: call.tool_name,
    scope,
    approver,
    expires_ms: expires ?? null,
    arguments_hash: call.arguments_hash
  }
  pushBounded(state.grants, rule === undefined ? grant : { ...grant, rule }, limits.grantsMax)
}

const approvalHandlers: Pick<Handlers<"tool">, "tool.approval_requested" | "tool.approved" | "tool.denied"> = {
  "tool.approval_requested": (state, rune) => {
    const call = findCall(state, rune.payload.call_id)
    if (call === undefined) return
    const { answer_schema, policy_reason, shown_as, expires_ms, choices, learns } = rune.payload
    call.status = toolLands(call.status, rune)
    call.approval = {
      policy_reason,
      shown_as,
      asked_ms: rune.ts_ms,
      asked_event_id: rune.event_id,
      expires_ms: expires_ms ?? null,
      choices: choices ?? ["once"],
      ...(learns === undefined ? {} : { learns }),
      ...(answer_schema === undefined ? {} : { answer_schema })
    }
  },
  "tool.approved": (state, rune) => {
    const call = findCall(state, rune.payload.call_id)
    if (call !== undefined) approve(state, call, rune)
  },
  "tool.denied": (state, rune) => {
    const { call_id: callId, approver, channel } = rune.payload
    recordDecision(state, {
      call_id: callId,
      decision: "denied",
      approver,
      channel: channel ?? "",
      event_id: rune.event_id
    })
  }
}

const runHandlers: Pick<Handlers<"tool">, "tool.call" | "tool.started" | "tool.progress" | "tool.result"> = {
  "tool.call": (state, rune) => {
    state.calls.push(newCall(rune))
    state.tool_calls += 1
    state.next_call = Math.max(state.next_call, ordinalOf(rune.payload.call_id) + 1)
    const agent = findAgent(state, rune.agent_id)
    if (agent !== undefined) agent.tool_calls += 1
    callsOfAnswer(state, rune)?.push(newRecord(rune))
  },
  "tool.started": (state, rune) => {
    const call = findCall(state, rune.payload.call_id)
    if (call === undefined) return
    call.status = toolLands(call.status, rune)
    call.attempt = rune.payload.attempt
    call.started_ms = rune.ts_ms
    call.progress_tail = ""
  },
  "tool.progress": (state, rune) => {
    const call = findCall(state, rune.payload.call_id)
    if (call !== undefined)
      call.progress_tail = tailOf(call.progress_tail + rune.payload.chunk, limits.progressTailCharsMax)
  },
  "tool.result": (state, rune) => {
    const call = findCall(state, rune.payload.call_id)
    if (call === undefined || call.result !== null) return
    settle(state, call, rune)
    const agent = findAgent(state, call.agent_id ?? undefined)
    if (agent !== undefined) {
      rememberEffect(agent, call, rune)
      keepFailedCall(agent, call)
    }
    const record = callsOfAnswer(state, rune)?.find((one) => one.call_id === call.call_id)
    if (record !== undefined) record.result = resultOf(rune)
    // A call outside any turn has no batch to wait for.
    if (call.turn_id === null) state.calls = state.calls.filter((one) => one !== call)
  }
}

export const toolHandlers: Handlers<"tool"> = { ...approvalHandlers, ...runHandlers }

const findHook = (turn: MutableTurn | undefined, hookRunId: string): MutableHook | undefined =>
  turn?.hooks.find((one) => one.hook_run_id === hookRunId)

export const hookHandlers: Handlers<"hook"> = {
  "hook.started": (state, rune) => {
    const hook = findHook(findTurn(state, rune), rune.payload.hook_run_id)
    if (hook === undefined) return
    hook.status = hookLands(hook.status, rune)
    hook.attempt = rune.payload.attempt
    hook.started_ms = rune.ts_ms
  },
  "hook.completed": (state, rune) => {
    const agent = findAgent(state, rune.agent_id)
    const turn = findTurn(state, rune)
    const hook = findHook(turn, rune.payload.hook_run_id)
    if (agent === undefined || turn === undefined || hook === undefined) return
    hook.status = hookLands(hook.status, rune)
    keepFailedHook(agent, turn, hook)
  }
}
