/** How turn runes change the state: the turn itself, the queue, the transcript, the sums. */

import { ordinalOf, type TurnId } from "../../rune/Ids.ts"
import type { Usage } from "../../rune/kinds/shared.ts"
import type { PlannedHook } from "../../rune/kinds/turn.ts"
import type { RuneOf } from "../../rune/Rune.ts"
import { addTo, beyond, noUsage } from "../../rune/UsageTotals.ts"
import { limits } from "../MachineLimits.ts"
import type { MutableAgent, MutableConversation, MutableHook, MutableRetry, MutableTurn } from "../State.ts"
import { agentLands } from "../table/Agent.ts"
import { turnLands } from "../table/Turn.ts"
import { ATTACHMENT_REFUSED, runningInput } from "../view/Request.ts"
import { startClock, stopClock } from "./clock.ts"
import { plannedOf } from "./FailedRuns.ts"
import { findAgent, findTurn, type Handlers, notice } from "./Parts.ts"
import { readSteers, takeUpSteers } from "./planTask.ts"

type CutOff = NonNullable<RuneOf<"system.recovered">["payload"]["cut_off"]>[number]
type TerminalRune = RuneOf<"turn.completed"> | RuneOf<"turn.interrupted"> | RuneOf<"turn.error">

/** A turn that has just begun. */
export const blankTurn = (turnId: TurnId): MutableTurn => ({
  turn_id: turnId,
  status: "streaming",
  started_event_id: 0,
  started_ms: 0,
  model_calls: 0,
  llm_failures: 0,
  holds: 0,
  failing_since_ms: null,
  request: null,
  abandoned_request_id: null,
  partial: "",
  call_ids: [],
  hooks: [],
  retry: null,
  usage: noUsage(),
  compactions: 0,
  compacted_at: 0,
  clock_ms: null
})

const newTurn = (rune: RuneOf<"turn.started">): MutableTurn => ({
  ...blankTurn(rune.payload.turn_id),
  status: turnLands("idle", rune),
  started_event_id: rune.event_id,
  started_ms: rune.ts_ms
})

/** A retry that waits for a person. */
export const blankRetry = (): MutableRetry => ({
  target: { type: "llm" },
  attempt: 0,
  due_ms: 0,
  error_type: "",
  message: "",
  event_id: 0,
  scheduled_ms: 0,
  provider: null,
  waits_for_person: true,
  held: false
})

const newHook = (planned: PlannedHook): MutableHook => ({
  hook_run_id: planned.hook_run_id,
  hook_name: planned.hook_name,
  failure_policy: planned.failure_policy,
  timeout_ms: planned.timeout_ms,
  effect_class: planned.effect_class,
  status: "queued",
  attempt: 0,
  started_ms: null
})

const count = (state: MutableConversation, agent: MutableAgent, turn: MutableTurn, usage: Usage | undefined): void => {
  if (usage === undefined) return
  addTo(turn.usage, usage)
  addTo(agent.usage, usage)
  addTo(state.usage, usage)
}

/** The request will not be answered: it is paid for, and the next one replaces it. */
export const settleCutOff = (state: MutableConversation, cut: CutOff): void => {
  const agent = findAgent(state, cut.agent_id)
  const turn = agent?.turn
  if (agent === undefined || turn == null || turn.request?.request_id !== cut.request_id) return
  count(state, agent, turn, cut.usage)
  turn.abandoned_request_id = cut.request_id
  turn.request = null
}

const dropBatch = (state: MutableConversation, turn: MutableTurn): void => {
  if (state.calls.length > 0) state.calls = state.calls.filter((call) => call.turn_id !== turn.turn_id)
}

/** What an interrupted turn had said stays in the conversation. */
const keepPartial = (agent: MutableAgent, rune: RuneOf<"turn.interrupted">, turn: MutableTurn): void => {
  const text = rune.payload.partial_output
  if (text === "") return
  agent.transcript.push({
    type: "assistant",
    event_id: rune.event_id,
    turn_id: turn.turn_id,
    content: text,
    items: [{ type: "text", chars: text.length }],
    calls: [],
    partial: true
  })
}

/** A person has a run of an earlier turn done again: it cannot be asked for twice. */
const takeUp = (
  agent: MutableAgent,
  turn: MutableTurn,
  { event_id: eventId, payload: { target } }: RuneOf<"turn.started">
): void => {
  if (target?.type === "tool") {
    agent.failed_calls = agent.failed_calls.filter((one) => one.call_id !== target.call_id)
    const { turn_id } = turn
    agent.transcript.push({
      type: "assistant",
      event_id: eventId,
      turn_id,
      content: "",
      items: [],
      calls: [],
      rerun: true
    })
  }
  if (target?.type === "hook") {
    turn.call_ids = agent.failed_hooks.find((one) => one.hook_run_id === target.hook_run_id)?.call_ids ?? []
    agent.failed_hooks = agent.failed_hooks.filter((one) => one.hook_run_id !== target.hook_run_id)
  }
}

/** Hooks that did not come to run because one before them failed are run with it, when it is run again. */
const keepHooksLeft = (agent: MutableAgent, turn: MutableTurn): void => {
  const left = turn.hooks.filter((hook) => hook.status === "queued" && hook.attempt === 0)
  const last = agent.failed_hooks.at(-1)
  if (last?.turn_id !== turn.turn_id) return
  last.hooks = [...last.hooks, ...left.map(plannedOf)]
}

const endTurn = (
  state: MutableConversation,
  rune: TerminalRune
): { agent: MutableAgent; turn: MutableTurn } | undefined => {
  const agent = findAgent(state, rune.agent_id)
  const turn = findTurn(state, rune)
  if (agent === undefined || turn === undefined) return undefined
  const usage = rune.payload.usage
  if (usage !== undefined) count(state, agent, turn, beyond(usage, turn.usage))
  keepHooksLeft(agent, turn)
  dropBatch(state, turn)
  stopClock(state, agent, turn, rune.ts_ms)
  agent.turn = null
  agent.last_turn = { turn_id: turn.turn_id, status: turnLands(turn.status, rune) }
  agent.status = agentLands(agent.status, rune)
  return { agent, turn }
}

/** An input that did not fit and was not answered would be in the way of every later turn. */
const leaveOut = (agent: MutableAgent): void => {
  const at = agent.transcript.findLastIndex((item) => item.type !== "summary" && item.type !== "note")
  const item = agent.transcript[at]
  if (item?.type === "user") item.unfit = true
}

/** Whoever tries it again, perhaps with another model, means all of it. */
const fitAgain = (agent: MutableAgent): void => {
  const item = agent.transcript.findLast((one) => one.type === "user")
  if (item !== undefined) delete item.unfit
}

/** What a provider refused once it would refuse in every later request. */
const noteRefused = (agent: MutableAgent, errorType: string, eventId: number): void => {
  if (errorType === ATTACHMENT_REFUSED) agent.refused_upto = eventId
}

const noteCompaction = (turn: MutableTurn): void => {
  turn.compactions = turn.model_calls - turn.compacted_at <= 1 ? turn.compactions + 1 : 1
  turn.compacted_at = turn.model_calls
}

/** What the answer has come to so far: somebody has to pay for it, also if it ends here. */
const hear = (turn: MutableTurn, { payload }: RuneOf<"turn.assistant_delta" | "turn.reasoning_delta">): void => {
  if (turn.request === null) return
  turn.request.chars += payload.content.length
  turn.request.told = payload.usage ?? turn.request.told
}

const inputHandlers: Pick<Handlers<"turn">, "turn.queued" | "turn.dequeued" | "turn.started"> = {
  "turn.queued": (state, rune) => {
    const { input, mode, from_agent_id: from, principal } = rune.payload
    findAgent(state, rune.agent_id)?.queue.push({
      event_id: rune.event_id,
      input,
      mode,
      ...(from === undefined ? {} : { from_agent_id: from }),
      ...(principal === undefined ? {} : { principal })
    })
  },
  "turn.dequeued": (state, rune) => {
    const agent = findAgent(state, rune.agent_id)
    if (agent === undefined) return
    agent.queue = agent.queue.filter((one) => !rune.payload.event_ids.some((id) => id === one.event_id))
  },
  "turn.started": (state, rune) => {
    const { agent_id: agentId, turn_id: turnId, input, queued_event_ids: queuedIds, retry_of: retryOf } = rune.payload
    const agent = findAgent(state, agentId)
    if (agent === undefined) return
    const from = agent.queue.find((one) => queuedIds?.includes(one.event_id))?.from_agent_id
    if (queuedIds !== undefined) agent.queue = agent.queue.filter((one) => !queuedIds.includes(one.event_id))
    const turn = newTurn(rune)
    agent.turn = turn
    takeUpSteers(state, agentId, turnId)
    startClock(state, turn, rune.ts_ms)
    agent.status = agentLands(agent.status, rune)
    agent.turns += 1
    state.turns += 1
    state.next_turn = Math.max(state.next_turn, ordinalOf(turnId) + 1)
    if (retryOf !== undefined) {
      fitAgain(agent)
      takeUp(agent, turn, rune)
      return
    }
    agent.transcript.push({
      type: "user",
      event_id: rune.event_id,
      turn_id: turnId,
      content: input,
      ...(from === undefined ? {} : { from_agent_id: from })
    })
  }
}

const modelHandlers: Pick<
  Handlers<"turn">,
  "turn.model_requested" | "turn.assistant_delta" | "turn.reasoning_delta" | "turn.assistant_final"
> = {
  "turn.model_requested": (state, rune) => {
    const agent = findAgent(state, rune.agent_id)
    const turn = findTurn(state, rune)
    if (agent === undefined || turn === undefined) return
    const { request_id, provider, model, attempt, purpose = "answer", estimate = null, usage } = rune.payload
    count(state, agent, turn, usage)
    const at = { event_id: rune.event_id, requested_ms: rune.ts_ms }
    turn.request = { request_id, provider, model, attempt, ...at, purpose, estimate, told: null, chars: 0 }
    turn.abandoned_request_id = null
    turn.partial = ""
  },
  "turn.assistant_delta": (state, rune) => {
    const turn = findTurn(state, rune)
    if (turn === undefined) return
    turn.partial += rune.payload.content
    hear(turn, rune)
  },
  // Thoughts are shown while they come and kept in the final answer; the state only counts their pieces.
  "turn.reasoning_delta": (state, rune) => {
    const turn = findTurn(state, rune)
    if (turn !== undefined) hear(turn, rune)
  },
  "turn.assistant_final": (state, rune) => {
    const agent = findAgent(state, rune.agent_id)
    const turn = findTurn(state, rune)
    if (agent === undefined || turn === undefined) return
    turn.status = turnLands(turn.status, rune)
    readSteers(state, rune.turn_id, rune.event_id)
    turn.request = null
    turn.abandoned_request_id = null
    turn.partial = ""
    turn.llm_failures = 0
    turn.failing_since_ms = null
    turn.model_calls += 1
    count(state, agent, turn, rune.payload.usage)
    const { content, items } = rune.payload
    agent.transcript.push({
      type: "assistant",
      event_id: rune.event_id,
      turn_id: turn.turn_id,
      content,
      items,
      calls: []
    })
  }
}

const batchHandlers: Pick<
  Handlers<"turn">,
  "turn.tool_calls_received" | "turn.tools_finished" | "turn.hooks_finished"
> = {
  "turn.tool_calls_received": (state, rune) => {
    const turn = findTurn(state, rune)
    if (turn === undefined) return
    turn.status = turnLands(turn.status, rune)
    turn.call_ids = [...rune.payload.call_ids]
  },
  "turn.tools_finished": (state, rune) => {
    const turn = findTurn(state, rune)
    if (turn === undefined) return
    const planned = rune.payload.hooks ?? []
    turn.status = turnLands(turn.status, rune)
    turn.hooks = planned.map(newHook)
    for (const { hook_run_id: id } of planned) state.next_hook_run = Math.max(state.next_hook_run, ordinalOf(id) + 1)
    dropBatch(state, turn)
    if (planned.length === 0) turn.call_ids = []
  },
  "turn.hooks_finished": (state, rune) => {
    const turn = findTurn(state, rune)
    if (turn === undefined) return
    turn.status = turnLands(turn.status, rune)
    turn.hooks = []
    turn.call_ids = []
  }
}

const retryHandlers: Pick<Handlers<"turn">, "turn.retry_scheduled" | "turn.retry_started" | "turn.compacted"> = {
  "turn.retry_scheduled": (state, rune) => {
    const agent = findAgent(state, rune.agent_id)
    const turn = findTurn(state, rune)
    if (agent === undefined || turn === undefined) return
    const { target, attempt, delay_ms: delayMs, error_type, message, usage } = rune.payload
    noteRefused(agent, error_type, rune.event_id)
    turn.status = turnLands(turn.status, rune)
    turn.retry = {
      target,
      attempt,
      due_ms: rune.ts_ms + delayMs,
      error_type,
      message,
      event_id: rune.event_id,
      scheduled_ms: rune.ts_ms,
      provider: rune.payload.provider ?? null,
      waits_for_person: rune.payload.waits_for === "person",
      held: rune.payload.held === true
    }
    count(state, agent, turn, usage)
    if (target.type !== "llm") return
    if (turn.retry.held) turn.holds += 1
    else turn.llm_failures += 1
    turn.failing_since_ms ??= rune.ts_ms
    turn.abandoned_request_id = turn.request?.request_id ?? turn.abandoned_request_id
    turn.request = null
  },
  "turn.retry_started": (state, rune) => {
    const turn = findTurn(state, rune)
    if (turn === undefined) return
    turn.status = turnLands(turn.status, rune)
    turn.retry = null
  },
  "turn.compacted": (state, rune) => {
    const agent = findAgent(state, rune.agent_id)
    if (agent === undefined) return
    const { upto, summary, usage } = rune.payload
    const input = runningInput(agent)
    const before = agent.transcript.filter((item) => item.event_id <= upto && item === input)
    const after = agent.transcript.filter((item) => item.event_id > upto)
    agent.transcript = [...before, { type: "summary", event_id: upto, content: summary }, ...after]
    const { turn } = agent
    if (turn === null) return
    count(state, agent, turn, usage)
    if (turn.request?.purpose === "summary") turn.request = null
    noteCompaction(turn)
  }
}

const terminalHandlers: Pick<Handlers<"turn">, "turn.completed" | "turn.interrupted" | "turn.error"> = {
  "turn.completed": (state, rune) => {
    const ended = endTurn(state, rune)
    if (ended === undefined) return
    state.errors_in_row = 0
    ended.agent.last_error = null
  },
  "turn.interrupted": (state, rune) => {
    const ended = endTurn(state, rune)
    if (ended !== undefined) keepPartial(ended.agent, rune, ended.turn)
  },
  "turn.error": (state, rune) => {
    const ended = endTurn(state, rune)
    if (ended === undefined) return
    state.errors_in_row += 1
    const { error_type: code, message, retryable, source } = rune.payload
    if (code === "context_exceeded") leaveOut(ended.agent)
    noteRefused(ended.agent, code, rune.event_id)
    ended.agent.last_error = {
      code,
      message,
      retryable,
      ...(source === undefined ? {} : { source }),
      event_id: rune.event_id
    }
    notice(state, {
      event_id: rune.event_id,
      type: "turn_error",
      agent_id: ended.agent.agent_id,
      call_id: null,
      message: message.slice(0, limits.noticeCharsMax)
    })
  }
}

export const turnHandlers: Handlers<"turn"> = {
  ...inputHandlers,
  ...modelHandlers,
  ...batchHandlers,
  ...retryHandlers,
  ...terminalHandlers
}
