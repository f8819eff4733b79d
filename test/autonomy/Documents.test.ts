// Goal: what docs/AUTONOMY.md lists is what there is: every reason to stop, every scenario, every limit it names. Method: the
// lists of the page beside those of the code.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { limits as pursuit } from "#src/autonomy/GoalLimits.ts"
import { stopReasons } from "#src/machine/decide/LoopBreakers.ts"
import { limits } from "#src/machine/MachineLimits.ts"
import { goalScenarios } from "#src/provider/scripted/Goals.ts"

const page = readFileSync(join(import.meta.dirname, "..", "..", "docs", "AUTONOMY.md"), "utf8")

/** The first cells of the table under a heading. */
const firstCells = (heading: string): ReadonlyArray<string> => {
  const section = page.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? ""
  return [...section.matchAll(/^\| `([a-z_]+)`/gmu)].map(([, name]) => name!)
}

describe("the page on goals", () => {
  it("lists every reason to stop, and no other", () => {
    expect([...firstCells("Why it stops")].sort()).toEqual([...stopReasons].sort())
  })

  it("lists every scenario, and no other", () => {
    const ways = Object.keys(goalScenarios).flatMap((name) => (name === "goal" ? [] : [name.slice("goal-".length)]))
    expect([...firstCells("Trying it without a key")].sort()).toEqual(ways.sort())
  })

  it("names the limits as they are", () => {
    const number = (value: number) => value.toLocaleString("en-US")
    expect(page).toContain(`\`max_parallel\` at once (${limits.tasksParallel})`)
    expect(page).toContain(`${limits.planIterationsMax} reviews (\`options.max_iterations\`)`)
    expect(page).toContain(`more than ${limits.planReplansMax} new plans`)
    expect(page).toContain(`${number(limits.tokensWithoutProgressMax)} tokens (\`options.tokens_without_progress\`)`)
    expect(page).toContain(`${limits.sameCallsMax} times in a row`)
    expect(page).toContain(`${limits.staleReviewsMax} reviews in a row`)
    expect(page).toContain(`${limits.refusalsInRowMax} plans in a row`)
    expect(page).toContain(`before ${limits.compactionsInRowMax} calls in a row`)
    expect(page).toContain(`more than ${limits.planBlocksMax} times`)
    expect(page).toContain(`${number(pursuit.tasksMax)} tasks or more`)
    expect(page).toContain(
      `${number(pursuit.agentBudget.tokens)} tokens and ${pursuit.agentBudget.tool_calls} tool calls`
    )
  })
})
