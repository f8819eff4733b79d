// Conversations as JSON lines: one rune a line, exactly as it goes over the wire, and a line for every range that was
// thinned. What comes in this way is checked line by line, capped, and becomes a conversation of its own, all or none.
import * as Result from "effect/Result"
import type { Runelog } from "#runelog/Runelog.ts"
import { limits as engineLimits } from "#runelog/RunelogLimits.ts"
import type { IdSource } from "../../rune/IdSource.ts"
import type { ConversationId } from "../../rune/Ids.ts"
import { type AnyRune, decodeValue } from "../../rune/Rune.ts"
import { ImportInvalid } from "../StoreErrors.ts"
import { limits } from "../StoreLimits.ts"
import { type Copied, type CopyHooks, copyRunes } from "./Copy.ts"
import type { ReadOptions, RuneStore } from "./RuneStore.ts"

const NEWLINE = Buffer.from("\n")

/** The lines of a conversation, page by page. */
export async function* exportLines(
  runes: RuneStore,
  conversationId: string,
  options: Omit<ReadOptions, "after"> & { readonly after?: number } = {}
): AsyncGenerator<Buffer> {
  for (let after = options.after ?? 0; ; ) {
    const page = await runes.readBytesNow(conversationId, { ...options, after })
    const lines: Array<Buffer> = []
    for (const { body, eventId, kind, lastEventId } of page.frames) {
      const gap = { gap: { from: eventId, to: lastEventId, reason: "thinned" } }
      lines.push(kind === "thinned" ? Buffer.from(JSON.stringify(gap)) : body, NEWLINE)
    }
    if (lines.length > 0) yield Buffer.concat(lines)
    if (page.next === after || page.next >= page.head) return
    after = page.next
  }
}

export interface ImportRequest extends CopyHooks {
  readonly lines: AsyncIterable<Uint8Array>
  /** Of the new conversation. */
  readonly conversationId: ConversationId
  readonly ids: IdSource
  readonly nowMs: number
  readonly bytesMax?: number
  readonly runesMax?: number
}

/** Makes a conversation of exported lines. */
export const importLines = (runelog: Runelog, request: ImportRequest): Promise<Copied> =>
  copyRunes({ ...request, runelog, first: [] }, runesOf(request))

async function* runesOf(request: ImportRequest): AsyncGenerator<AnyRune> {
  const runesMax = request.runesMax ?? limits.importRunesMax
  let line = 0
  let count = 0
  let last: AnyRune | undefined
  const refuse = (reason: string) => new ImportInvalid({ line, reason })
  for await (const text of splitLines(request.lines, request.bytesMax ?? limits.importBytesMax)) {
    line += 1
    if (text.trim() === "") continue
    const rune = parseLine(text, refuse)
    if (rune === undefined) continue
    if (last !== undefined && rune.conversation_id !== last.conversation_id) {
      throw refuse(`it belongs to ${rune.conversation_id}, not to ${last.conversation_id}`)
    }
    if (last !== undefined && rune.event_id <= last.event_id) throw refuse(`event ${rune.event_id} is out of order`)
    count += 1
    if (count > runesMax) throw refuse(`there are more than ${runesMax} runes`)
    last = rune
    yield rune
  }
  if (last === undefined) throw refuse("there is no rune")
}

/** The rune of a line; nothing for a line that tells of a gap. */
const parseLine = (text: string, refuse: (reason: string) => ImportInvalid): AnyRune | undefined => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw refuse("it is not JSON")
  }
  if (value !== null && typeof value === "object" && Object.hasOwn(value, "gap")) return undefined
  const decoded = decodeValue(value)
  if (Result.isFailure(decoded)) throw refuse(decoded.failure.message)
  return decoded.success
}

/** Lines of UTF-8 text from chunks that end anywhere; nothing longer than a rune may be is held. */
async function* splitLines(chunks: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true })
  let rest: Array<Uint8Array> = []
  let restBytes = 0
  let total = 0
  let line = 1
  const refuse = (reason: string) => new ImportInvalid({ line, reason })
  const take = (end: Uint8Array): string => {
    const bytes = rest.length === 0 ? end : Buffer.concat([...rest, end])
    rest = []
    restBytes = 0
    if (bytes.length > engineLimits.bodyBytesMax) throw refuse(`it is longer than ${engineLimits.bodyBytesMax} bytes`)
    try {
      return decoder.decode(bytes)
    } catch {
      throw refuse("it is not UTF-8")
    }
  }
  for await (const chunk of chunks) {
    total += chunk.length
    if (total > bytesMax) throw refuse(`there are more than ${bytesMax} bytes`)
    let start = 0
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      yield take(chunk.subarray(start, end))
      line += 1
      start = end + 1
    }
    rest.push(chunk.slice(start))
    restBytes += chunk.length - start
    if (restBytes > engineLimits.bodyBytesMax) throw refuse(`it is longer than ${engineLimits.bodyBytesMax} bytes`)
  }
  if (restBytes > 0) yield take(new Uint8Array(0))
}
