// Goal: the work behind commits makes room without anybody waiting for long, survives a full disk, and stops at a failing
// one. Method: small limits, so that every kind of work happens; a simulated disk.
import { describe, expect, it } from "vitest"
import { systemError } from "#runelog/disk/DiskFault.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { DiskFull, WriterPoisoned } from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { endsInSeal } from "#runelog/segment/Scan.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { DiskSim } from "../support/disk/DiskSim.ts"
import {
  contentOf,
  directory,
  entryOf,
  errorOf,
  fill,
  manualTimers,
  openSmall,
  segmentPath,
  settle,
  withCalls
} from "./Fixture.ts"

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const tagOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "ok",
    (error: { readonly _tag: string }) => error._tag
  )

describe("the journal", () => {
  it("is used again and again, over many logs, and grows no further than it may", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, limits: { journalFilesMax: 4, journalFileBytes: 40 * KIB } })
    for (let round = 1; round <= 4; round++) {
      for (let log = 0; log < 90; log++) await runelog.append(`log-${log}`, round, [entryOf(round)])
    }
    await settle()
    expect(runelog.stats.journalFiles).toBeLessThanOrEqual(4)
    for (let seed = 0; seed < 5; seed++) {
      const after = await openSmall({ disk: disk.crash(seed), limits: { journalFileBytes: 40 * KIB } })
      for (let log = 0; log < 90; log++) expect(await after.head(`log-${log}`)).toBe(4)
    }
  })

  it("does without another file when there is no room for one, and gets it when there is", async () => {
    const disk = new DiskSim()
    const limits = { journalFilesMax: 4, journalFileBytes: 40 * KIB }
    const runelog = await openSmall({ disk, limits })
    disk.capacityBytes = disk.usedBytes + 30 * KIB
    let head = 0
    while (head < 12 && (await tagOf(runelog.append("a", head + 1, [entryOf(head + 1)]))) === "ok") head += 1
    expect(runelog.stats.journalFiles).toBe(1)
    disk.capacityBytes = Number.POSITIVE_INFINITY
    for (let attempt = 0; attempt < 60; attempt++) {
      if ((await tagOf(runelog.append("a", head + 1, [entryOf(head + 1)]))) === "ok") head += 1
      await turn()
    }
    expect(runelog.poisoned).toBeUndefined()
    expect(await runelog.head("a")).toBe(head)
    expect(head).toBeGreaterThan(40)
  })

  it("that cannot grow because the disk fails ends the writer", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({
      disk,
      limits: { journalFilesMax: 4, journalFileBytes: 40 * KIB, segmentWriteBytes: 1024 * KIB }
    })
    await fill(runelog, "a", 1, 3)
    disk.failNext("rename", { code: "EIO" })
    let tag = "ok"
    for (let eventId = 4; tag === "ok" && eventId < 60; eventId++) {
      tag = await tagOf(runelog.append("a", eventId, [{ body: "x".repeat(3000) }]))
      await turn()
    }
    expect(tag).toBe("WriterPoisoned")
  })

  it("waits with a checkpoint of many logs until half of its files are full, and not with one of few", async () => {
    const limits = { journalFilesMax: 6, journalFileBytes: 40 * KIB, segmentWriteBytes: 1024 * KIB }
    const roundsUntilSync = async (logs: number): Promise<number> => {
      const disk = new DiskSim()
      const runelog = await openSmall({ disk, limits })
      const names = Array.from({ length: logs }, (_, log) => `log-${log}`)
      await Promise.all(names.map((name) => runelog.head(name)))
      let isSynced = false
      disk.onOperation = ({ operation, path }) => {
        if (operation === "sync" && path.endsWith(".seg")) isSynced = true
      }
      const body = "x".repeat(16_000 / logs)
      let round = 0
      while (!isSynced && round < 40) {
        round += 1
        await Promise.all(names.map((name) => runelog.append(name, round, [{ body }])))
        await settle()
      }
      expect(runelog.stats.journalFiles).toBeLessThanOrEqual(6)
      await runelog.close()
      return round
    }
    const [few, many] = [await roundsUntilSync(40), await roundsUntilSync(100)]
    expect(few).toBeLessThan(5)
    expect(many).toBeGreaterThan(few + 1)
    expect(many).toBeLessThan(40)
  })
})

describe("memory", () => {
  it("that grows crowded is given back by leaving small logs to the journal, without a file for each", async () => {
    const disk = new DiskSim()
    const limits = { pendingBytesMax: 64 * KIB, segmentWriteBytes: 1024 * KIB, journalFileBytes: 1024 * KIB }
    const runelog = await openSmall({ disk, limits })
    for (let log = 0; log < 60; log++) {
      await runelog.append(`log-${log}`, 1, [{ body: "x".repeat(3000) }])
      await settle()
      expect(runelog.stats.memoryBytes).toBeLessThanOrEqual(64 * KIB)
    }
    expect(runelog.stats.journalLogs).toBeGreaterThan(40)
    expect(await disk.list(`${directory}/runelog`)).toEqual([])
    for (let log = 0; log < 60; log++) expect(await runelog.head(`log-${log}`)).toBe(1)
  })

  it("that grows crowded is given back by writing all logs that wait, where they are too large to leave", async () => {
    const disk = new DiskSim()
    const limits = {
      pendingBytesMax: 2048 * KIB,
      segmentBytes: 1024 * KIB,
      segmentWriteBytes: 1024 * KIB,
      journalFileBytes: 8192 * KIB
    }
    const runelog = await openSmall({ disk, limits })
    const isWritten = (log: number): Promise<boolean> => disk.exists(`${directory}/runelog/log-${log}`)
    let log = 0
    while (!(await isWritten(0)) && log < 40) {
      await runelog.append(`log-${log}`, 1, [{ body: "x".repeat(96_000) }])
      await settle()
      log += 1
      expect(runelog.stats.memoryBytes).toBeLessThanOrEqual(2048 * KIB)
    }
    // A slab holds frames of many logs: it is free only when the last of them is written.
    expect(log).toBeGreaterThan(2)
    expect(log).toBeLessThan(20)
    expect(await isWritten(log - 1)).toBe(true)
    expect(runelog.stats.memoryBytes).toBeLessThan(1024 * KIB)
    for (let each = 0; each < log; each++) expect(await runelog.head(`log-${each}`)).toBe(1)
  })
})

describe("a checkpoint", () => {
  it("brings everything into synced segments: nothing is left to recover", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    for (let log = 0; log < 10; log++) await fill(runelog, `log-${log}`, 1, 5)
    await runelog.checkpoint()
    for (let seed = 0; seed < 10; seed++) {
      const after = await openSmall({ disk: disk.crash(seed) })
      expect(after.recovered.batches).toBe(0)
      for (let log = 0; log < 10; log++) expect(await after.head(`log-${log}`)).toBe(5)
    }
  })

  it("whose sync fails, for whatever reason, ends the writer and frees nothing", async () => {
    for (const code of ["EIO", "ENOSPC"] as const) {
      for (const operation of ["sync", "syncDirectory"] as const) {
        const disk = new DiskSim()
        const runelog = await openSmall({ disk, limits: { segmentWriteBytes: 1024 * KIB } })
        await fill(runelog, "a", 1, 5)
        disk.failNext(operation, { code })
        expect(await errorOf(runelog.checkpoint())).toBeInstanceOf(WriterPoisoned)
        await runelog.close()
        for (let seed = 0; seed < 5; seed++)
          expect(await (await openSmall({ disk: disk.crash(seed) })).head("a")).toBe(5)
      }
    }
  })

  it("that finds no room can be asked for again", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, limits: { segmentWriteBytes: 1024 * KIB } })
    await fill(runelog, "a", 1, 5)
    disk.capacityBytes = disk.usedBytes
    expect(await errorOf(runelog.checkpoint())).toBeInstanceOf(DiskFull)
    disk.capacityBytes = Number.POSITIVE_INFINITY
    await runelog.checkpoint()
    expect((await contentOf(runelog, "a")).frames).toHaveLength(5)
  })
})

describe("a checkpoint beside a seal", () => {
  it("keeps the journal of a log whose directory came into being while the root was synced", async () => {
    const disk = new DiskSim()
    const root = `${directory}/runelog`
    const began = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    let isHeld = false
    const syncDirectory = async (path: string): Promise<void> => {
      const synced = disk.syncDirectory(path)
      if (path !== root || !isHeld) return synced
      isHeld = false
      began.resolve()
      await release.promise
      return synced
    }
    const limits = { segmentWriteBytes: 1024 * KIB }
    const runelog = await openSmall({ disk: withCalls(disk, { syncDirectory }), limits })
    await fill(runelog, "a", 1, 1)
    isHeld = true
    const checkpoint = runelog.checkpoint()
    await began.promise
    await fill(runelog, "b", 1, 2)
    await runelog.seal("b")
    release.resolve()
    await checkpoint
    for (let seed = 0; seed < 20; seed++) {
      const after = await openSmall({ disk: disk.crash(seed), limits })
      expect([await after.head("a"), await after.head("b")], `seed ${seed}`).toEqual([1, 2])
    }
  })
})

describe("a checkpoint beside a removal", () => {
  it("keeps the journal of a removal that is under way, so that a start finishes it", async () => {
    const disk = new DiskSim()
    const places = { first: `${directory}/runelog/first`, second: `${directory}/runelog/second` }
    const began = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const halfGone = Promise.withResolvers<void>()
    const never = new Promise<void>(() => undefined)
    const removeTree = async (path: string): Promise<void> => {
      if (path === places.first) {
        began.resolve()
        await release.promise
      }
      if (path !== places.second) return disk.removeTree(path)
      // The machine stops when one of its files is gone.
      const [one] = (await disk.list(path)).filter(({ name }) => name.endsWith(".seg"))
      await disk.remove(`${path}/${one!.name}`)
      await disk.syncDirectory(path)
      halfGone.resolve()
      return never
    }
    const limits = { segmentBytes: 1000 }
    const runelog = await openSmall({ disk: withCalls(disk, { removeTree }), limits })
    for (const log of ["first", "second", "third"]) await fill(runelog, log, 1, 30)
    await runelog.checkpoint()
    void runelog.remove("first")
    await began.promise
    const checkpoint = runelog.checkpoint()
    await settle()
    // Durable while the checkpoint waits for the files of the first one.
    void runelog.remove("second")
    await settle()
    release.resolve()
    await halfGone.promise
    await checkpoint
    for (let seed = 0; seed < 20; seed++) {
      const crashed = disk.crash(seed)
      const after = await openSmall({ disk: crashed, limits })
      expect(await after.list(), `seed ${seed}`).toEqual(["third"])
      expect(await after.head("second"), `seed ${seed}`).toBe(0)
      await after.close()
      expect((await verify({ directory, disk: crashed })).problems).toEqual([])
    }
  })
})

describe("sealing behind commits", () => {
  const deltas = async (runelog: Runelog, from: number, to: number): Promise<void> => {
    for (let eventId = from; eventId <= to; eventId++) {
      const role = eventId % 4 === 0 ? ("supersedes" as const) : ("delta" as const)
      await runelog.append("a", eventId, [{ body: "x".repeat(100), role }])
    }
  }

  it("ends the writer when the disk fails under it, and loses nothing", async () => {
    const disk = new DiskSim()
    const limits = { segmentBytes: 1000, segmentWriteBytes: 1024 * KIB }
    const runelog = await openSmall({ disk, limits })
    disk.failNext("rename", { code: "EIO" })
    let head = 0
    for (let tag = "ok"; tag === "ok" && head < 200; await settle()) {
      tag = await tagOf(deltas(runelog, head + 1, head + 1))
      if (tag === "ok") head += 1
      else expect(tag).toBe("WriterPoisoned")
    }
    expect(runelog.poisoned).toBeInstanceOf(WriterPoisoned)
    expect(head).toBeLessThan(20)
    await runelog.close()
    const again = await openSmall({ disk: disk.killProcess(), limits })
    expect(await again.head("a")).toBe(head)
  })

  it("waits when there is no room for its copy, while appends go on, and is made when there is", async () => {
    const disk = new DiskSim()
    const limits = { segmentBytes: 1000, segmentWriteBytes: 1024 * KIB }
    const timers = manualTimers()
    const runelog = await openSmall({ disk, limits, later: timers.later })
    const isSealed = async (): Promise<boolean> => {
      const file = await disk.open(segmentPath("a", 1), "read")
      return endsInSeal(file, await file.size())
    }
    let refusals = 0
    disk.onOperation = ({ operation, path }) => {
      const isCopy = operation === "create" && path.endsWith(".seg.tmp")
      if (isCopy && refusals-- > 0) throw systemError("ENOSPC", "open", path)
    }
    refusals = 3
    for (let head = 0; head < 24; head += 4) {
      await deltas(runelog, head + 1, head + 4)
      await settle()
    }
    expect(await isSealed()).toBe(false)
    expect(timers.delays).toEqual([1_000])
    await timers.fire()
    await timers.fire()
    expect(await isSealed()).toBe(false)
    expect(timers.delays).toEqual([1_000, 2_000, 4_000])
    await timers.fire()
    expect(await isSealed()).toBe(true)
    expect(timers.pending).toBe(0)
    // A seal that went well makes the next pause short again.
    refusals = 1
    await deltas(runelog, 25, 60)
    await settle()
    expect(timers.delays.slice(3)).toEqual([1_000])
    await runelog.close()
    expect(timers.pending).toBe(0)
    expect((await verify({ directory, disk })).problems).toEqual([])
  })
})
