/**
 * The one fold: live state, state after a crash, state in a replay and state in a
 * test are computed here and nowhere else. It never throws: a rune that speaks of
 * something it does not know changes nothing but the head.
 */
import type { ConversationId } from "../../rune/Ids.ts"
import type { Kind } from "../../rune/Kinds.ts"
import { type AnyRune, isKnown, type Rune, type RuneOf } from "../../rune/Rune.ts"
import { isExpired, outcomesBeyond } from "../Idempotency.ts"
import { limits } from "../MachineLimits.ts"
import { type ConversationState, emptyConversation, type MutableConversation } from "../State.ts"
import { agentHandlers, harnessHandlers } from "./agent.ts"
import { checkpointHandlers } from "./checkpoint.ts"
import { type Handler, type Handlers, notice } from "./Parts.ts"
import { planHandlers } from "./plan.ts"
import { configHandlers, sessionHandlers } from "./session.ts"
import { hookHandlers, toolHandlers } from "./tool.ts"
import { settleCutOff, turnHandlers } from "./turn.ts"

const nothing = (): void => undefined

const systemHandlers: Handlers<"system"> = {
  "system.error": (state, rune) => {
    notice(state, {
      event_id: rune.event_id,
      type: "system_error",
      agent_id: rune.agent_id ?? null,
      call_id: null,
      message: `${rune.payload.code}: ${rune.payload.message}`.slice(0, limits.noticeCharsMax)
    })
  },
  "system.invariant_violation": nothing,
  "system.recovered": (state, rune) => {
    for (const one of rune.payload.cut_off ?? []) settleCutOff(state, one)
  },
  "system.thinned": nothing
}

const handlers: { readonly [K in Kind]: Handler<K> } = {
  ...sessionHandlers,
  ...agentHandlers,
  ...turnHandlers,
  ...toolHandlers,
  ...hookHandlers,
  ...planHandlers,
  ...harnessHandlers,
  ...checkpointHandlers,
  ...configHandlers,
  ...systemHandlers
}

/** A command's runes lie side by side, so only the newest outcome can grow. */
const remember = (state: MutableConversation, rune: AnyRune, key: string): void => {
  const last = state.outcomes.at(-1)
  if (last?.key === key && !isExpired(last, rune.ts_ms)) {
    last.last_event_id = rune.event_id
    last.turn_id ??= rune.turn_id ?? null
    last.agent_id ??= rune.agent_id ?? null
    return
  }
  const [oldest] = state.outcomes
  if (oldest !== undefined && isExpired(oldest, rune.ts_ms)) {
    state.outcomes = state.outcomes.filter((outcome) => !isExpired(outcome, rune.ts_ms))
  }
  // Only in a log of somebody else: ours takes no command that would not fit.
  state.outcomes.splice(0, outcomesBeyond(state.outcomes, key))
  state.outcomes.push({
    key,
    hash: rune.idempotency_hash ?? "",
    first_event_id: rune.event_id,
    last_event_id: rune.event_id,
    ts_ms: rune.ts_ms,
    kind: rune.kind,
    agent_id: rune.agent_id ?? null,
    turn_id: rune.turn_id ?? null
  })
}

/** Notices are shown to everybody who may come in; that there is one may be known, what it says may not. */
const hideNotice = (state: MutableConversation, rune: AnyRune): void => {
  const newest = state.notices.at(-1)
  if (newest?.event_id === rune.event_id) newest.message = "what happened is not for everybody to read"
}

/** Folds one rune in. The given state is changed and returned. */
export const evolve = (state: ConversationState, rune: AnyRune): ConversationState => {
  const mutable = state as MutableConversation
  mutable.head = rune.event_id
  mutable.last_ms = rune.ts_ms
  if (rune.idempotency_key !== undefined) remember(mutable, rune, rune.idempotency_key)
  if (isKnown(rune)) {
    // The one widening: the handler is looked up by the very kind that the rune carries.
    const handle = handlers[rune.kind] as (state: MutableConversation, rune: Rune) => void
    handle(mutable, rune as RuneOf<Kind>)
    if (rune.visibility !== "public") hideNotice(mutable, rune)
  } else {
    mutable.unknown_runes += 1
  }
  return state
}

/** Folds runes from the beginning, or on from a state that is given up to the fold. */
export const fold = (runes: Iterable<AnyRune>, from: ConversationState | ConversationId): ConversationState => {
  const state = typeof from === "string" ? emptyConversation(from) : from
  for (const rune of runes) evolve(state, rune)
  return state
}
