// Seals the closed segments of a log: drops superseded deltas, leaving a marker for each range, appends the
// seal and puts the new file in place of the old in one rename. Until that rename the old file stands; after
// it nothing in the segment changes any more.
import type { DiskFile } from "../disk/Disk.ts"
import { flag, frameEventId, frameFlags, frameStream } from "../Frame.ts"
import { emptyIndex, type LogState, type SegmentState } from "../LogState.ts"
import { SegmentCorrupt } from "../RunelogErrors.ts"
import type { Limits } from "../RunelogLimits.ts"
import { loadClosedSegment, type OpenLogOptions } from "./OpenSegment.ts"
import { type ScanStart, scanFrames } from "./Scan.ts"
import { encodeSealFrame, type Seal } from "./SealFrame.ts"
import { SEGMENT_HEADER_BYTES } from "./Segment.ts"
import { SegmentCopy, WRITE_BYTES } from "./SegmentCopy.ts"
import { segmentDigest } from "./SegmentDigest.ts"
import type { SegmentStore } from "./SegmentStore.ts"

export type SealOptions = OpenLogOptions

/** Seals the first `count` segments of the log, those that are not sealed yet; all of them must be closed and durable. */
export const sealSegments = (options: SealOptions, log: LogState, count: number): Promise<void> =>
  log.upkeep.exclusive(async () => {
    await options.store.flush(log, { sync: true })
    for (let at = 0; at < Math.min(count, log.durableSegments); at++) {
      const isLast = at === log.segments.length - 1
      const segment = isLast ? log.segments[at]! : await loadClosedSegment(options, log, at)
      if (segment.fault !== undefined) throw damaged(options, log, segment)
      await options.store.syncSegment(log, segment)
      if (segment.seal === undefined) await sealSegment(options, log, at)
    }
  })

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
    headCrc: next === undefined ? log.durableCrc : segment.headCrc!,
    lastEventId: next === undefined ? log.durableEventId : next.firstEventId - 1
  }
  const { dropped, frames } = segment.thinnable
    ? await files.use(path, (source) => findSuperseded(source, place))
    : { dropped: NOTHING, frames: place.lastEventId - segment.firstEventId + 1 }
  if (dropped.size === 0) {
    await files.use(path, (file) => sealInPlace(store, file, place, frames))
    await store.writeIndex(log, segment)
    return
  }
  const temporary = `${path}.tmp`
  if (await disk.exists(temporary)) await disk.remove(temporary)
  const target = await disk.open(temporary, "create")
  const sealed: SegmentState = { ...segment, index: emptyIndex(), indexedEntries: 0, indexedBytes: 0 }
  try {
    await files.use(path, (source) => rewrite(source, target, { ...place, sealed, dropped, limits: options.limits }))
    await target.sync()
  } catch (error) {
    await target.close()
    // The room that a copy takes is the first that is given back.
    await disk.remove(temporary)
    throw error
  }
  await target.close()
  await log.gate.exclusive(async () => {
    await replace(options, log, sealed, { at, path, temporary })
  })
}

const damaged = (options: SealOptions, log: LogState, { fault, firstEventId }: SegmentState): SegmentCorrupt => {
  const { offset, reason } = fault!
  const file = options.store.segmentPath(log.name, { firstEventId })
  return new SegmentCorrupt({ log: log.name, file, offset, reason })
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
const sealInPlace = async (store: SegmentStore, file: DiskFile, place: Place, frames: number): Promise<void> => {
  const { headCrc, lastEventId, previousSha256, segment } = place
  const size = await file.size()
  if (size < segment.writtenBytes) throw cutShort(place, size)
  // What lies there is a seal that was never finished.
  if (size > segment.writtenBytes) await file.truncate(segment.writtenBytes)
  const sha256 = await segmentDigest(file, segment.writtenBytes, previousSha256)
  const seal = { frames, headCrc, sha256, previousSha256 }
  const sealBytes = await writeSeal(file, seal, {
    offset: segment.writtenBytes,
    eventId: lastEventId,
    previousCrc: headCrc
  })
  await store.trusted(place.path, () => file.sync())
  Object.assign(segment, { seal, sealBytes, headCrc })
}

const cutShort = ({ log, path }: Place, offset: number): SegmentCorrupt =>
  new SegmentCorrupt({ log, file: path, offset, reason: "the file is shorter than what was written to it" })

const writeSeal = async (
  file: DiskFile,
  seal: Seal,
  place: { readonly offset: number; readonly eventId: number; readonly previousCrc: number }
): Promise<number> => {
  const frame = encodeSealFrame(seal, place)
  await file.write(frame, 0, frame.length, place.offset)
  return frame.length
}

/** An index of the old file beside the new one would be a lie: it goes first, durably. */
const replace = async (
  options: SealOptions,
  log: LogState,
  sealed: SegmentState,
  place: { readonly at: number; readonly path: string; readonly temporary: string }
): Promise<void> => {
  const { disk, files, store } = options
  const indexPath = store.indexPath(log.name, sealed)
  await files.forget(indexPath)
  if (await disk.exists(indexPath)) {
    await disk.remove(indexPath)
    // Should the exchange fail, the old segment stays without one, and must not count on it.
    const old = log.segments[place.at]!
    Object.assign(old, { indexedEntries: 0, indexedBytes: 0 })
    await store.syncEntries(log, old)
  }
  await files.forget(place.path)
  await disk.rename(place.temporary, place.path)
  // Whatever fails from here on, the file is the new one.
  log.segments[place.at] = sealed
  await store.syncEntries(log, sealed)
  await store.writeIndex(log, sealed)
}

interface Rewrite extends Place {
  readonly sealed: SegmentState
  readonly dropped: ReadonlySet<number>
  readonly limits: Limits
}

const rewrite = async (source: DiskFile, target: DiskFile, what: Rewrite): Promise<void> => {
  const { segment, sealed, dropped, headCrc, previousSha256 } = what
  const copy = new SegmentCopy(target, sealed, dropped, what.limits)
  const header = Buffer.alloc(SEGMENT_HEADER_BYTES)
  await source.read(header, 0, SEGMENT_HEADER_BYTES, 0)
  await copy.begin(header)
  let from: ScanStart = { offset: SEGMENT_HEADER_BYTES, eventId: segment.firstEventId, previousCrc: segment.headerCrc }
  while (from.eventId <= what.lastEventId) {
    // In steps of one buffer, so that the copy never holds more.
    const end = await scanFrames(source, from, {
      endOffset: segment.writtenBytes,
      onFrame: (bytes, at) => (copy.add(bytes, at) > WRITE_BYTES ? "stop" : undefined)
    })
    if (end.offset === from.offset) throw cutShort(what, end.offset)
    await copy.write()
    from = { offset: end.offset, eventId: end.lastEventId + 1, previousCrc: end.crc }
  }
  const { offset, frames, lastEventId, crc } = await copy.finish()
  const sha256 = await segmentDigest(target, offset, previousSha256)
  const seal = { frames, headCrc, sha256, previousSha256 }
  const sealBytes = await writeSeal(target, seal, { offset, eventId: lastEventId, previousCrc: crc })
  Object.assign(sealed, { seal, sealBytes, headCrc, bytes: offset, durableBytes: offset, writtenBytes: offset })
}

interface Superseded {
  readonly dropped: ReadonlySet<number>
  /** Frames of the segment, which are fewer than its events where something was dropped before. */
  readonly frames: number
}

/** The ids of deltas that a later frame of the segment supersedes. */
const findSuperseded = async (source: DiskFile, place: Place): Promise<Superseded> => {
  const { log, path, segment } = place
  const dropped = new Set<number>()
  const open = new Map<number, Array<number>>()
  let frames = 0
  const start = { offset: SEGMENT_HEADER_BYTES, eventId: segment.firstEventId, previousCrc: segment.headerCrc }
  const end = await scanFrames(source, start, {
    endOffset: segment.writtenBytes,
    onFrame: ({ view }, at) => {
      frames += 1
      return noteDelta(view, at, open, dropped)
    }
  })
  if (end.fault !== undefined) throw new SegmentCorrupt({ log, file: path, ...end.fault })
  if (end.offset < segment.writtenBytes) throw cutShort(place, end.offset)
  return { dropped, frames }
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
