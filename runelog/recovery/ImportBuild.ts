// Sealed segments made of entries alone: how a log is copied under another name or brought in from outside. Only the
// chunk being filled is held, so the size of the log does not matter.

import { type Entry, measure, putBody } from "../commit/Entry.ts"
import type { Disk, DiskFile } from "../disk/Disk.ts"
import { type Bytes, bytesOf, FRAME_HEADER_BYTES, flag, frameKind, sealFrame } from "../Frame.ts"
import { emptyLog } from "../LogState.ts"
import type { Limits } from "../RunelogLimits.ts"
import { encodeSealFrame, type Seal } from "../segment/SealFrame.ts"
import { encodeSegmentHeader, SEGMENT_HEADER_BYTES, segmentFileName } from "../segment/Segment.ts"
import { segmentDigest } from "../segment/SegmentDigest.ts"

export interface BuildOptions {
  readonly disk: Disk
  readonly directory: string
  readonly log: string
  readonly limits: Limits
}

export interface Built {
  readonly path: string
  readonly bytes: number
}

const CHUNK_BYTES = 256 * 1024

/** Writes the entries under the ids from 1 on; every segment is written and synced when it is yielded. */
export async function* buildSegments(options: BuildOptions, entries: AsyncIterable<Entry>): AsyncGenerator<Built> {
  let segment: SegmentBuild | undefined
  try {
    for await (const entry of entries) {
      if (segment !== undefined && segment.bytes >= options.limits.segmentBytes) {
        yield await segment.finish()
        segment = await SegmentBuild.start(options, segment.end)
      }
      segment ??= await SegmentBuild.start(options, { eventId: 1, seal: undefined })
      await segment.add(entry)
    }
    if (segment !== undefined) yield await segment.finish()
  } finally {
    await segment?.close()
  }
}

interface Boundary {
  /** The next event. */
  readonly eventId: number
  readonly seal: Seal | undefined
}

class SegmentBuild {
  private readonly options: BuildOptions
  private readonly file: DiskFile
  private readonly path: string
  private readonly from: Boundary
  private readonly buffer: Bytes = bytesOf(Buffer.allocUnsafe(2 * CHUNK_BYTES))
  private filled = 0
  private written = 0
  private crc: number
  private eventId: number
  private seal: Seal | undefined
  private closing: Promise<void> | undefined

  private constructor(options: BuildOptions, file: DiskFile, path: string, from: Boundary) {
    this.options = options
    this.file = file
    this.path = path
    this.from = from
    this.eventId = from.eventId
    const header = { log: options.log, firstEventId: from.eventId, previousHeadCrc: from.seal?.headCrc ?? 0 }
    const encoded = encodeSegmentHeader(header)
    encoded.buffer.copy(this.buffer.buffer)
    this.filled = SEGMENT_HEADER_BYTES
    this.crc = encoded.crc
  }

  static async start(options: BuildOptions, from: Boundary): Promise<SegmentBuild> {
    const path = `${options.directory}/${segmentFileName(from.eventId)}`
    return new SegmentBuild(options, await options.disk.open(path, "create"), path, from)
  }

  get bytes(): number {
    return this.written + this.filled
  }

  get end(): Boundary {
    return { eventId: this.eventId, seal: this.seal }
  }

  async add(entry: Entry): Promise<void> {
    const bytesBound = measure(emptyLog(this.options.log), [entry], this.options.limits)
    if (typeof bytesBound !== "number") throw bytesBound
    if (bytesBound > this.buffer.buffer.length - this.filled) await this.flush()
    if (bytesBound > this.buffer.buffer.length) {
      await this.write(bytesOf(Buffer.allocUnsafe(bytesBound)), entry)
      return
    }
    this.filled += this.encode(this.buffer, this.filled, entry)
  }

  /** An entry larger than the buffer goes to the file alone. */
  private async write(bytes: Bytes, entry: Entry): Promise<void> {
    const length = this.encode(bytes, 0, entry)
    await this.file.write(bytes.buffer, 0, length, this.written)
    this.written += length
  }

  private encode(bytes: Bytes, start: number, entry: Entry): number {
    const bodyBytes = putBody(bytes, start + FRAME_HEADER_BYTES, entry.body)
    this.crc = sealFrame(bytes, start, bodyBytes, {
      flags: flagsOf(entry) | (this.eventId === this.from.eventId ? flag.segmentFirst : 0),
      kind: frameKind.entry,
      family: entry.family ?? 0,
      stream: entry.stream ?? 0,
      previousCrc: this.crc,
      eventId: this.eventId
    })
    this.eventId += 1
    return FRAME_HEADER_BYTES + bodyBytes
  }

  private async flush(): Promise<void> {
    await this.file.write(this.buffer.buffer, 0, this.filled, this.written)
    this.written += this.filled
    this.filled = 0
  }

  async finish(): Promise<Built> {
    await this.flush()
    const previousSha256 = this.from.seal?.sha256 ?? ""
    const sha256 = await segmentDigest(this.file, this.written, previousSha256)
    this.seal = { frames: this.eventId - this.from.eventId, headCrc: this.crc, sha256, previousSha256 }
    const frame = encodeSealFrame(this.seal, { eventId: this.eventId - 1, previousCrc: this.crc })
    await this.file.write(frame, 0, frame.length, this.written)
    await this.file.sync()
    await this.close()
    return { path: this.path, bytes: this.written + frame.length }
  }

  close(): Promise<void> {
    this.closing ??= this.file.close()
    return this.closing
  }
}

const flagsOf = (entry: Entry): number =>
  (entry.visibility ?? 0) |
  (entry.role === "delta" ? flag.delta : 0) |
  (entry.role === "supersedes" ? flag.supersedes : 0)
