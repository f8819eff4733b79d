// Frames of the log become frames of the socket where they lie: the header of each is written over with what the
// wire puts in front of a rune, and what is left of it is white space, which JSON ignores. No rune is copied.
import {
  FRAME_HEADER_BYTES,
  frameBytes,
  frameEventId,
  frameFlag,
  frameFlags,
  frameKind,
  frameKindOf,
  frameLastId,
  type RawPage
} from "../../conversation/Reading.ts"
import { frameAll, headerBytes, writeHeader } from "../socket/WebSocketFrame.ts"

export interface Wrapping {
  /** What stands in front of every rune; a `}` closes it. */
  readonly prefix: Buffer
  /** Runes above this are left out. */
  readonly visibilityMax: number
  /** The frame that stands for a thinned range. */
  readonly gap: (from: number, to: number) => Buffer
}

/** The first byte of a header closes the rune before. */
const ROOM_BYTES = FRAME_HEADER_BYTES - 1
const SPACE = 0x20
const CLOSE = 0x7d
const suffix = Buffer.of(CLOSE)

/** Most runes have a header of four bytes; what stands behind it is the same for all of them. */
const USUAL_HEADER_BYTES = 4
const LEAD_BYTES = ROOM_BYTES - USUAL_HEADER_BYTES
/** Where words go that cover all of it; the last one overlaps the one before. */
const leadOffsets = [0, 4, 8, 12, 16, 20, LEAD_BYTES - 4] as const

type LeadWords = readonly [number, number, number, number, number, number, number]

/** Writes what stands in front of a rune. */
class Front {
  private readonly prefix: Buffer
  private readonly fits: boolean
  private readonly words: LeadWords

  constructor(prefix: Buffer) {
    this.prefix = prefix
    this.fits = prefix.length <= LEAD_BYTES
    const lead = Buffer.alloc(LEAD_BYTES, SPACE)
    prefix.copy(lead)
    const [a, b, c, d, e, f, g] = leadOffsets
    const word = (offset: number): number => lead.readInt32LE(offset)
    this.words = [word(a), word(b), word(c), word(d), word(e), word(f), word(g)]
  }

  /** Between `start` and the body behind it; false where there is no room. */
  write({ buffer, view }: RawPage, start: number, bodyBytes: number): boolean {
    const payloadBytes = LEAD_BYTES + bodyBytes + 1
    if (headerBytes(payloadBytes) !== USUAL_HEADER_BYTES) return this.writeUnusual(buffer, start, bodyBytes)
    if (!this.fits) return false
    const { words } = this
    const lead = writeHeader(buffer, start, payloadBytes)
    view.setInt32(lead, words[0], true)
    view.setInt32(lead + 4, words[1], true)
    view.setInt32(lead + 8, words[2], true)
    view.setInt32(lead + 12, words[3], true)
    view.setInt32(lead + 16, words[4], true)
    view.setInt32(lead + 20, words[5], true)
    view.setInt32(lead + leadOffsets[6], words[6], true)
    return true
  }

  /** A short rune or a very long one. */
  private writeUnusual(buffer: Buffer, start: number, bodyBytes: number): boolean {
    const { prefix } = this
    const header = headerBytes(LEAD_BYTES + bodyBytes + 1)
    const payloadBytes = ROOM_BYTES - header + bodyBytes + 1
    // A shorter header makes the payload longer, which may then need the longer one.
    if (headerBytes(payloadBytes) !== header || header + prefix.length > ROOM_BYTES) return false
    const at = writeHeader(buffer, start, payloadBytes)
    buffer.fill(SPACE, at + prefix.copy(buffer, at), start + ROOM_BYTES)
    return true
  }
}

/** What a page is on the wire, in pieces that follow each other. Its buffer is theirs from here on. */
export type WrapInPlace = (page: RawPage) => ReadonlyArray<Buffer>

export const makeWrapInPlace = ({ gap, prefix, visibilityMax }: Wrapping): WrapInPlace => {
  const front = new Front(prefix)
  const apart = (page: RawPage, at: number, end: number): Buffer => {
    const { buffer, view, wanted } = page
    return frameKindOf(view, at) === frameKind.thinned
      ? gap(Math.max(frameEventId(view, at), wanted), frameLastId(view, at))
      : frameAll(prefix, [buffer.subarray(at + FRAME_HEADER_BYTES, end)], suffix)
  }
  return (page) => {
    const { buffer, view } = page
    const pieces: Array<Buffer> = []
    let runStart = 0
    let runEnd = 0
    const flush = (): void => {
      if (runEnd > runStart) pieces.push(buffer.subarray(runStart, runEnd))
      runStart = runEnd = 0
    }
    for (let at = page.start, end = at; at < page.end; at = end) {
      end = at + frameBytes(view, at)
      const isThinned = frameKindOf(view, at) === frameKind.thinned
      if (!isThinned && (frameFlags(view, at) & frameFlag.visibilityMask) > visibilityMax) continue
      const bodyBytes = end - at - FRAME_HEADER_BYTES
      if (!isThinned && end < buffer.length && front.write(page, at + 1, bodyBytes)) {
        if (runEnd !== at + 1) {
          flush()
          runStart = at + 1
        }
        buffer[end] = CLOSE
        runEnd = end + 1
      } else {
        flush()
        pieces.push(apart(page, at, end))
      }
    }
    flush()
    return pieces
  }
}
