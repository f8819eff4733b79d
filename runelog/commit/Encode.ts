// Fills the open batch: entries are encoded straight into its slab as they arrive, each append all or nothing.
// Frames are complete but for chain and checksum, which they get when the batch is closed (Chain.ts).

import { FRAME_HEADER_BYTES, flag, frameKind, putFrameHeader } from "../Frame.ts"
import { closeGroup, GROUP_HEADER_BYTES, groupKind, openGroup } from "../journal/JournalBatch.ts"
import { type LogState, lastSegment, type SegmentState, startSegment } from "../LogState.ts"
import type { Limits } from "../RunelogLimits.ts"
import type { Batch, FrameGroup } from "./Batch.ts"
import { chainFrames } from "./Chain.ts"
import { type Entry, putBody } from "./Entry.ts"

/** Room that an append needs in a batch besides its frames. */
export const groupBytes = (log: LogState): number => GROUP_HEADER_BYTES + log.nameBytes.length

const groupFor = (batch: Batch, log: LogState, segment: SegmentState): FrameGroup => {
  const last = batch.groups[batch.groups.length - 1]
  if (last !== undefined && last.kind === groupKind.frames && last.segment === segment) return last
  const headerStart = batch.end
  const start = openGroup(batch.slab, headerStart, groupKind.frames, log.nameBytes)
  batch.end = start
  const group: FrameGroup = {
    kind: groupKind.frames,
    log,
    slab: batch.slab,
    headerStart,
    start,
    end: start,
    frames: 0,
    firstEventId: log.nextEventId,
    lastEventId: log.nextEventId,
    crc: log.crc,
    chainedEnd: start,
    chainedId: log.nextEventId,
    sequence: 0,
    segment,
    position: segment.bytes,
    journal: undefined,
    journalPosition: 0
  }
  batch.groups.push(group)
  return group
}

const entryFlags = (entry: Entry): number =>
  (entry.visibility ?? 0) |
  (entry.role === "delta" ? flag.delta : 0) |
  (entry.role === "supersedes" ? flag.supersedes : 0)

/** Encodes one append that was measured before and for which the slab has room. */
export const encodeAppend = (batch: Batch, log: LogState, entries: ReadonlyArray<Entry>, limits: Limits): void => {
  const open = lastSegment(log)
  const isClosed = open === undefined || open.seal !== undefined || open.closing || open.bytes >= limits.segmentBytes
  // The header of a new segment is chained to the last frame of the one before.
  if (isClosed) chainFrames(batch, limits)
  const segment = isClosed ? startSegment(log) : open
  const group = groupFor(batch, log, segment)
  const { slab } = batch
  const last = entries.length - 1
  for (let index = 0; index <= last; index++) {
    const entry = entries[index]!
    const start = batch.end
    const bodyBytes = putBody(slab, start + FRAME_HEADER_BYTES, entry.body)
    const eventId = log.nextEventId
    if (entry.role === "supersedes") segment.thinnable = true
    putFrameHeader(slab, start, bodyBytes, {
      flags:
        entryFlags(entry) |
        (index < last ? flag.batchContinues : 0) |
        (eventId === segment.firstEventId ? flag.segmentFirst : 0),
      kind: frameKind.entry,
      family: entry.family ?? 0,
      stream: entry.stream ?? 0,
      eventId
    })
    log.nextEventId = eventId + 1
    batch.end = start + FRAME_HEADER_BYTES + bodyBytes
    segment.bytes += FRAME_HEADER_BYTES + bodyBytes
  }
  group.end = batch.end
  group.frames += entries.length
  group.lastEventId = log.nextEventId - 1
  closeGroup(slab, group.headerStart, group.end - group.start, group.frames)
}

/** Records that the log is to be removed; its files go once this is durable. */
export const encodeRemoval = (batch: Batch, log: LogState): void => {
  const headerStart = batch.end
  const start = openGroup(batch.slab, headerStart, groupKind.removal, log.nameBytes)
  closeGroup(batch.slab, headerStart, 0, 0)
  batch.end = start
  batch.groups.push({ kind: groupKind.removal, log })
}
