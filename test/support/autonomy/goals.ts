// Goals in a test: a world with the file tools, a conversation in a workspace, a goal submitted, its end awaited.

import { makePlanId, type PlanId } from "#src/rune/Ids.ts"
import type { EvidenceSpec, GoalModels } from "#src/rune/kinds/evidence.ts"
import type { GoalOptions } from "#src/rune/kinds/plan.ts"
import type { Budget } from "#src/rune/kinds/shared.ts"
import type { Talk, World, WorldOptions } from "../runtime/World.ts"
import { fileTools } from "./fileTools.ts"
import { TestRunner } from "./TestRunner.ts"

export const goalWorld = (more: WorldOptions = {}): WorldOptions => ({
  tools: fileTools,
  runner: new TestRunner(),
  ...more
})

export interface GoalRequest {
  readonly model: string
  readonly workspace: string
  readonly goal?: string
  readonly auto_start?: boolean
  readonly max_parallel?: number
  readonly budget?: Budget
  readonly options?: GoalOptions
  readonly evidence?: ReadonlyArray<EvidenceSpec>
  readonly hidden_evidence?: ReadonlyArray<EvidenceSpec>
  readonly protect?: ReadonlyArray<string>
  readonly models?: GoalModels
}

export interface Goal {
  readonly talk: Talk
  readonly planId: PlanId
}

export const submitGoal = async (world: World, request: GoalRequest): Promise<Goal> => {
  const { auto_start = true, goal = "Write a letter", model, workspace, ...more } = request
  const talk = await world.create({ model, workspace })
  const planId = makePlanId(world.ids)
  await talk.submit({ _tag: "SubmitGoal", payload: { plan_id: planId, goal, auto_start, ...more } })
  return { talk, planId }
}

/** How the goal ended. */
export const goalEnd = async ({ talk }: Goal) => {
  await talk.world.until(() => talk.kinds.some((kind) => kind === "plan.goal_met" || kind === "plan.stopped"), talk.id)
  return talk.of("plan.goal_met")[0] ?? talk.of("plan.stopped")[0]!
}
