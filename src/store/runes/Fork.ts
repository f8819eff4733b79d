// A new conversation from another one as it was at some event. It begins with `session.forked` and holds copies of the
// runes, renumbered, so it lives on whatever becomes of the original (docs/decisions/0011-fork-by-copy.md).
import type { Runelog } from "#runelog/Runelog.ts"
import type { IdSource } from "../../rune/IdSource.ts"
import type { ConversationId } from "../../rune/Ids.ts"
import type { AnyRune, RuneDraft } from "../../rune/Rune.ts"
import { ConversationUnknown, ForkInvalid } from "../StoreErrors.ts"
import { type Copied, type CopyHooks, copyRunes } from "./Copy.ts"
import type { RuneStore } from "./RuneStore.ts"

export interface ForkRequest extends CopyHooks {
  readonly from: ConversationId
  /** The last event of the original that comes along. */
  readonly atEventId: number
  /** Of the new conversation. */
  readonly conversationId: ConversationId
  readonly ids: IdSource
  readonly nowMs: number
  /** Key and body hash of the command that asked for it. */
  readonly idempotency?: { readonly key: string; readonly hash: string }
}

export interface ForkParts {
  readonly runelog: Runelog
  readonly runes: RuneStore
}

export const fork = async (parts: ForkParts, request: ForkRequest): Promise<Copied> => {
  const { atEventId, from } = request
  const refuse = (reason: string) => new ForkInvalid({ conversationId: from, atEventId, reason })
  const head = await parts.runes.headNow(from)
  if (head === 0) throw new ConversationUnknown({ conversationId: from })
  if (!Number.isSafeInteger(atEventId) || atEventId < 1 || atEventId > head) {
    throw refuse(`it has events 1 to ${head}`)
  }
  const { idempotency } = request
  const origin: RuneDraft = {
    kind: "session.forked",
    payload: { from, at_event_id: atEventId },
    ...(idempotency === undefined ? {} : { idempotency_key: idempotency.key, idempotency_hash: idempotency.hash })
  }
  const options = { ...request, runelog: parts.runelog, first: [origin] }
  return copyRunes(options, runesUpTo(parts.runes, from, atEventId))
}

async function* runesUpTo(runes: RuneStore, from: string, atEventId: number): AsyncGenerator<AnyRune> {
  for await (const page of runes.pagesNow(from, { after: 0 })) {
    for (const rune of page.runes) {
      if (rune.event_id > atEventId) return
      yield rune
    }
    if (page.next >= atEventId) return
  }
}
