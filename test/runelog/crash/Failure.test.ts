// Goal: after the first failed sync nothing builds on what may not be there, and everybody who waits is told. Each of
// these once acknowledged, sealed or freed what was lost, or left somebody waiting for ever.
import { describe, expect, it } from "vitest"
import type { DiskFile } from "#runelog/disk/Disk.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { appendNext, bodyOf, cutPower, directory, entries, openSmall, readWhole } from "../../support/runelog/small.ts"
import { settled, turn } from "../../support/runelog/turns.ts"

const seeds = Array.from({ length: 10 }, (_, index) => index)
const tagged = (tag: string) => ({ _tag: tag })

describe("a failed sync of a segment", () => {
  it.each(["EIO", "ENOSPC"] as const)("lets no checkpoint pass, not even one that waited for it (%s)", async (code) => {
    for (const seed of seeds) {
      const disk = new DiskSim()
      const runelog = await openSmall(disk)
      for (const log of ["alpha", "beta", "gamma"]) await appendNext(runelog, log, 300)
      disk.failNext("sync", { code })
      const calls = [runelog.checkpoint(), runelog.checkpoint(), runelog.seal("alpha"), runelog.seal("beta")]
      const outcomes = await Promise.allSettled(calls)
      expect(outcomes.map(({ status }) => status)).not.toContain("fulfilled")
      expect(runelog.poisoned).toMatchObject(tagged("WriterPoisoned"))
      await expect(appendNext(runelog, "alpha")).rejects.toMatchObject(tagged("WriterPoisoned"))
      expect(await readWhole(runelog, "alpha")).toEqual([bodyOf("alpha", 1, 300)])
      const next = await openSmall(await cutPower(disk, runelog, seed))
      for (const log of ["alpha", "beta", "gamma"]) {
        expect(await readWhole(next, log)).toEqual([bodyOf(log, 1, 300)])
      }
      await next.close()
    }
  })
})

describe("a failed sync of a log's directory", () => {
  it("stops the seals behind it", async () => {
    for (const seed of seeds) {
      const disk = new DiskSim()
      const runelog = await openSmall(disk, { limits: { segmentBytes: 600 } })
      for (let count = 0; count < 6; count++) {
        const eventId = (await runelog.head("log")) + 1
        const role = eventId % 2 === 1 ? "delta" : "supersedes"
        await runelog.append("log", eventId, [{ body: bodyOf("log", eventId, 400), stream: 1, role }])
      }
      await runelog.checkpoint()
      disk.failNext("syncDirectory", { code: "EIO", after: seed })
      const outcomes = await Promise.allSettled([runelog.seal("log"), runelog.seal("log")])
      const found = await cutPower(disk, runelog, seed)
      expect((await verify({ directory, disk: found })).problems, JSON.stringify(outcomes)).toEqual([])
      const next = await openSmall(found)
      expect(await next.head("log")).toBe(6)
      await next.close()
    }
  })
})

describe("a failed sync of the journal", () => {
  it("answers everybody, also those who were waiting when the writer had stopped already", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall(disk, { sync: "pool" })
    await appendNext(runelog, "log")
    disk.failNext("sync", { code: "EIO", times: 100 })
    const waiting = [2, 3, 4].map((eventId) => runelog.append("log", eventId, entries("lost")))
    // Two ways to stop at once: the sync of the batch and the one of the checkpoint.
    const checkpoint = runelog.checkpoint()
    const outcomes = await settled(Promise.allSettled([...waiting, checkpoint]), "what waits for a broken disk")
    expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected", "rejected"])
    await settled(runelog.ready(), "ready")
    await expect(runelog.seal("log")).rejects.toMatchObject(tagged("WriterPoisoned"))
    await expect(runelog.remove("log")).rejects.toMatchObject(tagged("WriterPoisoned"))
    await settled(runelog.close(), "close")
  })

  it("answers the batch whose sync was under way when something else stopped the writer", async () => {
    const disk = new DiskSim()
    const journal = Promise.withResolvers<void>()
    const segment = Promise.withResolvers<void>()
    let isHeld = false
    const held = {
      ...forwardTo(disk),
      open: async (path: string, mode: "read" | "write" | "create"): Promise<DiskFile> => {
        const file = await disk.open(path, mode)
        const sync = async (): Promise<void> => {
          if (isHeld) await (path.includes(".jnl") ? journal : segment).promise
          await file.sync()
        }
        return { ...file, sync }
      }
    }
    const runelog = await openSmall(held, { sync: "pool" })
    await appendNext(runelog, "log")
    isHeld = true
    const checkpoint = runelog.checkpoint()
    for (let turns = 0; turns < 10; turns++) await turn()
    const late = runelog.append("log", 2, entries("late"))
    for (let turns = 0; turns < 10; turns++) await turn()
    segment.reject(Object.assign(new Error("EIO: broken"), { code: "EIO" }))
    await expect(checkpoint).rejects.toMatchObject(tagged("WriterPoisoned"))
    journal.resolve()
    await settled(expect(late).rejects.toMatchObject(tagged("WriterPoisoned")), "the late append")
    await settled(runelog.close(), "close")
  })

  it("leaves it open whether the batch is there, and the segment that it belongs to as well", async () => {
    for (const seed of seeds) {
      const disk = new DiskSim()
      const runelog = await openSmall(disk)
      await appendNext(runelog, "log")
      disk.failNext("sync", { code: "EIO" })
      const doubtful = runelog.append("log", 2, entries("doubtful"))
      const seal = runelog.seal("log")
      await expect(doubtful).rejects.toMatchObject(tagged("WriterPoisoned"))
      await expect(seal).rejects.toMatchObject(tagged("WriterPoisoned"))
      // The process starts again on a machine that goes on running: the batch is still in memory.
      const again = disk.killProcess()
      await runelog.close().catch(() => undefined)
      const next = await openSmall(again)
      expect(await readWhole(next, "log")).toEqual([bodyOf("log", 1), "doubtful"])
      const last = await openSmall(await cutPower(again, next, seed))
      expect(await readWhole(last, "log")).toEqual([bodyOf("log", 1), "doubtful"])
      await last.close()
    }
  })
})

describe("a seal", () => {
  it("whose index cannot be written stands all the same", async () => {
    const disk = new DiskSim()
    const writes: Array<string> = []
    const broken = {
      ...forwardTo(disk),
      open: async (path: string, mode: "read" | "write" | "create"): Promise<DiskFile> => {
        const file = await disk.open(path, mode)
        if (!path.endsWith(".idx")) return file
        writes.push(path)
        return { ...file, write: () => Promise.reject(Object.assign(new Error("EIO: broken"), { code: "EIO" })) }
      }
    }
    const runelog = await openSmall(broken)
    const body = bodyOf("log", 1, 200)
    await runelog.append("log", 1, [
      { body, stream: 1, role: "delta" },
      { body: "final", stream: 1, role: "supersedes" }
    ])
    await expect(runelog.seal("log")).rejects.toMatchObject(tagged("WriterPoisoned"))
    expect(writes.length).toBeGreaterThan(0)
    // The file is the thinned one, and so is what readers are told of it.
    expect(await readWhole(runelog, "log")).toEqual(["1-1", "final"])
    await runelog.close().catch(() => undefined)
    const next = await openSmall(disk.killProcess())
    expect(await readWhole(next, "log")).toEqual(["1-1", "final"])
    await next.close()
  })

  it("among refused appends seals what is durable and nothing else", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall(disk)
    await appendNext(runelog, "log", 3000)
    disk.failNext("write", { code: "ENOSPC" })
    const refused = runelog.append("log", 2, entries("refused"))
    const seal = runelog.seal("log")
    await expect(refused).rejects.toMatchObject(tagged("DiskFull"))
    expect(await seal).toMatch(/^[0-9a-f]{64}$/)
    await appendNext(runelog, "log")
    expect(await readWhole(runelog, "log")).toEqual([bodyOf("log", 1, 3000), bodyOf("log", 2)])
    await runelog.close()
    expect((await verify({ directory, disk })).problems).toEqual([])
  })
})

const forwardTo = (disk: DiskSim) => ({
  open: disk.open.bind(disk),
  makeDirectory: disk.makeDirectory.bind(disk),
  list: disk.list.bind(disk),
  rename: disk.rename.bind(disk),
  remove: disk.remove.bind(disk),
  removeTree: disk.removeTree.bind(disk),
  exists: disk.exists.bind(disk),
  syncDirectory: disk.syncDirectory.bind(disk),
  lock: disk.lock.bind(disk)
})
