// Goal: a plan is drawn whatever its dependences are. Method: random plans, circles and strangers included.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { evidenceText, type PlanTask } from "#src/dashboard/state/PlanLabels.ts"
import { layoutPlan } from "#src/dashboard/state/PlanLayout.ts"
import { seedFor } from "../support/seed.ts"

const task = (id: string, dependsOn: ReadonlyArray<string>): PlanTask =>
  ({
    task: { task_id: id, title: id, instructions: "", depends_on: dependsOn, priority: "medium" },
    status: "pending"
  }) as never

describe("the layout of a plan", () => {
  it("puts a task to the right of everything it depends on", () => {
    const { tasks } = layoutPlan([task("a", []), task("b", []), task("c", ["a", "b"]), task("d", ["c", "nobody"])])
    expect(tasks.map(({ column, row }) => [column, row])).toEqual([
      [0, 0],
      [0, 1],
      [1, 0],
      [2, 0]
    ])
  })

  it("gives every task a place of its own, also in a circle", () => {
    const ids = ["a", "b", "c", "d", "e"]
    const plans = fc.array(fc.array(fc.constantFrom(...ids), { maxLength: 3 }), { minLength: 5, maxLength: 5 })
    fc.assert(
      fc.property(plans, (edges) => {
        const { tasks } = layoutPlan(ids.map((id, index) => task(id, edges[index] ?? [])))
        expect(new Set(tasks.map(({ column, row }) => `${column} ${row}`)).size).toBe(ids.length)
      }),
      { seed: seedFor("plan layout"), numRuns: 200 }
    )
  })
})

describe("a proof in words", () => {
  it("shows where each word of a command begins and ends", () => {
    expect(evidenceText({ type: "command", command: ["grep", "-c", "a b", "it's"], expected_exit: 1 })).toBe(
      "grep -c 'a b' 'it'\\''s'  → exit 1"
    )
  })
})
