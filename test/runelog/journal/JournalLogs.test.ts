// Goal: logs that only the journal has the news of are as good as any other: listed, read, continued, removed, and whole
// after the next crash, whoever of them was opened before it. Method: directories with many dirty logs, stopped
// without a close, started with limits that leave the logs to the journal, stopped again.
import { describe, expect, it } from "vitest"
import { Slabs } from "#runelog/commit/Slabs.ts"
import type { Disk } from "#runelog/disk/Disk.ts"
import type { JournalFile } from "#runelog/journal/Journal.ts"
import { type JournalGroup, JournalLogs } from "#runelog/journal/JournalLogs.ts"
import { commitExtent, emptyLog, type LogState, startSegment } from "#runelog/LogState.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import * as Errors from "#runelog/RunelogErrors.ts"
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
  journalPath,
  openSmall,
  readFileOf,
  segmentPath,
  snapshotOf,
  withCalls,
  withFiles,
  writeFileOf
} from "../Fixture.ts"

const limits = { startLogsMax: 2, segmentWriteBytes: 1024 * KIB, journalFilesMax: 8 }
const names = Array.from({ length: 8 }, (_, at) => `log-${at}`)
const bodies = (to: number, from = 1): ReadonlyArray<string> =>
  Array.from({ length: to - from + 1 }, (_, at) => entryOf(from + at).body as string)

const read = async (runelog: Runelog, log: string): Promise<ReadonlyArray<string>> =>
  bodiesOf(await contentOf(runelog, log))

/** A writer with three events in each log, none of them in a segment. */
const filled = async (disk: Disk): Promise<Runelog> => {
  const runelog = await openSmall({ disk, limits })
  await Promise.all(names.map((name) => fill(runelog, name, 1, 3)))
  return runelog
}

const logsOn = async (disk: Disk): Promise<ReadonlyArray<string>> =>
  (await disk.list(`${directory}/runelog`)).map(({ name }) => name)

describe("a start after a crash with many logs", () => {
  it("opens none of them, and knows them all", async () => {
    const disk = new DiskSim()
    await filled(disk)
    const killed = disk.killProcess()
    const runelog = await openSmall({ disk: killed, limits })
    expect(runelog.stats).toMatchObject({ journalLogs: 8, residentLogs: 0 })
    expect(runelog.recovered).toMatchObject({ clean: false, frames: 24 })
    expect([...runelog.recovered.logs].sort()).toEqual(names)
    expect(await runelog.list()).toEqual(names)
    for (const name of names) expect(await runelog.head(name)).toBe(3)
    expect(runelog.stats).toMatchObject({ journalLogs: 8, residentLogs: 0 })
    expect(await read(runelog, "log-3")).toEqual(bodies(3))
    await fill(runelog, "log-4", 4, 6)
    expect(runelog.stats).toMatchObject({ journalLogs: 6, residentLogs: 2 })
    expect(await read(runelog, "log-4")).toEqual(bodies(6))
    await runelog.close()
    expect(await errorOf(runelog.head("log-5"))).toBeInstanceOf(Errors.WriterClosed)
    const again = await openSmall({ disk: killed, limits })
    expect(again.recovered).toEqual({ clean: true, batches: 0, frames: 0, logs: [] })
    for (const name of names) expect(await again.head(name)).toBe(name === "log-4" ? 6 : 3)
  })

  it("loses nothing to the next crash, whatever was opened, added and brought into segments meanwhile", async () => {
    let disk = new DiskSim()
    await filled(disk)
    const heads = new Map(names.map((name) => [name, 3]))
    for (let life = 0; life < 12; life++) {
      disk = life % 3 === 0 ? disk.killProcess() : disk.crash(life)
      const runelog = await openSmall({
        disk,
        limits: { ...limits, journalFileBytes: (life % 5 === 4 ? 96 : 64) * KIB }
      })
      expect(runelog.readOnly).toBeUndefined()
      expect((await verify({ directory, disk })).problems).toEqual([])
      for (const [name, head] of heads) if (life % 2 === 0) expect(await read(runelog, name)).toEqual(bodies(head))
      const name = names[life % names.length]!
      const head = heads.get(name)!
      await fill(runelog, name, head + 1, head + 2)
      heads.set(name, head + 2)
      if (life % 4 === 3) await runelog.seal(name)
    }
    const last = await openSmall({ disk: disk.crash(99), limits })
    for (const [name, head] of heads) expect(await read(last, name)).toEqual(bodies(head))
    await last.close()
    const report = await verify({ directory, disk: disk.killProcess() })
    expect(report.problems).toEqual([])
  })

  it("goes on where the journal ended, and frees it when all is in segments", async () => {
    const disk = new DiskSim()
    await filled(disk)
    const killed = disk.killProcess()
    const runelog = await openSmall({ disk: killed, limits })
    await fill(runelog, "other", 1, 2)
    const files = async () => (await killed.list(`${directory}/journal`)).map(({ name }) => name)
    // The second is the copy of the batch that was last.
    expect(await files()).toEqual(["00000001.jnl", "00000002.jnl"])
    await runelog.checkpoint()
    expect(await files()).toEqual(["00000001.jnl"])
    expect(runelog.stats.journalLogs).toBe(0)
    expect(await logsOn(killed)).toEqual([...names, "other"])
    expect((await openSmall({ disk: killed.crash(1), limits })).recovered.batches).toBe(0)
  })

  it("is not freed of logs that wait in its last file when those in the first are brought into segments", async () => {
    const disk = new DiskSim()
    const before = await openSmall({ disk, limits })
    disk.onOperation = ({ operation, path }) => {
      // No checkpoint comes to an end.
      if (operation === "makeDirectory" && path.includes("/runelog/")) throw new Error("no")
    }
    const early = names.slice(0, 5)
    const late = Array.from({ length: 10 }, (_, at) => `late-${at}`)
    for (const name of early) await fill(before, name, 1, 3)
    await Promise.all(late.map((name) => fill(before, name, 1, 1)))
    const killed = disk.killProcess()
    const runelog = await openSmall({ disk: killed, limits })
    expect(runelog.stats).toMatchObject({ journalLogs: 15, journalFiles: 2 })
    await runelog.append("another", 1, [entryOf(1)])
    for (let turn = 0; turn < 2000 && runelog.stats.journalLogs > 10; turn++) await Promise.resolve()
    await new Promise((resolve) => setImmediate(resolve))
    expect(runelog.stats.journalLogs).toBe(10)
    for (const seed of [1, 2, 3]) {
      const again = await openSmall({ disk: killed.crash(seed), limits })
      for (const name of early) expect(await again.head(name)).toBe(3)
      for (const name of [...late, "another"]) expect(await again.head(name)).toBe(1)
      await again.close()
    }
  })

  it("leaves no more copies behind than the journal may have files, however often it is killed", async () => {
    let disk = new DiskSim()
    // No file of the journal becomes full, which would be a reason for a checkpoint.
    const roomy = { ...limits, journalFileBytes: 1024 * KIB, journalFilesMax: 4 }
    const first = await openSmall({ disk, limits: roomy })
    await Promise.all(names.map((name) => fill(first, name, 1, 3)))
    let most = 0
    for (let start = 1; start <= 40; start++) {
      disk = disk.killProcess()
      const runelog = await openSmall({ disk, limits: roomy })
      await fill(runelog, "log-1", 3 + start, 3 + start)
      most = Math.max(most, (await disk.list(`${directory}/journal`)).length)
    }
    expect(most).toBeGreaterThan(roomy.journalFilesMax)
    expect(most).toBeLessThanOrEqual(roomy.journalFilesMax * 2)
    const runelog = await openSmall({ disk: disk.killProcess(), limits: roomy })
    for (const name of names) expect(await read(runelog, name)).toEqual(bodies(name === "log-1" ? 43 : 3))
    await runelog.close()
  })

  it("applies removals once more, and does not mistake a new log for a removed one", async () => {
    const disk = new DiskSim()
    const runelog = await filled(disk)
    await runelog.checkpoint()
    // More than a start settles, so that it gives up before it meets a removal.
    await Promise.all(names.slice(2).map((name) => fill(runelog, name, 4, 4)))
    await fill(runelog, "log-0", 4, 5)
    await runelog.remove("log-0")
    await runelog.remove("log-1")
    await runelog.append("log-1", 1, [{ body: "second life" }])
    const killed = disk.killProcess()
    await killed.makeDirectory(`${directory}/runelog/log-0`)
    await killed.makeDirectory(`${directory}/quarantine`)
    for (const name of ["log-0.json", "log-9.json", "log-0.cut"])
      await writeFileOf(killed, `${directory}/quarantine/${name}`, Buffer.from("{}"))
    const again = await openSmall({ disk: killed, limits })
    expect(again.stats.journalLogs).toBe(7)
    expect(await again.list()).toEqual(names.slice(1))
    expect((await killed.list(`${directory}/quarantine`)).map(({ name }) => name)).toEqual(["log-0.cut", "log-9.json"])
    expect(await read(again, "log-1")).toEqual(["second life"])
    expect(await again.head("log-2")).toBe(4)
    expect(await read(again, "log-2")).toEqual(bodies(4))
    // A name that the journal removes is free for an import only when the journal is free of it.
    const entries = async function* () {
      yield { body: "brought" }
    }
    await again.importEntries("log-0", entries())
    expect(again.stats.journalLogs).toBe(0)
    const third = await openSmall({ disk: killed.crash(3), limits })
    expect(await read(third, "log-0")).toEqual(["brought"])
    await third.importEntries("another", entries())
    expect(await read(third, "another")).toEqual(["brought"])
  })

  it("keeps a copy of the batch that was never finished, and nothing of it passes for the next", async () => {
    const disk = makeDiskMemory()
    await filled(disk)
    const files = await snapshotOf(disk)
    const journal = Buffer.from(files.get(journalPath())!)
    const last = journal.lastIndexOf("BTCH")
    const torn = await diskOf(withFiles(files, { [journalPath()]: flipBit(journal, (last + 80) * 8) }))
    const runelog = await openSmall({ disk: torn, limits })
    expect(runelog.stats.journalLogs).toBeGreaterThan(2)
    expect((await torn.list(`${directory}/quarantine`)).map(({ name }) => name)).toEqual([
      expect.stringMatching(/^journal-batch-\d+\.\d+\.cut$/)
    ])
    expect((await readFileOf(torn, journalPath())).subarray(last, last + 64)).toEqual(Buffer.alloc(64))
    const heads = await Promise.all(names.map((name) => runelog.head(name)))
    await fill(runelog, "log-0", heads[0]! + 1, heads[0]! + 1)
    const again = await openSmall({ disk: await diskOf(await snapshotOf(torn)), limits })
    expect(again.readOnly).toBeUndefined()
    expect(await Promise.all(names.map((name) => again.head(name)))).toEqual(heads.with(0, heads[0]! + 1))
  })

  it("starts on a full disk while there is a journal file, and settles all where there is no room for a copy", async () => {
    const stopped = async (): Promise<DiskSim> => {
      const disk = new DiskSim()
      const writer = await openSmall({ disk, limits })
      await Promise.all(names.map((name) => fill(writer, name, 1, 8)))
      return disk.killProcess()
    }
    const killed = await stopped()
    killed.failNext("write", { code: "ENOSPC" })
    const runelog = await openSmall({ disk: killed, limits })
    expect(runelog.stats.journalLogs).toBe(0)
    expect(await logsOn(killed)).toEqual(names)
    const second = await stopped()
    let writes = 0
    const full = withCalls(second, {
      open: async (path, mode) => {
        // The second file that is made would be the next of the journal.
        if (mode === "create" && path.endsWith(".jnl.tmp") && ++writes > 1)
          throw Object.assign(new Error("no room"), { code: "ENOSPC" })
        return second.open(path, mode)
      }
    })
    const started = await openSmall({ disk: full, limits })
    expect(started.stats.journalLogs).toBe(8)
    const third = await stopped()
    const other = withCalls(third, {
      open: (path, mode) => {
        const isGrowth = mode === "create" && path.endsWith("00000003.jnl.tmp")
        return isGrowth
          ? Promise.reject(Object.assign(new Error("no room"), { code: "ENOSPC" }))
          : third.open(path, mode)
      }
    })
    const refused = await errorOf(openSmall({ disk: other, limits: { ...limits, journalFileBytes: 96 * KIB } }))
    expect(refused).toBeInstanceOf(Errors.DiskFull)
  })
})

describe("a log that only the journal has the news of", () => {
  it("is damaged where its frames rot in the journal, with file and offset, and a copy of them", async () => {
    const disk = makeDiskMemory()
    await filled(disk)
    const copy = await diskOf(await snapshotOf(disk))
    const runelog = await openSmall({ disk: copy, limits })
    const journal = await readFileOf(copy, journalPath())
    const at = journal.indexOf("event 2", journal.indexOf("log-5", journal.indexOf("event 1 ")))
    await writeFileOf(copy, journalPath(), flipBit(journal, at * 8))
    const damaged = (await Promise.all(names.map((name) => contentOf(runelog, name)))).filter(({ error }) => error)
    expect(damaged).toHaveLength(1)
    expect(damaged[0]!.error).toMatchObject({ _tag: "SegmentCorrupt", file: journalPath() })
    expect(bodiesOf(damaged[0]!)).toEqual(bodies(1))
    const kept = (await copy.list(`${directory}/quarantine`)).map(({ name }) => name)
    expect(kept.filter((name) => name.endsWith(".frames")).length).toBeGreaterThan(0)
  })

  it("is damaged where all that the journal adds to its segment rots, and the journal is freed of it", async () => {
    const disk = new DiskSim()
    const runelog = await filled(disk)
    await runelog.checkpoint()
    for (const name of names) await fill(runelog, name, 4, 4)
    const copy = disk.killProcess()
    const again = await openSmall({ disk: copy, limits })
    const journal = await readFileOf(copy, journalPath())
    await writeFileOf(copy, journalPath(), flipBit(journal, journal.indexOf("event 4") * 8))
    expect(bodiesOf(await contentOf(again, "log-0"))).toEqual(bodies(3))
    expect(await errorOf(again.append("log-0", 4, [entryOf(4)]))).toBeInstanceOf(Errors.LogDamaged)
    await again.checkpoint()
    expect(again.stats.journalLogs).toBe(0)
    for (const name of names.slice(1)) expect(await read(again, name)).toEqual(bodies(4))
  })

  it("that is large is written to its segment while it is opened", async () => {
    const disk = new DiskSim()
    await filled(disk)
    const again = await openSmall({ disk: disk.killProcess(), limits: { ...limits, segmentWriteBytes: 64 } })
    expect(again.stats.journalLogs).toBe(8)
    for (const name of names) expect(await read(again, name)).toEqual(bodies(3))
  })

  it("keeps the journal as it is while it cannot be opened, for want of descriptors or for a file of others", async () => {
    const disk = new DiskSim()
    await filled(disk)
    const killed = disk.killProcess()
    const again = await openSmall({ disk: killed, limits })
    killed.failNext("list", { code: "EMFILE" })
    await killed.makeDirectory(`${directory}/runelog/log-6`)
    expect(await errorOf(again.checkpoint())).toBeInstanceOf(Errors.ResourcesScarce)
    await writeFileOf(killed, `${directory}/runelog/log-6/notes`, Buffer.from("x"))
    expect(await errorOf(again.checkpoint())).toBeInstanceOf(Errors.ForeignFile)
    expect(again.stats.journalLogs).toBe(1)
    await killed.remove(`${directory}/runelog/log-6/notes`)
    await again.checkpoint()
    expect(again.stats.journalLogs).toBe(0)
    for (const name of names) expect(await read(again, name)).toEqual(bodies(3))
  })

  it("is damaged where its segment ends before the journal goes on, and settled all the same", async () => {
    const disk = makeDiskMemory()
    const runelog = await filled(disk)
    await runelog.checkpoint()
    await Promise.all(names.map((name) => fill(runelog, name, 4, 5)))
    const files = await snapshotOf(disk)
    const path = segmentPath("log-2", 1)
    const copy = await diskOf(withFiles(files, { [path]: files.get(path)!.subarray(0, 180) }))
    const again = await openSmall({ disk: copy, limits })
    // Only its files can tell where it ends.
    expect(await again.head("log-2")).toBeLessThan(3)
    expect(await errorOf(again.append("log-2", 6, [{ body: "x" }]))).toBeInstanceOf(Errors.LogDamaged)
    expect(await read(again, "log-3")).toEqual(bodies(5))
    await again.checkpoint()
    expect(again.stats.journalLogs).toBe(0)
  })

  it("can be asked for again when the disk failed to bring it", async () => {
    const disk = new DiskSim()
    await filled(disk)
    const killed = disk.killProcess()
    let fails = 0
    const failing = withCalls(killed, {
      open: async (path, mode) => {
        const file = await killed.open(path, mode)
        if (!path.endsWith(".jnl") || mode !== "write") return file
        const fail = (): Promise<number> => Promise.reject(Object.assign(new Error("no"), { code: "EIO" }))
        return {
          read: (...args) => (fails-- > 0 ? fail() : file.read(...args)),
          write: (...args) => file.write(...args),
          writeNow: (...args) => file.writeNow(...args),
          sync: () => file.sync(),
          syncNow: () => file.syncNow(),
          truncate: (length) => file.truncate(length),
          size: () => file.size(),
          close: () => file.close()
        }
      }
    })
    const runelog = await openSmall({ disk: failing, limits })
    fails = 1
    expect(await errorOf(runelog.read("log-1", { after: 0 }))).toBeInstanceOf(Errors.DiskFailed)
    expect(runelog.stats).toMatchObject({ journalLogs: 8, memoryBytes: 0 })
    expect(await read(runelog, "log-1")).toEqual(bodies(3))
    fails = 1
    expect(await errorOf(runelog.checkpoint())).toBeInstanceOf(Errors.WriterPoisoned)
    expect(runelog.stats.journalLogs).toBeGreaterThan(0)
    const again = await openSmall({ disk: killed.killProcess(), limits })
    for (const name of names) expect(await read(again, name)).toEqual(bodies(3))
  })

  it("is left to the next start by a close that would have to bring too many", async () => {
    const disk = new DiskSim()
    const few = { ...limits, closeLogsMax: 7 }
    const first = await openSmall({ disk, limits: few })
    await Promise.all(names.map((name) => fill(first, name, 1, 3)))
    await first.close()
    expect(await logsOn(disk)).toEqual([])
    const runelog = await openSmall({ disk, limits: few })
    expect(runelog.recovered.clean).toBe(false)
    for (const name of names) expect(await read(runelog, name)).toEqual(bodies(3))
  })
})

describe("logs that are too many for memory", () => {
  it("leave it to the journal, and come back as they were", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, limits: { ...limits, residentLogsMax: 3, journalFileBytes: 1024 * KIB } })
    for (const name of names) await fill(runelog, name, 1, 3)
    expect(runelog.stats.residentLogs).toBeLessThanOrEqual(3)
    expect(runelog.stats.journalLogs).toBeGreaterThanOrEqual(5)
    expect(await logsOn(disk)).toEqual([])
    for (const name of names) await fill(runelog, name, 4, 6)
    for (const name of names) expect(await read(runelog, name)).toEqual(bodies(6))
    const again = await openSmall({ disk: disk.crash(5), limits })
    for (const name of names) expect(await read(again, name)).toEqual(bodies(6))
    expect(await again.list()).toEqual(names)
  })

  it("make room in the journal when it is full, and appends go on", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, limits: { ...limits, journalFilesMax: 3, residentLogsMax: 2 } })
    const many = Array.from({ length: 90 }, (_, at) => `many-${at}`)
    for (const name of many) await fill(runelog, name, 1, 2)
    expect(runelog.stats.journalFiles).toBeLessThanOrEqual(3)
    for (const name of many) expect(await read(runelog, name)).toEqual(bodies(2))
    const again = await openSmall({ disk: disk.crash(6), limits })
    for (const name of many) expect(await read(again, name)).toEqual(bodies(2))
  })
})

describe("where frames lie in the journal", () => {
  const journal = { name: "1", lastSequence: 0 } as JournalFile
  const group = (firstEventId: number, lastEventId: number, sequence: number): JournalGroup => ({
    journal,
    position: 0,
    bytes: 1,
    firstEventId,
    lastEventId,
    sequence
  })

  it("says where a log ends only if it begins there, and what holds the journal back", () => {
    const logs = new JournalLogs()
    expect(logs.lowestSequence).toBe(Number.POSITIVE_INFINITY)
    logs.add("late", group(1, 2, 9))
    logs.add("a", group(1, 2, 5))
    logs.add("a", group(3, 3, 7))
    logs.add("b", group(4, 4, 6))
    logs.add("gap", group(1, 1, 8))
    logs.add("gap", group(3, 3, 8))
    expect(["a", "b", "gap", "none"].map((name) => logs.head(name))).toEqual([3, undefined, undefined, undefined])
    expect(logs.lowestSequence).toBe(5)
    expect(logs.upTo(8)).toEqual(["a", "b", "gap"])
    expect(logs.has("b")).toBe(true)
    logs.delete("b")
    expect(logs.has("b")).toBe(false)
    logs.noteRemoval("x", 3)
    logs.forgetRemovals(3)
    expect(logs.removes("x")).toBe(true)
    logs.forgetRemovals(4)
    expect(logs.removes("x")).toBe(false)
  })

  const dirty = (extents: number, bytes = 10, from: JournalFile | undefined = journal): LogState => {
    const log = emptyLog("a")
    const segment = startSegment(log)
    const slabs = new Slabs(1024)
    for (let at = 1; at <= extents; at++) {
      const place = { journal: from, journalPosition: at, segment, position: 0, sequence: 4 + at }
      commitExtent(log, { slab: slabs.take(8), start: 0, end: bytes, firstEventId: at, lastEventId: at, ...place }, 0)
      log.nextEventId += 1
    }
    return log
  }

  it("is noted of logs with few frames that nobody works with, all of them in the journal alone", () => {
    const logs = new JournalLogs()
    const taken = (change: (log: LogState) => unknown, log = dirty(2)): boolean => {
      change(log)
      return logs.take(log)
    }
    expect(taken(() => undefined)).toBe(true)
    expect(logs.groups("a").map(({ sequence }) => sequence)).toEqual([5, 6])
    expect(taken(() => undefined, dirty(0))).toBe(false)
    expect(taken(() => undefined, dirty(17))).toBe(false)
    expect(taken(() => undefined, dirty(1, 65 * KIB))).toBe(false)
    const unplaced = dirty(1)
    unplaced.pending[0] = { ...unplaced.pending[0]!, journal: undefined }
    expect(taken(() => undefined, unplaced)).toBe(false)
    expect(taken((log) => Object.assign(log, { flushing: Promise.resolve() }))).toBe(false)
    expect(taken((log) => Object.assign(log, { syncing: Promise.resolve() }))).toBe(false)
    expect(taken((log) => Object.assign(log, { users: 1 }))).toBe(false)
    expect(taken((log) => Object.assign(log, { nextEventId: 9 }))).toBe(false)
    expect(taken((log) => Object.assign(log, { removing: true }))).toBe(false)
    expect(taken((log) => Object.assign(log, { unsyncedSequence: 3 }))).toBe(false)
    expect(taken((log) => Object.assign(log.segments[0]!, { unsynced: true }))).toBe(false)
    const damage = new Errors.LogDamaged({ log: "a", file: "f", offset: 0, reason: "r" })
    expect(taken((log) => Object.assign(log, { damage }))).toBe(false)
  })
})
