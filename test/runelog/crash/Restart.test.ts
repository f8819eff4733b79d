// Goal: what a stop at one given place leaves is put in order by the next start. Each of these once lost events, or took
// for damage what a plain power cut had left.
import { describe, expect, it } from "vitest"
import type { Runelog } from "#runelog/Runelog.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { appendNext, bodyOf, cutPower, directory, entries, openSmall, readWhole } from "../../support/runelog/small.ts"

const seeds = Array.from({ length: 40 }, (_, index) => index)

describe("the simulated disk", () => {
  it("keeps what was written, whatever becomes of the buffer afterwards", async () => {
    const disk = new DiskSim()
    const file = await disk.open("/file", "create")
    const buffer = Buffer.from("written")
    await file.write(buffer, 0, buffer.length, 0)
    buffer.fill("x")
    await file.sync()
    await disk.syncDirectory("/")
    const found = await disk.crash(1).open("/file", "read")
    const target = Buffer.alloc(7)
    await found.read(target, 0, 7, 0)
    expect(target.toString()).toBe("written")
  })
})

describe("a power cut", () => {
  it("after the first acknowledgement leaves the directory and all that leads to it", async () => {
    for (const seed of seeds) {
      const disk = new DiskSim()
      const runelog = await openSmall(disk)
      await appendNext(runelog, "log")
      const next = await openSmall(await cutPower(disk, runelog, seed))
      expect(await readWhole(next, "log")).toEqual([bodyOf("log", 1)])
      await next.close()
    }
  })

  it("at any step of the flush of three segments loses nothing", async () => {
    for (let step = 0, isOver = false; !isOver; step++) {
      for (const seed of seeds.slice(0, 16)) {
        const disk = new DiskSim()
        const runelog = await openSmall(disk)
        const cut = cutAt(disk, disk.operationCount + step, seed)
        const bodies = await appendThree(runelog, "log")
        if (bodies !== undefined) await runelog.checkpoint().catch(() => undefined)
        isOver = cut.found === undefined
        const found = cut.found ?? (await cutPower(disk, runelog, seed))
        await runelog.close().catch(() => undefined)
        const next = await openSmall(found)
        const where = `step ${step}, seed ${seed}`
        if (bodies !== undefined) expect(await readWhole(next, "log"), where).toEqual(bodies)
        await next.append("log", (await next.head("log")) + 1, entries("goes on"))
        await next.close()
      }
    }
  })
})

/** Three appends in one batch, a segment each; resolves with their bodies once they are acknowledged. */
const appendThree = async (runelog: Runelog, log: string): Promise<ReadonlyArray<string> | undefined> => {
  const bodies = [1, 2, 3].map((eventId) => bodyOf(log, eventId, 2500))
  const appends = bodies.map((body, index) => runelog.append(log, index + 1, entries(body)))
  const outcomes = await Promise.allSettled(appends)
  return outcomes.every(({ status }) => status === "fulfilled") ? bodies : undefined
}

/** Cuts the power at a step of the disk; `found` is what is left then. */
const cutAt = (disk: DiskSim, step: number, seed: number): { readonly found: DiskSim | undefined } => {
  const cut: { found: DiskSim | undefined } = { found: undefined }
  disk.onOperation = ({ index }) => {
    if (index < step || cut.found !== undefined) return
    cut.found = disk.crash(seed)
    disk.powerOff()
    throw new Error("the power is off")
  }
  return cut
}

interface Doubt {
  /** What becomes of the sync of the last batch: the process is killed before it, or it fails. */
  readonly sync: "never begun" | "failed"
  readonly batch: "frames" | "removal"
}

/** A disk on which a writer ended with a batch that is in memory only; where its sync failed, no later one writes it. */
const leftInDoubt = async (doubt: Doubt): Promise<DiskSim> => {
  const disk = new DiskSim()
  const runelog = await openSmall(disk)
  await runelog.append("kept", 1, entries("kept"))
  if (doubt.batch === "removal") {
    await appendNext(runelog, "doubtful")
    await runelog.checkpoint()
    for (let eventId = 2; eventId <= 3; eventId++) await appendNext(runelog, "doubtful")
  }
  let successor: DiskSim | undefined
  if (doubt.sync === "failed") disk.failNext("sync", { code: "EIO" })
  else
    disk.onOperation = ({ operation, path }) => {
      if (operation !== "sync" || !path.includes("journal")) return
      successor = disk.killProcess()
      throw new Error("killed")
    }
  if (doubt.batch === "frames") await appendThree(runelog, "doubtful")
  else await expect(runelog.remove("doubtful")).rejects.toMatchObject({ _tag: "WriterPoisoned" })
  await runelog.close().catch(() => undefined)
  return successor ?? disk.killProcess()
}

describe("recovery of a batch that is in memory only", () => {
  it.each<Doubt>([
    { sync: "never begun", batch: "frames" },
    { sync: "never begun", batch: "removal" },
    { sync: "failed", batch: "frames" },
    { sync: "failed", batch: "removal" }
  ])(
    "may be cut short at any step: it stays whole or goes whole, and is never damage ($batch, sync $sync)",
    async (doubt) => {
      const stepsOf = async (disk: DiskSim): Promise<number> => {
        const runelog = await openSmall(disk)
        const steps = disk.operationCount
        await runelog.close()
        return steps
      }
      const steps = await stepsOf(await leftInDoubt(doubt))
      for (let step = 0; step < steps; step++) {
        for (const seed of seeds.slice(0, 16)) {
          const disk = await leftInDoubt(doubt)
          const cut = cutAt(disk, step, seed)
          await openSmall(disk)
            .then((runelog) => runelog.close())
            .catch(() => undefined)
          const found = cut.found!
          const where = `step ${step}, seed ${seed}`
          expect((await verify({ directory, disk: found })).problems, where).toEqual([])
          const next = await openSmall(found)
          expect(await readWhole(next, "kept"), where).toEqual(["kept"])
          expect([0, 3], where).toContain(await next.head("doubtful"))
          expect(await found.exists(`${directory}/quarantine/doubtful.json`), where).toBe(false)
          await next.close()
        }
      }
    }
  )
})
