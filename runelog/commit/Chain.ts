// Chains the frames of a batch: gives each the checksum of the one before and its own, and indexes those that are due.
// That is done when the batch is closed, for all frames in one loop: computed each in the middle of something else,
// checksums take twice as long.

import { chainFrame, frameBytes } from "../Frame.ts"
import { groupKind } from "../journal/JournalBatch.ts"
import type { FramePlace, SegmentState } from "../LogState.ts"
import type { Limits } from "../RunelogLimits.ts"
import type { Batch, FrameGroup } from "./Batch.ts"
import type { Slab } from "./Slabs.ts"

/** Chains the frames that were encoded since the last time. */
export const chainFrames = (batch: Batch, limits: Limits): void => {
  const { groups, slab } = batch
  for (let at = batch.chainedGroups; at < groups.length; at++) {
    const group = groups[at]!
    if (group.kind === groupKind.frames) chainGroup(slab, group, limits)
  }
  // The last one may still grow.
  batch.chainedGroups = Math.max(0, groups.length - 1)
}

const chainGroup = (slab: Slab, group: FrameGroup, limits: Limits): void => {
  const { end, log, segment } = group
  let { crc } = log
  let at = group.chainedEnd
  let eventId = group.chainedId
  while (at < end) {
    const offset = group.position + at - group.start
    if (isIndexDue(segment, eventId, offset)) indexFrame(segment, { eventId, offset, crc }, limits)
    const next = at + frameBytes(slab.view, at)
    crc = chainFrame(slab, at, next, crc)
    eventId += 1
    at = next
  }
  log.crc = crc
  group.crc = crc
  group.chainedEnd = at
  group.chainedId = eventId
}

/** Whether a frame may need an index entry; most need not look any further. */
export const isIndexDue = (segment: SegmentState, eventId: number, offset: number): boolean =>
  eventId >= segment.indexDueId || offset >= segment.indexDueBytes

/** Indexes a frame, if so many frames or bytes lie between it and the last that was. */
export const indexFrame = (segment: SegmentState, { crc, eventId, offset }: FramePlace, limits: Limits): void => {
  const { ids, offsets, crcs } = segment.index
  const last = ids.length - 1
  if (
    last < 0 ||
    eventId - ids[last]! >= limits.indexEveryFrames ||
    offset - offsets[last]! >= limits.indexEveryBytes
  ) {
    ids.push(eventId)
    offsets.push(offset)
    crcs.push(crc)
  }
  segment.indexDueId = ids[ids.length - 1]! + limits.indexEveryFrames
  segment.indexDueBytes = offsets[offsets.length - 1]! + limits.indexEveryBytes
}
