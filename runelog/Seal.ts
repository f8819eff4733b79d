// Seals the closed segments of a log: drops superseded deltas, leaving a marker for each range, appends the
// seal and puts the new file in place of the old in one rename. Until that rename the old file stands; after
// it nothing in the segment changes any more.
import { createHash } from "node:crypto"
import type { DiskFile } from "./Disk.ts"
import { SegmentCorrupt } from "./Errors.ts"
import {
  type Bytes,
  FRAME_HEADER_BYTES,
  THINNED_BODY_BYTES,
  bytesOf,
  flag,
  frameBytes,

  frameEventId,
  frameFlags,
  frameKindOf,
  frameFamily,
  frameLastId,
  frameStream,
  sealFrame,
  sealThinned
} from "./Frame.ts"
import type { LogState, SegmentState } from "./LogState.ts"
import { type OpenLogOptions, loadClosedSegment, sparseIndexer } from "./OpenLog.ts"
import { type ScanStart, scanFrames } from "./Scan.ts"
import { encodeSealFrame } from "./SealFrame.ts"
import { SEGMENT_HEADER_BYTES } from "./Segment.ts"

export type SealOptions = OpenLogOptions

const WRITE_BYTES = 256 * 1024

/** Seals the first `count` segments of the log, those that are not sealed yet; all of them must be closed and durable. */
export const sealSegments = async (options: SealOptions, log: LogState, count: number): Promise<void> => {
  await options.store.flush(log, { sync: true })
  for (let at = 0; at < Math.min(count, log.durableSegments); at++) {
    const isLast = at === log.segments.length - 1
    const segment = isLast ? log.segments[at]! : await loadClosedSegment(options, log, at)
    if (segment.seal === undefined) await sealSegment(options, log, at)
  }
}

const sealSegment = async (options: SealOptions, log: LogState, at: number): Promise<void> => {
  const { disk, files, store } = options
  const segment = log.segments[at]!
  const path = store.segmentPath(log.name, segment)
  const previousSha256 = log.segments[at - 1]?.seal?.sha256 ?? ""
  const next = log.segments[at + 1]
  const place: Place = {
    log: log.name,
    path,
    segment,
    previousSha256,
    headCrc: next?.previousHeadCrc ?? log.durableCrc,
    lastEventId: next === undefined ? log.durableEventId : next.firstEventId - 1
  }
  const dropped = segment.thinnable ? await files.use(path, (source) => findSuperseded(source, place)) : NOTHING
  if (dropped.size === 0) {
    await files.use(path, (file) => sealInPlace(file, place))
    await store.writeIndex(log, segment)
    return
  }
  const temporary = `${path}.tmp`
  if (await disk.exists(temporary)) await disk.remove(temporary)
  const target = await disk.open(temporary, "create")
  const sealed: SegmentState = { ...segment, index: { ids: [], offsets: [] }, indexedEntries: 0, indexedBytes: 0 }
  try {
    await files.use(path, (source) => rewrite(source, target, { ...place, sealed, dropped }))
    await target.sync()
  } finally {
    await target.close()
  }
  await log.gate.exclusive(async () => {
    await replace(options, log, sealed, { path, temporary })
    log.segments[at] = sealed
  })
}

const NOTHING: ReadonlySet<number> = new Set()

interface Place {
  readonly log: string
  readonly path: string
  readonly segment: SegmentState
  readonly previousSha256: string
  /** Checksum and id of the segment's last frame as it was appended. */
  readonly headCrc: number
  readonly lastEventId: number
}

/** Nothing is dropped: the digest of the bytes as they are, and the seal behind them. */
const sealInPlace = async (file: DiskFile, place: Place): Promise<void> => {
  const { headCrc, lastEventId, previousSha256, segment } = place
  const hash = createHash("sha256").update(Buffer.from(previousSha256, "hex"))
  const chunk = Buffer.allocUnsafe(WRITE_BYTES)
  for (let offset = 0; offset < segment.writtenBytes; offset += chunk.length) {
    const read = await file.read(chunk, 0, Math.min(chunk.length, segment.writtenBytes - offset), offset)
    hash.update(chunk.subarray(0, read))
  }
  const seal = { frames: lastEventId - segment.firstEventId + 1, headCrc, sha256: hash.digest("hex"), previousSha256 }
  const frame = encodeSealFrame(seal, { eventId: lastEventId, previousCrc: headCrc })
  await file.write(frame, 0, frame.length, segment.writtenBytes)
  await file.sync()
  segment.seal = seal
}

/** An index of the old file beside the new one would be a lie: it goes first, durably. */
const replace = async (
  options: SealOptions,
  log: LogState,
  sealed: SegmentState,
  place: { readonly path: string; readonly temporary: string }
): Promise<void> => {
  const { disk, files, store } = options
  const indexPath = store.indexPath(log.name, sealed)
  await files.forget(indexPath)
  if (await disk.exists(indexPath)) {
    await disk.remove(indexPath)
    await disk.syncDirectory(store.logDirectory(log.name))
  }
  await files.forget(place.path)
  await disk.rename(place.temporary, place.path)
  await disk.syncDirectory(store.logDirectory(log.name))
  await store.writeIndex(log, sealed)
}

interface Rewrite extends Place {
  readonly sealed: SegmentState
  readonly dropped: ReadonlySet<number>
}

const rewrite = async (source: DiskFile, target: DiskFile, what: Rewrite): Promise<void> => {
  const { segment, sealed, dropped, previousSha256 } = what
  const copy = new SegmentCopy(target, sealed, dropped)
  const header = Buffer.alloc(SEGMENT_HEADER_BYTES)
  await source.read(header, 0, SEGMENT_HEADER_BYTES, 0)
  await copy.begin(header, previousSha256)
  let from: ScanStart = { offset: SEGMENT_HEADER_BYTES, eventId: segment.firstEventId, previousCrc: segment.headerCrc }
  while (from.offset < segment.writtenBytes) {
    // In steps of one buffer, so that the copy never holds more.
    const end = await scanFrames(source, from, {
      endOffset: segment.writtenBytes,
      onFrame: (bytes, at) => (copy.add(bytes, at) > WRITE_BYTES ? "stop" : undefined)
    })
    if (end.fault !== undefined) throw new SegmentCorrupt({ log: what.log, file: what.path, ...end.fault })
    await copy.write()
    from = { offset: end.offset, eventId: end.lastEventId + 1, previousCrc: end.crc }
  }
  await copy.finish({ headCrc: what.headCrc, previousSha256 })
}

/** The ids of deltas that a later frame of the segment supersedes. */
const findSuperseded = async (source: DiskFile, { log, path, segment }: Place): Promise<ReadonlySet<number>> => {
  const dropped = new Set<number>()
  const open = new Map<number, Array<number>>()
  const start = { offset: SEGMENT_HEADER_BYTES, eventId: segment.firstEventId, previousCrc: segment.headerCrc }
  const end = await scanFrames(source, start, {
    endOffset: segment.writtenBytes,
    onFrame: ({ view }, at) => noteDelta(view, at, open, dropped)
  })
  if (end.fault !== undefined) throw new SegmentCorrupt({ log, file: path, ...end.fault })
  return dropped
}

const noteDelta = (view: DataView, at: number, open: Map<number, Array<number>>, dropped: Set<number>): undefined => {
  const flags = frameFlags(view, at)
  const stream = frameStream(view, at)
  if ((flags & flag.supersedes) !== 0) {
    for (const eventId of open.get(stream) ?? []) dropped.add(eventId)
    open.delete(stream)
  } else if ((flags & flag.delta) !== 0) {
    const ids = open.get(stream)
    if (ids === undefined) open.set(stream, [frameEventId(view, at)])
    else ids.push(frameEventId(view, at))
  }
}

/** Writes the kept frames with a chain of their own, and markers in place of dropped ranges. */
class SegmentCopy {
  private readonly target: DiskFile
  private readonly sealed: SegmentState
  private readonly dropped: ReadonlySet<number>
  private readonly hash = createHash("sha256")
  private readonly index: (bytes: Bytes, start: number, offset: number) => undefined
  private bytes = bytesOf(Buffer.allocUnsafe(2 * WRITE_BYTES))
  private filled = 0
  private offset = 0
  private crc = 0
  private frames = 0
  private lastEventId = 0
  private range: { readonly from: number; to: number } | undefined
  /** No marker may stand inside a batch that goes on: the flag of the dropped frame moves to it. */
  private rangeContinues = 0

  constructor(target: DiskFile, sealed: SegmentState, dropped: ReadonlySet<number>) {
    this.target = target
    this.sealed = sealed
    this.dropped = dropped
    this.index = sparseIndexer(sealed)
  }

  async begin(header: Buffer, previousSha256: string): Promise<void> {
    this.hash.update(Buffer.from(previousSha256, "hex"))
    this.crc = this.sealed.headerCrc
    header.copy(this.bytes.buffer)
    this.filled = header.length
    await this.write()
  }

  /** Takes one frame; returns how much waits to be written. */
  add(source: Bytes, start: number): number {
    const { view } = source
    const eventId = frameEventId(view, start)
    if (this.dropped.has(eventId)) {
      if (this.range === undefined) this.range = { from: eventId, to: eventId }
      else this.range.to = eventId
      this.rangeContinues = frameFlags(view, start) & flag.batchContinues
    } else {
      this.closeRange()
      this.copyFrame(source, start)
    }
    this.lastEventId = frameLastId(view, start)
    return this.filled
  }

  private reserve(bytes: number): void {
    if (this.filled + bytes <= this.bytes.buffer.length) return
    const larger = bytesOf(Buffer.allocUnsafe((this.filled + bytes) * 2))
    this.bytes.buffer.copy(larger.buffer, 0, 0, this.filled)
    this.bytes = larger
  }

  private get firstFlag(): number {
    return this.frames === 0 ? flag.segmentFirst : 0
  }

  private closeRange(): void {
    const { range } = this
    if (range === undefined) return
    this.range = undefined
    this.reserve(FRAME_HEADER_BYTES + THINNED_BODY_BYTES)
    const flags = this.firstFlag | this.rangeContinues
    this.crc = sealThinned(this.bytes, this.filled, { ...range, previousCrc: this.crc, flags })
    this.push()
  }

  private copyFrame(source: Bytes, start: number): void {
    const { view } = source
    const length = frameBytes(view, start)
    this.reserve(length)
    source.buffer.copy(this.bytes.buffer, this.filled, start, start + length)
    this.crc = sealFrame(this.bytes, this.filled, length - FRAME_HEADER_BYTES, {
      flags: (frameFlags(view, start) & ~flag.segmentFirst) | this.firstFlag,
      kind: frameKindOf(view, start),
      family: frameFamily(view, start),
      stream: frameStream(view, start),
      previousCrc: this.crc,
      eventId: frameEventId(view, start)
    })
    this.push()
  }

  private push(): void {
    this.index(this.bytes, this.filled, this.offset + this.filled)
    this.filled += frameBytes(this.bytes.view, this.filled)
    this.frames += 1
  }

  async write(): Promise<void> {
    this.hash.update(this.bytes.buffer.subarray(0, this.filled))
    await this.target.write(this.bytes.buffer, 0, this.filled, this.offset)
    this.offset += this.filled
    this.filled = 0
  }

  async finish(seal: { readonly headCrc: number; readonly previousSha256: string }): Promise<void> {
    this.closeRange()
    await this.write()
    const end = this.offset
    this.sealed.seal = { ...seal, frames: this.frames, sha256: this.hash.digest("hex") }
    const frame = encodeSealFrame(this.sealed.seal, { eventId: this.lastEventId, previousCrc: this.crc })
    await this.target.write(frame, 0, frame.length, end)
    this.sealed.bytes = end
    this.sealed.durableBytes = end
    this.sealed.writtenBytes = end
  }
}

