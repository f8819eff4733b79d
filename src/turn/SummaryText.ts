// The text side of summing up: how long a summary may be, which pieces of a transcript fit into one request, and the
// stand-in that is made without a model. The stand-in names every call, its arguments and its outcome beside the text.
import { canonicalJson } from "../machine/Canonical.ts"
import { shortened } from "../machine/evolve/DoneEffects.ts"
import type { CallRecord, TranscriptItem } from "../machine/State.ts"
import { toolContent } from "../machine/view/Request.ts"
import { contentText } from "../rune/Content.ts"
import type { TurnId } from "../rune/Ids.ts"
import type { Content } from "../rune/kinds/shared.ts"
import { attachedTokens } from "./MediaParts.ts"
import { limits } from "./TurnLimits.ts"

export type Items = ReadonlyArray<TranscriptItem>

/** Characters of an item, with what its images and documents stand for. */
export const itemChars = (item: TranscriptItem): number =>
  JSON.stringify(item).length + attachedTokens(item) * limits.charsPerToken

const callsOf = (item: TranscriptItem): ReadonlyArray<CallRecord> => (item.type === "assistant" ? item.calls : [])

export const hasCalls = (items: Items): boolean => items.some((item) => callsOf(item).length > 0)

/**
 * The longest summary of these items: a fixed size, and never more than half of what it stands for. An earlier summary
 * among them counts whole, or its facts would fade each time.
 */
export const summaryCharsMax = (items: Items): number => {
  let chars = 0
  for (const item of items) chars += item.type === "summary" ? item.content.length : itemChars(item) / 2
  return Math.min(limits.summaryCharsMax, Math.floor(chars))
}

const wordsOf = (item: TranscriptItem): string => contentText(item.content as Content)

/** A call, its arguments and its outcome within so many characters: the name always, then as much as there is room for. */
const callText = (record: CallRecord, charsMax: number): string => {
  const { status, content } = toolContent(record)
  const room = Math.max(0, charsMax - record.tool_name.length - status.length - 6)
  const args = shortened(canonicalJson(record.arguments), Math.ceil(room / 2))
  const outcome = shortened(content.replaceAll(/\s+/gu, " "), Math.floor(room / 2))
  return `${record.tool_name} ${args} → ${status}: ${outcome}`
}

const CALLS = "Calls and their outcomes, oldest first:"

/** Lines for calls get the larger part of the room, as far as they need it. */
const callLines = (records: ReadonlyArray<CallRecord>, room: number): string => {
  if (records.length === 0) return ""
  const each = Math.floor((room * limits.standInCallShare) / records.length) - 1
  return [CALLS, ...records.map((record) => callText(record, each))].join("\n").slice(0, room)
}

/** A summary without a model: what was asked, the start of what was answered, and every call. */
export const extract = (items: Items, charsMax: number = summaryCharsMax(items)): string => {
  const earlier = items.filter((item) => item.type === "summary").map((item) => item.content)
  const rest = items.filter((item) => item.type !== "summary")
  const head = shortened(earlier.join("\n"), Math.floor(charsMax * limits.standInEarlierShare))
  const calls = callLines(rest.flatMap(callsOf), charsMax - head.length - 1)
  const room = charsMax - head.length - calls.length - 2
  const each = Math.max(20, Math.floor(room / Math.max(1, rest.length)) - 20)
  const lines = rest.flatMap((item) => {
    const words = wordsOf(item)
    return words === "" ? [] : [`${item.type}: ${words.slice(0, each)}`]
  })
  const texts = lines.join("\n").slice(0, Math.max(0, room))
  const parts = [head, texts, calls].filter((part) => part !== "")
  return parts.join("\n").slice(0, charsMax).toWellFormed()
}

/** The same said as plain text, for a request that carries no tools. */
export const asText = (item: TranscriptItem): TranscriptItem => {
  const calls = callsOf(item)
  if (item.type !== "assistant" || calls.length === 0) return item
  const lines = calls.map((record) => callText(record, Number.MAX_SAFE_INTEGER))
  return textItem(item.event_id, [`The assistant said: ${item.content}`, "It called:", ...lines].join("\n"))
}

export const textItem = (eventId: number, content: string): TranscriptItem => ({
  type: "user",
  event_id: eventId,
  turn_id: "turn_0" as TurnId,
  content
})

/** An item that fits into no request, as texts that do. Of one that is out of all proportion the middle is left out. */
const chunksOf = (item: TranscriptItem, tokensMax: number): ReadonlyArray<Items> => {
  const plain = asText(item)
  const chars = Math.max(1, Math.floor(tokensMax * limits.charsPerToken * limits.chunkShare))
  const text = shortened(`${plain.type}: ${wordsOf(plain)}`, chars * limits.summaryPiecesMax)
  const chunks: Array<Items> = []
  for (let at = 0; at < text.length; at += chars) {
    chunks.push([textItem(item.event_id, text.slice(at, at + chars).toWellFormed())])
  }
  return chunks
}

/** How large a request may be, and what each item adds to it. */
export interface Measure {
  readonly tokensMax: number
  readonly tokensOf: (item: TranscriptItem) => number
}

/** Runs of items that each fit into a request, in order. */
export const piecesOf = (items: Items, { tokensMax, tokensOf }: Measure): ReadonlyArray<Items> => {
  const pieces: Array<Items> = []
  let piece: Array<TranscriptItem> = []
  let used = 0
  const flush = (): void => {
    if (piece.length > 0) pieces.push(piece)
    piece = []
    used = 0
  }
  for (const item of items) {
    const tokens = tokensOf(item)
    if (used + tokens > tokensMax) flush()
    if (tokens > tokensMax) {
      pieces.push(...chunksOf(item, tokensMax))
      continue
    }
    piece.push(item)
    used += tokens
  }
  flush()
  return pieces
}
