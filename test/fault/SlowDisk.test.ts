// Goal: a disk that takes 200 ms for every sync makes appends slow, and nothing else: they still share syncs, memory
// stays bounded, and nothing waits for the disk on the thread. Method: many writers in a closed loop over a disk in memory whose
// syncs are delayed, with the engine's own policy for where syncs run.
import { afterEach, describe, expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { KIB, MIB } from "#runelog/RunelogLimits.ts"
import { count, reportCount } from "../support/counts.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import { withSlowSync } from "../support/runelog/DiskSlow.ts"

const syncMs = 200
const writers = 64
const appendsEach = count("appends of each writer on a slow disk", { fast: 10, soak: 100 })

let runelog: Runelog | undefined
afterEach(async () => {
  await runelog?.close()
  runelog = undefined
})

const openSlow = async (disk: ReturnType<typeof withSlowSync>, options: object = {}): Promise<Runelog> => {
  runelog = await Runelog.open({
    directory: "/data",
    disk,
    limits: { journalFileBytes: MIB, reserveBytes: 64 * KIB, ...options }
  })
  return runelog
}

type SlowDisk = ReturnType<typeof withSlowSync>

/** Appends once; answers with the syncs that were begun while it waited. */
const append = async (disk: SlowDisk, log: string, eventId: number, bytes: number): Promise<number> => {
  const before = disk.syncs()
  await runelog!.append(log, eventId, [{ body: Buffer.alloc(bytes, log) }])
  return disk.syncs() - before
}

/** One log in a closed loop: the next append when the one before is durable. */
const writeLog = async (disk: SlowDisk, log: string): Promise<ReadonlyArray<number>> => {
  const waited: Array<number> = []
  for (let eventId = 1; eventId <= appendsEach; eventId++) waited.push(await append(disk, log, eventId, 200))
  return waited
}

describe("a disk that takes 200 ms for a sync", () => {
  it("is shared by all who wait, and holds up nothing but them", async () => {
    const disk = withSlowSync(makeDiskMemory(), syncMs)
    await openSlow(disk)
    // The first sync tells the engine what kind of disk this is.
    await append(disk, "first", 1, 10)
    const inlineBefore = disk.syncsInline()
    const syncsBefore = disk.syncs()
    const names = Array.from({ length: writers }, (_, index) => `log-${index}`)
    const waited = (await Promise.all(names.map((name) => writeLog(disk, name)))).flat()
    const syncs = disk.syncs() - syncsBefore
    // Nothing waited on the thread for the disk.
    expect(disk.syncsInline() - inlineBefore).toBe(0)
    // Each append waits for the sync under way and for its own, whoever else appends.
    expect(Math.max(...waited)).toBeLessThanOrEqual(2)
    expect(syncs).toBeLessThanOrEqual(2 * appendsEach + 2)
    reportCount("appends on a disk of 200 ms a sync", waited.length)
    process.stdout.write(`slow disk: ${waited.length} appends, ${syncs} syncs\n`)
  })

  it("makes those wait who bring more than memory may hold", async () => {
    const disk = withSlowSync(makeDiskMemory(), syncMs / 4)
    const inFlightBytesMax = 64 * KIB
    const pendingBytesMax = MIB
    const opened = await openSlow(disk, { inFlightBytesMax, pendingBytesMax, segmentWriteBytes: 16 * KIB })
    let busy = 0
    let peakBytes = 0
    let eventId = 1
    const flying: Array<Promise<void>> = []
    for (let attempts = 0; attempts < 1000; attempts++) {
      peakBytes = Math.max(peakBytes, opened.stats.memoryBytes)
      const appended = opened.append("log", eventId, [{ body: Buffer.alloc(4 * KIB) }])
      const isTaken = await Promise.race([
        appended.then(
          () => true,
          () => false
        ),
        new Promise<boolean>((resolve) => setImmediate(() => resolve(true)))
      ])
      if (isTaken) {
        eventId += 1
        flying.push(appended)
      } else {
        await expect(appended).rejects.toMatchObject({ _tag: "Busy" })
        busy += 1
        await opened.ready()
      }
    }
    await Promise.all(flying)
    expect(busy).toBeGreaterThan(0)
    expect(await opened.head("log")).toBe(eventId - 1)
    // What is in flight comes on top of what is pending; slabs are whole, so a few may be partly filled.
    expect(peakBytes).toBeLessThan(2 * pendingBytesMax + inFlightBytesMax)
  })
})
