// Goal: a repaired log is its good prefix and goes on; a repaired journal keeps what was good; nothing is gone without a
// copy. Method: damage by hand in every place, repair, then read, append and verify.
// Verifies: INV-CRC-VALID, INV-SEGMENT-CONTIGUOUS
import { describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import type { Disk } from "#runelog/disk/Disk.ts"
import {
  DirectoryLocked,
  DiskFailed,
  FormatUnsupported,
  JournalCorrupt,
  LogNameInvalid,
  LogUnknown
} from "#runelog/RunelogErrors.ts"
import { PACKED_VERSION } from "#runelog/segment/Segment.ts"
import { repairJournal, repairLog } from "#runelog/verify/Repair.ts"
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
  journalPath,
  openSmall,
  readFileOf,
  type Snapshot,
  segmentPath,
  smallLimits,
  snapshotOf,
  withFiles
} from "../Fixture.ts"

const limits = { ...smallLimits, segmentBytes: 800 }
const events = 40
const options = (disk: Disk) => ({ directory, disk, limits })

const closed = async (): Promise<{ readonly files: Snapshot; readonly firstIds: ReadonlyArray<number> }> => {
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

const copiesIn = async (disk: Disk): Promise<ReadonlyArray<string>> =>
  (await disk.exists(`${directory}/quarantine`))
    ? (await disk.list(`${directory}/quarantine`)).map(({ name }) => name)
    : []

/** The log is sound again, holds its events up to `head`, and goes on. */
const expectRepaired = async (disk: Disk, head: number): Promise<void> => {
  const runelog = await openSmall({ disk, limits })
  expect(await runelog.head("a")).toBe(head)
  if (head > 0) {
    const content = await contentOf(runelog, "a")
    expect(content.error).toBeUndefined()
    expect(bodiesOf(content)).toEqual(Array.from({ length: head }, (_, at) => entryOf(at + 1).body))
  }
  await fill(runelog, "a", head + 1, head + 20)
  await runelog.seal("a")
  await runelog.close()
  expect((await verify({ directory, disk })).problems).toEqual([])
}

describe("a damaged log", () => {
  it("is cut back to its good prefix, and what is cut off is kept", async () => {
    const { files, firstIds } = await closed()
    const second = firstIds[1]!
    const path = segmentPath("a", second)
    const damaged = flipBit(files.get(path)!, (128 + 32 + 3) * 8)
    const disk = await diskOf(withFiles(files, { [path]: damaged }))
    expect((await verify({ directory, disk })).problems.length).toBeGreaterThan(0)
    const repaired = await repairLog(options(disk), "a")
    expect(repaired).toMatchObject({ log: "a", head: second - 1 })
    const kept = await Promise.all(repaired.copies.map((copy) => readFileOf(disk, copy)))
    const lost = firstIds.slice(1).map((id) => (id === second ? damaged : files.get(segmentPath("a", id))!))
    expect(kept.map((content) => content.toString("hex"))).toEqual(
      lost.map((content) => Buffer.from(content).toString("hex"))
    )
    await expectRepaired(disk, second - 1)
  })

  it("keeps the good frames of the segment that is hit", async () => {
    const { files } = await closed()
    const path = segmentPath("a", 1)
    let offset = 128
    for (let id = 1; id <= 4; id++) offset += 32 + Buffer.byteLength(entryOf(id).body as string)
    const disk = await diskOf(withFiles(files, { [path]: flipBit(files.get(path)!, (offset + 33) * 8) }))
    const { copies, head } = await repairLog(options(disk), "a")
    expect(head).toBe(4)
    expect((await readFileOf(disk, copies[0]!)).length).toBe(files.get(path)!.length - offset)
    await expectRepaired(disk, 4)
  })

  it("is repaired wherever a segment is missing, cut, foreign or without its header", async () => {
    const { files, firstIds } = await closed()
    const [, second, third] = firstIds
    const last = firstIds.at(-1)!
    const cases: ReadonlyArray<[Record<string, Uint8Array | undefined>, number]> = [
      [{ [segmentPath("a", second!)]: undefined }, second! - 1],
      [{ [segmentPath("a", 1)]: undefined }, 0],
      [{ [segmentPath("a", last)]: undefined }, last - 1],
      [{ [segmentPath("a", third!)]: files.get(segmentPath("a", third!))!.subarray(0, 50) }, third! - 1],
      [{ [segmentPath("a", third!)]: files.get(segmentPath("a", second!)) }, third! - 1],
      [{ [segmentPath("a", 1)]: new Uint8Array(0) }, 0]
    ]
    for (const [changes, head] of cases) {
      const disk = await diskOf(withFiles(files, changes))
      await (await openSmall({ disk, limits })).close()
      expect((await repairLog(options(disk), "a")).head).toBe(head)
      await expectRepaired(disk, head)
    }
  })

  it("that was only believed to be damaged is left as it is, and opened again", async () => {
    const { files } = await closed()
    const record = `${directory}/quarantine/a.json`
    const disk = await diskOf(withFiles(files, { [record]: Buffer.from("{}") }))
    expect(await repairLog(options(disk), "a")).toEqual({ log: "a", head: events, copies: [] })
    expect(await copiesIn(disk)).toEqual([])
    await expectRepaired(disk, events)
  })

  it("of which nothing is left but the record is forgotten", async () => {
    const { files } = await closed()
    const disk = await diskOf(withFiles(files, { [`${directory}/quarantine/b.json`]: Buffer.from("{}") }))
    expect(await repairLog(options(disk), "b")).toEqual({ log: "b", head: 0, copies: [] })
    expect(await copiesIn(disk)).toEqual([])
  })

  it("that was thinned is cut between its ranges, and can be sealed again", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    const delta = { body: "piece", role: "delta" as const }
    await runelog.append("a", 1, [delta, delta, { body: "whole", role: "supersedes" }, { body: "x" }, { body: "y" }])
    await runelog.append("a", 6, [{ body: "z" }])
    await runelog.seal("a")
    await runelog.close()
    const path = segmentPath("a", 1)
    const content = await readFileOf(disk, path)
    const damaged = await diskOf(
      withFiles(await snapshotOf(disk), { [path]: flipBit(content, content.indexOf("z") * 8) })
    )
    expect((await repairLog(options(damaged), "a")).head).toBe(5)
    const again = await openSmall({ disk: damaged })
    await again.append("a", 6, [{ body: "anew" }])
    await again.seal("a")
    expect((await contentOf(again, "a")).frames.map(({ eventId }) => eventId)).toEqual([1, 3, 4, 5, 6])
    await again.close()
    expect((await verify({ directory, disk: damaged })).problems).toEqual([])
  })

  it("is not repaired under a wrong name, a newer format, a damaged journal or in use", async () => {
    const { files } = await closed()
    const disk = await diskOf(files)
    expect(await errorOf(repairLog(options(disk), "../a"))).toBeInstanceOf(LogNameInvalid)
    expect(await errorOf(repairLog(options(disk), "never"))).toBeInstanceOf(LogUnknown)
    const newer = Buffer.from(files.get(segmentPath("a", 1))!)
    newer.writeUInt16LE(PACKED_VERSION + 1, 12)
    newer.writeUInt32LE(crc32c(newer, 12, 128, 0), 8)
    const newerDisk = await diskOf(withFiles(files, { [segmentPath("a", 1)]: newer }))
    expect(await errorOf(repairLog(options(newerDisk), "a"))).toBeInstanceOf(FormatUnsupported)
    const header = flipBit(files.get(journalPath())!, 20 * 8)
    const damagedJournal = await diskOf(withFiles(files, { [journalPath()]: header }))
    expect(await errorOf(repairLog(options(damagedJournal), "a"))).toBeInstanceOf(JournalCorrupt)
    await openSmall({ disk, limits })
    expect(await errorOf(repairLog(options(disk), "a"))).toBeInstanceOf(DirectoryLocked)
  })

  it("stays on record when the repair is interrupted, and is repaired the next time", async () => {
    const { files } = await closed()
    const path = segmentPath("a", 1)
    const damaged = withFiles(files, { [path]: flipBit(files.get(path)!, 300 * 8), [indexPath("a", 1)]: undefined })
    const disk = new DiskSim()
    for (const [file, content] of damaged) {
      await disk.makeDirectory(file.slice(0, file.lastIndexOf("/")))
      const handle = await disk.open(file, "create")
      await handle.write(content, 0, content.length, 0)
    }
    disk.failNext("remove", { code: "EIO" })
    expect(await errorOf(repairLog(options(disk), "a"))).toBeInstanceOf(DiskFailed)
    const { head } = await repairLog(options(disk), "a")
    await expectRepaired(disk, head)
  })
})

describe("a damaged journal", () => {
  const unclean = async (): Promise<Snapshot> => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({
      disk,
      limits: { ...limits, segmentWriteBytes: 1_000_000, segmentBytes: 1_000_000 }
    })
    await fill(runelog, "a", 1, 6)
    return snapshotOf(disk)
  }

  it("is put aside: what was before the damage is in the logs, all of it is in the copies", async () => {
    const files = await unclean()
    const damaged = flipBit(files.get(journalPath())!, (3 * 4096 + 70) * 8)
    const disk = await diskOf(withFiles(files, { [journalPath()]: damaged }))
    const repaired = await repairJournal(options(disk))
    expect(repaired.batches).toBe(2)
    expect((await readFileOf(disk, repaired.copies[0]!)).equals(damaged)).toBe(true)
    expect((await verify({ directory, disk })).problems).toEqual([])
    await expectRepaired(disk, 2)
  })

  it("that speaks of more logs than a start opens leaves none of them behind", async () => {
    const many = { ...limits, startLogsMax: 1 }
    const names = ["a", "b", "c", "d"]
    for (const repair of [repairJournal, (of: ReturnType<typeof options>) => repairLog(of, "a")]) {
      const disk = new DiskSim()
      const runelog = await openSmall({ disk, limits: many })
      for (const name of names) await fill(runelog, name, 1, 3)
      const killed = disk.killProcess()
      await repair({ ...options(killed), limits: many })
      expect((await verify({ directory, disk: killed })).problems).toEqual([])
      const again = await openSmall({ disk: killed, limits: many })
      expect(again.recovered).toMatchObject({ clean: true, batches: 0 })
      for (const name of names) expect(await again.head(name)).toBe(3)
      await again.close()
    }
  })

  it("that is sound is left alone, its batches applied", async () => {
    const disk = await diskOf(await unclean())
    expect(await repairJournal(options(disk))).toEqual({ batches: 6, copies: [] })
    await expectRepaired(disk, 6)
  })
})
