// Runs one post-tool hook: started on record before it starts in fact, ended on record exactly once, whatever the
// hook does. Its own failure policy decides what a failure means; that is the machine's business.
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { tryCommand } from "../contract/TryCommand.ts"
import type { HookOutcome, HookPort } from "../hook/HookPort.ts"
import type { Command } from "../machine/Command.ts"
import { errorInfo } from "../machine/ErrorTable.ts"
import { hookOf, workspaceOf } from "../machine/view/Select.ts"
import type { AgentId, HookRunId } from "../rune/Ids.ts"
import type { Commands } from "./Commands.ts"
import { type Ended, messageOf, underDeadline } from "./Deadline.ts"
import { limits } from "./TurnLimits.ts"

export interface HookRunOptions {
  readonly commands: Commands
  readonly hooks: HookPort
  readonly monotonicMs: () => number
}

export interface HookRunRequest {
  readonly agent_id: AgentId
  readonly hook_run_id: HookRunId
  readonly timeout_ms: number
  /** Told of the run itself, which may last for a moment when the hook is over on record. */
  readonly onRun?: (running: Fiber.Fiber<unknown>) => void
}

const failed = (message: string): HookOutcome => ({
  status: "failed",
  error: errorInfo("hook_execution_failed", message)
})

const statuses: ReadonlySet<unknown> = new Set(["succeeded", "failed", "canceled"])

const outcomeOf = (ended: Ended<HookOutcome>, hookName: string, timeoutMs: number): HookOutcome => {
  if (ended._tag === "Overran" || ended.late) return failed(`hook ${hookName} did not end within ${timeoutMs} ms`)
  if (ended._tag === "Threw") return failed(messageOf(ended.cause))
  return statuses.has(ended.value?.status) ? ended.value : failed(`hook ${hookName} returned no outcome`)
}

const fitted = (outcome: HookOutcome): HookOutcome => {
  const { output } = outcome
  if (output === undefined || output.length <= limits.hookOutputCharsMax) return outcome
  return { ...outcome, output: `${output.slice(0, limits.hookOutputCharsMax)}…`.toWellFormed() }
}

export const runHook = Effect.fnUntraced(function* (
  { commands, hooks, monotonicMs }: HookRunOptions,
  { agent_id, hook_run_id, onRun, timeout_ms }: HookRunRequest
): Effect.fn.Return<void> {
  const submit = (command: Command) => Effect.promise(() => tryCommand(commands, command))
  if ((yield* submit({ _tag: "StartHook", hook_run_id })) !== undefined) return
  const found = hookOf(commands.state(), hook_run_id)
  if (found === undefined) return
  const { hook_name } = found.hook
  const startedMs = monotonicMs()
  const run = hooks.run(commands.state(), found.hook, {
    agent_id,
    workspace: workspaceOf(commands.state(), agent_id)
  })
  const ended = yield* underDeadline(run, { timeoutMs: timeout_ms, ...(onRun === undefined ? {} : { onFork: onRun }) })
  const { feedback, stop, ...ending } = fitted(outcomeOf(ended, hook_name, timeout_ms))
  const durationMs = Math.max(0, Math.round(monotonicMs() - startedMs))
  const to = { agent_id, principal: `hook:${hook_name}` }
  // Before the hook is over: what follows it is the next model call, which has to know.
  if (feedback !== undefined) yield* submit({ _tag: "PostMessage", ...to, content: feedback, mode: "steer" })
  yield* submit({ _tag: "FinishHook", hook_run_id, ...ending, duration_ms: durationMs })
  if (stop !== undefined) yield* submit({ _tag: "InterruptTurn", ...to, reason: stop })
})
