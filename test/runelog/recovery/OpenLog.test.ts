// Goal: a log opens where it ends; a torn end is cut with a copy, damage is not, and neither passes for the other. Method:
// files altered by hand, opened again.
// Verifies: INV-SEGMENT-CONTIGUOUS, INV-CRC-VALID
import { describe, expect, it } from "vitest"
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { bytesOf, FRAME_HEADER_BYTES, frameKind, sealFrame } from "#runelog/Frame.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { ForeignFile, LogDamaged, LogUnknown, SegmentCorrupt } from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { decodeIndex, encodeIndex } from "#runelog/segment/IndexFile.ts"
import { encodeSegmentHeader } from "#runelog/segment/Segment.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import {
  bodiesOf,
  contentOf,
  directory,
  diskOf,
  entryOf,
  errorOf,
  fill,
  flipBit,
  indexPath,
  openSmall,
  readFileOf,
  type Snapshot,
  segmentPath,
  snapshotOf,
  withCalls,
  withFiles,
  withoutManifest
} from "../Fixture.ts"

const limits = { segmentBytes: 800 }
const bodies = (to: number) => Array.from({ length: to }, (_, at) => entryOf(at + 1).body)

const closed = async (
  events: number
): Promise<{ readonly files: Snapshot; readonly firstIds: ReadonlyArray<number> }> => {
  const disk = makeDiskMemory()
  const runelog = await openSmall({ disk, limits })
  await fill(runelog, "a", 1, events)
  await runelog.close()
  const files = await snapshotOf(disk)
  const firstIds = [...files.keys()].flatMap((path) =>
    path.endsWith(".seg") ? [Number.parseInt(path.slice(-20), 10)] : []
  )
  return { files, firstIds }
}

const keptIn = async (disk: Disk): Promise<ReadonlyArray<string>> =>
  (await disk.exists(`${directory}/quarantine`))
    ? (await disk.list(`${directory}/quarantine`)).map(({ name }) => name)
    : []

const withoutIndexes = (files: Snapshot): Snapshot => new Map([...files].filter(([path]) => !path.endsWith(".idx")))

describe("a torn end", () => {
  it("is cut, with a copy, and the log goes on", async () => {
    const files = withoutIndexes((await closed(5)).files)
    const path = segmentPath("a", 1)
    const whole = Buffer.from(files.get(path)!)
    const tail = Buffer.from("RUNE was to follow")
    const disk = await diskOf(withFiles(files, { [path]: Buffer.concat([whole, tail]) }))
    const runelog = await openSmall({ disk, limits })
    expect(bodiesOf(await contentOf(runelog, "a"))).toEqual(bodies(5))
    const [copy] = await keptIn(disk)
    expect((await readFileOf(disk, `${directory}/quarantine/${copy}`)).equals(tail)).toBe(true)
    await fill(runelog, "a", 6, 7)
    expect(bodiesOf(await contentOf(runelog, "a"))).toEqual(bodies(7))
  })

  it("takes a batch that is not whole with it, and a segment of which nothing is left", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 2)
    await runelog.append("a", 3, [entryOf(3), entryOf(4), entryOf(5)])
    await runelog.close()
    const files = withoutManifest(withoutIndexes(await snapshotOf(disk)))
    const path = segmentPath("a", 1)
    const cut = files.get(path)!.length - 10
    const again = await openSmall({
      disk: await diskOf(withFiles(files, { [path]: files.get(path)!.subarray(0, cut) }))
    })
    expect(bodiesOf(await contentOf(again, "a"))).toEqual(bodies(2))
    const torn = await diskOf(withFiles(files, { [path]: files.get(path)!.subarray(0, 140) }))
    const nothing = await openSmall({ disk: torn })
    expect(await errorOf(nothing.read("a", { after: 0 }))).toBeInstanceOf(LogUnknown)
    expect(await keptIn(torn)).toHaveLength(1)
    await fill(nothing, "a", 1, 1)
  })

  it("of a log with damage on record is left as it is", async () => {
    const files = withoutIndexes((await closed(5)).files)
    const path = segmentPath("a", 1)
    const torn = Buffer.concat([files.get(path)!, Buffer.from("RUNE was to follow")])
    for (const content of [torn, Buffer.alloc(30)]) {
      const disk = await diskOf(
        withFiles(files, { [path]: content, [`${directory}/quarantine/a.json`]: Buffer.from("{}") })
      )
      const runelog = await openSmall({ disk })
      expect(await errorOf(runelog.append("a", 6, [entryOf(6)]))).toBeInstanceOf(LogDamaged)
      expect((await readFileOf(disk, path)).equals(content)).toBe(true)
    }
  })
})

describe("a segment that was being created", () => {
  it("is forgotten when it has no header, no index and no frame; what is in it is kept", async () => {
    const { files, firstIds } = await closed(40)
    const path = segmentPath("a", 41)
    for (const content of [Buffer.alloc(0), Buffer.from("not yet a header")]) {
      const disk = await diskOf(withFiles(files, { [path]: content }))
      const runelog = await openSmall({ disk, limits })
      expect(bodiesOf(await contentOf(runelog, "a"))).toEqual(bodies(40))
      expect(await disk.exists(path)).toBe(false)
      expect(await keptIn(disk)).toHaveLength(content.length > 0 ? 1 : 0)
      await fill(runelog, "a", 41, 42)
      expect(bodiesOf(await contentOf(runelog, "a"))).toEqual(bodies(42))
    }
    expect(firstIds.length).toBeGreaterThan(2)
  })

  it("is made again from the journal, whatever became of it", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 5)
    const files = await snapshotOf(disk)
    expect(files.has(segmentPath("a", 1))).toBe(false)
    for (const content of [Buffer.alloc(0), Buffer.alloc(300, 7)]) {
      const torn = await diskOf(withFiles(files, { [segmentPath("a", 1)]: content }))
      const again = await openSmall({ disk: torn })
      expect(bodiesOf(await contentOf(again, "a"))).toEqual(bodies(5))
      expect(await keptIn(torn)).toEqual([])
    }
  })
})

describe("damage", () => {
  it("is a bad frame that good ones follow, or one that an index promised", async () => {
    const { files } = await closed(5)
    const path = segmentPath("a", 1)
    const middle = flipBit(files.get(path)!, 165 * 8)
    const last = flipBit(files.get(path)!, (files.get(path)!.length - 2) * 8)
    for (const [content, index, good] of [
      [middle, undefined, 0],
      [middle, files.get(indexPath("a", 1)), 0],
      [last, files.get(indexPath("a", 1)), 4]
    ] as const) {
      const disk = await diskOf(withFiles(files, { [path]: content, [indexPath("a", 1)]: index }))
      const runelog = await openSmall({ disk })
      const found = await contentOf(runelog, "a")
      expect(bodiesOf(found)).toEqual(bodies(good))
      expect(found.error).toMatchObject({ _tag: "SegmentCorrupt", file: path, reason: "checksum mismatch" })
      expect((await readFileOf(disk, path)).equals(content)).toBe(true)
      expect(await keptIn(disk)).toEqual(["a.json"])
    }
  })

  it("is a batch that an index promised and that is cut", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    await runelog.append("a", 1, [entryOf(1)])
    await runelog.append("a", 2, [entryOf(2), entryOf(3)])
    await runelog.close()
    const files = await snapshotOf(disk)
    const path = segmentPath("a", 1)
    const end = files.get(path)!.length - FRAME_HEADER_BYTES - Buffer.byteLength(entryOf(3).body as string)
    const again = await openSmall({
      disk: await diskOf(withFiles(files, { [path]: files.get(path)!.subarray(0, end) }))
    })
    expect((await contentOf(again, "a")).error).toMatchObject({ reason: "the file ends inside a batch" })
  })

  it("is a segment that ends with a frame, but before what its index promised", async () => {
    const { files } = await closed(5)
    const path = segmentPath("a", 1)
    const content = files.get(path)!
    const end = content.length - FRAME_HEADER_BYTES - Buffer.byteLength(entryOf(5).body as string)
    const runelog = await openSmall({ disk: await diskOf(withFiles(files, { [path]: content.subarray(0, end) })) })
    const found = await contentOf(runelog, "a")
    expect(bodiesOf(found)).toEqual(bodies(4))
    expect(found.error).toMatchObject({ offset: end, reason: `bytes up to ${content.length} are missing` })
  })

  it("is a last segment without its header: what is before it can be read", async () => {
    const { files, firstIds } = await closed(40)
    const last = firstIds.at(-1)!
    const path = segmentPath("a", last)
    for (const content of [flipBit(files.get(path)!, 100 * 8), Buffer.alloc(0)]) {
      const runelog = await openSmall({ disk: await diskOf(withFiles(files, { [path]: content })), limits })
      const found = await contentOf(runelog, "a")
      expect(bodiesOf(found)).toEqual(bodies(last - 1))
      expect(found.error).toMatchObject({ _tag: "SegmentCorrupt", file: path, offset: 0 })
    }
  })

  it("is a last segment that is gone while its index is there, and a first one that is gone", async () => {
    const { files, firstIds } = await closed(40)
    const last = firstIds.at(-1)!
    const gone = await openSmall({
      disk: await diskOf(withFiles(files, { [segmentPath("a", last)]: undefined })),
      limits
    })
    const found = await contentOf(gone, "a")
    expect(bodiesOf(found)).toEqual(bodies(last - 1))
    expect(found.error).toMatchObject({ reason: "the file is missing, its index is there" })
    const torn = withFiles(files, { [segmentPath("a", last)]: undefined, [indexPath("a", last)]: Buffer.from("torn") })
    const unknown = await openSmall({ disk: await diskOf(withoutManifest(torn)), limits })
    expect((await contentOf(unknown, "a")).error).toBeUndefined()
    const known = await openSmall({ disk: await diskOf(torn), limits })
    const reason = `events ${last} to 40 are missing, the manifest knows of them`
    expect((await contentOf(known, "a")).error).toMatchObject({ reason })
    expect(await errorOf(known.append("a", last, [entryOf(last)]))).toBeInstanceOf(LogDamaged)
    const headless = withFiles(files, { [segmentPath("a", 1)]: undefined, [indexPath("a", 1)]: undefined })
    const without = await openSmall({ disk: await diskOf(headless), limits })
    expect(await errorOf(without.read("a", { after: 0 }))).toBeInstanceOf(SegmentCorrupt)
    expect(await without.head("a")).toBe(0)
  })

  it("is a first segment that claims to continue another, and a seal that cannot be read", async () => {
    const { files, firstIds } = await closed(40)
    const path = segmentPath("a", 1)
    const content = Buffer.from(files.get(path)!)
    const header = encodeSegmentHeader({ log: "a", firstEventId: 1, previousHeadCrc: 9 }).buffer
    const claims = await openSmall({
      disk: await diskOf(withFiles(files, { [path]: Buffer.concat([header, content.subarray(128)]) })),
      limits
    })
    expect((await contentOf(claims, "a")).error).toMatchObject({
      reason: "the first segment claims to continue another"
    })
    const at = content.lastIndexOf('{"frames"') - FRAME_HEADER_BYTES
    const seal = bytesOf(Buffer.alloc(FRAME_HEADER_BYTES + 300, " "))
    const place = { eventId: firstIds[1]! - 1, previousCrc: content.readUInt32LE(at + 20) }
    sealFrame(seal, 0, 300, { flags: 0, kind: frameKind.seal, family: 0, stream: 0, ...place })
    const unreadable = Buffer.concat([content.subarray(0, at), seal.buffer])
    const closedSegment = await openSmall({ disk: await diskOf(withFiles(files, { [path]: unreadable })), limits })
    expect(await errorOf(closedSegment.seal("a"))).toMatchObject({ reason: "the seal cannot be read" })
    const alone = new Map(
      [...withFiles(files, { [path]: unreadable })].filter(([file]) => !/\d+\.(seg|idx)$/.test(file) || file === path)
    )
    expect((await contentOf(await openSmall({ disk: await diskOf(alone), limits }), "a")).error).toMatchObject({
      reason: "the seal cannot be read"
    })
  })

  it("is a closed segment that ends inside a batch", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: { segmentBytes: 200 } })
    await runelog.append("a", 1, [{ body: "x".repeat(60) }, { body: "y".repeat(60) }])
    await runelog.append("a", 3, [{ body: "z" }])
    await runelog.close()
    const files = withoutIndexes(await snapshotOf(disk))
    const path = segmentPath("a", 1)
    const bytes = bytesOf(Buffer.from(files.get(path)!))
    const second = 128 + FRAME_HEADER_BYTES + 60
    const crc = sealFrame(bytes, second, 60, {
      flags: 4,
      kind: 0,
      family: 0,
      stream: 0,
      eventId: 2,
      previousCrc: bytes.view.getUint32(second + 20, true)
    })
    const next = Buffer.from(files.get(segmentPath("a", 3))!)
    const header = encodeSegmentHeader({ log: "a", firstEventId: 3, previousHeadCrc: crc }).buffer
    const changed = {
      [path]: bytes.buffer.subarray(0, second + FRAME_HEADER_BYTES + 60),
      [segmentPath("a", 3)]: Buffer.concat([header, next.subarray(128)])
    }
    const again = await openSmall({ disk: await diskOf(withFiles(files, changed)) })
    expect((await contentOf(again, "a")).error).toMatchObject({ _tag: "SegmentCorrupt" })
  })
})

describe("the directory of a log", () => {
  it("with a foreign file is refused by its name, unfinished ones are removed", async () => {
    const { files } = await closed(5)
    const file = `${directory}/runelog/a/notes.txt`
    const foreign = await openSmall({ disk: await diskOf(withFiles(files, { [file]: Buffer.from("mine") })) })
    expect(await errorOf(foreign.read("a", { after: 0 }))).toEqual(new ForeignFile({ file }))
    const inside = await diskOf(files)
    await inside.makeDirectory(segmentPath("a", 7))
    expect(await errorOf((await openSmall({ disk: inside })).head("a"))).toEqual(
      new ForeignFile({ file: segmentPath("a", 7) })
    )
    const leftover = `${segmentPath("a", 1)}.tmp`
    const disk = await diskOf(withFiles(files, { [leftover]: Buffer.from("half") }))
    expect(await (await openSmall({ disk })).head("a")).toBe(5)
    expect(await disk.exists(leftover)).toBe(false)
  })
})

describe("a log that the journal goes on with", () => {
  const path = segmentPath("a", 1)
  const roomy = { segmentBytes: 64 * KIB, segmentWriteBytes: 1, indexEveryFrames: 8 }

  /** Sixty events that an index speaks of, then as many that are in the segment and in the journal. */
  const stopped = async (last: (runelog: Runelog) => Promise<unknown>): Promise<Snapshot> => {
    const disk = makeDiskMemory()
    const before = await openSmall({ disk, limits: roomy })
    await fill(before, "a", 1, 60)
    await before.close()
    const runelog = await openSmall({ disk, limits: roomy })
    await fill(runelog, "a", 61, 120)
    await last(runelog)
    const files = await snapshotOf(disk)
    expect(files.get(path)!.length).toBeGreaterThan(120 * FRAME_HEADER_BYTES)
    return files
  }

  const reopened = async (files: Snapshot): Promise<{ readonly bytesRead: number; readonly disk: Disk }> => {
    const disk = await diskOf(files)
    let bytesRead = 0
    const counted = withCalls(disk, {
      open: async (name, mode) => {
        const file = await disk.open(name, mode)
        if (name !== path) return file
        const read: DiskFile["read"] = async (target, offset, length, position) => {
          const count = await file.read(target, offset, length, position)
          bytesRead += count
          return count
        }
        return Object.assign(Object.create(file), { read })
      }
    })
    const runelog = await openSmall({ disk: counted, limits: roomy })
    const opening = { bytesRead, disk }
    expect(runelog.recovered.clean).toBe(false)
    expect(bodiesOf(await contentOf(runelog, "a"))).toEqual(bodies(120))
    expect(await keptIn(disk)).toEqual([])
    return opening
  }

  const settled = (runelog: Runelog): Promise<unknown> => runelog.read("a", { after: 119 })

  it("is read only up to there, and from its last index entry before", async () => {
    const files = await stopped(settled)
    const { bytesRead } = await reopened(files)
    const whole = await reopened(withoutIndexes(files))
    expect(bytesRead).toBeLessThan(whole.bytesRead)
  })

  it("is read from its beginning when its index does not hold", async () => {
    const files = await stopped(settled)
    const { durableBytes, index } = decodeIndex(Buffer.from(files.get(indexPath("a", 1))!))!
    const ahead = { ...index, ids: index.ids.map((eventId) => eventId + 1000) }
    const beside = { ...index, offsets: index.offsets.map((offset) => offset + 1) }
    for (const lie of [ahead, beside, { ids: [], offsets: [], crcs: [] }]) {
      await reopened(withFiles(files, { [indexPath("a", 1)]: encodeIndex({ index: lie, durableBytes }) }))
    }
  })

  it("keeps its segment as it is when that is sealed", async () => {
    const files = await stopped((runelog) => runelog.seal("a"))
    const { disk } = await reopened(files)
    expect(await readFileOf(disk, path)).toEqual(Buffer.from(files.get(path)!))
  })

  it("is made again when all of it is in the journal and what was sealed does not hold", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: roomy })
    await fill(runelog, "a", 1, 5)
    await runelog.seal("a")
    const files = await snapshotOf(disk)
    const damaged = await diskOf(withFiles(files, { [path]: flipBit(files.get(path)!, 165 * 8) }))
    const again = await openSmall({ disk: damaged, limits: roomy })
    expect(bodiesOf(await contentOf(again, "a"))).toEqual(bodies(5))
    expect(await keptIn(damaged)).toEqual([])
  })
})
