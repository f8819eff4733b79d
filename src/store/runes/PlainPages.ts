// Pages of usual size and without a filter, decoded where they were read: no object and no copy per frame, and buffers
// that are used over and over. Whatever is unusual about a page is left to the caller, who reads it again as frames.

import { FRAME_HEADER_BYTES, frameBytes, frameEventId, frameKind, frameKindOf, frameLastId } from "#runelog/Frame.ts"
import type { RawPage, RawRequest } from "#runelog/segment/Reader.ts"
import { limits } from "../StoreLimits.ts"
import { CLOSE, COMMA, type Gap, OPEN, parsed, type RunePage, runesOf } from "./Page.ts"

/** Kept for the next reads; as many more as are read at once are made and let go. */
const BUFFERS_MAX = 4

const SPACES = 0x20202020

/** Overwrites a range of whole words, which all frames' headers and markers are, with spaces. */
const blank = (view: DataView, start: number, end: number): void => {
  for (let at = start; at < end; at += 4) view.setUint32(at, SPACES, true)
}

/**
 * The runes of a page that lies in `buffer` as it was read, from its first byte on and with one to spare. It becomes JSON
 * where it is: headers of frames turn into commas and spaces. Nothing when an entry is not what it should be; the page is
 * lost then and has to be read once more.
 */
const decodeRaw = (conversationId: string, page: RawPage, buffer: Buffer): RunePage | undefined => {
  const { end, head, next, start, view, wanted } = page
  const eventIds: Array<number> = []
  const gaps: Array<Gap> = []
  for (let at = start, after = at; at < end; at = after) {
    after = at + frameBytes(view, at)
    if (frameKindOf(view, at) === frameKind.thinned) {
      gaps.push({ from: Math.max(frameEventId(view, at), wanted), to: frameLastId(view, at) })
      blank(view, at, after)
      continue
    }
    const isFirst = eventIds.push(frameEventId(view, at)) === 1
    blank(view, at, at + FRAME_HEADER_BYTES)
    buffer[at] = isFirst ? OPEN : COMMA
  }
  if (eventIds.length === 0) return { runes: [], gaps, next, head }
  buffer[end] = CLOSE
  const values = parsed(buffer.subarray(start, end + 1))
  if (values?.length !== eventIds.length) return undefined
  const runes = runesOf(conversationId, values, (at) => eventIds[at] ?? 0)
  return runes && { runes, gaps, next, head }
}

export type ReadRaw = (conversationId: string, request: RawRequest) => Promise<RawPage | undefined>

export class PlainPages {
  private readonly readRaw: ReadRaw
  private readonly buffers: Array<Buffer> = []

  constructor(readRaw: ReadRaw) {
    this.readRaw = readRaw
  }

  /** The page behind `after`; nothing when it has to be read as frames. */
  async read(conversationId: string, after: number): Promise<RunePage | undefined> {
    const buffer = this.buffers.pop() ?? Buffer.allocUnsafeSlow(limits.pageBytes + 1)
    try {
      const into = buffer.subarray(0, limits.pageBytes)
      const raw = await this.readRaw(conversationId, { after, into })
      return raw?.buffer === into ? decodeRaw(conversationId, raw, buffer) : undefined
    } finally {
      if (this.buffers.length < BUFFERS_MAX) this.buffers.push(buffer)
    }
  }
}
