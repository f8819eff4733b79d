// What a caller appends: its shape, and the checks that it passes before anything is written.

import { type Bytes, bytesOf, FRAME_HEADER_BYTES } from "../Frame.ts"
import type { LogState } from "../LogState.ts"
import { BatchEmpty, BatchTooLarge, EntryInvalid, EntryTooLarge } from "../RunelogErrors.ts"
import type { Limits } from "../RunelogLimits.ts"

/** Who may see an entry; the engine only stores it and filters by it. */
export const visibility = { public: 0, internal: 1, secret: 2 } as const

/** A body that writes itself, for who can do that faster than by way of a string. */
export interface BodyWriter {
  /** It is never longer than this. */
  readonly bytesMax: number
  /** Writes the body at `start` and returns its length; the same each time. It must not throw. */
  writeTo(bytes: Bytes, start: number): number
}

export type Body = string | Uint8Array | BodyWriter

export interface Entry {
  /** The bytes of the entry; a string is stored as UTF-8. */
  readonly body: Body
  /** 0 public, 1 internal, 2 secret. */
  readonly visibility?: number
  /** A number of the caller's, 0 to 255, by which readers can filter. */
  readonly family?: number
  /** A number of the caller's, up to 2³²−1, that ties deltas to what supersedes them. */
  readonly stream?: number
  /** `delta` entries are dropped at the seal once a later `supersedes` entry of their stream is durable. */
  readonly role?: "delta" | "supersedes"
}

/** Writes a body at `start`, where there is room for it; returns its length. */
export const putBody = (bytes: Bytes, start: number, body: Body): number => {
  if (typeof body === "string") return bytes.buffer.write(body, start, "utf8")
  if (!(body instanceof Uint8Array)) return body.writeTo(bytes, start)
  bytes.buffer.set(body, start)
  return body.length
}

/** As `body`, with nothing left to do and nothing of the caller's behind it. */
export const writtenOut = (body: Body): string | Uint8Array => {
  if (typeof body === "string" || body instanceof Uint8Array) return body
  const bytes = bytesOf(Buffer.allocUnsafe(body.bytesMax))
  // Of its own length: what waits may wait long.
  return Buffer.from(bytes.buffer.subarray(0, body.writeTo(bytes, 0)))
}

const bodyBytesBound = (body: Body): number => {
  if (typeof body === "string") return body.length * 3
  return body instanceof Uint8Array ? body.length : body.bytesMax
}

/** The length of a body, at the cost of going through all of it. */
export const bodyBytes = (body: Body): number => Buffer.byteLength(writtenOut(body))

const isBody = (body: unknown): body is Body => {
  if (typeof body === "string" || body instanceof Uint8Array) return true
  const { bytesMax, writeTo } = Object(body) as Partial<BodyWriter>
  return typeof writeTo === "function" && Number.isSafeInteger(bytesMax) && bytesMax! >= 0
}

const isByte = (value: number | undefined): boolean =>
  value === undefined || (Number.isInteger(value) && value >= 0 && value <= 0xff)

const entryFault = (log: string, entry: Entry, bodyBytesMax: number): EntryInvalid | EntryTooLarge | undefined => {
  const { body, role, stream } = entry
  if (!isBody(body)) {
    return new EntryInvalid({ log, field: "body", value: body })
  }
  if (role !== undefined && role !== "delta" && role !== "supersedes") {
    return new EntryInvalid({ log, field: "role", value: role })
  }
  if (!isByte(entry.visibility) || (entry.visibility ?? 0) > visibility.secret) {
    return new EntryInvalid({ log, field: "visibility", value: entry.visibility })
  }
  if (!isByte(entry.family)) return new EntryInvalid({ log, field: "family", value: entry.family })
  if (stream !== undefined && (!Number.isInteger(stream) || stream < 0 || stream > 0xffff_ffff)) {
    return new EntryInvalid({ log, field: "stream", value: stream })
  }
  if (bodyBytesBound(body) <= bodyBytesMax) return undefined
  const bytes = bodyBytes(body)
  return bytes > bodyBytesMax ? new EntryTooLarge({ log, bytes, bytesMax: bodyBytesMax }) : undefined
}

/** The most bytes that entries need, or why they cannot be appended. No object around the number: every append has one. */
export type Measured = number | BatchEmpty | BatchTooLarge | EntryInvalid | EntryTooLarge

/** Checks the entries of one append and says how much room they need at most. */
export const measure = (log: LogState, entries: ReadonlyArray<Entry>, limits: Limits): Measured => {
  if (entries.length === 0) return new BatchEmpty({ log: log.name })
  let bytes = 0
  for (let index = 0; index < entries.length; index++) {
    const entry = entries[index]!
    const fault = entryFault(log.name, entry, limits.bodyBytesMax)
    if (fault !== undefined) return fault
    bytes += FRAME_HEADER_BYTES + bodyBytesBound(entry.body)
  }
  if (entries.length > limits.batchFramesMax || bytes > limits.batchBytesMax) {
    const exact = entries.reduce((sum, { body }) => sum + FRAME_HEADER_BYTES + bodyBytes(body), 0)
    if (entries.length > limits.batchFramesMax || exact > limits.batchBytesMax) {
      return tooLarge(log, entries.length, exact, limits)
    }
  }
  return bytes
}

const tooLarge = (log: LogState, frames: number, bytes: number, limits: Limits): BatchTooLarge =>
  new BatchTooLarge({
    log: log.name,
    frames,
    framesMax: limits.batchFramesMax,
    bytes,
    bytesMax: limits.batchBytesMax
  })
