// Goal: a directory opens with everything that was acknowledged or not at all, by name, and gives back what it took. Method:
// directories stopped, altered and taken apart by hand.
import { describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import * as Errors from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { PACKED_VERSION } from "#runelog/segment/Segment.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import {
  contentOf,
  directory,
  diskOf,
  entryOf,
  errorOf,
  fill,
  flipBit,
  journalPath,
  openSmall,
  readFileOf,
  type Snapshot,
  segmentPath,
  snapshotOf,
  withCalls,
  withFiles,
  writeFileOf
} from "../Fixture.ts"

const unclean = async (events = 6): Promise<Snapshot> => {
  const disk = makeDiskMemory()
  const runelog = await openSmall({ disk })
  await fill(runelog, "a", 1, events)
  return snapshotOf(disk)
}

const resealed = (
  content: Uint8Array,
  at: number,
  version: number,
  range: readonly [number, number],
  crcAt: number
): Buffer => {
  const copy = Buffer.from(content)
  copy.writeUInt16LE(version, at)
  copy.writeUInt32LE(crc32c(copy, range[0], range[1], 0), crcAt)
  return copy
}

describe("a directory", () => {
  it("is made durable with all that leads to it", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    await runelog.append("a", 1, [{ body: "x" }])
    for (let seed = 0; seed < 30; seed++) expect(await (await openSmall({ disk: disk.crash(seed) })).head("a")).toBe(1)
  })

  it("is made durable also where what leads to it cannot be opened", async () => {
    const disk = makeDiskMemory()
    const refusing = withCalls(disk, {
      syncDirectory: async (path) => {
        if (path === "/") throw Object.assign(new Error("no"), { code: "EACCES" })
        return disk.syncDirectory(path)
      }
    })
    await (await openSmall({ disk: refusing })).close()
    const broken = new DiskSim()
    broken.failNext("syncDirectory", { code: "EIO" })
    expect(await errorOf(openSmall({ disk: broken }))).toBeInstanceOf(Errors.DiskFailed)
  })

  it("says what it recovered, and that a close was clean", async () => {
    const disk = await diskOf(await unclean())
    const runelog = await openSmall({ disk })
    expect(runelog.recovered).toMatchObject({ clean: false, batches: 6, logs: ["a"] })
    await runelog.close()
    expect((await openSmall({ disk })).recovered).toEqual({ clean: true, batches: 0, frames: 0, logs: [] })
  })

  it("opens with journal files of another size, and with unfinished ones", async () => {
    const disk = await diskOf(await unclean())
    await writeFileOf(disk, `${journalPath(9)}.tmp`, Buffer.from("half"))
    const runelog = await openSmall({ disk, limits: { journalFileBytes: 96 * KIB } })
    expect(await runelog.head("a")).toBe(6)
    await fill(runelog, "a", 7, 9)
    const names = (await disk.list(`${directory}/journal`)).map(({ name }) => name)
    // The name between was that of the copy of the last batch.
    expect(names).toEqual(["00000003.jnl"])
    expect((await readFileOf(disk, `${directory}/journal/${names[0]}`)).length).toBe(96 * KIB)
  })

  it("loses nothing through a power cut after the size of its journal files was changed", async () => {
    const disk = new DiskSim()
    const first = await openSmall({ disk })
    await fill(first, "a", 1, 6)
    await first.close()
    for (const journalFileBytes of [96 * KIB, 64 * KIB, 128 * KIB]) {
      const runelog = await openSmall({ disk, limits: { journalFileBytes } })
      const head = await runelog.head("a")
      await fill(runelog, "a", head + 1, head + 5)
      for (let seed = 0; seed < 10; seed++) {
        const after = await openSmall({ disk: disk.crash(seed), limits: { journalFileBytes } })
        expect(after.readOnly).toBeUndefined()
        expect(await after.head("a")).toBe(head + 5)
      }
      await runelog.close()
    }
  })

  it("keeps a copy of the batch that was never finished", async () => {
    const files = await unclean()
    const disk = await diskOf(
      withFiles(files, { [journalPath()]: flipBit(files.get(journalPath())!, (6 * 4096 + 80) * 8) })
    )
    const runelog = await openSmall({ disk })
    expect(await runelog.head("a")).toBeGreaterThanOrEqual(5)
    const kept = (await disk.list(`${directory}/quarantine`)).map(({ name }) => name)
    expect(kept).toEqual([expect.stringMatching(/^journal-batch-\d+\.24576\.cut$/)])
  })

  it("can be told to have a defect, so that tests can show they find it", async () => {
    const files = await unclean()
    const runelog = await openSmall({
      disk: await diskOf(files),
      defect: "recovery drops the last batch"
    })
    expect(runelog.recovered.batches).toBe(5)
  })
})

describe("a directory is refused", () => {
  it("in another format, by the file that has it", async () => {
    const files = await unclean()
    const meta = `${directory}/meta`
    const newer = Buffer.from(files.get(meta)!)
    for (const slot of [0, 4096]) {
      newer.writeUInt32LE(9, slot + 12)
      newer.writeUInt32LE(crc32c(newer.subarray(slot), 12, 96, 0), slot + 8)
    }
    const cases: ReadonlyArray<[string, Buffer]> = [
      [meta, newer],
      [journalPath(), resealed(files.get(journalPath())!, 12, 9, [12, 64], 8)]
    ]
    for (const [file, content] of cases) {
      const disk = await diskOf(withFiles(files, { [file]: content }))
      expect(await errorOf(openSmall({ disk }))).toEqual(
        new Errors.FormatUnsupported({ file, version: 9, supported: 1 })
      )
      expect(await errorOf(openSmall({ disk }))).toBeInstanceOf(Errors.FormatUnsupported)
    }
  })

  it("with a foreign file in its journal, or in the directory of a log that has to be recovered", async () => {
    const files = await unclean(60)
    for (const file of [`${directory}/journal/notes.txt`, `${directory}/runelog/a/notes.txt`]) {
      const disk = await diskOf(withFiles(files, { [file]: Buffer.from("mine") }))
      expect(await errorOf(openSmall({ disk }))).toEqual(new Errors.ForeignFile({ file }))
      await disk.remove(file)
      expect(await (await openSmall({ disk })).head("a")).toBe(60)
    }
  })

  it("without its meta, while there is a journal or a log", async () => {
    const files = await unclean()
    const file = `${directory}/meta`
    const error = await errorOf(openSmall({ disk: await diskOf(withFiles(files, { [file]: undefined })) }))
    expect(error).toBeInstanceOf(Errors.JournalCorrupt)
    expect(error).toMatchObject({ file, offset: 0 })
    const empty = makeDiskMemory()
    await empty.makeDirectory(`${directory}/journal`)
    await (await openSmall({ disk: empty })).close()
  })

  it("with limits that cannot be", async () => {
    expect(await errorOf(openSmall({ limits: { journalFileBytes: 1 } }))).toBeInstanceOf(Errors.LimitInvalid)
  })

  it("by a disk that is full or fails, and the lock is given back", async () => {
    const disk = new DiskSim({ capacityBytes: 10_000 })
    expect(await errorOf(openSmall({ disk }))).toBeInstanceOf(Errors.DiskFull)
    disk.capacityBytes = Number.POSITIVE_INFINITY
    disk.failNext("sync", { code: "EIO", after: 1 })
    expect(await errorOf(openSmall({ disk }))).toSatisfy(
      (error) => error instanceof Errors.DiskFailed || error instanceof Errors.WriterPoisoned
    )
    const runelog = await openSmall({ disk })
    await runelog.append("a", 1, [{ body: "x" }])
  })

  it("when what recovery wrote cannot be synced", async () => {
    const disk = new DiskSim()
    const first = await openSmall({ disk })
    await fill(first, "a", 1, 6)
    const killed = disk.killProcess()
    for (let after = 0; after < 4; after++) {
      killed.failNext("sync", { code: "ENOSPC", after })
      const outcome = await openSmall({ disk: killed })
        .then((runelog) => runelog.close())
        .then(
          () => "ok",
          (reason: { readonly _tag: string }) => reason._tag
        )
      killed.clearFaults()
      expect(["ok", "WriterPoisoned", "DiskFull"]).toContain(outcome)
    }
    expect(await (await openSmall({ disk: killed })).head("a")).toBe(6)
  })
})

describe("a segment of another format", () => {
  it("is refused by name when its log is opened, and when its closed segment is read", async () => {
    const disk = makeDiskMemory()
    const first = await openSmall({ disk, limits: { segmentBytes: 500 } })
    await fill(first, "a", 1, 30)
    await first.close()
    const files = await snapshotOf(disk)
    const paths = [...files.keys()].filter((path) => path.endsWith(".seg"))
    for (const file of [paths[0]!, paths.at(-1)!]) {
      const content = resealed(files.get(file)!, 12, PACKED_VERSION + 1, [12, 128], 8)
      const runelog = await openSmall({ disk: await diskOf(withFiles(files, { [file]: content })) })
      const { error } = await contentOf(runelog, "a")
      const unsupported = new Errors.FormatUnsupported({ file, version: PACKED_VERSION + 1, supported: 1 })
      if (file === paths[0]) expect(error).toEqual(unsupported)
      else expect(error).toMatchObject({ _tag: "SegmentCorrupt", file, reason: unsupported.message })
      expect(await errorOf(runelog.append("a", 31, [entryOf(31)]))).toBeDefined()
    }
    expect(segmentPath("a", 1)).toBe(paths[0])
  })
})
