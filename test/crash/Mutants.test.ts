// Goal: the crash tests bite. Method: the same lives over disks that skip syncs and over a recovery that drops the last
// batch; each of these must be caught within a few seeds, while the sound engine passes the very same ones.
import { describe, expect, it } from "vitest"
import { reportCount } from "../support/counts.ts"
import { withoutDirectorySync, withoutSync } from "../support/disk/DiskMutant.ts"
import { withoutDirectorySyncOf, withoutSyncOf } from "../support/runelog/DiskSelective.ts"
import { Violation } from "../support/runelog/LogModel.ts"
import { type SimulationOptions, simulate } from "../support/runelog/Simulation.ts"
import { seedFor } from "../support/seed.ts"

const seedsMax = 100

/** How many seeds it took to catch the mutant; undefined when it got away. */
const seedsToCatch = async (mutant: Omit<SimulationOptions, "seed">, first: number): Promise<number | undefined> => {
  for (let tried = 1; tried <= seedsMax; tried++) {
    const seed = (first + tried) >>> 0
    const outcome = await simulate({ ...mutant, seed }).catch((error: unknown) => error)
    if (!(outcome instanceof Violation)) continue
    // The same life of the sound engine: what was caught is the mutation.
    await simulate({ seed })
    process.stdout.write(`caught after ${tried} seeds: ${outcome.message}\n`)
    return tried
  }
  return undefined
}

const mutants: ReadonlyArray<readonly [string, Omit<SimulationOptions, "seed">]> = [
  ["skips every file sync", { mutate: withoutSync }],
  ["skips every directory sync", { mutate: withoutDirectorySync }],
  ["skips the sync of the journal", { mutate: withoutSyncOf(/\.jnl/) }],
  ["skips the sync of segments", { mutate: withoutSyncOf(/\.seg$/) }],
  ["skips the sync of thinned copies", { mutate: withoutSyncOf(/\.seg\.tmp$/) }],
  ["skips the sync of meta", { mutate: withoutSyncOf(/\/meta/) }],
  ["skips the sync of what leads to the data directory", { mutate: withoutDirectorySyncOf(/^\/(home)?$/) }],
  ["skips the sync of the data directory", { mutate: withoutDirectorySyncOf(/\/data$/) }],
  ["skips the sync of the journal's directory", { mutate: withoutDirectorySyncOf(/\/journal$/) }],
  ["skips the sync of the directory of logs", { mutate: withoutDirectorySyncOf(/\/runelog$/) }],
  ["skips the sync of a log's directory", { mutate: withoutDirectorySyncOf(/\/log-/) }],
  ["drops the last batch in recovery", { defect: "recovery drops the last batch" }]
]

describe("a broken engine is caught by the simulated crashes when it", () => {
  it.each(mutants)("%s", async (name, mutant) => {
    const caught = await seedsToCatch(mutant, seedFor(`mutant that ${name}`))
    expect(caught).toBeDefined()
    reportCount("mutants caught by simulated crashes", 1)
  })
})
