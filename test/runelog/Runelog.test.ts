// Goal: what the engine promises at its door: order, refusals by name, watchers, removal, listing, closing. Method: the
// public calls over a disk in memory or a simulated one.
// Verifies: INV-EVENTID-MONOTONIC, INV-RESUME-NO-GAPS
import { describe, expect, it, vi } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import { Runelog } from "#runelog/Runelog.ts"
import * as Errors from "#runelog/RunelogErrors.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import { DiskSim } from "../support/disk/DiskSim.ts"
import {
  bodiesOf,
  contentOf,
  directory,
  diskOf,
  entryOf,
  errorOf,
  fill,
  openSmall,
  segmentPath,
  snapshotOf,
  withCalls,
  withFiles,
  writeFileOf
} from "./Fixture.ts"

const turns = async (count = 50): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

describe("append", () => {
  it("gives ids from 1 on, dense, per log", async () => {
    const runelog = await openSmall()
    await runelog.append("a", 1, [{ body: "one" }, { body: "two" }])
    await Promise.all([runelog.append("a", 3, [{ body: "three" }]), runelog.append("b", 1, [{ body: "first" }])])
    expect([await runelog.head("a"), await runelog.head("b"), await runelog.head("never")]).toEqual([3, 1, 0])
    expect(bodiesOf(await contentOf(runelog, "a"))).toEqual(["one", "two", "three"])
  })

  it("is refused with an id out of order, and nothing is written", async () => {
    const runelog = await openSmall()
    await runelog.append("a", 1, [{ body: "one" }])
    for (const got of [0, 1, 3, -1, 1.5, Number.NaN]) {
      expect(await errorOf(runelog.append("a", got, [{ body: "x" }]))).toEqual(
        new Errors.EventIdOutOfOrder({ log: "a", expected: 2, got })
      )
    }
    expect(await runelog.head("a")).toBe(1)
  })

  it("is refused under a name that cannot be, and with entries that cannot be", async () => {
    const runelog = await openSmall({ limits: { bodyBytesMax: 10 } })
    for (const log of ["", "../x", "a/b", "x".repeat(65)]) {
      expect(await errorOf(runelog.append(log, 1, [{ body: "x" }]))).toEqual(new Errors.LogNameInvalid({ log }))
    }
    expect(await errorOf(runelog.append("a", 1, []))).toEqual(new Errors.BatchEmpty({ log: "a" }))
    expect(await errorOf(runelog.append("a", 1, [{ body: "x".repeat(11) }]))).toBeInstanceOf(Errors.EntryTooLarge)
    expect(await errorOf(runelog.append("a", 1, [{ body: "x", family: -1 }]))).toBeInstanceOf(Errors.EntryInvalid)
    expect(await runelog.list()).toEqual([])
  })

  it("keeps its order when the log has to be opened first", async () => {
    const runelog = await openSmall({ limits: { residentLogsMax: 1 } })
    const appends: Array<Promise<void>> = []
    for (let eventId = 1; eventId <= 30; eventId++) {
      appends.push(runelog.append("a", eventId, [entryOf(eventId)]), runelog.append("b", eventId, [entryOf(eventId)]))
      if (eventId % 7 === 0) await Promise.resolve()
      if (eventId % 11 === 0) await runelog.head(`other-${eventId}`)
    }
    await Promise.all(appends)
    expect([await runelog.head("a"), await runelog.head("b")]).toEqual([30, 30])
  })

  it("waits for nobody: Busy says so, and ready when to go on", async () => {
    const runelog = await openSmall({ limits: { inFlightBytesMax: 1000 } })
    const taken = [runelog.append("a", 1, [{ body: "x".repeat(900) }])]
    await Promise.all(taken)
    taken.push(runelog.append("a", 2, [{ body: "x".repeat(900) }]), runelog.append("a", 3, [{ body: "x".repeat(900) }]))
    expect(runelog.busy).toBe(true)
    const busy = await errorOf(runelog.append("a", 4, [{ body: "x" }]))
    expect(busy).toBeInstanceOf(Errors.Busy)
    expect(busy).toMatchObject({ waitingFor: "journal", bytesMax: 1000 })
    await runelog.ready()
    expect(runelog.busy).toBe(false)
    await runelog.append("a", 4, [{ body: "x" }])
    await runelog.ready()
    expect(await runelog.head("a")).toBe(4)
  })
})

describe("a log that does not exist", () => {
  it("cannot be read, sealed or removed", async () => {
    const runelog = await openSmall()
    const unknown = new Errors.LogUnknown({ log: "a" })
    expect(await errorOf(runelog.read("a", { after: 0 }))).toEqual(unknown)
    expect(await errorOf(runelog.seal("a"))).toEqual(unknown)
    expect(await errorOf(runelog.remove("a"))).toEqual(unknown)
    expect(await errorOf(runelog.read("..", { after: 0 }))).toEqual(new Errors.LogNameInvalid({ log: ".." }))
  })
})

describe("watchers", () => {
  it("are told of every log's durable events, and no more when they stop", async () => {
    const runelog = await openSmall()
    const [own, all] = [vi.fn(), vi.fn()]
    const stop = runelog.watch("a", own)
    const stopAll = runelog.watchAll(all)
    await runelog.append("a", 1, [{ body: "x" }])
    await runelog.append("b", 1, [{ body: "x" }])
    expect(own).toHaveBeenCalledTimes(1)
    expect(all.mock.calls).toEqual([["a"], ["b"]])
    stop()
    stopAll()
    await runelog.append("a", 2, [{ body: "x" }])
    expect(own).toHaveBeenCalledTimes(1)
  })

  it("find what they are told of", async () => {
    const runelog = await openSmall()
    const heads: Array<Promise<number>> = []
    runelog.watch("a", () => heads.push(runelog.head("a")))
    for (let eventId = 1; eventId <= 5; eventId++) await runelog.append("a", eventId, [{ body: "x" }])
    expect(await Promise.all(heads)).toEqual([1, 2, 3, 4, 5])
  })

  it("that throw harm no append", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, sync: "pool" })
    const uncaught = vi.fn()
    const listeners = process.listeners("unhandledRejection")
    process.removeAllListeners("unhandledRejection")
    process.on("unhandledRejection", uncaught)
    try {
      const stop = runelog.watch("a", () => {
        throw new Error("a listener's own fault")
      })
      await runelog.append("a", 1, [{ body: "x" }])
      stop()
      await runelog.append("a", 2, [{ body: "y" }])
      await turns(5)
      expect(uncaught).toHaveBeenCalledTimes(1)
    } finally {
      process.removeAllListeners("unhandledRejection")
      for (const listener of listeners) process.on("unhandledRejection", listener)
    }
    await runelog.close()
    expect(await (await openSmall({ disk })).head("a")).toBe(2)
  })
})

describe("remove", () => {
  it("takes a log away for good, and its name can be used again", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 60)
    await fill(runelog, "b", 1, 3)
    await runelog.remove("a")
    expect(await runelog.list()).toEqual(["b"])
    expect(await disk.exists(`${directory}/runelog/a`)).toBe(false)
    expect(await errorOf(runelog.read("a", { after: 0 }))).toBeInstanceOf(Errors.LogUnknown)
    await runelog.append("a", 1, [{ body: "anew" }])
    await runelog.close()
    const again = await openSmall({ disk })
    expect(bodiesOf(await contentOf(again, "a"))).toEqual(["anew"])
    expect(await again.head("b")).toBe(3)
  })

  it("is one removal, however often it is asked for at once", async () => {
    const runelog = await openSmall()
    await fill(runelog, "a", 1, 5)
    const removals = [runelog.remove("a"), runelog.remove("a")]
    for (let tick = 0; tick < 10; tick++) await undefined
    expect(await errorOf(runelog.append("a", 6, [{ body: "late" }]))).toEqual(new Errors.LogUnknown({ log: "a" }))
    expect(await errorOf(runelog.read("a", { after: 0 }))).toBeInstanceOf(Errors.LogUnknown)
    expect(await errorOf(runelog.seal("a"))).toBeInstanceOf(Errors.LogUnknown)
    await Promise.all(removals)
    await runelog.append("a", 1, [{ body: "anew" }])
    expect(await runelog.head("a")).toBe(1)
  })

  it("is refused when the log has gone on, and finds what is under way", async () => {
    const runelog = await openSmall()
    await fill(runelog, "a", 1, 5)
    const late = runelog.append("a", 6, [{ body: "late" }])
    expect(await errorOf(runelog.remove("a", { head: 5 }))).toMatchObject({ _tag: "LogWentOn", head: 6, expected: 5 })
    await late
    expect(await runelog.head("a")).toBe(6)
    await runelog.remove("a", { head: 6 })
    expect(await runelog.list()).toEqual([])
  })

  it("is undone when it finds no room", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 3)
    disk.failNext("write", { code: "ENOSPC" })
    expect(await errorOf(runelog.remove("a"))).toBeInstanceOf(Errors.DiskFull)
    await fill(runelog, "a", 4, 5)
    await runelog.remove("a")
  })

  it("happens after a crash, when only the journal knows of it", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 30)
    await runelog.checkpoint()
    disk.failNext("removeTree", { code: "EIO" })
    expect(await errorOf(runelog.remove("a"))).toBeInstanceOf(Errors.WriterPoisoned)
    await runelog.close()
    const again = await openSmall({ disk: disk.killProcess() })
    expect(await again.list()).toEqual([])
    await again.append("a", 1, [{ body: "anew" }])
  })

  it("of a damaged log lets its name be used again", async () => {
    const disk = makeDiskMemory()
    const first = await openSmall({ disk })
    await fill(first, "a", 1, 3)
    await first.close()
    const files = await snapshotOf(disk)
    const path = segmentPath("a", 1)
    const damaged = await diskOf(withFiles(files, { [path]: files.get(path)!.subarray(0, 100) }))
    const runelog = await openSmall({ disk: damaged })
    expect(await errorOf(runelog.append("a", 4, [{ body: "no" }]))).toBeInstanceOf(Errors.LogDamaged)
    await runelog.remove("a")
    await runelog.append("a", 1, [{ body: "anew" }])
    await runelog.close()
    expect(await (await openSmall({ disk: damaged })).head("a")).toBe(1)
  })
})

describe("list", () => {
  it("names logs in memory and on disk, in order, and nothing else", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    for (const log of ["b", "a", "c"]) await runelog.append(log, 1, [{ body: "x" }])
    await runelog.checkpoint()
    await runelog.append("d", 1, [{ body: "x" }])
    await runelog.head("unknown")
    await disk.makeDirectory(`${directory}/runelog/not a log`)
    await writeFileOf(disk, `${directory}/runelog/file`, Buffer.from("x"))
    expect(await runelog.list()).toEqual(["a", "b", "c", "d"])
  })

  it("says so when the disk does not answer, and goes on", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    disk.failNext("list", { code: "EIO" })
    expect(await errorOf(runelog.list())).toBeInstanceOf(Errors.DiskFailed)
    await runelog.append("a", 1, [{ body: "x" }])
  })
})

describe("two writers", () => {
  it("do not share a directory", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    expect(await errorOf(openSmall({ disk }))).toEqual(new Errors.DirectoryLocked({ path: directory, pid: undefined }))
    await runelog.close()
    await (await openSmall({ disk })).close()
  })
})

describe("close", () => {
  it("commits what was taken and refuses what comes after", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    const taken = Array.from({ length: 20 }, (_, at) => runelog.append("a", at + 1, [entryOf(at + 1)]))
    await runelog.head("a")
    const closing = runelog.close()
    expect(runelog.close()).toBe(closing)
    const closed = new Errors.WriterClosed({ path: directory })
    expect(await errorOf(runelog.append("a", 21, [{ body: "late" }]))).toEqual(closed)
    expect(await errorOf(runelog.append("new", 1, [{ body: "late" }]))).toEqual(closed)
    for (const call of [runelog.head("a"), runelog.read("a", { after: 0 }), runelog.seal("a"), runelog.remove("a")]) {
      expect(await errorOf(call)).toEqual(closed)
    }
    for (const call of [runelog.list(), runelog.checkpoint()]) expect(await errorOf(call)).toEqual(closed)
    await Promise.all(taken)
    await closing
    await runelog.ready()
    const again = await openSmall({ disk })
    expect(again.recovered).toEqual({ clean: true, batches: 0, frames: 0, logs: [] })
    expect(bodiesOf(await contentOf(again, "a"))).toHaveLength(20)
  })

  it("waits for reads under way", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 50)
    await runelog.checkpoint()
    const page = runelog.read("a", { after: 0 })
    await runelog.close()
    expect((await page).frames.length).toBeGreaterThan(0)
  })

  it("releases the lock also when the disk fails, and loses nothing", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 5)
    disk.failNext("sync", { code: "EIO" })
    expect(await errorOf(runelog.close())).toBeInstanceOf(Errors.WriterPoisoned)
    const again = await openSmall({ disk })
    expect(await again.head("a")).toBe(5)
  })

  it("of a poisoned writer leaves everything to the next start", async () => {
    const disk = new DiskSim()
    const onPoison = vi.fn()
    const runelog = await openSmall({ disk, onPoison })
    await fill(runelog, "a", 1, 5)
    disk.failNext("sync", { code: "EIO" })
    const poisoned = await errorOf(runelog.append("a", 6, [{ body: "lost?" }]))
    expect(poisoned).toBeInstanceOf(Errors.WriterPoisoned)
    expect(onPoison).toHaveBeenCalledExactlyOnceWith(poisoned)
    expect(runelog.poisoned).toBe(poisoned)
    await runelog.close()
    expect(await (await openSmall({ disk })).head("a")).toBeGreaterThanOrEqual(5)
  })
})

describe("a damaged journal", () => {
  const damagedDisk = async (): Promise<Disk> => {
    const disk = makeDiskMemory()
    const first = await openSmall({ disk })
    await fill(first, "a", 1, 5)
    const files = await snapshotOf(disk)
    const path = `${directory}/journal/00000001.jnl`
    const journal = Buffer.from(files.get(path)!)
    journal[2 * 4096 + 70]! ^= 1
    return diskOf(withFiles(files, { [path]: journal }))
  }

  it("lets everything good be read and nothing be changed, time and again", async () => {
    const disk = await damagedDisk()
    for (let start = 0; start < 2; start++) {
      const runelog = await openSmall({ disk })
      const { readOnly } = runelog
      expect(readOnly).toBeInstanceOf(Errors.JournalCorrupt)
      expect(await runelog.head("a")).toBe(1)
      expect(bodiesOf(await contentOf(runelog, "a"))).toEqual([entryOf(1).body])
      for (const call of [
        runelog.append("a", 2, [{ body: "no" }]),
        runelog.append("new", 1, [{ body: "no" }]),
        runelog.seal("a"),
        runelog.remove("a"),
        runelog.checkpoint()
      ]) {
        expect(await errorOf(call)).toBe(readOnly)
      }
      await runelog.close()
    }
  })
})

describe("reads of a disk that fails", () => {
  it("say so and stop nobody", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, limits: { residentLogsMax: 1 } })
    await fill(runelog, "a", 1, 30)
    await runelog.checkpoint()
    disk.failNext("read", { code: "EIO" })
    expect(await errorOf(runelog.read("a", { after: 0 }))).toBeInstanceOf(Errors.DiskFailed)
    await runelog.head("b")
    disk.failNext("list", { code: "EIO" })
    expect(await errorOf(runelog.append("a", 31, [{ body: "x" }]))).toBeInstanceOf(Errors.DiskFailed)
    expect(runelog.poisoned).toBeUndefined()
    await runelog.append("a", 31, [{ body: "x" }])
    expect((await contentOf(runelog, "a")).frames).toHaveLength(31)
  })
})

describe("many logs", () => {
  it("leave memory when they are idle and come back when they are asked for", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: { residentLogsMax: 10, openFilesMax: 4 } })
    for (let round = 0; round < 3; round++) {
      for (let log = 0; log < 40; log++) await runelog.append(`log-${log}`, round + 1, [{ body: `${log} ${round}` }])
      await runelog.checkpoint()
    }
    await runelog.head("one-more")
    expect(runelog.stats.residentLogs).toBeLessThanOrEqual(11)
    expect(await runelog.list()).toHaveLength(40)
    for (let log = 0; log < 40; log++) {
      expect(bodiesOf(await contentOf(runelog, `log-${log}`))).toEqual([`${log} 0`, `${log} 1`, `${log} 2`])
    }
  })

  it("are opened only when somebody asks for them", async () => {
    const disk = new DiskSim()
    const first = await openSmall({ disk })
    for (let log = 0; log < 20; log++) await fill(first, `log-${log}`, 1, 30)
    await first.close()
    const opened: Array<string> = []
    const watching = withCalls(disk, {
      open: (path, mode) => {
        opened.push(path)
        return disk.open(path, mode)
      }
    })
    const runelog = await openSmall({ disk: watching })
    expect(opened.filter((path) => path.includes("/runelog/"))).toEqual([])
    await runelog.head("log-7")
    const touched = opened.filter((path) => path.includes("/runelog/"))
    expect(touched.length).toBeGreaterThan(0)
    expect(touched.every((path) => path.includes("/log-7/"))).toBe(true)
  })

  it("take an append to one that was forgotten in the moment between its opening and the append", async () => {
    const disk = makeDiskMemory()
    const first = await openSmall({ disk })
    await fill(first, "a", 1, 1)
    await fill(first, "b", 1, 1)
    await first.close()
    let openings = 0
    const counted = withCalls(disk, {
      list: (path) => {
        if (path.endsWith("/a")) openings += 1
        return disk.list(path)
      }
    })
    const runelog = await openSmall({ disk: counted, limits: { residentLogsMax: 1 } })
    let isOpening = true
    const opened = Promise.all([runelog.head("a"), runelog.head("b")]).finally(() => {
      isOpening = false
    })
    // One at every step, as there is no telling at which of them "b" takes the place of "a". None of them changes "a".
    const appends: Array<Promise<unknown>> = []
    while (isOpening) {
      appends.push(errorOf(runelog.append("a", 2, [])))
      await undefined
    }
    await opened
    for (const refused of await Promise.all(appends)) expect(refused).toEqual(new Errors.BatchEmpty({ log: "a" }))
    expect(openings).toBeGreaterThan(1)
    await runelog.append("a", 2, [entryOf(2)])
    expect(await runelog.head("a")).toBe(2)
  })
})

describe("figures", () => {
  it("are there to be shown", async () => {
    const runelog = await openSmall()
    await runelog.append("a", 1, [{ body: "x" }])
    expect(runelog.stats).toMatchObject({ residentLogs: 1, journalFiles: 1 })
    expect(runelog.stats.memoryBytes).toBeGreaterThan(0)
    expect(runelog.stats.sequence).toBeGreaterThan(1)
  })

  it("take the clock and chance of the machine unless told otherwise", async () => {
    const disk = makeDiskMemory()
    const runelog = await Runelog.open({ directory, disk })
    await runelog.append("a", 1, [{ body: "x" }])
    await runelog.close()
  })
})
