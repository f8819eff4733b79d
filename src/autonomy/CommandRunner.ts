// Runs the commands that show whether a task of a goal is done: in the same sandbox, and under the same rules, as every
// command of an agent.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { workspaceOf } from "../machine/view/Select.ts"
import { commandRuling } from "../policy/CommandRules.ts"
import { ServerRules } from "../policy/PolicyFile.ts"
import { Processes, Sandbox, Workspaces } from "../sandbox/Sandbox.ts"
import type { Runner } from "./GoalContext.ts"

const makeRunner = Effect.gen(function* () {
  const { contained } = yield* Sandbox
  const processes = yield* Processes
  const rules = yield* ServerRules
  const { check } = yield* Workspaces
  const runner: Runner = {
    contained,
    run: (request) => processes.run(request),
    ruling: (state, agentId, argv) => {
      const { policy, unsafe_workspace = false } = state.session.config
      const workspace = workspaceOf(state, agentId)
      const issue = check({ workspace, unsafe_workspace })
      if (issue !== undefined) return { decision: "deny", reason: issue }
      const all = [...(policy?.rules ?? []), ...rules.current()]
      const mode = policy?.mode ?? "auto"
      return commandRuling(argv, { rules: all, workspace, nowMs: state.last_ms, contained, mode, grants: state.grants })
    }
  }
  return runner
})

/** Without a runner no command can show anything, and no plan starts by itself. */
export class CommandRunner extends Context.Service<CommandRunner, Runner | undefined>()("echs/CommandRunner") {
  static readonly layer: Layer.Layer<CommandRunner, never, Sandbox | Processes | ServerRules | Workspaces> =
    Layer.effect(CommandRunner, makeRunner)

  static readonly none: Layer.Layer<CommandRunner> = Layer.succeed(CommandRunner, undefined)
}
