// Goal: the positions of a log stay prefixes of each other: what is encoded can be taken back, what is durable cannot.
// Method: segments and extents laid out by hand, step by step.
import { describe, expect, it } from "vitest"
import { Slabs } from "#runelog/commit/Slabs.ts"
import {
  commitExtent,
  type Extent,
  emptyLog,
  isIdle,
  type LogState,
  lastSegment,
  rollBack,
  type SegmentState,
  startSegment
} from "#runelog/LogState.ts"
import { encodeSegmentHeader, SEGMENT_HEADER_BYTES } from "#runelog/segment/Segment.ts"

const slabs = new Slabs(4096)

/** Encodes one frame of so many bytes at the end of a segment, with an index entry of its own. */
const encode = (log: LogState, segment: SegmentState, bytes: number, sequence: number): Extent => {
  const eventId = log.nextEventId
  segment.index.ids.push(eventId)
  segment.index.offsets.push(segment.bytes)
  segment.index.crcs.push(log.crc)
  const position = segment.bytes
  segment.bytes += bytes
  log.nextEventId += 1
  log.crc = 1000 + eventId
  return {
    slab: slabs.take(bytes),
    start: 0,
    end: bytes,
    firstEventId: eventId,
    lastEventId: eventId,
    sequence,
    segment,
    position,
    journal: undefined,
    journalPosition: 0
  }
}

describe("a segment that is started", () => {
  it("is the first of its log, or continues the one before by its last checksum", () => {
    const log = emptyLog("a")
    expect(lastSegment(log)).toBeUndefined()
    const first = startSegment(log)
    const header = encodeSegmentHeader({ log: "a", firstEventId: 1, previousHeadCrc: 0 })
    expect(first).toMatchObject({ firstEventId: 1, previousHeadCrc: 0, headerCrc: header.crc, created: false })
    expect(first.bytes).toBe(SEGMENT_HEADER_BYTES)
    expect(log.crc).toBe(header.crc)
    encode(log, first, 40, 7)
    const second = startSegment(log)
    expect(second).toMatchObject({ firstEventId: 2, previousHeadCrc: 1001, linked: true, followed: true })
    expect(first.headCrc).toBe(1001)
    expect(log.crc).toBe(encodeSegmentHeader({ log: "a", firstEventId: 2, previousHeadCrc: 1001 }).crc)
    expect(lastSegment(log)).toBe(second)
  })
})

describe("what becomes durable", () => {
  it("moves the durable end, waits for its segment, and remembers the oldest batch", () => {
    const log = emptyLog("a")
    const segment = startSegment(log)
    const [one, two] = [encode(log, segment, 40, 7), encode(log, segment, 50, 8)]
    expect(log.durableSegments).toBe(0)
    commitExtent(log, one, 1001)
    expect(log).toMatchObject({ durableEventId: 1, durableCrc: 1001, durableSegments: 1, unsyncedSequence: 7 })
    expect(segment.durableBytes).toBe(SEGMENT_HEADER_BYTES + 40)
    commitExtent(log, two, 1002)
    expect(log).toMatchObject({ durableEventId: 2, pendingBytes: 90, unsyncedSequence: 7, durableSegments: 1 })
    expect(log.pending).toEqual([one, two])
  })

  it("makes every segment up to its own durable, and none behind it", () => {
    const log = emptyLog("a")
    const extents = Array.from({ length: 3 }, (_, at) => encode(log, startSegment(log), 40, at + 1))
    commitExtent(log, extents[0]!, 1001)
    expect(log.durableSegments).toBe(1)
    commitExtent(log, extents[1]!, 1002)
    expect(log.durableSegments).toBe(2)
    expect(log.segments).toHaveLength(3)
  })
})

describe("a roll-back", () => {
  it("takes back segments, frames and index entries that did not become durable", () => {
    const log = emptyLog("a")
    const segment = startSegment(log)
    const durable = encode(log, segment, 40, 7)
    commitExtent(log, durable, 1001)
    encode(log, segment, 50, 8)
    encode(log, segment, 60, 8)
    encode(log, startSegment(log), 70, 8)
    rollBack(log)
    expect(log).toMatchObject({ nextEventId: 2, crc: 1001 })
    expect(log.segments).toEqual([segment])
    expect(segment.bytes).toBe(SEGMENT_HEADER_BYTES + 40)
    expect(segment.index).toEqual({ ids: [1], offsets: [SEGMENT_HEADER_BYTES], crcs: [segment.headerCrc] })
    rollBack(log)
    expect(segment.index.ids).toEqual([1])
  })

  it("of a log with nothing durable leaves nothing", () => {
    const log = emptyLog("a")
    encode(log, startSegment(log), 40, 7)
    rollBack(log)
    expect(log).toMatchObject({ nextEventId: 1, crc: 0, segments: [] })
  })

  it("leaves no index entry of a segment whose frames are all gone", () => {
    const log = emptyLog("a")
    const segment = startSegment(log)
    encode(log, segment, 40, 7)
    log.durableSegments = 1
    rollBack(log)
    expect(segment.index).toEqual({ ids: [], offsets: [], crcs: [] })
    expect(segment.bytes).toBe(SEGMENT_HEADER_BYTES)
  })
})

describe("a log is idle", () => {
  const idle = (): LogState => Object.assign(emptyLog("a"), { nextEventId: 5, durableEventId: 4 })

  it("when nothing would be lost by forgetting it", () => {
    expect(isIdle(idle())).toBe(true)
    expect(isIdle(emptyLog("a"))).toBe(true)
  })

  it.each([
    ["frames wait for its segment", (log: LogState) => log.pending.push(encode(log, startSegment(log), 40, 1))],
    ["frames of it are in the journal only", (log: LogState) => Object.assign(log, { unsyncedSequence: 3 })],
    ["it is being written", (log: LogState) => Object.assign(log, { flushing: Promise.resolve() })],
    ["it is being synced", (log: LogState) => Object.assign(log, { syncing: Promise.resolve() })],
    ["somebody works with it", (log: LogState) => Object.assign(log, { users: 1 })],
    ["frames of it are on their way", (log: LogState) => Object.assign(log, { nextEventId: 6 })]
  ])("not while %s", (_, change) => {
    const log = idle()
    change(log)
    expect(isIdle(log)).toBe(false)
  })
})
