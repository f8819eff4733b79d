// Goals as conversations see them: the tools that each role has besides its own, the calls that end a turn, and a driver
// for every conversation that has a plan. Commands that show whether a task is done run in the sandbox of the server.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { PendingPlanWork } from "../machine/work/PlanWork.ts"
import { workspaceLook } from "../tool/evidence/Look.ts"
import type { ToolPort } from "../tool/ToolPort.ts"
import { CommandRunner } from "./CommandRunner.ts"
import type { GoalContext, Runner } from "./GoalContext.ts"
import { GoalDriver } from "./GoalDriver.ts"
import { endsTurn, withRoleTools } from "./RoleTools.ts"

export interface GoalWork {
  /** These tools, and those of the roles of a plan. */
  readonly withRoleTools: (tools: ToolPort) => ToolPort
  readonly endsTurn: typeof endsTurn
  /** Does the pending work of the plan of one conversation. */
  readonly driverOf: (
    conversation: GoalContext["conversation"]
  ) => (work: PendingPlanWork, signal: AbortSignal) => Promise<void>
}

export const makeGoals = (options: {
  /** Runs what shows whether a task is done; without it no command can show anything. */
  readonly runner: Runner | undefined
  readonly nowMs: () => number
}): GoalWork => {
  const tools = { ...options, look: workspaceLook, node: process.execPath }
  return {
    withRoleTools: (inner) => withRoleTools(inner, tools),
    endsTurn,
    driverOf: (conversation) => {
      const driver = new GoalDriver({ ...tools, conversation })
      return (work, signal) => driver.perform(work, signal)
    }
  }
}

export class Goals extends Context.Service<Goals, GoalWork>()("echs/Goals") {
  static readonly layer: Layer.Layer<Goals, never, CommandRunner> = Layer.effect(
    Goals,
    Effect.map(CommandRunner, (runner) => makeGoals({ runner, nowMs: () => Date.now() }))
  )
}
