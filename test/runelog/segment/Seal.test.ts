// Goal: a seal covers what was appended, superseded deltas become ranges that no cursor stumbles over, and nothing that
// happens on the way loses an event. Method: streams and batches laid out by hand; a simulated disk that fails or stops.
// Verifies: INV-RUNE-IMMUTABLE, INV-RESUME-NO-GAPS
import { describe, expect, it } from "vitest"
import type { Entry } from "#runelog/commit/Entry.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { DiskFull, LogDamaged, LogUnknown, SegmentCorrupt, WriterPoisoned } from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
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

const delta = (stream: number): Entry => ({ body: `delta of ${stream}`, role: "delta", stream })
const final = (stream: number): Entry => ({ body: `final of ${stream}`, role: "supersedes", stream })
const plain: Entry = { body: "plain" }

/** Frames as text: an id, or a range that was dropped. */
const shape = async (runelog: Runelog, after = 0, bytesMax = 100_000): Promise<string> => {
  const { error, frames } = await contentOf(runelog, "a", { after, bytesMax })
  if (error !== undefined) throw error
  return frames
    .map((frame) => (frame.kind === "entry" ? `${frame.eventId}` : `(${frame.eventId}-${frame.lastEventId})`))
    .join(" ")
}

const append = async (runelog: Runelog, batches: ReadonlyArray<ReadonlyArray<Entry>>, from = 1): Promise<void> => {
  let next = from
  for (const batch of batches) {
    await runelog.append("a", next, batch)
    next += batch.length
  }
}

const large = { segmentBytes: 1024 * KIB }

const sealedAs = async (batches: ReadonlyArray<ReadonlyArray<Entry>>): Promise<string> => {
  const disk = makeDiskMemory()
  const runelog = await openSmall({ disk, limits: large })
  await append(runelog, batches)
  await runelog.seal("a")
  const live = await shape(runelog)
  await runelog.close()
  expect(await verify({ directory, disk })).toMatchObject({ problems: [], sealed: 1 })
  expect(await shape(await openSmall({ disk, limits: large }))).toBe(live)
  return live
}

describe("thinning", () => {
  it("drops deltas that a later frame of their stream supersedes, and no others", async () => {
    expect(await sealedAs([[delta(1)], [delta(1)], [final(1)], [plain]])).toBe("(1-2) 3 4")
    expect(await sealedAs([[plain], [delta(1)], [delta(2)], [final(1)], [delta(1)]])).toBe("1 (2-2) 3 4 5")
    expect(await sealedAs([[final(1)], [delta(1)], [plain]])).toBe("1 2 3")
    expect(await sealedAs([[delta(1)], [final(2)]])).toBe("1 2")
    expect(await sealedAs([[delta(0)], [{ body: "final of none", role: "supersedes" }]])).toBe("(1-1) 2")
  })

  it("makes one range of what lies together, streams interleaved", async () => {
    const turn = [[delta(1)], [delta(2)], [delta(1)], [delta(2)], [final(2)], [delta(1)], [final(1)]]
    expect(await sealedAs(turn)).toBe("(1-4) 5 (6-6) 7")
  })

  it("keeps the borders of batches", async () => {
    const batches = [
      [plain, delta(1), delta(1)],
      [delta(1), plain],
      [delta(1), delta(1)],
      [final(1), plain]
    ]
    expect(await sealedAs(batches)).toBe("1 (2-4) 5 (6-7) 8 9")
    expect(await sealedAs([[delta(1), delta(1), final(1)]])).toBe("(1-2) 3")
  })

  it("reaches the end of a segment", async () => {
    expect(await sealedAs([[final(1)], [delta(2)], [delta(2)], [final(2), delta(3)], [final(3)]])).toBe(
      "1 (2-3) 4 (5-5) 6"
    )
  })

  it("lets a reader go on from inside a range", async () => {
    const runelog = await openSmall({ limits: large })
    await append(runelog, [...Array.from({ length: 9 }, () => [delta(1)]), [final(1)], [plain]])
    await runelog.seal("a")
    expect(await shape(runelog, 0)).toBe("(1-9) 10 11")
    expect(await shape(runelog, 4)).toBe("(5-9) 10 11")
    expect(await shape(runelog, 8, 1)).toBe("(9-9) 10 11")
    expect(await shape(runelog, 9)).toBe("10 11")
    const hidden = await runelog.read("a", { after: 2, filter: { visibilityMax: 0, families: new Set([7]) } })
    expect(hidden.frames).toMatchObject([{ kind: "thinned", eventId: 3, lastEventId: 9 }])
  })

  it("makes the log smaller, also a large one, and keeps every other byte", async () => {
    const disk = makeDiskMemory()
    const limits = { segmentBytes: 16 * 1024 * KIB, journalFileBytes: 4 * 1024 * KIB, pageBytes: 64 * KIB }
    const runelog = await openSmall({ disk, limits })
    const body = "y".repeat(30 * KIB)
    for (let turn = 0; turn < 30; turn++) {
      const entries = [delta(1), { body, role: "delta" as const, stream: 1 }, { body: `${turn}${body}` }, final(1)]
      await runelog.append("a", turn * 4 + 1, entries)
    }
    await runelog.checkpoint()
    const before = (await readFileOf(disk, segmentPath("a", 1))).length
    await runelog.seal("a")
    expect((await readFileOf(disk, segmentPath("a", 1))).length).toBeLessThan(before * 0.6)
    const { frames } = await contentOf(runelog, "a")
    expect(frames.filter(({ kind }) => kind === "entry")).toHaveLength(60)
    for (const frame of frames)
      if (frame.eventId % 4 === 3) expect(frame.body.toString()).toBe(`${(frame.eventId - 3) / 4}${body}`)
    await runelog.close()
    expect((await verify({ directory, disk })).problems).toEqual([])
  })
})

describe("a seal", () => {
  it("is the same for the same events, and another for any other", async () => {
    const digest = async (last: string): Promise<string> => {
      const runelog = await openSmall()
      await fill(runelog, "a", 1, 40)
      await runelog.append("a", 41, [{ body: last }])
      return runelog.seal("a")
    }
    expect(await digest("x")).toBe(await digest("x"))
    expect(await digest("x")).not.toBe(await digest("y"))
  })

  it("lets the log go on, and can be made again", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 5)
    const first = await runelog.seal("a")
    expect(await runelog.seal("a")).toBe(first)
    await fill(runelog, "a", 6, 7)
    const second = await runelog.seal("a")
    expect(second).not.toBe(first)
    await runelog.close()
    const again = await openSmall({ disk })
    expect(await again.seal("a")).toBe(second)
    await again.append("a", 8, [entryOf(8)])
    expect(bodiesOf(await contentOf(again, "a"))).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((id) => entryOf(id).body))
    await again.close()
    expect(await verify({ directory, disk })).toMatchObject({ problems: [], sealed: 2 })
  })

  it("covers what was taken before it, and what comes meanwhile goes behind it", async () => {
    const runelog = await openSmall()
    const appends = [runelog.append("a", 1, [entryOf(1)]), runelog.append("a", 2, [entryOf(2)])]
    await runelog.head("a")
    const seal = runelog.seal("a")
    for (let tick = 0; tick < 10; tick++) await undefined
    appends.push(runelog.append("a", 3, [entryOf(3)]))
    await Promise.all([...appends, seal])
    expect(await runelog.head("a")).toBe(3)
    expect(bodiesOf(await contentOf(runelog, "a"))).toHaveLength(3)
  })

  it("is made of segments that rotation closed, and of what an earlier process left", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, limits: { segmentBytes: 500 } })
    await fill(runelog, "a", 1, 40)
    const killed = disk.killProcess()
    const again = await openSmall({ disk: killed, limits: { segmentBytes: 500 } })
    await fill(again, "a", 41, 50)
    await again.close()
    const { problems, sealed, segments } = await verify({ directory, disk: killed })
    expect(problems).toEqual([])
    expect(sealed).toBe(segments - 1)
    expect(segments).toBeGreaterThan(5)
  })

  it("seals several segments that were left unsealed, each chained to the one before", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: { segmentBytes: 500 } })
    await fill(runelog, "a", 1, 30)
    await runelog.close()
    // As if no seal had ever been made: each is cut off again, with the indexes that promise it.
    const files = await snapshotOf(disk)
    const unsealed = new Map([...files].filter(([path]) => !path.endsWith(".idx")))
    for (const [path, content] of unsealed) {
      const at = Buffer.from(content).lastIndexOf('{"frames"')
      if (path.endsWith(".seg") && at > 0) unsealed.set(path, content.subarray(0, at - 32))
    }
    const again = await openSmall({ disk: await diskOf(unsealed), limits: { segmentBytes: 500 } })
    const digest = await again.seal("a")
    const whole = await openSmall({ disk, limits: { segmentBytes: 500 } })
    expect(await whole.seal("a")).toBe(digest)
  })

  it("that a removal overtakes is of a log that is gone", async () => {
    const disk = makeDiskMemory()
    const limits = { segmentBytes: 500 }
    const first = await openSmall({ disk, limits })
    await fill(first, "a", 1, 30)
    await first.close()
    const [reached, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const held = withCalls(disk, {
      open: async (path, mode) => {
        if (path === segmentPath("a", 1)) {
          reached.resolve()
          await release.promise
        }
        return disk.open(path, mode)
      }
    })
    const runelog = await openSmall({ disk: held, limits })
    const seal = errorOf(runelog.seal("a"))
    await reached.promise
    const removal = runelog.remove("a")
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setImmediate(resolve))
    release.resolve()
    expect(await seal).toEqual(new LogUnknown({ log: "a" }))
    await removal
    expect(await runelog.list()).toEqual([])
  })

  it("of nothing durable is refused", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    disk.failNext("write", { code: "ENOSPC" })
    const append = errorOf(runelog.append("a", 1, [plain]))
    await runelog.head("a")
    expect(await errorOf(runelog.seal("a"))).toEqual(new LogUnknown({ log: "a" }))
    expect(await append).toBeInstanceOf(DiskFull)
  })
})

describe("a seal that finds", () => {
  const thinnable = async (disk: DiskSim): Promise<Runelog> => {
    const runelog = await openSmall({ disk, limits: large })
    await append(runelog, [[delta(1)], [delta(1)], [final(1)], [plain]])
    await runelog.checkpoint()
    return runelog
  }

  it("no room leaves the log as it was, and no copy", async () => {
    const disk = new DiskSim()
    const runelog = await thinnable(disk)
    disk.capacityBytes = disk.usedBytes
    expect(await errorOf(runelog.seal("a"))).toBeInstanceOf(DiskFull)
    expect((await disk.list(`${directory}/runelog/a`)).filter(({ name }) => name.endsWith(".tmp"))).toEqual([])
    expect(await shape(runelog)).toBe("1 2 3 4")
    disk.capacityBytes = Number.POSITIVE_INFINITY
    await runelog.append("a", 5, [plain])
    await runelog.seal("a")
    expect(await shape(runelog)).toBe("(1-2) 3 4 5")
  })

  it("no room to exchange the files goes on without the index it took away, and can be made again", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, limits: { ...large, indexEveryFrames: 1 } })
    const deltas = Array.from({ length: 19 }, () => [delta(1)])
    await append(runelog, [...deltas, [final(1)]])
    await runelog.checkpoint()
    expect(await disk.exists(indexPath("a", 1))).toBe(true)
    // So that the index that is taken away speaks of less than the segment holds.
    await append(runelog, [[plain], [plain]], 21)
    disk.failNext("rename", { code: "ENOSPC" })
    expect(await errorOf(runelog.seal("a"))).toBeInstanceOf(DiskFull)
    expect(await disk.exists(indexPath("a", 1))).toBe(false)
    expect(await disk.exists(`${segmentPath("a", 1)}.tmp`)).toBe(true)
    const stopped = disk.crash(1)
    await runelog.seal("a")
    expect(await shape(runelog)).toBe("(1-19) 20 21 22")
    await runelog.close()
    const after = await openSmall({ disk: stopped, limits: large })
    expect(await shape(after)).toBe(Array.from({ length: 22 }, (_, at) => at + 1).join(" "))
    expect(await stopped.exists(`${segmentPath("a", 1)}.tmp`)).toBe(false)
  })

  it("no room to exchange the files leaves a writer that closes in order", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, limits: { ...large, indexEveryFrames: 1 } })
    await append(runelog, [...Array.from({ length: 19 }, () => [delta(1)]), [final(1)]])
    await runelog.checkpoint()
    await append(runelog, [[plain]], 21)
    disk.failNext("rename", { code: "ENOSPC" })
    expect(await errorOf(runelog.seal("a"))).toBeInstanceOf(DiskFull)
    await runelog.close()
    expect(await verify({ directory, disk })).toMatchObject({ problems: [], entries: 21 })
    expect((await openSmall({ disk })).recovered.clean).toBe(true)
  })

  it("no room for the seal itself can be made again", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 3)
    await runelog.checkpoint()
    disk.failNext("write", { code: "ENOSPC", partialBytes: 50 })
    expect(await errorOf(runelog.seal("a"))).toBeInstanceOf(DiskFull)
    expect(await runelog.seal("a")).toMatch(/^[0-9a-f]{64}$/)
    await runelog.close()
    expect((await verify({ directory, disk })).problems).toEqual([])
  })

  it("a sync that fails ends the writer, and loses nothing", async () => {
    for (const entries of [[[plain]], [[delta(1)], [final(1)]]]) {
      const disk = new DiskSim()
      const runelog = await openSmall({ disk, limits: large })
      await append(runelog, entries)
      await runelog.checkpoint()
      disk.failNext("sync", { code: "EIO" })
      expect(await errorOf(runelog.seal("a"))).toBeInstanceOf(WriterPoisoned)
      expect(runelog.poisoned).toBeInstanceOf(WriterPoisoned)
      await runelog.close()
      const after = await openSmall({ disk: disk.killProcess(), limits: large })
      expect(await after.head("a")).toBe(entries.length)
    }
  })

  it("a directory that cannot be synced ends the writer", async () => {
    for (const after of [0, 1]) {
      const disk = new DiskSim()
      const runelog = await thinnable(disk)
      await runelog.close()
      const again = await openSmall({ disk, limits: large })
      await again.head("a")
      disk.failNext("syncDirectory", { code: "EIO", after })
      expect(await errorOf(again.seal("a"))).toBeInstanceOf(WriterPoisoned)
    }
  })

  it("room for no index is made without one", async () => {
    const disk = new DiskSim()
    const runelog = await thinnable(disk)
    disk.failNext("create", { code: "ENOSPC", after: 1 })
    await runelog.seal("a")
    expect(await disk.exists(indexPath("a", 1))).toBe(false)
    expect(await shape(runelog)).toBe("(1-2) 3 4")
  })

  it("damage names it and closes the log", async () => {
    for (const entries of [
      [[plain], [plain]],
      [[delta(1)], [final(1)]]
    ]) {
      const disk = makeDiskMemory()
      const runelog = await openSmall({ disk, limits: { ...large, openFilesMax: 0 } })
      await append(runelog, entries)
      await runelog.checkpoint()
      const path = segmentPath("a", 1)
      await writeFileOf(disk, path, (await readFileOf(disk, path)).subarray(0, 140))
      expect(await errorOf(runelog.seal("a"))).toMatchObject({ _tag: "SegmentCorrupt", file: path })
      expect(await errorOf(runelog.append("a", 3, [plain]))).toBeInstanceOf(LogDamaged)
    }
  })

  it("a file that ends with a frame, but too early, names it", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: { ...large, openFilesMax: 0 } })
    await append(runelog, [[delta(1)], [final(1)], [plain]])
    await runelog.checkpoint()
    const path = segmentPath("a", 1)
    const whole = await readFileOf(disk, path)
    const end = 128 + 32 + Buffer.byteLength(delta(1).body as string)
    await writeFileOf(disk, path, whole.subarray(0, end))
    expect(await errorOf(runelog.seal("a"))).toEqual(
      new SegmentCorrupt({
        log: "a",
        file: path,
        offset: end,
        reason: "the file is shorter than what was written to it"
      })
    )
  })

  it("a frame that rotted under it names it", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: large })
    await append(runelog, [[delta(1)], [final(1)]])
    await runelog.checkpoint()
    const path = segmentPath("a", 1)
    await writeFileOf(disk, path, flipBit(await readFileOf(disk, path), 165 * 8))
    expect(await errorOf(runelog.seal("a"))).toMatchObject({
      _tag: "SegmentCorrupt",
      offset: 128,
      reason: "checksum mismatch"
    })
  })

  it("a file that is cut while it is copied names it", async () => {
    const disk = makeDiskMemory()
    const path = segmentPath("a", 1)
    let scans = 0
    const cutting = withCalls(disk, {
      open: async (place, mode) => {
        const file = await disk.open(place, mode)
        if (place !== path) return file
        return {
          ...file,
          read: async (target, offset, length, position) => {
            scans += position === 128 ? 1 : 0
            return scans > 1 && position === 128 ? 0 : file.read(target, offset, length, position)
          }
        }
      }
    })
    const runelog = await openSmall({ disk: cutting, limits: large })
    await append(runelog, [[delta(1)], [final(1)]])
    expect(await errorOf(runelog.seal("a"))).toBeInstanceOf(SegmentCorrupt)
  })

  it("damage behind commits closes that log and no other, and the writer goes on", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: { segmentBytes: 800, openFilesMax: 0 } })
    const body = "x".repeat(700)
    await runelog.append("a", 1, [{ body }])
    await runelog.checkpoint()
    const path = segmentPath("a", 1)
    await writeFileOf(disk, path, (await readFileOf(disk, path)).subarray(0, 400))
    // The next entry starts another segment, and so the seal of the one that was cut.
    await runelog.append("a", 2, [{ body }])
    while (!(await disk.exists(`${directory}/quarantine/a.json`))) await new Promise((resolve) => setImmediate(resolve))
    expect(await errorOf(runelog.append("a", 3, [plain]))).toMatchObject({ _tag: "LogDamaged", file: path })
    await runelog.append("b", 1, [plain])
    expect(runelog.poisoned).toBeUndefined()
    await runelog.close()
  })

  it("damage in an earlier segment leaves the rest unsealed", async () => {
    const disk = makeDiskMemory()
    const limits = { segmentBytes: 500 }
    const runelog = await openSmall({ disk, limits })
    await fill(runelog, "a", 1, 30)
    await runelog.close()
    const files = await snapshotOf(disk)
    const path = segmentPath("a", 1)
    const index = indexPath("a", 1)
    const damaged = withFiles(files, { [path]: files.get(path)!.subarray(0, 300), [index]: undefined })
    const again = await openSmall({ disk: await diskOf(damaged), limits })
    expect(await errorOf(again.seal("a"))).toMatchObject({ _tag: "SegmentCorrupt", file: path })
    expect(await errorOf(again.append("a", 31, [plain]))).toBeInstanceOf(LogDamaged)
  })
})

describe("readers", () => {
  it("read on while a seal exchanges the files under them", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: { segmentBytes: 2000 } })
    for (let turn = 0; turn < 30; turn++) await runelog.append("a", turn * 3 + 1, [delta(1), plain, final(1)])
    const reads = Array.from({ length: 20 }, (_, at) => contentOf(runelog, "a", { after: at, bytesMax: 150 }))
    await Promise.all([runelog.seal("a"), ...reads])
    for (const read of reads) {
      const { error, frames } = await read
      expect(error).toBeUndefined()
      expect(frames.at(-1)!.lastEventId).toBe(90)
    }
  })
})
