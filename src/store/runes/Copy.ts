// A new conversation made of runes that exist: what forking and importing have in common. The whole of it becomes a log
// in one step or not at all. Whoever asks for it sees every rune as it goes in and has the last word, so that nothing
// the original had under way is taken up in the copy by accident.
import type { Entry } from "#runelog/commit/Entry.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import type { IdSource } from "../../rune/IdSource.ts"
import { type ConversationId, makeRuneId } from "../../rune/Ids.ts"
import { type AnyRune, encode, type RuneDraft, stamp } from "../../rune/Rune.ts"
import { entryOf } from "./FrameHeader.ts"
import { Renumber } from "./Renumber.ts"
import { dropSuperseded } from "./Thin.ts"

export interface CopyHooks {
  /** Sees every rune of the new conversation in order, before it is there. */
  readonly observe?: (rune: AnyRune) => void
  /** Runes to end with: typically those that close what was open. Asked once, after everything was observed. */
  readonly finish?: () => ReadonlyArray<RuneDraft>
}

export interface CopyOptions extends CopyHooks {
  readonly runelog: Runelog
  /** Of the new conversation. */
  readonly conversationId: ConversationId
  readonly ids: IdSource
  readonly nowMs: number
  /** Runes to begin with. */
  readonly first: ReadonlyArray<RuneDraft>
  /** The command that asked for it: the last rune carries it too, so that the log says what was answered. */
  readonly idempotency?: { readonly key: string; readonly hash: string }
}

export interface Copied {
  readonly conversationId: ConversationId
  /** The newest event of the new conversation. */
  readonly eventId: number
}

export const copyRunes = async (options: CopyOptions, runes: AsyncIterable<AnyRune>): Promise<Copied> => {
  const { conversationId, runelog } = options
  const { head } = await runelog.importEntries(conversationId, entriesOf(options, runes))
  return { conversationId, eventId: head }
}

async function* entriesOf(options: CopyOptions, runes: AsyncIterable<AnyRune>): AsyncGenerator<Entry> {
  const { idempotency } = options
  let last: AnyRune | undefined
  for await (const rune of placed(options, runes)) {
    if (last !== undefined) yield entryOf(last, encode(last))
    last = rune
  }
  if (last === undefined) return
  const marked: AnyRune = idempotency === undefined ? last : withKey(last, idempotency)
  yield entryOf(marked, encode(marked))
}

/** Keys of the envelope have an order, and the payload comes last. */
const withKey = ({ payload, ...envelope }: AnyRune, { hash, key }: { readonly key: string; readonly hash: string }) =>
  ({ ...envelope, idempotency_key: key, idempotency_hash: hash, payload }) as AnyRune

/** All runes of the new conversation in their places, each observed. */
async function* placed(options: CopyOptions, runes: AsyncIterable<AnyRune>): AsyncGenerator<AnyRune> {
  const { conversationId, first, ids } = options
  const renumber = new Renumber({ conversationId, ids, firstEventId: first.length + 1 })
  for (const [index, draft] of first.entries()) yield observed(options, place(options, draft, index + 1))
  for await (const rune of dropSuperseded(runes)) yield observed(options, renumber.move(rune))
  const from = renumber.nextEventId
  for (const [index, draft] of (options.finish?.() ?? []).entries()) {
    yield observed(options, place(options, draft, from + index))
  }
}

const place = ({ conversationId, ids, nowMs }: CopyOptions, draft: RuneDraft, eventId: number): AnyRune =>
  stamp(draft, { event_id: eventId, rune_id: makeRuneId(ids), conversation_id: conversationId, ts_ms: nowMs })

const observed = (options: CopyOptions, rune: AnyRune): AnyRune => {
  options.observe?.(rune)
  return rune
}
