// What waits for a person in all conversations, in memory or not. Bounded: too many conversations are counted, not asked.
import * as Effect from "effect/Effect"
import { limits } from "../../wire/WireLimits.ts"
import { CurrentOperation, type Operating, type State, stateOf, using } from "./CurrentOperation.ts"

interface Found<Item> {
  readonly items: ReadonlyArray<Item>
  readonly left_out?: number
}

/** The states of conversations that are not in memory, a few at a time. One that cannot be read hides no other. */
const statesOf = (ids: ReadonlyArray<string>): Operating<ReadonlyArray<State>> => {
  const readable = (id: string): Operating<ReadonlyArray<State>> =>
    Effect.catchCause(
      Effect.map(stateOf(id), (state) => [state]),
      () => Effect.succeed([])
    )
  return Effect.map(Effect.forEach(ids, readable, { concurrency: limits.attentionLanes }), (states) => states.flat())
}

/** Asks every conversation in which somebody may be waited for; says so when there are too many to be asked. */
export const fromWaiting = <Item>(itemsOf: (state: State) => ReadonlyArray<Item>): Operating<Found<Item>> =>
  Effect.gen(function* () {
    const { conversations } = yield* CurrentOperation
    const resident = conversations.residentStates()
    const known = new Set<string>(resident.map(({ conversation_id: id }) => id))
    const waiting = yield* using(({ conversationStore }) => conversationStore.waiting())
    const others = waiting.filter((id) => !known.has(id))
    const asked = others.slice(0, limits.attentionConversationsMax)
    const items = [...resident, ...(yield* statesOf(asked))].flatMap((state) => itemsOf(state))
    return asked.length === others.length ? { items } : { items, left_out: others.length - asked.length }
  })
