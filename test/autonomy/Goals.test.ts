// Goal: a goal is planned, worked on, reviewed and ended as its scenario says, with the real runtime, real files and real
// programs as evidence. Method: scripted models that drive the real tools; every log is checked against the invariants.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { goalEnd, goalWorld, submitGoal } from "../support/autonomy/goals.ts"
import { useWorkspaces } from "../support/autonomy/workplace.ts"
import { useWorlds } from "../support/runtime/World.ts"

const worlds = useWorlds()
const workspaces = useWorkspaces()

describe("a goal", () => {
  it("is planned, worked on side by side, reviewed and met, with its evidence", async () => {
    const workspace = workspaces.make()
    const world = await worlds.open(goalWorld())
    const goal = await submitGoal(world, { model: "scripted/goal-success", workspace })
    const end = await goalEnd(goal)
    expect(end.kind).toBe("plan.goal_met")
    expect(readFileSync(join(workspace, "goal/letter.txt"), "utf8")).toContain("Dear reader")
    console.log(
      JSON.stringify(end.payload, null, 1),
      goal.talk.kinds.filter((k) => k.startsWith("plan."))
    )
  })
})
