// Goal: pages continue each other from any cursor, whatever their size, from memory and from disk, and filters leave out
// nothing else. Method: logs of several segments, read in every way; indexes and files that lie.
// Verifies: INV-RESUME-NO-GAPS, INV-RESUME-NO-DUPLICATES
import { describe, expect, it } from "vitest"
import { Slabs } from "#runelog/commit/Slabs.ts"
import type { Disk } from "#runelog/disk/Disk.ts"
import { bytesOf, FRAME_HEADER_BYTES, frameBytes, frameKind, sealFrame } from "#runelog/Frame.ts"
import { emptyLog } from "#runelog/LogState.ts"
import { resolveLimits } from "#runelog/Options.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { CursorBeyondEnd, LogDamaged, LogUnknown, ReadInvalid, SegmentCorrupt } from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { sealedFiles } from "#runelog/recovery/Import.ts"
import { Quarantine } from "#runelog/recovery/Quarantine.ts"
import { FileCache } from "#runelog/segment/FileCache.ts"
import { decodeIndex, encodeIndex } from "#runelog/segment/IndexFile.ts"
import { unopened } from "#runelog/segment/OpenSegment.ts"
import { type RawPage, readPage, readRaw } from "#runelog/segment/Reader.ts"
import { SegmentStore } from "#runelog/segment/SegmentStore.ts"
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
  segmentPath,
  snapshotOf,
  withCalls,
  withFiles,
  writeFileOf
} from "../Fixture.ts"

const bodies = (from: number, to: number): ReadonlyArray<unknown> =>
  Array.from({ length: to - from + 1 }, (_, at) => entryOf(from + at).body)

const inMemory = { segmentWriteBytes: 1024 * KIB }

const written = async (events: number, options: Parameters<typeof openSmall>[0] = {}): Promise<Runelog> => {
  const runelog = await openSmall(options)
  await fill(runelog, "a", 1, events)
  return runelog
}

describe.each([
  ["memory", async () => written(80, { limits: inMemory })],
  [
    "disk",
    async () => {
      const runelog = await written(80)
      await runelog.checkpoint()
      return runelog
    }
  ],
  ["both", async () => written(80)],
  [
    "disk after a restart",
    async () => {
      const disk = makeDiskMemory()
      await (await written(80, { disk })).close()
      return openSmall({ disk })
    }
  ]
])("pages from %s", (_, open) => {
  it("give every event from every cursor once, in order, whatever their size", async () => {
    const runelog = await open()
    for (const bytesMax of [0, 1, 33, 200, 5000, 10_000_000, Number.POSITIVE_INFINITY]) {
      for (const after of [0, 1, 37, 78, 79, 80]) {
        const content = await contentOf(runelog, "a", { after, bytesMax })
        expect(content.error).toBeUndefined()
        expect(bodiesOf(content)).toEqual(bodies(after + 1, 80))
        expect(content.frames.map(({ eventId, lastEventId }) => lastEventId - eventId)).toEqual(
          content.frames.map(() => 0)
        )
      }
    }
  })

  it("hold about as much as was asked for", async () => {
    const runelog = await open()
    const page = await runelog.read("a", { after: 0, bytesMax: 500 })
    expect(page.frames.length).toBeGreaterThan(1)
    expect(page.frames.reduce((sum, { body }) => sum + body.length + 32, 0)).toBeLessThanOrEqual(500 + 200)
    expect(page).toMatchObject({ next: page.frames.at(-1)!.eventId, head: 80 })
  })

  it("leave out what a filter excludes, and move over it", async () => {
    const runelog = await open()
    const content = await contentOf(runelog, "a", { filter: { families: new Set([3]) }, bytesMax: 300 })
    expect(content.frames.map(({ eventId }) => eventId)).toEqual(
      bodies(1, 80).flatMap((__, at) => ((at + 1) % 4 === 3 ? [at + 1] : []))
    )
    const none = await runelog.read("a", { after: 0, filter: { visibilityMax: 0, families: new Set([9]) } })
    expect(none.frames).toEqual([])
    expect(none.next).toBeGreaterThan(0)
  })

  it("are empty at the head, and refused beyond it", async () => {
    const runelog = await open()
    expect(await runelog.read("a", { after: 80 })).toEqual({ frames: [], next: 80, head: 80 })
    expect(await errorOf(runelog.read("a", { after: 81 }))).toEqual(
      new CursorBeyondEnd({ log: "a", after: 81, head: 80 })
    )
  })

  it("are refused when they make no sense", async () => {
    const runelog = await open()
    for (const after of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(await errorOf(runelog.read("a", { after }))).toEqual(
        new ReadInvalid({ log: "a", field: "after", value: after })
      )
    }
    for (const bytesMax of [-1, 0.5, Number.NaN]) {
      expect(await errorOf(runelog.read("a", { after: 0, bytesMax }))).toBeInstanceOf(ReadInvalid)
    }
  })
})

describe("visibility", () => {
  it("is kept and filtered by", async () => {
    const runelog = await openSmall()
    for (const [at, visibility] of [0, 1, 2, 1, 0].entries()) {
      await runelog.append("a", at + 1, [{ body: "x", visibility, stream: at, family: 200 }])
    }
    const ids = async (visibilityMax: number) =>
      (await contentOf(runelog, "a", { filter: { visibilityMax } })).frames.map(({ eventId }) => eventId)
    expect(await ids(0)).toEqual([1, 5])
    expect(await ids(1)).toEqual([1, 2, 4, 5])
    expect(await ids(2)).toEqual([1, 2, 3, 4, 5])
    const { frames } = await contentOf(runelog, "a")
    expect(frames.map(({ family, stream, visibility }) => [visibility, stream, family])).toEqual([
      [0, 0, 200],
      [1, 1, 200],
      [2, 2, 200],
      [1, 3, 200],
      [0, 4, 200]
    ])
  })
})

describe("a frame larger than a page", () => {
  it("is a page of its own", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    await runelog.append("a", 1, [{ body: "small" }])
    await runelog.append("a", 2, [{ body: "x".repeat(20_000) }])
    await runelog.append("a", 3, [{ body: "small" }])
    for (const step of ["before", "after"]) {
      const pages: Array<number> = []
      for (let after = 0; after < 3; ) {
        const page = await runelog.read("a", { after, bytesMax: 100 })
        pages.push(page.frames.length)
        after = page.next
      }
      expect(pages, step).toEqual([1, 1, 1])
      await runelog.checkpoint()
    }
  })
})

describe("a batch in memory", () => {
  it("is read in pages that end between its frames, and go on there", async () => {
    const runelog = await openSmall({ limits: inMemory })
    await runelog.append("a", 1, [entryOf(1), entryOf(2), entryOf(3), entryOf(4), entryOf(5), entryOf(6)])
    await runelog.append("a", 7, [entryOf(7), entryOf(8)])
    for (const bytesMax of [0, 1, 60, 100, 150, 300, 10_000]) {
      expect(bodiesOf(await contentOf(runelog, "a", { bytesMax }))).toEqual(bodies(1, 8))
    }
    const page = await runelog.read("a", { after: 1, bytesMax: 100 })
    expect(page.frames.map(({ eventId }) => eventId)).toEqual([2, 3])
    expect(page.next).toBe(3)
  })
})

describe("a raw page", () => {
  /** The bodies that lie in a page. */
  const framesOf = ({ buffer, end, start, view }: RawPage): ReadonlyArray<string> => {
    const found: Array<string> = []
    for (let at = start; at < end; at += frameBytes(view, at)) {
      found.push(buffer.toString("utf8", at + FRAME_HEADER_BYTES, at + frameBytes(view, at)))
    }
    return found
  }

  it("lies in the buffer it was asked into, and pages continue each other", async () => {
    const runelog = await written(40)
    await runelog.checkpoint()
    const into = Buffer.alloc(500)
    const seen: Array<string> = []
    let after = 0
    while (after < 40) {
      const page = (await runelog.readRaw("a", { after, into }))!
      expect(page.buffer).toBe(into)
      expect(page).toMatchObject({ wanted: after + 1, head: 40 })
      seen.push(...framesOf(page))
      after = page.next
    }
    expect(seen).toEqual(bodies(1, 40))
    expect(await runelog.readRaw("a", { after: 40, into })).toBeUndefined()
  })

  it("has a buffer of its own where a frame does not fit", async () => {
    const runelog = await openSmall()
    await runelog.append("a", 1, [{ body: "x".repeat(900) }])
    await runelog.checkpoint()
    for (const into of [Buffer.alloc(10), Buffer.alloc(500)]) {
      const page = (await runelog.readRaw("a", { after: 0, into }))!
      expect(page.buffer).not.toBe(into)
      expect(framesOf(page)).toEqual(["x".repeat(900)])
    }
  })

  it("is nothing where memory has the frames, and refused like any page", async () => {
    const runelog = await written(5, { limits: inMemory })
    const into = Buffer.alloc(500)
    expect(await runelog.readRaw("a", { after: 0, into })).toBeUndefined()
    expect(await errorOf(runelog.readRaw("a", { after: 6, into }))).toBeInstanceOf(CursorBeyondEnd)
    expect(await errorOf(runelog.readRaw("a", { after: -1, into }))).toBeInstanceOf(ReadInvalid)
    expect(await errorOf(runelog.readRaw("b", { after: 0, into }))).toEqual(new LogUnknown({ log: "b" }))
  })

  it("ends before damage, and the next is the damage", async () => {
    const { files } = await closedFiles()
    const path = segmentPath("a", 1)
    const disk = await diskOf(withFiles(files, { [path]: flipBit(files.get(path)!, (offsetOf(10) + 40) * 8) }))
    const runelog = await openSmall({ disk })
    const into = Buffer.alloc(4096)
    const page = (await runelog.readRaw("a", { after: 0, into }))!
    expect(framesOf(page)).toEqual(bodies(1, 9))
    expect(await errorOf(runelog.readRaw("a", { after: page.next, into }))).toBeInstanceOf(SegmentCorrupt)
    expect(await errorOf(runelog.append("a", 61, [{ body: "no" }]))).toBeInstanceOf(LogDamaged)
  })
})

describe("readers at once", () => {
  it("open the segments of a log together and agree", async () => {
    const disk = makeDiskMemory()
    await (await written(120, { disk })).close()
    const runelog = await openSmall({ disk, limits: { openFilesMax: 1 } })
    const cursors = Array.from({ length: 120 }, (_, at) => (at * 37) % 120)
    const contents = await Promise.all(cursors.map((after) => contentOf(runelog, "a", { after, bytesMax: 700 })))
    for (const [at, content] of contents.entries()) {
      expect(content.error).toBeUndefined()
      expect(bodiesOf(content)).toEqual(bodies(cursors[at]! + 1, 120))
    }
  })
})

describe("a reader and a removal", () => {
  const limits = { segmentBytes: 800 }

  /** A closed log on a disk that, once told to, holds whoever asks for the size of its first segment. */
  const holding = async () => {
    const disk = makeDiskMemory()
    await (await written(40, { disk, limits })).close()
    const [reached, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const hold = { isOn: false, reached: reached.promise, release: release.resolve }
    const held = withCalls(disk, {
      open: async (path, mode) => {
        const file = await disk.open(path, mode)
        const size = async (): Promise<number> => {
          if (!hold.isOn) return file.size()
          reached.resolve()
          await release.promise
          return file.size()
        }
        return path === segmentPath("a", 1) ? { ...file, size } : file
      }
    })
    return { disk, hold, runelog: await openSmall({ disk: held, limits }) }
  }

  it("come in that order: a page that was begun is finished before the files go", async () => {
    const { disk, hold, runelog } = await holding()
    hold.isOn = true
    const page = runelog.read("a", { after: 0, bytesMax: 200 })
    await hold.reached
    let isGone = false
    const removal = runelog.remove("a").then(() => {
      isGone = true
    })
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
    expect(isGone).toBe(false)
    // Who comes now is told at once.
    expect(await errorOf(runelog.read("a", { after: 0 }))).toEqual(new LogUnknown({ log: "a" }))
    hold.release()
    expect((await page).frames[0]!.body.toString()).toBe(entryOf(1).body)
    await removal
    expect(await disk.exists(segmentPath("a", 1))).toBe(false)
    await runelog.append("a", 1, [{ body: "second life" }])
    expect(bodiesOf(await contentOf(runelog, "a"))).toEqual(["second life"])
  })

  it("also where somebody lists the segments to copy them", async () => {
    const { hold, runelog } = await holding()
    const firstIds = (await runelog.sealedFiles("a")).map(({ firstEventId }) => firstEventId)
    expect(firstIds.length).toBeGreaterThan(3)
    hold.isOn = true
    const listed = runelog.sealedFiles("a")
    await hold.reached
    const removal = runelog.remove("a")
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
    hold.release()
    expect((await listed).map(({ firstEventId }) => firstEventId)).toEqual(firstIds)
    await removal
    expect(await errorOf(runelog.sealedFiles("a"))).toEqual(new LogUnknown({ log: "a" }))
  })

  it("in the other order: a reader that gets its turn behind a removal is told that the log is unknown", async () => {
    const disk = makeDiskMemory()
    const log = Object.assign(emptyLog("a"), { durableEventId: 5, writtenEventId: 5 })
    log.segments.push(unopened(1))
    const resolved = resolveLimits({})
    const files = new FileCache(disk, 1)
    const slabs = new Slabs(resolved.slabBytes)
    const store = new SegmentStore({ disk, directory, files, slabs, limits: resolved, onSynced: () => undefined })
    const options = {
      disk,
      files,
      store,
      quarantine: new Quarantine(disk, directory),
      limits: resolved,
      onDamage: () => undefined
    }
    const waiting: Array<Promise<unknown>> = []
    await log.gate.exclusive(async () => {
      waiting.push(errorOf(readPage(options, log, { after: 0, bytesMax: 100 })))
      waiting.push(errorOf(readRaw(options, log, { after: 0, into: Buffer.alloc(100) })))
      waiting.push(errorOf(sealedFiles(options, log)))
      await store.discard(log)
    })
    const unknown = new LogUnknown({ log: "a" })
    expect(await Promise.all(waiting)).toEqual([unknown, unknown, unknown])
  })
})

const closedFiles = async () => {
  const disk = makeDiskMemory()
  await (await written(60, { disk })).close()
  const files = await snapshotOf(disk)
  const firstIds = [...files.keys()].flatMap((path) =>
    path.endsWith(".seg") ? [Number.parseInt(path.slice(-20), 10)] : []
  )
  return { files, firstIds }
}

describe("an index that lies", () => {
  it("is found out, and the segment read without it", async () => {
    const { files, firstIds } = await closedFiles()
    for (const firstEventId of firstIds.slice(0, 2)) {
      const path = indexPath("a", firstEventId)
      const content = decodeIndex(Buffer.from(files.get(path)!))!
      const { crcs, ids, offsets } = content.index
      const lies = [
        { ...content.index, offsets: offsets.map((offset, at) => (at === 1 ? offset + 5 : offset)) },
        { ...content.index, crcs: crcs.map((crc, at) => (at === 1 ? crc ^ 1 : crc)) },
        { ...content.index, ids: ids.map((id, at) => (at === 1 ? id + 1 : id)) },
        { ...content.index, offsets: offsets.map((offset) => offset + 3) },
        // True as far as it goes, but it does not say where the segment begins.
        { ids: ids.slice(1), offsets: offsets.slice(1), crcs: crcs.slice(1) }
      ]
      for (const index of lies) {
        const disk = await diskOf(withFiles(files, { [path]: encodeIndex({ ...content, index }) }))
        const runelog = await openSmall({ disk })
        for (const after of [0, firstEventId, firstEventId + 3, firstEventId + 5]) {
          const found = await contentOf(runelog, "a", { after, bytesMax: 200 })
          expect(found.error).toBeUndefined()
          expect(bodiesOf(found)).toEqual(bodies(after + 1, 60))
        }
        await runelog.append("a", 61, [{ body: "x" }])
      }
    }
  })
})

/** The frame of an event in the first segment, by the sizes of those before it. */
const offsetOf = (eventId: number): number => {
  let offset = 128
  for (let id = 1; id < eventId; id++) offset += 32 + Buffer.byteLength(entryOf(id).body as string)
  return offset
}

describe("damage that is found while reading", () => {
  it("ends the good prefix with its place, closes the log for appends, and is remembered", async () => {
    const { files } = await closedFiles()
    const path = segmentPath("a", 1)
    const disk = await diskOf(withFiles(files, { [path]: flipBit(files.get(path)!, (offsetOf(10) + 40) * 8) }))
    for (let start = 0; start < 2; start++) {
      const runelog = await openSmall({ disk })
      const content = await contentOf(runelog, "a")
      expect(bodiesOf(content)).toEqual(bodies(1, 9))
      expect(content.error).toEqual(
        new SegmentCorrupt({ log: "a", file: path, offset: offsetOf(10), reason: "checksum mismatch" })
      )
      expect(await errorOf(runelog.append("a", 61, [{ body: "no" }]))).toBeInstanceOf(LogDamaged)
      expect(await errorOf(runelog.seal("a"))).toBeInstanceOf(LogDamaged)
      // Whoever has what is before can read what is behind.
      const behind = await contentOf(runelog, "a", { after: 30 })
      expect(bodiesOf(behind)).toEqual(bodies(31, 60))
      expect(behind.error).toBeInstanceOf(SegmentCorrupt)
      await runelog.close()
    }
  })

  it("is a file that ends inside the header of a frame", async () => {
    const disk = makeDiskMemory()
    const runelog = await written(60, { disk, limits: { openFilesMax: 0 } })
    await runelog.checkpoint()
    const path = segmentPath("a", 1)
    await writeFileOf(disk, path, (await readFileOf(disk, path)).subarray(0, offsetOf(10) + 10))
    const content = await contentOf(runelog, "a", { bytesMax: 1 })
    expect(bodiesOf(content)).toEqual(bodies(1, 9))
    expect(content.error).toEqual(
      new SegmentCorrupt({ log: "a", file: path, offset: offsetOf(10), reason: "the file ends inside a frame" })
    )
  })

  it("is a seal in the middle of a segment, though its checksum and its chain hold", async () => {
    const { files } = await closedFiles()
    const path = segmentPath("a", 1)
    const bytes = bytesOf(Buffer.from(files.get(path)!))
    const at = offsetOf(10)
    sealFrame(bytes, at, bytes.view.getUint32(at + 8, true), {
      flags: 0,
      kind: frameKind.seal,
      family: 0,
      stream: 0,
      eventId: 10,
      previousCrc: bytes.view.getUint32(at + 20, true)
    })
    const runelog = await openSmall({ disk: await diskOf(withFiles(files, { [path]: bytes.buffer })) })
    const content = await contentOf(runelog, "a")
    expect(bodiesOf(content)).toEqual(bodies(1, 9))
    expect(content.error).toEqual(
      new SegmentCorrupt({ log: "a", file: path, offset: at, reason: "a seal before the end" })
    )
  })

  it("counts though the note of it cannot be written", async () => {
    const { files } = await closedFiles()
    const path = segmentPath("a", 1)
    const disk = await diskOf(withFiles(files, { [path]: flipBit(files.get(path)!, (offsetOf(10) + 40) * 8) }))
    const refusing = withCalls(disk, {
      makeDirectory: async (place) => {
        if (place.endsWith("quarantine")) throw new Error("read-only")
        return disk.makeDirectory(place)
      }
    })
    const runelog = await openSmall({ disk: refusing })
    expect((await contentOf(runelog, "a")).error).toBeInstanceOf(SegmentCorrupt)
    expect(await errorOf(runelog.append("a", 61, [{ body: "no" }]))).toBeInstanceOf(LogDamaged)
  })

  it("is told at any cursor where nothing is left to read", async () => {
    const { files } = await closedFiles()
    const path = segmentPath("a", 1)
    const disk = await diskOf(withFiles(files, { [path]: flipBit(files.get(path)!, 100 * 8) }))
    const runelog = await openSmall({ disk })
    expect(await errorOf(runelog.read("a", { after: 0 }))).toMatchObject({
      _tag: "SegmentCorrupt",
      file: path,
      offset: 0
    })
    expect(await errorOf(runelog.read("a", { after: 99 }))).toBeInstanceOf(SegmentCorrupt)
  })

  it("is a file that is gone, or shorter than what was written to it", async () => {
    const disk: Disk = makeDiskMemory()
    const runelog = await written(60, { disk, limits: { openFilesMax: 0 } })
    await runelog.checkpoint()
    const path = segmentPath("a", 1)
    await writeFileOf(disk, path, (await readFileOf(disk, path)).subarray(0, 400))
    const short = await contentOf(runelog, "a")
    expect(short.error).toMatchObject({ _tag: "SegmentCorrupt", file: path, reason: "the file ends inside a frame" })
    const other = await openSmall()
    await other.append("b", 1, [{ body: "x" }])
    const gone = makeDiskMemory()
    const third = await written(60, { disk: gone, limits: { openFilesMax: 0 } })
    await third.checkpoint()
    await gone.remove(path)
    expect(await errorOf(third.read("a", { after: 0 }))).toEqual(
      new SegmentCorrupt({ log: "a", file: path, offset: 0, reason: "the file is missing" })
    )
  })
})
