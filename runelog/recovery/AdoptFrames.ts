// Adds the frames of one group of the journal at the end of the log they belong to, or keeps a copy of them where they
// continue nothing: the log is damaged then.
import { indexFrame } from "../commit/Chain.ts"
import type { Slab, Slabs } from "../commit/Slabs.ts"
import { flag, frameBytes, frameCrc, frameEventId, frameFlags, framePreviousCrc } from "../Frame.ts"
import type { JournalFile } from "../journal/Journal.ts"
import { commitExtent, type LogState, lastSegment, startSegment } from "../LogState.ts"
import type { Limits } from "../RunelogLimits.ts"
import type { Quarantine } from "./Quarantine.ts"

export interface AdoptOptions {
  readonly quarantine: Quarantine
  readonly slabs: Slabs
  readonly limits: Limits
}

/** Frames of one group, to be added to their log. */
export interface Addition {
  readonly slab: Slab
  readonly start: number
  readonly end: number
  readonly sequence: number
  /** Where they come from, to be named where they cannot be added. */
  readonly file: string
  readonly offset: number
  /** The journal file, where they lie at `offset` and may be read again. */
  readonly journal: JournalFile | undefined
  /** What is wrong with them. */
  readonly fault: string | undefined
  readonly keepsFrames: boolean
}

/** Adds the frames at the end of the log; returns how many were new to it. Damage further back does not matter to them. */
export const adopt = async (options: AdoptOptions, log: LogState, addition: Addition): Promise<number> => {
  const { end, fault, slab } = addition
  if (fault !== undefined) return refuse(options, log, addition, fault)
  let { start } = addition
  while (start < end && frameEventId(slab.view, start) <= log.durableEventId) start += frameBytes(slab.view, start)
  if (start === end) return 0
  const firstEventId = log.nextEventId
  const isFirst = (frameFlags(slab.view, start) & flag.segmentFirst) !== 0
  const segment = isFirst ? startSegment(log) : lastSegment(log)
  const fits =
    segment !== undefined &&
    segment.seal === undefined &&
    frameEventId(slab.view, start) === firstEventId &&
    framePreviousCrc(slab.view, start) === log.crc
  if (!fits) {
    if (isFirst) log.segments.pop()
    const reason = `the log ends at event ${log.durableEventId}, the journal goes on with ${frameEventId(slab.view, start)}`
    return refuse(options, log, { ...addition, start }, reason)
  }
  segment.thinnable = true
  const position = segment.bytes
  let frames = 0
  for (let at = start; at < end; at += frameBytes(slab.view, at)) {
    indexFrame(segment, { eventId: log.nextEventId, offset: segment.bytes, crc: log.crc }, options.limits)
    segment.bytes += frameBytes(slab.view, at)
    log.nextEventId += 1
    log.crc = frameCrc(slab.view, at)
    frames += 1
  }
  options.slabs.retain(slab)
  const { journal, offset, sequence } = addition
  const extent = {
    slab,
    start,
    end,
    firstEventId,
    lastEventId: log.nextEventId - 1,
    sequence,
    segment,
    position,
    journal,
    journalPosition: offset + start - addition.start
  }
  commitExtent(log, extent, log.crc)
  return frames
}

/** Frames that cannot be added are kept where that is asked for; the log is damaged from there on. */
const refuse = async (options: AdoptOptions, log: LogState, addition: Addition, reason: string): Promise<number> => {
  const { end, file, offset, sequence, slab, start } = addition
  const { name } = log
  if (addition.keepsFrames) {
    await options.quarantine.keepBytes(`${name}-batch-${sequence}.frames`, slab.buffer.subarray(start, end))
  }
  log.damage ??= await options.quarantine.record({ log: name, file, offset, reason })
  return 0
}
