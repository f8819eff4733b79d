// Goal: last words find their room on a full disk whoever they share it with, an appender that is sent away is told why,
// and a writer that fails while it is closed says so. Method: a simulated disk that is full to the byte or fails once.
import { describe, expect, it } from "vitest"
import { Backpressure } from "#runelog/commit/Backpressure.ts"
import { Slabs } from "#runelog/commit/Slabs.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { Busy, DiskFull, WriterClosed, WriterPoisoned } from "#runelog/RunelogErrors.ts"
import { KIB, limits } from "#runelog/RunelogLimits.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { bodiesOf, contentOf, errorOf, openSmall } from "../Fixture.ts"

const small = {
  journalFileBytes: 64 * KIB,
  reserveBytes: 28 * KIB,
  segmentBytes: 1024 * KIB,
  segmentWriteBytes: 1024 * KIB
}

const outcomes = async (appends: ReadonlyArray<Promise<void>>): Promise<ReadonlyArray<string>> =>
  (await Promise.allSettled(appends)).map((outcome) =>
    outcome.status === "fulfilled" ? "ok" : (outcome.reason as { readonly _tag: string })._tag
  )

/** A log whose journal has room for last words only, on a disk that has none for anything else. */
const filled = async (): Promise<{ readonly disk: DiskSim; readonly runelog: Runelog; readonly next: number }> => {
  const disk = new DiskSim()
  const runelog = await openSmall({ disk, limits: small })
  await runelog.append("a", 1, [{ body: "first" }])
  await runelog.append("b", 1, [{ body: "first" }])
  disk.capacityBytes = disk.usedBytes
  // One header, two batches, seven pages of reserve: six pages are left.
  for (let next = 2; next <= 7; next++) await runelog.append("a", next, [{ body: "more" }])
  return { disk, runelog, next: 8 }
}

const terminal = { terminal: true }

describe("last words on a full disk", () => {
  it("are taken although they share a batch with what is refused", async () => {
    const { disk, next, runelog } = await filled()
    const told = await outcomes([
      runelog.append("a", next, [{ body: "refused" }]),
      runelog.append("b", 2, [{ body: "last words" }], terminal),
      runelog.append("b", 3, [{ body: "and more" }], terminal)
    ])
    expect(told).toEqual(["DiskFull", "ok", "ok"])
    for (let seed = 0; seed < 10; seed++) {
      const crashed = disk.crash(seed)
      crashed.capacityBytes = Number.POSITIVE_INFINITY
      const after = await openSmall({ disk: crashed, limits: small })
      expect(await after.head("a")).toBe(next - 1)
      expect(bodiesOf(await contentOf(after, "b"))).toEqual(["first", "last words", "and more"])
    }
  })

  it("are taken although they wait behind a batch that is refused", async () => {
    const { next, runelog } = await filled()
    const told = await outcomes([
      runelog.append("a", next, [{ body: Buffer.alloc(20 * KIB) }]),
      runelog.append("b", 2, [{ body: Buffer.alloc(18 * KIB) }], terminal)
    ])
    expect(told).toEqual(["DiskFull", "ok"])
  })

  it("are refused with what they follow, and when they do not fit themselves", async () => {
    const { next, runelog } = await filled()
    const told = await outcomes([
      runelog.append("a", next, [{ body: "refused" }]),
      runelog.append("a", next + 1, [{ body: "follows" }], terminal)
    ])
    expect(told).toEqual(["DiskFull", "DiskFull"])
    await runelog.append("b", 2, [{ body: Buffer.alloc(20 * KIB) }], terminal)
    const large = runelog.append("b", 3, [{ body: Buffer.alloc(8 * KIB) }], terminal)
    expect(await errorOf(large)).toBeInstanceOf(DiskFull)
    await runelog.append("b", 3, [{ body: "fits" }], terminal)
    expect(await runelog.head("a")).toBe(next - 1)
    expect(await runelog.head("b")).toBe(3)
  })

  it("are refused once the log is being removed or the writer closed", async () => {
    for (const end of ["remove", "close"] as const) {
      const { next, runelog } = await filled()
      const appends = [
        runelog.append("a", next, [{ body: "refused" }]),
        runelog.append("b", 2, [{ body: "late" }], terminal)
      ]
      const ended = end === "remove" ? runelog.remove("b", { head: 1 }) : runelog.close().catch(() => undefined)
      expect(await outcomes(appends)).toEqual(["DiskFull", "DiskFull"])
      await ended
    }
  })
})

describe("an appender that is sent away", () => {
  it("is told what it waits for", () => {
    const slabs = new Slabs(KIB)
    const pressure = new Backpressure({ slabs, limits: { ...limits, inFlightBytesMax: 10, pendingBytesMax: 2 * KIB } })
    expect(pressure.isTooMuch).toBe(false)
    for (let count = 0; count < 3; count++) slabs.take(1)
    expect(pressure.isTooMuch).toBe(true)
    expect(pressure.refusal()).toMatchObject({ waitingFor: "segments", bytes: 3 * KIB, bytesMax: 2 * KIB })
    pressure.inFlightBytes = 11
    expect(pressure.refusal()).toMatchObject({ waitingFor: "journal", bytes: 11, bytesMax: 10 })
  })
})

describe("a writer that holds more than it may", () => {
  it("is not busy once it is closed: who asks again is told so and does not ask for ever", async () => {
    const runelog = await openSmall({ disk: new DiskSim(), limits: { inFlightBytesMax: 1000 } })
    await runelog.append("a", 1, [{ body: "first" }])
    const taken = runelog.append("a", 2, [{ body: "x".repeat(2000) }])
    expect(runelog.busy).toBe(true)
    expect(await errorOf(runelog.append("a", 3, [{ body: "x" }]))).toBeInstanceOf(Busy)
    const waiting = runelog.ready()
    const closed = runelog.close()
    expect(runelog.busy).toBe(false)
    await waiting
    expect(await errorOf(runelog.append("a", 3, [{ body: "x" }]))).toBeInstanceOf(WriterClosed)
    await Promise.all([taken, closed])
  })
})

describe("a writer that fails while it is closed", () => {
  it.each(["inline", "pool"] as const)("says so to who closes it, synced %s", async (sync) => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk, sync })
    await runelog.append("a", 1, [{ body: "kept" }])
    disk.failNext("sync", { code: "EIO" })
    const append = errorOf(runelog.append("a", 2, [{ body: "unknown" }]))
    const closed = errorOf(runelog.close())
    expect(await append).toBeInstanceOf(WriterPoisoned)
    expect(await closed).toBe(runelog.poisoned)
    const after = await openSmall({ disk: disk.crash(1) })
    expect(await after.head("a")).toBeGreaterThanOrEqual(1)
  })

  it("has nothing to add where it had failed before", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    disk.failNext("sync", { code: "EIO" })
    await errorOf(runelog.append("a", 1, [{ body: "unknown" }]))
    await runelog.close()
    expect(runelog.poisoned).toBeInstanceOf(WriterPoisoned)
  })
})
