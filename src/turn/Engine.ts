// Runs what the state says is pending, one effect each: model calls, tools, hooks, timers. Each first makes its step
// durable through a command and only then touches the world, so everything it relies on is on disk by
// then. Interrupting one aborts what it does; the machine has the last word on what that meant.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { HookPort } from "../hook/Port.ts"
import { mayRunNow, type Effect as Pending } from "../machine/Effects.ts"
import { errorInfo } from "../machine/ErrorTable.ts"
import { effectiveLimits } from "../machine/Limits.ts"
import { agentOf, batchOf, callOf, hookOf } from "../machine/Select.ts"
import { type Commands, offer } from "./Commands.ts"
import type { Compaction } from "./Compaction.ts"
import { limits } from "./Limits.ts"
import { callModel, type ModelCallOptions } from "./ModelCall.ts"
import { routeCall, runCall, type ToolCallOptions } from "./ToolCall.ts"

export interface EngineOptions extends ModelCallOptions, ToolCallOptions {
  readonly hooks: HookPort
  readonly compaction: Compaction
  /** Resolves when the state has changed. */
  readonly changed: (signal: AbortSignal) => Promise<void>
}

type Of<Tag extends Pending["_tag"]> = Extract<Pending, { readonly _tag: Tag }>

const submit = (commands: Commands, command: Parameters<Commands["submit"]>[0]): Effect.Effect<void> =>
  Effect.asVoid(Effect.promise(() => offer(commands, command)))

const sleepUntil = (dueMs: number): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (nowMs) => Effect.sleep(Math.max(0, dueMs - nowMs)))

/** Ends the turn of work that outlived its own limit: nothing that hangs may hang for ever. */
const watched = (
  options: EngineOptions,
  work: { readonly agent_id: Of<"RunTool">["agent_id"]; readonly timeout_ms: number; readonly what: string },
  body: Effect.Effect<void>
): Effect.Effect<void> =>
  Effect.flatMap(Effect.timeoutOption(body, work.timeout_ms + limits.stuckGraceMs), (ended) => {
    if (ended._tag === "Some") return Effect.void
    const message = `${work.what} did not end within ${work.timeout_ms + limits.stuckGraceMs} ms`
    const error = { error_type: "turn_stuck", message, retryable: false, source: "orchestrator" } as const
    return submit(options.commands, { _tag: "FailTurn", agent_id: work.agent_id, error })
  })

/** A call may have to wait for the calls before it in its batch. */
const waitForTurn = async (
  options: EngineOptions,
  callId: Of<"RouteTool">["call_id"],
  signal: AbortSignal
): Promise<void> => {
  while (!signal.aborted && !mayRunNow(options.commands.state(), callId)) await options.changed(signal)
}

const overBudget = async (options: EngineOptions, agentId: Of<"RunTool">["agent_id"]): Promise<boolean> => {
  const state = options.commands.state()
  const agent = agentOf(state, agentId)
  if (agent === undefined) return false
  const admission = options.spending.reserve(state, agent, { tokens: 0, usd: 0, tool_calls: 0 }, options.nowMs())
  if (admission._tag === "Reserved") {
    admission.release()
    return false
  }
  const { which, used, limit } = admission
  await offer(options.commands, { _tag: "ExhaustBudget", agent_id: agentId, which, used, limit, consequence: "suspend" })
  return true
}

const runTool = (options: EngineOptions, pending: Of<"RunTool">): Effect.Effect<void> => {
  const wait = Effect.promise(async (signal) => {
    await waitForTurn(options, pending.call_id, signal)
    return signal.aborted || (await overBudget(options, pending.agent_id)) ? "stop" : "go"
  })
  const run = Effect.promise((signal) => runCall(options, pending, signal))
  const bounded = watched(options, { ...pending, what: `tool call ${pending.call_id}` }, run)
  return Effect.flatMap(wait, (verdict) => (verdict === "go" ? bounded : Effect.void))
}

const routeTool = (options: EngineOptions, pending: Of<"RouteTool">): Effect.Effect<void> =>
  Effect.flatMap(
    Effect.promise(async () => {
      const state = options.commands.state()
      const { approvalTimeoutMs, toolTimeoutMs } = effectiveLimits(state.session.config)
      const expires = approvalTimeoutMs === 0 ? undefined : options.nowMs() + approvalTimeoutMs
      const call = callOf(state, pending.call_id)
      const verdict = await routeCall(options, pending.call_id, { expires_ms: expires })
      return verdict === "run" ? (call?.timeout_ms ?? toolTimeoutMs) : undefined
    }),
    (timeoutMs) =>
      timeoutMs === undefined ? Effect.void : runTool(options, { ...pending, _tag: "RunTool", timeout_ms: timeoutMs })
  )

const settleTools = (options: EngineOptions, pending: Of<"SettleTools">): Effect.Effect<void> => {
  const { commands, hooks } = options
  const state = commands.state()
  const agent = agentOf(state, pending.agent_id)
  const batch = agent?.turn === null || agent === undefined ? [] : batchOf(state, agent.turn)
  const chosen = pending.mutating ? hooks.choose(state, pending.agent_id, batch) : []
  return submit(commands, { _tag: "SettleTools", agent_id: pending.agent_id, hooks: chosen })
}

const runHook = (options: EngineOptions, pending: Of<"RunHook">): Effect.Effect<void> => {
  const { commands, hooks, monotonicMs } = options
  const body = Effect.promise(async (signal) => {
    if (!(await offer(commands, { _tag: "StartHook", hook_run_id: pending.hook_run_id }))) return
    const found = hookOf(commands.state(), pending.hook_run_id)
    if (found === undefined) return
    const startedMs = monotonicMs()
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(pending.timeout_ms)])
    const context = {
      agent_id: pending.agent_id,
      workspace: commands.state().session.config.workspace,
      signal: deadline
    }
    const outcome = await hooks.run(commands.state(), found.hook, context).catch((error: unknown) => ({
      status: "failed" as const,
      error: errorInfo("hook_execution_failed", error instanceof Error ? error.message : String(error))
    }))
    if (signal.aborted) return
    const durationMs = Math.max(0, Math.round(monotonicMs() - startedMs))
    await offer(commands, { _tag: "FinishHook", hook_run_id: pending.hook_run_id, ...outcome, duration_ms: durationMs })
  })
  return watched(options, { ...pending, what: `hook ${pending.hook_run_id}` }, body)
}

const awaitApproval = (commands: Commands, pending: Of<"AwaitApproval">): Effect.Effect<void> =>
  pending.expires_ms === null
    ? Effect.never
    : Effect.andThen(
        sleepUntil(pending.expires_ms),
        submit(commands, { _tag: "ExpireApproval", call_id: pending.call_id })
      )

/** The work of one pending effect. */
export const perform = (options: EngineOptions, pending: Pending): Effect.Effect<void> => {
  const { commands } = options
  switch (pending._tag) {
    case "StartAgent":
      return submit(commands, { _tag: "CompleteAgentInit", agent_id: pending.agent_id })
    case "StartQueued":
      return submit(commands, { _tag: "StartQueued", agent_id: pending.agent_id })
    case "CallModel":
      return callModel(options, options.compaction, pending)
    case "FinaliseResponse":
      return submit(commands, { _tag: "FinaliseResponse", agent_id: pending.agent_id })
    case "RouteTool":
      return routeTool(options, pending)
    case "AwaitApproval":
      return awaitApproval(commands, pending)
    case "RunTool":
      return runTool(options, pending)
    case "SettleTools":
      return settleTools(options, pending)
    case "RunHook":
      return runHook(options, pending)
    case "RetryAfter":
      return Effect.andThen(
        sleepUntil(pending.due_ms),
        submit(commands, { _tag: "RetryDue", agent_id: pending.agent_id })
      )
    case "FinishClosing":
      return submit(commands, { _tag: "FinishClosing" })
  }
}

/** Routing and running a call are one piece of work: it must not start over when it moves from one to the other. */
export const workId = (pending: Pending): string =>
  pending._tag === "RouteTool" || pending._tag === "RunTool" ? `call ${pending.call_id}` : pending.key
