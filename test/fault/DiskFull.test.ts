// Goal: a disk without room refuses, loses nothing, keeps answering readers, still takes last words, and goes on when
// there is room again. Method: the same script on real tmpfs mounts from 64 KiB to 4 MiB, and on the simulated disk,
// there also with writes that stop in the middle and a power cut while the disk is full.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { KIB, MIB } from "#runelog/RunelogLimits.ts"
import { count, reportCount } from "../support/counts.ts"
import { DiskSim } from "../support/disk/DiskSim.ts"
import { parts, requirePart } from "../support/require.ts"
import { ChildLines } from "../support/runelog/ChildLines.ts"
import { type FullDiskReport, fullDiskLimits, runFullDisk } from "../support/runelog/FullDisk.ts"

const steps = 64

/** From 64 KiB to 4 MiB; repeated in the soak lane with a little less room each time. */
const sizesOf = (rounds: number): ReadonlyArray<number> =>
  Array.from({ length: steps * rounds }, (_, index) => {
    const step = Math.floor(index / rounds) + 1
    return (step * 4 * MIB) / steps - (index % rounds) * 4 * KIB
  }).filter((bytes) => bytes >= 64 * KIB)

const judge = (report: FullDiskReport, bytes: number): void => {
  const where = `${bytes} bytes`
  expect(report.acknowledged, where).toBeGreaterThan(0)
  if (report.opened) expect(report.lastAnswer, where).toBeGreaterThan(0)
}

describe("a disk that runs full", () => {
  it("refuses and goes on, on tmpfs of every size", { timeout: 600_000 }, async (context) => {
    requirePart(context, parts.tmpfs)
    const sizes = sizesOf(count("rounds on tmpfs", { fast: 1, soak: 20 }))
    const mountPoint = mkdtempSync(join(tmpdir(), "echs-full-"))
    const child = new ChildLines("tmpfsChild.ts", [mountPoint, ...sizes.map(String)], {
      program: "unshare",
      programArgs: ["--mount", "--propagation", "private"]
    })
    await child.ended()
    rmSync(mountPoint, { recursive: true, force: true })
    const outcomes = child.lines.map((line) => JSON.parse(line) as FullDiskReport & { bytes: number; error?: string })
    expect(outcomes.filter(({ error }) => error !== undefined)).toEqual([])
    expect(outcomes.length, child.errors).toBe(sizes.length)
    for (const outcome of outcomes) judge(outcome, outcome.bytes)
    // Small ones have no room for a journal, most do: both ways must have been gone.
    expect(outcomes.filter(({ opened }) => !opened).length).toBeGreaterThan(0)
    expect(outcomes.filter(({ opened }) => opened).length).toBeGreaterThan(sizes.length / 2)
    reportCount("tmpfs mounts filled to the brim", outcomes.length)
  })

  it("refuses and goes on, on the simulated disk of every size", { timeout: 120_000 }, async () => {
    const sizes = sizesOf(1).filter((_, index) => index % 4 === 0)
    for (const capacityBytes of sizes) {
      const disk = new DiskSim({ capacityBytes })
      const enlarge = () => {
        disk.capacityBytes = Number.POSITIVE_INFINITY
      }
      judge(await runFullDisk({ directory: "/data", disk, enlarge }), capacityBytes)
    }
    reportCount("simulated disks filled to the brim", sizes.length)
  })
})

const entry = (text: string) => [{ body: text }]

describe("a write to the journal that stops in the middle for want of room", () => {
  it.each([0, 1, 63, 64, 512, 4095, 4096, 5000, 8191])(
    "leaves nothing of the append behind after %i bytes",
    async (partialBytes) => {
      for (let seed = 0; seed < 20; seed++) {
        const disk = new DiskSim()
        const runelog = await Runelog.open({ directory: "/data", disk, limits: fullDiskLimits, sync: "inline" })
        await runelog.append("log", 1, entry("kept"))
        disk.failNext("write", { code: "ENOSPC", partialBytes })
        // Large enough that what is written can hold all of it and miss only the padding behind.
        const refused = runelog.append("log", 2, entry("refused".repeat(700)))
        await expect(refused).rejects.toMatchObject({ _tag: "DiskFull" })
        if (seed % 2 === 0) await runelog.append("log", 2, entry("taken"))
        const found = disk.crash(seed)
        disk.powerOff()
        await runelog.close().catch(() => undefined)
        const next = await Runelog.open({ directory: "/data", disk: found, limits: fullDiskLimits })
        const bodies = (await next.read("log", { after: 0 })).frames.map(({ body }) => body.toString())
        expect(bodies).toEqual(seed % 2 === 0 ? ["kept", "taken"] : ["kept"])
        await next.close()
      }
    }
  )

  it("stops the writer when the place cannot be cleared either", async () => {
    const disk = new DiskSim()
    const runelog = await Runelog.open({ directory: "/data", disk, limits: fullDiskLimits, sync: "inline" })
    disk.failNext("write", { code: "ENOSPC", partialBytes: 100, times: 2 })
    await expect(runelog.append("log", 1, entry("refused"))).rejects.toMatchObject({ _tag: "WriterPoisoned" })
    await expect(runelog.append("log", 1, entry("again"))).rejects.toMatchObject({ _tag: "WriterPoisoned" })
    await runelog.close()
  })
})
