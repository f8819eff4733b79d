// Goal: whatever a power cut, a kill or a failing disk leaves behind, the next start finds every log as a prefix without
// a gap that holds all that was acknowledged. Method: lives of a data directory on the simulated disk, each from one
// seed, with tiny limits so that rotation, seals, checkpoints, recycling, eviction and removals all happen; several
// writers in a row, each ended at a drawn step, recovery included. A failure names its seed; SEED= runs it alone.
// Verifies: G1, G2, G3
import { describe, expect, it } from "vitest"
import { count, lane, reportCount } from "../support/counts.ts"
import type { HazardKind } from "../support/runelog/Hazard.ts"
import { type SimulationReport, simulate } from "../support/runelog/Simulation.ts"
import { seedFor } from "../support/seed.ts"

const timeoutMs = lane() === "soak" ? 3 * 3_600_000 : 300_000

const addUp = (reports: ReadonlyArray<SimulationReport>): SimulationReport =>
  reports.reduce((sum, report) => {
    const entries = Object.entries(report).map(([name, value]) => [name, value + sum[name as keyof SimulationReport]])
    return Object.fromEntries(entries) as SimulationReport
  })

const runLives = async (name: string, lives: number, hazard?: HazardKind): Promise<SimulationReport> => {
  const first = seedFor(name)
  const isAlone = (process.env["SEED"] ?? "") !== ""
  const reports: Array<SimulationReport> = []
  for (let index = 0; index < (isAlone ? 1 : lives); index++) {
    reports.push(await simulate({ seed: (first + index) >>> 0, ...(hazard && { hazard }) }))
  }
  const sum = addUp(reports)
  process.stdout.write(`${name}: ${reports.length} lives, ${JSON.stringify(sum)}\n`)
  return sum
}

const isReplay = (process.env["SEED"] ?? "") !== ""

describe("a data directory on the simulated disk", () => {
  it("loses nothing acknowledged to power cuts and kills at any step, recovery included", {
    timeout: timeoutMs
  }, async () => {
    const lives = count("simulated lives", { fast: 5000, soak: 200_000 })
    const sum = await runLives("simulated crashes", lives)
    if (isReplay) return
    reportCount("simulated lives of a data directory", lives)
    reportCount("simulated power cuts", sum.crashes)
    reportCount("simulated kills", sum.kills)
    reportCount("simulated starts cut short", sum.interruptedStarts)
    // A run in which nothing happened proves nothing.
    expect(sum.crashes + sum.kills).toBeGreaterThanOrEqual(lives)
    expect(sum.acknowledged).toBeGreaterThan(50 * lives)
    expect(sum.recoveredFrames).toBeGreaterThan(5 * lives)
    reportCount("simulated starts that left logs to the journal", sum.deferredStarts)
    reportCount("simulated ends before all of them were in segments", sum.unsettledEnds)
    expect(sum.deferredStarts).toBeGreaterThan(lives / 5)
    expect(sum.unsettledEnds).toBeGreaterThan(lives / 20)
  })

  it("refuses in order and goes on when the disk runs full and room comes back", { timeout: timeoutMs }, async () => {
    const lives = count("simulated lives on a full disk", { fast: 400, soak: 30_000 })
    const sum = await runLives("simulated full disks", lives, "full")
    if (isReplay) return
    reportCount("simulated lives on a disk that runs full", lives)
    expect(sum.refusedFull).toBeGreaterThan(lives)
  })

  it("stops at the first device error and starts again from what is durable", { timeout: timeoutMs }, async () => {
    const lives = count("simulated lives on a failing disk", { fast: 400, soak: 30_000 })
    const sum = await runLives("simulated device errors", lives, "io")
    if (isReplay) return
    reportCount("simulated lives on a disk with errors", lives)
    expect(sum.poisoned).toBeGreaterThan(lives / 10)
  })

  it.each([
    { seed: 2768109174, hazard: "io" },
    { seed: 1001704, hazard: "io" },
    // The head of a log was not recorded while a removal of it waited that never came.
    { seed: 1920991963, defers: false },
    { seed: 1175069705, defers: false },
    { seed: 2019406513, hazard: "full", defers: false },
    // That a log is gone was noted twice, with a life of it in between.
    { seed: 1003814, hazard: "full" },
    // A change of meta failed for want of room and was on the disk all the same.
    { seed: 900268, hazard: "full" },
    { seed: 920115, hazard: "full" }
  ] as const)("keeps its promises in a life that once broke one ($seed, $hazard)", async (life) => {
    expect((await simulate(life)).acknowledged).toBeGreaterThan(0)
  })

  it("lives the same life again from the same seed", async () => {
    const first = seedFor("lives repeated")
    for (let seed = first; seed < first + 10; seed++) {
      expect(await simulate({ seed: seed >>> 0 })).toEqual(await simulate({ seed: seed >>> 0 }))
    }
  })
})
