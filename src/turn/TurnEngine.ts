// Runs what the state says is pending, one effect each: model calls, tools, hooks, timers. Each first makes its step
// durable through a command and only then touches the world, so everything it relies on is on disk by
// then. Interrupting one aborts what it does; the machine has the last word on what that meant.
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { tryCommand } from "../contract/TryCommand.ts"
import { callTimeoutMs, effectiveLimits } from "../machine/MachineLimits.ts"
import type { CallState } from "../machine/State.ts"
import { agentOf, batchOf, callOf, workspaceOf } from "../machine/view/Select.ts"
import { mayRunNow, type TurnWork as Pending } from "../machine/work/PendingWork.ts"
import type { AgentId, CallId } from "../rune/Ids.ts"
import { type AgentInitOptions, initIssue } from "./AgentInit.ts"
import { afterBatch, type BatchCheckpoints, beforeCall } from "./BatchCheckpoint.ts"
import { withBudgetReservation } from "./BudgetReservation.ts"
import type { Commands } from "./Commands.ts"
import { timerMs } from "./Deadline.ts"
import { type HookRunOptions, runHook } from "./HookRun.ts"
import { callModel, type ModelCallOptions } from "./ModelCall.ts"
import { finishCall, routeCall, startCall, type ToolCallOptions } from "./ToolCall.ts"
import { limits } from "./TurnLimits.ts"
import { waitUntil } from "./WaitUntil.ts"

export interface EngineOptions extends ModelCallOptions, ToolCallOptions, HookRunOptions, AgentInitOptions {
  /** Resolves when the state has changed, or when the signal aborts. */
  readonly changed: (signal: AbortSignal) => Promise<void>
  /** Records files before calls that may change them; nothing can be undone without it. */
  readonly checkpoints?: BatchCheckpoints
  /** A call after which the model has nothing more to say. */
  readonly endsTurn?: (call: CallState) => boolean
}

type Of<Tag extends Pending["_tag"]> = Extract<Pending, { readonly _tag: Tag }>

const submit = (commands: Commands, command: Parameters<Commands["submit"]>[0]): Effect.Effect<void> =>
  Effect.asVoid(Effect.promise(() => tryCommand(commands, command)))

/** The time as the log has it, which never runs backwards. */
const logMs = ({ commands, nowMs }: EngineOptions): number => Math.max(nowMs(), commands.state().last_ms)

const sleepUntil = (options: EngineOptions, dueMs: number): Effect.Effect<void> =>
  waitUntil(dueMs, () => logMs(options))

/** Ends the turn of work that outlived its own limit: nothing that hangs may hang for ever. */
const watched = (
  { commands }: EngineOptions,
  work: { readonly agent_id: AgentId; readonly timeout_ms: number; readonly what: string },
  body: Effect.Effect<void>
): Effect.Effect<void> => {
  const stuckMs = timerMs(work.timeout_ms + limits.stuckGraceMs)
  return Effect.flatMap(Effect.timeoutOption(body, stuckMs), (ended) => {
    if (ended._tag === "Some") return Effect.void
    const message = `${work.what} did not end within ${stuckMs} ms`
    const error = { error_type: "turn_stuck", message, retryable: false, source: "orchestrator" } as const
    return submit(commands, { _tag: "FailTurn", agent_id: work.agent_id, error })
  })
}

/** A call may have to wait for the calls before it in its batch. */
const waitForTurn = (options: EngineOptions, callId: CallId): Effect.Effect<void> =>
  Effect.suspend(() =>
    mayRunNow(options.commands.state(), callId)
      ? Effect.void
      : Effect.andThen(
          Effect.promise((signal) => options.changed(signal)),
          waitForTurn(options, callId)
        )
  )

const oneCall = { tokens: 0, micro_usd: 0, tool_calls: 1 }

/** Puts the start on record. A call counts against the budget once, when it first starts. */
const start = (options: EngineOptions, pending: Of<"RunTool">): Effect.Effect<boolean | undefined> =>
  Effect.suspend(() => {
    const begin = Effect.promise(() => startCall(options, pending.call_id))
    const isFirst = callOf(options.commands.state(), pending.call_id)?.attempt === 0
    return isFirst ? withBudgetReservation(options, pending.agent_id, oneCall, begin) : begin
  })

const runTool = (options: EngineOptions, pending: Of<"RunTool">): Effect.Effect<void> => {
  const bounded = watched(options, { ...pending, what: `tool call ${pending.call_id}` }, finishCall(options, pending))
  const begun = waitForTurn(options, pending.call_id).pipe(
    Effect.andThen(beforeCall(options, pending)),
    Effect.andThen(start(options, pending))
  )
  return Effect.flatMap(begun, (started) => (started === true ? bounded : Effect.void))
}

const routeTool = (options: EngineOptions, pending: Of<"RouteTool">): Effect.Effect<void> =>
  Effect.flatMap(
    Effect.suspend(() => {
      const state = options.commands.state()
      const { approvalTimeoutMs } = effectiveLimits(state.session.config)
      // A clock that was set back must not make a question expire as it is asked.
      const expires = approvalTimeoutMs === 0 ? undefined : logMs(options) + approvalTimeoutMs
      const call = callOf(state, pending.call_id)
      const timeoutMs = callTimeoutMs(state.session.config, call?.timeout_ms ?? null)
      return Effect.map(routeCall(options, pending.call_id, { expires_ms: expires }), (verdict) =>
        verdict === "run" ? timeoutMs : undefined
      )
    }),
    (timeoutMs) =>
      timeoutMs === undefined ? Effect.void : runTool(options, { ...pending, _tag: "RunTool", timeout_ms: timeoutMs })
  )

const settleTools = (options: EngineOptions, pending: Of<"SettleTools">): Effect.Effect<void> => {
  const { commands, hooks } = options
  const state = commands.state()
  const agent = agentOf(state, pending.agent_id)
  const batch = agent?.turn == null ? [] : batchOf(state, agent.turn)
  const chosen = pending.mutating ? hooks.choose(state, pending.agent_id, batch) : []
  const end = batch.some((call) => options.endsTurn?.(call) === true) ? { end_turn: true } : {}
  const settle = submit(commands, { _tag: "SettleTools", agent_id: pending.agent_id, hooks: chosen, ...end })
  const complaints = pending.mutating ? (hooks.complaints?.(state) ?? []) : []
  const settled = complaints.reduceRight(
    (after, payload) => Effect.andThen(submit(commands, { _tag: "RecordSystemError", payload }), after),
    settle
  )
  return pending.mutating ? Effect.andThen(settled, afterBatch(options, pending.agent_id)) : settled
}

/** One hook at a time, in the conversation and in the workspace. */
const hook = (options: EngineOptions, pending: Of<"RunHook">): Effect.Effect<void> => {
  let running: Fiber.Fiber<unknown> | undefined
  const onRun = (fiber: Fiber.Fiber<unknown>): void => {
    running = fiber
  }
  const run = runHook(options, { ...pending, onRun })
  const bounded = watched(options, { ...pending, what: `hook ${pending.hook_run_id}` }, run)
  const { commands, hooks } = options
  const workspace = workspaceOf(commands.state(), pending.agent_id)
  if (hooks.enter === undefined || workspace === undefined) return bounded
  const { enter } = hooks
  // Waiting for others is no part of the time that a hook has.
  return Effect.acquireUseRelease(
    Effect.sync(() => enter({ conversation_id: commands.conversationId, workspace })),
    (ticket) =>
      Effect.andThen(
        Effect.promise(() => ticket.ready),
        bounded
      ),
    (ticket) => Effect.suspend(() => (running === undefined ? Effect.sync(ticket.leave) : ticket.leaveAfter(running)))
  )
}

const awaitApproval = (options: EngineOptions, pending: Of<"AwaitApproval">): Effect.Effect<void> =>
  pending.expires_ms === null
    ? Effect.never
    : Effect.andThen(
        sleepUntil(options, pending.expires_ms),
        submit(options.commands, { _tag: "ExpireApproval", call_id: pending.call_id })
      )

const startAgent = (options: EngineOptions, agentId: AgentId): Effect.Effect<void> =>
  Effect.flatMap(
    Effect.suspend(() => initIssue(options, options.commands.state(), agentId)),
    (error) =>
      submit(
        options.commands,
        error === undefined
          ? { _tag: "CompleteAgentInit", agent_id: agentId }
          : { _tag: "FailAgentInit", agent_id: agentId, error }
      )
  )

/** A call that is held waits for its turn, and now and then for the machine to judge how long it may. */
const held = ({ models }: EngineOptions, { held_by: provider }: Of<"RetryAfter">): Effect.Effect<void> =>
  provider === undefined ? Effect.void : Effect.asVoid(Effect.timeoutOption(models.ready(provider), limits.heldLookMs))

/** The work of one pending effect. */
export const perform = (options: EngineOptions, pending: Pending): Effect.Effect<void> => {
  const { commands } = options
  switch (pending._tag) {
    case "StartAgent":
      return startAgent(options, pending.agent_id)
    case "StartQueued":
      return submit(commands, { _tag: "StartQueued", agent_id: pending.agent_id })
    case "CallModel":
      return callModel(options, pending)
    case "FinaliseResponse":
      return submit(commands, { _tag: "FinaliseResponse", agent_id: pending.agent_id })
    case "RouteTool":
      return routeTool(options, pending)
    case "AwaitApproval":
      return awaitApproval(options, pending)
    case "RunTool":
      return runTool(options, pending)
    case "SettleTools":
      return settleTools(options, pending)
    case "RunHook":
      return hook(options, pending)
    case "RetryAfter":
      return Effect.andThen(
        Effect.andThen(sleepUntil(options, pending.due_ms), held(options, pending)),
        submit(commands, { _tag: "RetryDue", agent_id: pending.agent_id })
      )
    case "FinishClosing":
      return submit(commands, { _tag: "FinishClosing" })
  }
}
