// Goal: the thinned copy of a segment is a good segment: every kept byte, one chain, a marker per range, an index that
// holds, and one bounded buffer on the way. Method: frames made by hand, copied and read back with the scanner.
import { describe, expect, it } from "vitest"
import type { DiskFile } from "#runelog/disk/Disk.ts"
import {
  bytesOf,
  FRAME_HEADER_BYTES,
  flag,
  frameBytes,
  frameEventId,
  frameFamily,
  frameFlags,
  frameKind,
  frameKindOf,
  frameLastId,
  frameStream,
  sealFrame,
  THINNED_BODY_BYTES
} from "#runelog/Frame.ts"
import { emptyLog, type SegmentState, startSegment } from "#runelog/LogState.ts"
import { limits as defaults, KIB } from "#runelog/RunelogLimits.ts"
import { scanFrames } from "#runelog/segment/Scan.ts"
import { encodeSegmentHeader, SEGMENT_HEADER_BYTES } from "#runelog/segment/Segment.ts"
import { SegmentCopy, WRITE_BYTES } from "#runelog/segment/SegmentCopy.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"

interface Piece {
  readonly body: string
  readonly flags?: number
  readonly family?: number
  readonly stream?: number
}

/** A segment of these frames, from event 1 on; each frame in a buffer of its own. */
const framesOf = (pieces: ReadonlyArray<Piece>) => {
  const segment = startSegment(emptyLog("a"))
  let previousCrc = segment.headerCrc
  const frames = pieces.map(({ body, family = 0, flags = 0, stream = 0 }, at) => {
    const length = Buffer.byteLength(body)
    const bytes = bytesOf(Buffer.alloc(FRAME_HEADER_BYTES + length))
    bytes.buffer.write(body, FRAME_HEADER_BYTES)
    previousCrc = sealFrame(bytes, 0, length, {
      flags: flags | (at === 0 ? flag.segmentFirst : 0),
      kind: frameKind.entry,
      family,
      stream,
      eventId: at + 1,
      previousCrc
    })
    return bytes
  })
  segment.bytes = frames.reduce((sum, { buffer }) => sum + buffer.length, SEGMENT_HEADER_BYTES)
  return { segment, frames }
}

const header = encodeSegmentHeader({ log: "a", firstEventId: 1, previousHeadCrc: 0 }).buffer

interface Copied {
  readonly file: DiskFile
  readonly sealed: SegmentState
  readonly end: { readonly offset: number; readonly frames: number; readonly lastEventId: number; readonly crc: number }
  /** The largest buffer that waited to be written. */
  readonly waitedMax: number
}

const copyOf = async (pieces: ReadonlyArray<Piece>, dropped: ReadonlyArray<number>): Promise<Copied> => {
  const { frames, segment } = framesOf(pieces)
  const file = await makeDiskMemory().open("/copy", "create")
  const limits = { ...defaults, indexEveryFrames: 2 }
  const copy = new SegmentCopy(file, segment, new Set(dropped), limits)
  await copy.begin(header)
  let waitedMax = 0
  for (const frame of frames) {
    const waiting = copy.add(frame, 0)
    waitedMax = Math.max(waitedMax, waiting)
    if (waiting > WRITE_BYTES) await copy.write()
  }
  return { file, sealed: segment, end: await copy.finish(), waitedMax }
}

interface Seen {
  readonly range: string
  readonly body: string
  readonly flags: number
  readonly family: number
  readonly stream: number
  readonly offset: number
}

/** What a reader finds in the copy; fails the test unless every frame is good and in its place. */
const seenIn = async ({ end, file, sealed }: Copied): Promise<ReadonlyArray<Seen>> => {
  const seen: Array<Seen> = []
  const start = { offset: SEGMENT_HEADER_BYTES, eventId: 1, previousCrc: sealed.headerCrc }
  const found = await scanFrames(file, start, {
    endOffset: await file.size(),
    onFrame: ({ buffer, view }, at, offset) => {
      const isMarker = frameKindOf(view, at) === frameKind.thinned
      const body = buffer.toString("utf8", at + FRAME_HEADER_BYTES, at + frameBytes(view, at))
      seen.push({
        range: isMarker ? `(${frameEventId(view, at)}-${frameLastId(view, at)})` : `${frameEventId(view, at)}`,
        body: isMarker ? "" : body,
        flags: frameFlags(view, at),
        family: frameFamily(view, at),
        stream: frameStream(view, at),
        offset
      })
      return undefined
    }
  })
  expect(found).toMatchObject({ fault: undefined, openBatch: undefined, ...positionOf(end) })
  expect(seen).toHaveLength(end.frames)
  return seen
}

const positionOf = ({ crc, lastEventId, offset }: Copied["end"]) => ({ crc, lastEventId, offset })

const rangesOf = (seen: ReadonlyArray<Seen>): string => seen.map(({ range }) => range).join(" ")
const plain = (count: number): ReadonlyArray<Piece> =>
  Array.from({ length: count }, (_, at) => ({ body: `event ${at + 1}` }))

describe("a copy", () => {
  it("keeps what is not dropped, byte for byte, and leaves a marker per range", async () => {
    const pieces = [
      { body: "one", family: 3, flags: 1 },
      { body: "two" },
      { body: "three" },
      { body: "four", stream: 9, flags: flag.supersedes },
      { body: "five" }
    ]
    const seen = await seenIn(await copyOf(pieces, [2, 3]))
    expect(rangesOf(seen)).toBe("1 (2-3) 4 5")
    expect(seen.map(({ body }) => body)).toEqual(["one", "", "four", "five"])
    expect(seen[0]).toMatchObject({ family: 3, flags: 1 | flag.segmentFirst })
    expect(seen[2]).toMatchObject({ stream: 9, flags: flag.supersedes })
  })

  it("of which nothing is dropped is the same segment", async () => {
    const { frames } = framesOf(plain(5))
    const { end, file } = await copyOf(plain(5), [])
    const copied = Buffer.alloc(end.offset)
    await file.read(copied, 0, end.offset, 0)
    expect(copied.equals(Buffer.concat([header, ...frames.map(({ buffer }) => buffer)]))).toBe(true)
  })

  it("starts and ends with a range where that is what is dropped", async () => {
    const seen = await seenIn(await copyOf(plain(6), [1, 2, 5, 6]))
    expect(rangesOf(seen)).toBe("(1-2) 3 4 (5-6)")
    // The mark of the first frame goes to whatever is first now, and nowhere else.
    expect(seen.map(({ flags }) => flags & flag.segmentFirst)).toEqual([flag.segmentFirst, 0, 0, 0])
    expect(rangesOf(await seenIn(await copyOf(plain(3), [1, 2, 3])))).toBe("(1-3)")
  })

  it("moves the border of a batch to the marker that stands for its last frame", async () => {
    const batch = [{ body: "a", flags: flag.batchContinues }, { body: "b", flags: flag.batchContinues }, { body: "c" }]
    const [middle] = [await seenIn(await copyOf([...batch, { body: "d" }], [2]))]
    expect(middle.map(({ flags }) => (flags & flag.batchContinues) !== 0)).toEqual([true, true, false, false])
    const end = await seenIn(await copyOf([...batch, { body: "d" }], [2, 3]))
    expect(end.map(({ flags }) => (flags & flag.batchContinues) !== 0)).toEqual([true, false, false])
  })

  it("has an index that points at frames of the copy", async () => {
    const copied = await copyOf(plain(9), [2, 3, 4])
    const seen = await seenIn(copied)
    const { ids, offsets } = copied.sealed.index
    expect(ids.length).toBeGreaterThan(2)
    for (const [at, offset] of offsets.entries()) {
      const frame = seen.find((one) => one.offset === offset)
      expect(frame?.range).toMatch(new RegExp(`^\\(?${ids[at]}\\b`))
    }
  })

  it("is written in pieces, and holds no more than a piece and a frame", async () => {
    const pieces = Array.from({ length: 60 }, (_, at) => ({ body: `${at}`.padEnd(30 * KIB, "x") }))
    const copied = await copyOf(pieces, [7, 8])
    expect(copied.waitedMax).toBeLessThan(WRITE_BYTES + 31 * KIB)
    expect((await seenIn(copied)).filter(({ body }) => body !== "").map(({ body }) => body)).toEqual(
      pieces.filter((_, at) => at !== 6 && at !== 7).map(({ body }) => body)
    )
  })

  it("takes a frame that is larger than a piece", async () => {
    const large = "y".repeat(700 * KIB)
    const seen = await seenIn(await copyOf([{ body: "x".repeat(200 * KIB) }, { body: large }, { body: "z" }], []))
    expect(seen.map(({ body }) => body.length)).toEqual([200 * KIB, 700 * KIB, 1])
    expect(seen[1]!.body === large).toBe(true)
  })

  it("may be longer than the segment: a marker is larger than the frames of no length that it stands for", async () => {
    const pieces = Array.from({ length: 40 }, () => ({ body: "" }))
    const every = pieces.flatMap((_, at) => (at % 2 === 1 ? [at + 1] : []))
    const { frames } = framesOf(pieces)
    const copied = await copyOf(pieces, every)
    expect(copied.end.offset).toBe(
      SEGMENT_HEADER_BYTES + frames.length * FRAME_HEADER_BYTES + every.length * THINNED_BODY_BYTES
    )
    expect(await seenIn(copied)).toHaveLength(40)
  })
})
