// Goal: recovery brings back what the journal holds and nothing else, again and again, and keeps what it cannot place. Method:
// directories stopped in the middle, segments altered before the start.
import { describe, expect, it } from "vitest"
import type { DiskFile } from "#runelog/disk/Disk.ts"
import { bytesOf } from "#runelog/Frame.ts"
import { readBatchHeader } from "#runelog/journal/JournalBatch.ts"
import { LogDamaged, SegmentCorrupt } from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
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
  journalPath,
  openSmall,
  segmentPath,
  snapshotOf,
  withCalls,
  withFiles
} from "../Fixture.ts"

const fileCalls = (file: DiskFile): DiskFile => ({
  read: (...args) => file.read(...args),
  write: (...args) => file.write(...args),
  writeNow: (...args) => file.writeNow(...args),
  sync: () => file.sync(),
  syncNow: () => file.syncNow(),
  truncate: (length) => file.truncate(length),
  size: () => file.size(),
  close: () => file.close()
})

const lazy = { segmentWriteBytes: 1024 * KIB }

describe("recovery", () => {
  it("is the same however often it is begun", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, limits: { segmentBytes: 600 } })
    await fill(runelog, "a", 1, 12)
    await runelog.checkpoint()
    await fill(runelog, "a", 13, 25)
    await fill(runelog, "b", 1, 5)
    for (let steps = 0; steps < 60; steps++) {
      const killed = disk.crash(steps)
      let left = steps
      killed.onOperation = () => {
        left -= 1
        if (left < 0) throw Object.assign(new Error("stopped"), { code: "EIO" })
      }
      await openSmall({ disk: killed, limits: { segmentBytes: 600 } }).catch(() => undefined)
      const again = await openSmall({ disk: killed.killProcess(), limits: { segmentBytes: 600 } })
      expect(again.readOnly).toBeUndefined()
      expect(bodiesOf(await contentOf(again, "a"))).toEqual(Array.from({ length: 25 }, (_, at) => entryOf(at + 1).body))
      expect(await again.head("b")).toBe(5)
    }
  })

  it("holds no more memory than there may be", async () => {
    const disk = makeDiskMemory()
    const limits = {
      ...lazy,
      segmentBytes: 1024 * KIB,
      pendingBytesMax: 64 * KIB,
      journalFileBytes: 512 * KIB,
      inFlightBytesMax: 512 * KIB
    }
    const runelog = await openSmall({ disk, limits: { ...limits, pendingBytesMax: 2048 * KIB } })
    await runelog.append("b", 1, [{ body: "beside it" }])
    for (let eventId = 1; eventId <= 80; eventId++)
      await runelog.append("a", eventId, [{ body: `${eventId}${"x".repeat(3000)}` }])
    const copy = await diskOf(await snapshotOf(disk))
    let writes = 0
    const counted = withCalls(copy, {
      open: async (path, mode) => {
        const file = await copy.open(path, mode)
        if (!path.endsWith(".seg")) return file
        const write: DiskFile["write"] = (...args) => {
          writes += 1
          return file.write(...args)
        }
        return { ...fileCalls(file), write }
      }
    })
    const again = await openSmall({ disk: counted, limits })
    expect(again.recovered).toMatchObject({ batches: 81, frames: 81 })
    // Written piece by piece as memory fills, and "b" only once.
    expect(writes).toBeGreaterThan(8)
    expect(writes).toBeLessThan(40)
    expect(again.stats.memoryBytes).toBe(0)
    expect(bodiesOf(await contentOf(again, "a")).map((body) => Number.parseInt(body, 10))).toEqual(
      Array.from({ length: 80 }, (_, at) => at + 1)
    )
  })

  it("applies removals in their order, and what came after them", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: lazy })
    await fill(runelog, "a", 1, 3)
    await runelog.remove("a")
    await runelog.append("a", 1, [{ body: "second life" }])
    await runelog.remove("a")
    await runelog.append("a", 1, [{ body: "third life" }])
    const again = await openSmall({ disk: await diskOf(await snapshotOf(disk)) })
    expect(bodiesOf(await contentOf(again, "a"))).toEqual(["third life"])
  })

  it("opens each journal file once for what it applies, and reads neighboring batches together", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: { ...lazy, journalFilesMax: 40 } })
    // With so many logs the journal grows before it is checkpointed.
    await Promise.all(Array.from({ length: 70 }, (_, at) => fill(runelog, `log-${at}`, 1, 1)))
    await fill(runelog, "a", 1, 90)
    const copy = await diskOf(await snapshotOf(disk))
    const journalFiles = (await copy.list(`${directory}/journal`)).length
    expect(journalFiles).toBeGreaterThan(5)
    let opens = 0
    let reads = 0
    const counted = withCalls(copy, {
      open: async (path, mode) => {
        const file = await copy.open(path, mode)
        if (!path.endsWith(".jnl") || mode !== "read") return file
        opens += 1
        const read: DiskFile["read"] = (target, offset, length, position) => {
          reads += 1
          return file.read(target, offset, length, position)
        }
        return { ...fileCalls(file), read }
      }
    })
    const again = await openSmall({ disk: counted, limits: { startLogsMax: 100 } })
    expect(bodiesOf(await contentOf(again, "a"))).toEqual(Array.from({ length: 90 }, (_, at) => entryOf(at + 1).body))
    const { batches } = again.recovered
    expect(batches).toBeGreaterThan(90)
    const used = Math.ceil(batches / 15)
    // One more for the copy of the last batch.
    expect(opens).toBe(journalFiles + used + 1)
    // A header and a piece of every file, then what is applied: a slab is a little smaller than a file.
    expect(reads).toBeLessThanOrEqual(2 * journalFiles + 2 * used)
  })

  it("keeps frames that continue nothing, names the gap and closes the log", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: lazy })
    await fill(runelog, "a", 1, 5)
    await runelog.checkpoint()
    await fill(runelog, "a", 6, 8)
    const files = await snapshotOf(disk)
    const missing = await diskOf(withFiles(files, { [segmentPath("a", 1)]: undefined }))
    const again = await openSmall({ disk: missing })
    expect(again.readOnly).toBeUndefined()
    expect(await again.head("a")).toBe(0)
    const { error } = await contentOf(again, "a")
    expect(error).toBeInstanceOf(SegmentCorrupt)
    expect(error).toMatchObject({ reason: "the log ends at event 0, the journal goes on with 6" })
    expect(await errorOf(again.append("a", 9, [{ body: "no" }]))).toBeInstanceOf(LogDamaged)
    const kept = (await missing.list(`${directory}/quarantine`)).map(({ name }) => name)
    expect(kept.filter((name) => name.endsWith(".frames"))).toHaveLength(3)
    expect(kept).toContain("a.json")
  })

  it("keeps frames that would start a segment behind nothing, unless the journal stays as it is", async () => {
    const disk = makeDiskMemory()
    const limits = { ...lazy, segmentBytes: 300 }
    const runelog = await openSmall({ disk, limits })
    await runelog.append("a", 1, [{ body: "x".repeat(100) }])
    await runelog.checkpoint()
    // Each starts a segment of its own.
    for (const eventId of [2, 3, 4]) await runelog.append("a", eventId, [{ body: "x".repeat(250) }])
    const files = await snapshotOf(disk)
    const gone = Object.fromEntries(
      [...files.keys()].flatMap((path) => (path.includes("/runelog/a/") ? [[path, undefined]] : []))
    )
    const framesKept = async (changes: Record<string, Uint8Array>): Promise<number> => {
      const damaged = await diskOf(withFiles(files, { ...gone, ...changes }))
      const again = await openSmall({ disk: damaged, limits })
      expect(await again.head("a")).toBe(0)
      expect((await contentOf(again, "a")).error).toMatchObject({
        reason: "the log ends at event 0, the journal goes on with 2"
      })
      expect(again.readOnly === undefined).toBe(Object.keys(changes).length === 0)
      return (await damaged.list(`${directory}/quarantine`)).filter(({ name }) => name.endsWith(".frames")).length
    }
    expect(await framesKept({})).toBe(3)
    const journal = files.get(journalPath())!
    const batches = Array.from({ length: journal.length / 4096 }, (_, page) => page * 4096).filter(
      (at) => at > 0 && readBatchHeader(bytesOf(Buffer.from(journal)), at) !== undefined
    )
    // A hole before the last batch: the journal is damaged, read-only, and has what it has.
    expect(await framesKept({ [journalPath()]: flipBit(journal, (batches.at(-2)! + 4) * 8) })).toBe(0)
  })

  it("names the segment when it ends before the journal goes on", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: lazy })
    await fill(runelog, "a", 1, 5)
    await runelog.checkpoint()
    await fill(runelog, "a", 6, 8)
    const files = await snapshotOf(disk)
    const path = segmentPath("a", 1)
    let offset = 128
    for (let id = 1; id <= 3; id++) offset += 32 + Buffer.byteLength(entryOf(id).body as string)
    for (const cut of [offset, offset + 10]) {
      const again = await openSmall({
        disk: await diskOf(withFiles(files, { [path]: files.get(path)!.subarray(0, cut) }))
      })
      const content = await contentOf(again, "a")
      expect(bodiesOf(content)).toEqual([1, 2, 3].map((id) => entryOf(id).body))
      expect(content.error).toMatchObject({ _tag: "SegmentCorrupt", file: path, offset })
    }
  })

  it("goes on behind damage further back that is on record", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: lazy })
    await fill(runelog, "a", 1, 5)
    await runelog.checkpoint()
    await fill(runelog, "a", 6, 8)
    const files = withFiles(await snapshotOf(disk), { [`${directory}/quarantine/a.json`]: Buffer.from("{}") })
    const again = await openSmall({ disk: await diskOf(files) })
    expect(await again.head("a")).toBe(8)
    expect(await errorOf(again.append("a", 9, [{ body: "no" }]))).toBeInstanceOf(LogDamaged)
  })
})
