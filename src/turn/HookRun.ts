// Runs one post-tool hook: started on record before it starts in fact, ended on record exactly once, whatever the
// hook does. Its own failure policy decides what a failure means; that is the machine's business.
import { tryCommand } from "../contract/TryCommand.ts"
import type { HookOutcome, HookPort } from "../hook/HookPort.ts"
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
  /** Told of the run itself, which may go on for a moment when the hook is over on record. */
  readonly onRun?: (running: Promise<unknown>) => void
}

const failed = (message: string): HookOutcome => ({
  status: "failed",
  error: errorInfo("hook_execution_failed", message)
})

const statuses: ReadonlySet<unknown> = new Set(["succeeded", "failed", "canceled"])

const outcomeOf = (
  ended: Exclude<Ended<HookOutcome>, { readonly _tag: "Interrupted" }>,
  hookName: string,
  timeoutMs: number
): HookOutcome => {
  if (ended._tag === "Overran" || ended.late) return failed(`hook ${hookName} did not end within ${timeoutMs} ms`)
  if (ended._tag === "Threw") return failed(messageOf(ended.cause))
  return statuses.has(ended.value?.status) ? ended.value : failed(`hook ${hookName} returned no outcome`)
}

const fitted = (outcome: HookOutcome): HookOutcome => {
  const { output } = outcome
  if (output === undefined || output.length <= limits.hookOutputCharsMax) return outcome
  return { ...outcome, output: `${output.slice(0, limits.hookOutputCharsMax)}…`.toWellFormed() }
}

export const runHook = async (
  { commands, hooks, monotonicMs }: HookRunOptions,
  request: HookRunRequest,
  signal: AbortSignal
): Promise<void> => {
  const id = { hook_run_id: request.hook_run_id }
  if ((await tryCommand(commands, { _tag: "StartHook", ...id })) !== undefined) return
  const found = hookOf(commands.state(), request.hook_run_id)
  if (found === undefined || signal.aborted) return
  const startedMs = monotonicMs()
  const run = (deadline: AbortSignal): Promise<HookOutcome> => {
    const running = hooks.run(commands.state(), found.hook, {
      agent_id: request.agent_id,
      workspace: workspaceOf(commands.state(), request.agent_id),
      signal: deadline
    })
    request.onRun?.(running)
    return running
  }
  const ended = await underDeadline(run, { timeoutMs: request.timeout_ms, signal })
  if (ended._tag === "Interrupted") return
  const outcome = fitted(outcomeOf(ended, found.hook.hook_name, request.timeout_ms))
  const durationMs = Math.max(0, Math.round(monotonicMs() - startedMs))
  const { feedback, stop, ...ending } = outcome
  const to = { agent_id: request.agent_id, principal: `hook:${found.hook.hook_name}` }
  // Before the hook is over: what follows it is the next model call, which has to know.
  if (feedback !== undefined)
    await tryCommand(commands, { _tag: "PostMessage", ...to, content: feedback, mode: "steer" })
  await tryCommand(commands, { _tag: "FinishHook", ...id, ...ending, duration_ms: durationMs })
  if (stop !== undefined) await tryCommand(commands, { _tag: "InterruptTurn", ...to, reason: stop })
}
