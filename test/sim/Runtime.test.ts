// Goal: whatever people, models, tools and the power do, every turn ends, nothing that was answered for is lost, no side
// effect happens twice, and every log folds to the same state. Method: whole stories from seeds, in a simulated world.
// Verifies: G1, G5, G6, INV-TURN-TERMINAL, INV-TOOL-TERMINAL, INV-REPLAY-DETERMINISTIC
import { describe, expect, it } from "vitest"
import { count, reportCount } from "../support/counts.ts"
import { Simulated } from "../support/runtime/Simulated.ts"
import { seedFor } from "../support/seed.ts"

describe("a whole system from a seed", () => {
  it("comes to rest with everything accounted for", async () => {
    const stories = count("simulated stories", { fast: 200, soak: 20_000 })
    const first = seedFor("simulated stories")
    const sum = { runes: 0, lives: 0, turns: 0, sideEffects: 0 }
    for (let story = 0; story < stories; story++) {
      const told = await new Simulated((first + story) >>> 0).run()
      sum.runes += told.logs.flat().length
      sum.lives += told.lives
      sum.turns += told.turns
      sum.sideEffects += told.sideEffects
    }
    reportCount("simulated stories", stories)
    reportCount("processes in simulated stories", sum.lives)
    reportCount("turns in simulated stories", sum.turns)
    reportCount("side effects in simulated stories, each once", sum.sideEffects)
    reportCount("runes of simulated stories checked", sum.runes)
    // A story in which nothing happens shows nothing.
    expect(sum.lives).toBeGreaterThan(stories)
    expect(sum.turns).toBeGreaterThan(stories)
    expect(sum.sideEffects).toBeGreaterThan(0)
  }, 600_000)

  it("is the same to the last rune when it is told again", async () => {
    const first = seedFor("stories told twice")
    const stories = count("stories told twice", { fast: 10, soak: 500 })
    let runes = 0
    for (let story = 0; story < stories; story++) {
      const seed = (first + story) >>> 0
      const once = await new Simulated(seed).run()
      const again = await new Simulated(seed).run()
      expect(again, `seed ${seed}`).toEqual(once)
      runes += once.logs.flat().length
    }
    reportCount("runes of stories told twice, all the same", runes)
  }, 600_000)
})
