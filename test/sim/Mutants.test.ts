// Goal: the simulated stories bite. Method: the same stories of runtimes that break one promise each; every one must be
// caught for its own fault within some seeds, while the sound runtime tells the very same story without any.
// Verifies: G1, G5, G6
import { afterEach, describe, expect, it, vi } from "vitest"
import { reportCount } from "../support/counts.ts"
import { type MachineDefect, type Mutant, mutants } from "../support/runtime/mutants.ts"
import { Simulated } from "../support/runtime/Simulated.ts"
import { seedFor } from "../support/seed.ts"

const broken = vi.hoisted((): { machine: MachineDefect } => ({ machine: {} }))

vi.mock("#src/machine/decide/Decide.ts", async (original) => {
  const sound = await original<typeof import("#src/machine/decide/Decide.ts")>()
  const decide: typeof sound.decide = (state, command, ...rest) => {
    const verdict = sound.decide(state, command, ...rest)
    return broken.machine.decide?.(command, verdict) ?? verdict
  }
  return { ...sound, decide }
})

vi.mock("#src/machine/work/Recovery.ts", async (original) => {
  const sound = await original<typeof import("#src/machine/work/Recovery.ts")>()
  const resolveAfterCrash: typeof sound.resolveAfterCrash = (...found) => {
    const resolution = sound.resolveAfterCrash(...found)
    return broken.machine.recovery?.(resolution) ?? resolution
  }
  return { ...sound, resolveAfterCrash }
})

vi.mock("#src/machine/view/Request.ts", async (original) => {
  const sound = await original<typeof import("#src/machine/view/Request.ts")>()
  const assembleRequest: typeof sound.assembleRequest = (...about) => {
    const messages = sound.assembleRequest(...about)
    return broken.machine.request?.(messages) ?? messages
  }
  return { ...sound, assembleRequest }
})

const seedsMax = 200

const tell = async (seed: number, { machine = {}, ...defect }: Partial<Mutant>): Promise<unknown> => {
  broken.machine = machine
  try {
    await new Simulated(seed, defect).run()
    return undefined
  } catch (error) {
    return error
  } finally {
    broken.machine = {}
  }
}

interface Caught {
  readonly seeds: number
  readonly complaint: string
}

/** How the mutant was caught for what it does; undefined when it got away. */
const catchMutant = async (mutant: Mutant, first: number): Promise<Caught | undefined> => {
  for (let seeds = 1; seeds <= seedsMax; seeds++) {
    const seed = (first + seeds) >>> 0
    const fault = await tell(seed, mutant)
    if (fault === undefined || !mutant.caughtBy.test(String(fault))) continue
    // The same story of the sound runtime: what was caught is the mutation.
    expect(await tell(seed, {}), `the sound runtime, seed ${seed}`).toBeUndefined()
    return { seeds, complaint: String(fault) }
  }
  return undefined
}

afterEach(() => {
  broken.machine = {}
})

describe("a broken runtime is caught by the simulated stories when it", () => {
  it.each(Object.entries(mutants))(
    "%s",
    async (name, mutant) => {
      const caught = await catchMutant(mutant, seedFor(`runtime that ${name}`))
      expect(caught, "it got away").toBeDefined()
      process.stdout.write(`caught after ${caught?.seeds} seeds: ${caught?.complaint.split("\n", 1)[0]}\n`)
      reportCount("broken runtimes caught by simulated stories", 1)
    },
    120_000
  )
})
