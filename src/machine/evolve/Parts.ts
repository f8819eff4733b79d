/** What the handlers of the fold share: finding things, adding up, keeping lists bounded. */
import type { AgentId, CallId } from "../../rune/Ids.ts"
import type { Kind } from "../../rune/Kinds.ts"
import type { Rune, RuneOf } from "../../rune/Rune.ts"
import { limits } from "../MachineLimits.ts"
import type {
  MutableAgent,
  MutableCall,
  MutableConversation,
  MutableDecision,
  MutableNotice,
  MutableTurn
} from "../State.ts"

export type Handler<K extends Kind> = (state: MutableConversation, rune: RuneOf<K>) => void
export type Handlers<F extends string> = { readonly [K in Extract<Kind, `${F}.${string}`>]: Handler<K> }

export const findAgent = (state: MutableConversation, agentId: AgentId | undefined): MutableAgent | undefined => {
  for (const agent of state.agents) if (agent.agent_id === agentId) return agent
  return undefined
}

/** The running turn a rune speaks of; nothing when the rune names another one. */
export const findTurn = (state: MutableConversation, rune: Rune): MutableTurn | undefined => {
  const turn = findAgent(state, rune.agent_id)?.turn
  return turn !== null && turn !== undefined && turn.turn_id === rune.turn_id ? turn : undefined
}

export const findCall = (state: MutableConversation, callId: CallId): MutableCall | undefined => {
  for (const call of state.calls) if (call.call_id === callId) return call
  return undefined
}

/** Adds at the end and drops the oldest beyond the limit. */
export const pushBounded = <T>(list: Array<T>, item: T, max: number): void => {
  list.push(item)
  if (list.length > max) list.splice(0, list.length - max)
}

export const notice = (state: MutableConversation, item: MutableNotice): void =>
  pushBounded(state.notices, item, limits.noticesMax)

export const recordDecision = (state: MutableConversation, decision: MutableDecision): void =>
  pushBounded(state.decisions, decision, limits.decisionsMax)

/** The end of a text that grows, cut so that it stays bounded. */
export const tailOf = (text: string, max: number): string => (text.length > max ? text.slice(text.length - max) : text)
