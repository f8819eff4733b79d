// Goal: what an append may hold is checked before anything is written, and what it holds becomes frames of the right
// shape. Method: entries measured and encoded into a slab by hand.
import { describe, expect, it } from "vitest"
import { openBatch } from "#runelog/commit/Batch.ts"
import { chainFrames, indexFrame } from "#runelog/commit/Chain.ts"
import { encodeAppend, encodeRemoval, groupBytes } from "#runelog/commit/Encode.ts"
import { type BodyWriter, type Entry, measure, writtenOut } from "#runelog/commit/Entry.ts"
import {
  bytesOf,
  checkFrame,
  FRAME_HEADER_BYTES,
  flag,
  frameBytes,
  frameEventId,
  frameFlags,
  framePreviousCrc
} from "#runelog/Frame.ts"
import { BATCH_HEADER_BYTES, groupKind, readGroups } from "#runelog/journal/JournalBatch.ts"
import { commitExtent, emptyLog, rollBack, startSegment } from "#runelog/LogState.ts"
import { resolveLimits } from "#runelog/Options.ts"
import { BatchEmpty, BatchTooLarge, EntryInvalid, EntryTooLarge } from "#runelog/RunelogErrors.ts"

const limits = resolveLimits({
  bodyBytesMax: 100,
  batchBytesMax: 600,
  batchFramesMax: 4,
  segmentBytes: 300,
  indexEveryFrames: 2,
  indexEveryBytes: 10_000
})
const slab = () => ({ ...bytesOf(Buffer.alloc(16_384)), used: 0, references: 1 })

/** A body that writes itself and may take up to `bytesMax`. */
const writing = (text: string, bytesMax: number): BodyWriter => ({
  bytesMax,
  writeTo: ({ buffer }, start) => buffer.write(text, start)
})

const refusal = (...entries: ReadonlyArray<Entry>) => {
  const measured = measure(emptyLog("log"), entries, limits)
  return typeof measured === "number" ? undefined : measured
}

describe("an append is refused", () => {
  it("without entries", () => expect(refusal()).toEqual(new BatchEmpty({ log: "log" })))

  it.each<[string, Partial<Record<keyof Entry, unknown>>]>([
    ["visibility", { visibility: 3 }],
    ["visibility", { visibility: -1 }],
    ["visibility", { visibility: 0.5 }],
    ["family", { family: 256 }],
    ["family", { family: Number.NaN }],
    ["stream", { stream: -1 }],
    ["stream", { stream: 2 ** 32 }],
    ["stream", { stream: 1.5 }],
    ["role", { role: "other" }],
    ["body", { body: undefined }],
    ["body", { body: 7 }],
    ["body", { body: ["x"] }],
    ["body", { body: null }],
    ["body", { body: { bytesMax: 3 } }],
    ["body", { body: { bytesMax: -1, writeTo: () => 0 } }],
    ["body", { body: { bytesMax: 0.5, writeTo: () => 0 } }]
  ])("with a %s that cannot be: %j", (field, wrong) => {
    const entry = { body: "x", ...wrong } as Entry
    expect(refusal({ body: "fine" }, entry)).toEqual(
      new EntryInvalid({ log: "log", field, value: entry[field as keyof Entry] })
    )
  })

  it("with an entry over the limit, counted in bytes", () => {
    expect(refusal({ body: "x".repeat(100) })).toBeUndefined()
    expect(refusal({ body: Buffer.alloc(100) })).toBeUndefined()
    expect(refusal({ body: Buffer.alloc(101) })).toEqual(new EntryTooLarge({ log: "log", bytes: 101, bytesMax: 100 }))
    expect(refusal({ body: "€".repeat(33) })).toBeUndefined()
    expect(refusal({ body: "€".repeat(34) })).toEqual(new EntryTooLarge({ log: "log", bytes: 102, bytesMax: 100 }))
    expect(refusal({ body: writing("x".repeat(100), 300) })).toBeUndefined()
    expect(refusal({ body: writing("x".repeat(101), 300) })).toEqual(
      new EntryTooLarge({ log: "log", bytes: 101, bytesMax: 100 })
    )
  })

  it("with too many frames, or too many bytes in all", () => {
    const bytesMax = limits.batchBytesMax
    const small = Array.from({ length: 5 }, () => ({ body: "" }))
    const tooMany = new BatchTooLarge({ log: "log", frames: 5, framesMax: 4, bytes: 5 * FRAME_HEADER_BYTES, bytesMax })
    expect(refusal(...small)).toEqual(tooMany)
    const narrow = { ...limits, batchBytesMax: 200 }
    const log = emptyLog("log")
    expect(measure(log, [{ body: "x".repeat(60) }, { body: "y".repeat(60) }], narrow)).toBeTypeOf("number")
    const large = measure(log, [{ body: "x".repeat(70) }, { body: Buffer.alloc(70) }], narrow)
    expect(large).toEqual(new BatchTooLarge({ log: "log", frames: 2, framesMax: 4, bytes: 204, bytesMax: 200 }))
  })
})

describe("a body that writes itself", () => {
  it("takes the room it used, not the room it asked for", () => {
    const batch = openBatch(slab())
    const log = emptyLog("a")
    encodeAppend(batch, log, [{ body: writing("first", 90) }, { body: "second" }], limits)
    chainFrames(batch, limits)
    const [group] = readGroups(batch.slab, BATCH_HEADER_BYTES, 1)
    const bodies: Array<string> = []
    for (let at = group!.start; at < group!.end; at += frameBytes(batch.slab.view, at)) {
      expect(checkFrame(batch.slab, at, group!.end)).toBeUndefined()
      const end = at + frameBytes(batch.slab.view, at)
      bodies.push(batch.slab.buffer.toString("utf8", at + FRAME_HEADER_BYTES, end))
    }
    expect(bodies).toEqual(["first", "second"])
  })

  it("is written out when it has to wait; others stay as they are", () => {
    expect(Buffer.from(writtenOut(writing("text", 20)))).toEqual(Buffer.from("text"))
    const bytes = Buffer.from("bytes")
    expect(writtenOut(bytes)).toBe(bytes)
    expect(writtenOut("string")).toBe("string")
  })
})

describe("an append becomes frames", () => {
  it("in one group per log and segment, chained, with the borders of its batch", () => {
    const batch = openBatch(slab())
    const [a, b] = [emptyLog("a"), emptyLog("b")]
    encodeAppend(batch, a, [{ body: "1" }, { body: "2", visibility: 2, role: "delta", family: 9, stream: 4 }], limits)
    encodeAppend(batch, a, [{ body: Buffer.from("3"), role: "supersedes" }], limits)
    encodeAppend(batch, b, [{ body: "1" }], limits)
    encodeAppend(batch, a, [{ body: "4" }], limits)
    encodeRemoval(batch, b)
    encodeAppend(batch, b, [{ body: "2" }], limits)
    chainFrames(batch, limits)
    const groups = readGroups(batch.slab, BATCH_HEADER_BYTES, batch.groups.length)
    expect(groups.map(({ frames, kind, log }) => [log, kind, frames])).toEqual([
      ["a", groupKind.frames, 3],
      ["b", groupKind.frames, 1],
      ["a", groupKind.frames, 1],
      ["b", groupKind.removal, 0],
      ["b", groupKind.frames, 1]
    ])
    const { view } = batch.slab
    const [first] = groups
    const flags: Array<number> = []
    let crc = a.segments[0]!.headerCrc
    for (let at = first!.start; at < first!.end; at += frameBytes(view, at)) {
      expect(checkFrame(batch.slab, at, first!.end)).toBeUndefined()
      expect(framePreviousCrc(view, at)).toBe(crc)
      crc = view.getUint32(at + 4, true)
      flags.push(frameFlags(view, at))
    }
    expect(flags).toEqual([flag.segmentFirst | flag.batchContinues, 2 | flag.delta, flag.supersedes])
    expect(a).toMatchObject({ nextEventId: 5, durableEventId: 0 })
    expect(a.segments[0]!.thinnable).toBe(true)
    expect(b.segments[0]!.thinnable).toBe(false)
  })

  it("in a new segment once the open one is full, closing or sealed", () => {
    const log = emptyLog("log")
    const batch = openBatch(slab())
    encodeAppend(batch, log, [{ body: "x".repeat(90) }, { body: "x".repeat(90) }], limits)
    expect(log.segments).toHaveLength(1)
    encodeAppend(batch, log, [{ body: "full" }], limits)
    expect(log.segments.map(({ firstEventId }) => firstEventId)).toEqual([1, 3])
    expect(log.segments[1]!.previousHeadCrc).toBe(log.segments[0]!.headCrc)
    log.segments[1]!.closing = true
    encodeAppend(batch, log, [{ body: "closing" }], limits)
    log.segments[2]!.seal = { frames: 1, headCrc: 0, sha256: "", previousSha256: "" }
    encodeAppend(batch, log, [{ body: "sealed" }], limits)
    expect(log.segments.map(({ firstEventId }) => firstEventId)).toEqual([1, 3, 4, 5])
    const last = readGroups(batch.slab, BATCH_HEADER_BYTES, batch.groups.length).at(-1)!
    expect(frameEventId(batch.slab.view, last.start)).toBe(5)
    expect(batch.groups).toHaveLength(4)
  })

  it("with an index entry every so many frames or bytes", () => {
    const log = emptyLog("log")
    const segment = startSegment(log)
    for (let eventId = 1; eventId <= 4; eventId++) {
      indexFrame(segment, { eventId, offset: segment.bytes, crc: eventId * 10 }, limits)
      segment.bytes += 50
    }
    segment.bytes += 20_000
    indexFrame(segment, { eventId: 5, offset: segment.bytes, crc: 50 }, { ...limits, indexEveryFrames: 100 })
    expect(segment.index).toEqual({ ids: [1, 3, 5], offsets: [128, 228, 20_328], crcs: [10, 30, 50] })
  })

  it("with the index entries that it would have had, after others were taken back", () => {
    const log = emptyLog("log")
    const few = { ...limits, indexEveryFrames: 3, indexEveryBytes: 1000, segmentBytes: 100_000 }
    const append = (count: number): void => {
      const batch = openBatch(slab())
      for (let at = 0; at < count; at++) encodeAppend(batch, log, [{ body: "x" }], few)
      chainFrames(batch, few)
      const [group] = batch.groups
      if (group?.kind === groupKind.frames) commitExtent(log, group, group.crc)
    }
    append(5)
    const refused = openBatch(slab())
    encodeAppend(refused, log, [{ body: "x" }, { body: "x" }, { body: "x" }, { body: "x" }], few)
    chainFrames(refused, few)
    expect(log.segments[0]!.index.ids).toEqual([1, 4, 7])
    rollBack(log)
    expect(log.segments[0]!.index.ids).toEqual([1, 4])
    append(5)
    expect(log.segments[0]!.index.ids).toEqual([1, 4, 7, 10])
  })

  it("and a group takes a header and its name", () => {
    expect(groupBytes(emptyLog("abc"))).toBe(13)
  })
})
