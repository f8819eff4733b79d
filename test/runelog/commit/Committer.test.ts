// Goal: nobody is told before the sync, a failed sync is the end, and what finds no room leaves no trace. Method: a
// simulated disk that fails at chosen steps, both ways of syncing.
// Verifies: G1, INV-EVENTID-MONOTONIC
import { describe, expect, it, vi } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import { systemError } from "#runelog/disk/DiskFault.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import {
  BatchTooLarge,
  Busy,
  DiskFull,
  EventIdOutOfOrder,
  WriterClosed,
  WriterPoisoned
} from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { bodiesOf, contentOf, entryOf, errorOf, fill, openSmall, withCalls } from "../Fixture.ts"

const modes = ["inline", "pool"] as const

/** The writes and syncs of the journal, in the order they happen. */
const journalSteps = (disk: DiskSim): Array<string> => {
  const steps: Array<string> = []
  disk.onOperation = ({ operation, path }) => {
    if (path.includes("/journal/") && (operation === "write" || operation === "sync")) steps.push(operation)
  }
  return steps
}

/** Longer than a turn of the event loop. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

const outcomes = async (promises: ReadonlyArray<Promise<void>>): Promise<ReadonlyArray<string>> =>
  (await Promise.allSettled(promises)).map((outcome) =>
    outcome.status === "fulfilled" ? "ok" : (outcome.reason as { _tag: string })._tag
  )

describe("a large batch", () => {
  const limits = { earlyCommitBytes: 2 * KIB }
  const large = (eventId: number) => [{ body: `${eventId} ${"x".repeat(3 * KIB)}` }]

  it("is written before the turn ends, and synced while the next is filled", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, sync: "pool", limits })
    await runelog.head("a")
    const steps = journalSteps(disk)
    const told: Array<number> = []
    const note = (eventId: number, append: Promise<void>) => append.then(() => told.push(eventId))
    const first = note(1, runelog.append("a", 1, large(1)))
    expect(steps).toEqual(["write", "sync"])
    const second = note(2, runelog.append("a", 2, large(2)))
    const third = note(3, runelog.append("a", 3, [{ body: "small" }]))
    // At most one batch is unsynced: the second waits for the first, however large it is.
    expect(steps).toEqual(["write", "sync"])
    await first
    expect(told).toEqual([1])
    await Promise.all([second, third])
    expect(steps).toEqual(["write", "sync", "write", "sync"])
    expect(told).toEqual([1, 2, 3])
    for (let seed = 0; seed < 20; seed++) {
      const after = await openSmall({ disk: disk.crash(seed) })
      expect(await after.head("a")).toBe(3)
    }
  })

  it("waits for the end of the turn where all syncs are to be on the calling thread", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, sync: "inline", limits })
    await runelog.head("a")
    const steps = journalSteps(disk)
    const appended = runelog.append("a", 1, large(1))
    expect(steps).toEqual([])
    await appended
    expect(steps).toEqual(["write", "sync"])
  })

  it("goes alone: what was scheduled for the end of the turn waits until it is synced", async () => {
    const disk = new DiskSim()
    const held = Promise.withResolvers<void>()
    let isHeld = false
    const open: Disk["open"] = async (path, mode) => {
      const file = await disk.open(path, mode)
      return { ...file, sync: () => (isHeld ? held.promise.then(file.sync) : file.sync()) }
    }
    const runelog = await openSmall({ disk: withCalls(disk, { open }), sync: "pool", limits })
    await runelog.head("a")
    const steps = journalSteps(disk)
    isHeld = true
    const appends = [runelog.append("a", 1, [{ body: "small" }])]
    expect(steps).toEqual([])
    appends.push(runelog.append("a", 2, large(2)), runelog.append("a", 3, large(3)))
    expect(steps).toEqual(["write"])
    await turn()
    await turn()
    expect(steps).toEqual(["write"])
    held.resolve()
    await Promise.all(appends)
    expect(steps).toEqual(["write", "sync", "write", "sync"])
    expect(await runelog.head("a")).toBe(3)
  })

  it("that finds no room is refused, and leaves no trace", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, sync: "pool", limits })
    await fill(runelog, "a", 1, 3)
    disk.failNext("write", { code: "ENOSPC" })
    expect(await outcomes([runelog.append("a", 4, large(4))])).toEqual(["DiskFull"])
    await runelog.append("a", 4, large(4))
    expect(await runelog.head("a")).toBe(4)
  })

  it("that cannot be written or synced is the end", async () => {
    for (const operation of ["write", "sync"] as const) {
      const disk = new DiskSim()
      const runelog = await openSmall({ disk, sync: "pool", limits })
      await fill(runelog, "a", 1, 3)
      disk.failNext(operation, { code: "EIO" })
      const appends = [runelog.append("a", 4, large(4)), runelog.append("a", 5, large(5))]
      expect(await outcomes(appends)).toEqual(["WriterPoisoned", "WriterPoisoned"])
      expect(await errorOf(runelog.append("a", 4, large(4)))).toBe(runelog.poisoned)
      expect(await runelog.head("a")).toBe(3)
      await runelog.close()
    }
  })
})

describe.each(modes)("a commit, synced %s", (sync) => {
  it("acknowledges only after the sync that covers the frames", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, sync })
    const steps = journalSteps(disk)
    const noted = runelog.append("a", 1, [{ body: "x" }]).then(() => steps.push("acknowledged"))
    await noted
    expect(steps).toEqual(["write", "sync", "acknowledged"])
    for (let seed = 0; seed < 20; seed++) {
      const after = await openSmall({ disk: disk.crash(seed) })
      expect(await after.head("a")).toBe(1)
    }
  })

  it("takes everything that waits into one write and one sync", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, sync })
    await Promise.all(Array.from({ length: 20 }, (_, log) => runelog.head(`log-${log}`)))
    const steps = journalSteps(disk)
    await Promise.all(Array.from({ length: 20 }, (_, log) => runelog.append(`log-${log}`, 1, [{ body: "x" }])))
    expect(steps).toEqual(["write", "sync"])
  })

  it("ends at the first sync that fails: no further acknowledgement, reads go on", async () => {
    const disk = new DiskSim()
    const onPoison = vi.fn()
    const runelog = await openSmall({ disk, sync, onPoison })
    await fill(runelog, "a", 1, 3)
    await runelog.head("b")
    disk.failNext("sync", { code: "EIO" })
    const waiting = [
      runelog.append("a", 4, [{ body: "x" }]),
      runelog.append("a", 5, [{ body: "x" }]),
      runelog.append("b", 1, [{ body: "x" }])
    ]
    expect(await outcomes(waiting)).toEqual(["WriterPoisoned", "WriterPoisoned", "WriterPoisoned"])
    expect(await errorOf(runelog.append("a", 4, [{ body: "x" }]))).toBe(runelog.poisoned)
    expect(await errorOf(runelog.append("a", 4, [{ body: "x" }], { terminal: true }))).toBe(runelog.poisoned)
    expect(onPoison).toHaveBeenCalledTimes(1)
    expect(await runelog.head("a")).toBe(3)
    expect(bodiesOf(await contentOf(runelog, "a"))).toHaveLength(3)
    for (const call of [runelog.seal("a"), runelog.remove("a"), runelog.checkpoint()]) {
      expect(await errorOf(call)).toBe(runelog.poisoned)
    }
    await runelog.ready()
    await runelog.close()
    const after = await openSmall({ disk: disk.killProcess() })
    expect(await after.head("a")).toBeGreaterThanOrEqual(3)
  })

  it("ends at the first write that fails for another reason than room", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, sync })
    await fill(runelog, "a", 1, 3)
    disk.failNext("write", { code: "EIO", partialBytes: 100 })
    expect(await errorOf(runelog.append("a", 4, [{ body: "x" }]))).toBeInstanceOf(WriterPoisoned)
    expect(await runelog.head("a")).toBe(3)
  })

  it("rolls back what was taken behind a batch that finds no room, for every log", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, sync, limits: { segmentBytes: 300 } })
    await fill(runelog, "a", 1, 3)
    await fill(runelog, "b", 1, 2)
    disk.failNext("write", { code: "ENOSPC", partialBytes: 4096 })
    const waiting = [
      runelog.append("a", 4, [entryOf(4), entryOf(5)]),
      runelog.append("b", 3, [entryOf(3)]),
      runelog.append("c", 1, [entryOf(1)]),
      runelog.append("a", 6, [{ body: "x".repeat(700) }]),
      runelog.append("a", 7, [{ body: "x".repeat(700) }])
    ]
    const told = await outcomes(waiting)
    expect(told.slice(0, 2)).toEqual(["DiskFull", "DiskFull"])
    await Promise.all([fill(runelog, "a", 4, 9), fill(runelog, "b", 3, 5)])
    expect(bodiesOf(await contentOf(runelog, "a"))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map((id) => entryOf(id).body))
    const after = await openSmall({ disk: disk.crash(3), limits: { segmentBytes: 300 } })
    expect([await after.head("a"), await after.head("b")]).toEqual([9, 5])
  })

  it("leaves no trace of what was refused, whatever of it was written", async () => {
    for (const partialBytes of [0, 64, 4096]) {
      const disk = new DiskSim()
      const runelog = await openSmall({ disk, sync })
      await fill(runelog, "a", 1, 1)
      disk.failNext("write", { code: "ENOSPC", partialBytes })
      expect(await errorOf(runelog.append("a", 2, [{ body: "refused" }]))).toBeInstanceOf(DiskFull)
      for (let seed = 0; seed < 20; seed++) {
        const after = await openSmall({ disk: disk.crash(seed) })
        expect(after.readOnly).toBeUndefined()
        expect(await after.head("a")).toBe(1)
      }
    }
  })

  it("ends when not even that can be made sure of", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, sync })
    expect(await runelog.refusal("a")).toBeUndefined()
    disk.failNext("write", { code: "ENOSPC", times: 2 })
    expect(await errorOf(runelog.append("a", 1, [{ body: "x" }]))).toBeInstanceOf(WriterPoisoned)
    expect(await runelog.refusal("a")).toBeInstanceOf(WriterPoisoned)
  })
})

/** A writer in the middle of a commit: "b" waits for its segment to be opened, "a" for the sync of the journal. */
const heldCommit = async () => {
  const disk = new DiskSim()
  const [journal, segment] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let isHeld = false
  const runelog = await openSmall({
    sync: "pool",
    disk: withCalls(disk, {
      open: async (path, mode) => {
        if (path.endsWith(".seg")) await segment.promise
        const file = await disk.open(path, mode)
        return { ...file, sync: () => (isHeld ? journal.promise.then(file.sync) : file.sync()) }
      }
    })
  })
  // Heavy enough to be written to its segment at once.
  await runelog.append("b", 1, [{ body: "x".repeat(2000) }])
  await runelog.head("a")
  await runelog.head("c")
  isHeld = true
  const appends = [runelog.append("a", 1, [{ body: "x" }])]
  await turn()
  const release = (): void => {
    isHeld = false
    journal.resolve()
  }
  return { disk, runelog, segment, appends, release }
}

describe("a commit", () => {
  it("is not acknowledged when the writer fails elsewhere meanwhile", async () => {
    const { appends, release, runelog, segment } = await heldCommit()
    segment.reject(systemError("EIO", "write", "segment"))
    while (runelog.poisoned === undefined) await turn()
    release()
    expect(await errorOf(appends[0]!)).toBe(runelog.poisoned)
    expect(await runelog.head("a")).toBe(0)
  })

  it("answers all that waits behind the batch under way when the writer fails", async () => {
    const { appends, release, runelog, segment } = await heldCommit()
    appends.push(runelog.append("a", 2, [{ body: "y" }]), runelog.append("c", 1, [{ body: "z" }]))
    const waiting = outcomes(appends)
    await turn()
    segment.reject(systemError("EIO", "write", "segment"))
    while (runelog.poisoned === undefined) await turn()
    release()
    expect(await waiting).toEqual(["WriterPoisoned", "WriterPoisoned", "WriterPoisoned"])
    expect(await Promise.all(["a", "c"].map((log) => runelog.head(log)))).toEqual([0, 0])
    await runelog.close()
  })

  it("that a close overtakes is finished, a removal that waited for it is refused, and the log stays", async () => {
    const { appends, disk, release, runelog, segment } = await heldCommit()
    const removal = errorOf(runelog.remove("b"))
    await turn()
    const closing = runelog.close()
    segment.resolve()
    release()
    expect(await outcomes(appends)).toEqual(["ok"])
    expect(await removal).toBeInstanceOf(WriterClosed)
    await closing
    const after = await openSmall({ disk })
    expect(await Promise.all(["a", "b"].map((log) => after.head(log)))).toEqual([1, 1])
  })

  it("makes the writer ready only when less waits than may", async () => {
    const disk = new DiskSim()
    const syncs: Array<PromiseWithResolvers<void>> = []
    let isHeld = false
    const runelog = await openSmall({
      sync: "pool",
      limits: { inFlightBytesMax: 4 * KIB },
      disk: withCalls(disk, {
        open: async (path, mode) => {
          const file = await disk.open(path, mode)
          if (!path.endsWith(".jnl") && !path.endsWith(".jnl.tmp")) return file
          const sync = (): Promise<void> => {
            const held = Promise.withResolvers<void>()
            syncs.push(held)
            return held.promise.then(file.sync)
          }
          return { ...file, sync: () => (isHeld ? sync() : file.sync()) }
        }
      })
    })
    await runelog.append("a", 1, [{ body: "x" }])
    isHeld = true
    const appends = [runelog.append("a", 2, [{ body: "x".repeat(3000) }])]
    while (syncs.length < 1) await turn()
    appends.push(runelog.append("a", 3, [{ body: "x".repeat(5000) }]))
    expect(await errorOf(runelog.append("a", 4, [{ body: "x" }]))).toBeInstanceOf(Busy)
    let isReady = false
    const ready = runelog.ready().then(() => {
      isReady = true
    })
    syncs[0]!.resolve()
    await appends[0]
    while (syncs.length < 2) await turn()
    // What is left under way is by itself more than there may be.
    expect(isReady).toBe(false)
    expect(runelog.busy).toBe(true)
    syncs[1]!.resolve()
    await ready
    await appends[1]
    isHeld = false
    await runelog.append("a", 4, [{ body: "x" }])
  })

  it("splits what does not fit into one batch, and refuses what fits into none", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    const body = "x".repeat(20 * KIB)
    await Promise.all([1, 2, 3, 4, 5].map((eventId) => runelog.append("a", eventId, [{ body }])))
    expect(await runelog.head("a")).toBe(5)
    const large = Array.from({ length: 4 }, () => ({ body }))
    expect(await errorOf(runelog.append("a", 6, large))).toBeInstanceOf(BatchTooLarge)
  })

  it("lets the last words through when there is room for nothing else", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({
      disk,
      limits: { journalFilesMax: 1, journalFileBytes: 40 * KIB, reserveBytes: 12 * KIB }
    })
    await fill(runelog, "a", 1, 3)
    disk.capacityBytes = disk.usedBytes
    let next = 4
    let refused: unknown
    while (refused === undefined && next < 100) {
      refused = await runelog.append("a", next, [{ body: "x".repeat(3000) }]).then(
        () => undefined,
        (error) => error
      )
      if (refused === undefined) next += 1
    }
    expect(refused).toBeInstanceOf(DiskFull)
    expect(await errorOf(runelog.append("a", next, [{ body: "more" }]))).toBeInstanceOf(DiskFull)
    expect(runelog.noRoom).toBeInstanceOf(DiskFull)
    await runelog.append("a", next, [{ body: "last words" }], { terminal: true })
    expect(bodiesOf(await contentOf(runelog, "a")).at(-1)).toBe("last words")
    disk.capacityBytes = Number.POSITIVE_INFINITY
    const goesOn = async (): Promise<void> => {
      for (let attempt = 0; attempt < 20; attempt++) {
        const error = await runelog.append("a", next + 1, [{ body: "room again" }]).then(
          () => undefined,
          (reason: unknown) => reason
        )
        if (error === undefined) return
        expect(error).toBeInstanceOf(DiskFull)
        await new Promise((resolve) => setImmediate(resolve))
      }
      throw new Error("there is no room again")
    }
    await goesOn()
    const after = await openSmall({
      disk: disk.crash(1),
      limits: { journalFileBytes: 40 * KIB, reserveBytes: 12 * KIB }
    })
    expect(await after.head("a")).toBe(next + 1)
  })

  it("refuses last words too when there is no room at all", async () => {
    const disk = new DiskSim()
    const limits = { journalFilesMax: 1, journalFileBytes: 24 * KIB, reserveBytes: 4 * KIB }
    const runelog = await openSmall({ disk, limits })
    disk.capacityBytes = disk.usedBytes
    const words = async (eventId: number): Promise<string> => {
      const [outcome] = await outcomes([runelog.append("a", eventId, [{ body: "x".repeat(3000) }], { terminal: true })])
      return outcome!
    }
    let eventId = 1
    while ((await words(eventId)) === "ok") eventId += 1
    expect(await words(eventId)).toBe("DiskFull")
    expect(await runelog.head("a")).toBe(eventId - 1)
  })

  it("counts memory that waits for segments, and is ready when it is written", async () => {
    const runelog: Runelog = await openSmall({
      limits: {
        pendingBytesMax: 64 * KIB,
        segmentWriteBytes: 1024 * KIB,
        journalFileBytes: 1024 * KIB,
        inFlightBytesMax: 1024 * KIB
      }
    })
    let refused = 0
    for (let eventId = 1; eventId <= 100; eventId++) {
      for (;;) {
        const error = await runelog.append("a", eventId, [{ body: "x".repeat(2000) }]).then(
          () => undefined,
          (reason: unknown) => reason
        )
        if (error === undefined) break
        expect(error).toBeInstanceOf(Busy)
        refused += 1
        await runelog.ready()
      }
      expect(runelog.stats.memoryBytes).toBeLessThanOrEqual(128 * KIB)
    }
    expect(await runelog.head("a")).toBe(100)
    expect(refused).toBeGreaterThanOrEqual(0)
  })

  it("after a refusal expects the id that was refused", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 2)
    disk.failNext("write", { code: "ENOSPC" })
    const waiting = [runelog.append("a", 3, [entryOf(3)]), runelog.append("a", 4, [entryOf(4)])]
    expect(await outcomes(waiting)).toEqual(["DiskFull", "DiskFull"])
    expect(await errorOf(runelog.append("a", 5, [entryOf(5)]))).toEqual(
      new EventIdOutOfOrder({ log: "a", expected: 3, got: 5 })
    )
  })
})
