// Runs one tool call: started on record before it starts in fact, output gathered into progress runes, exactly one
// end. A runner that breaks is reported as such; the machine decides whether it is tried again. Something that must
// not happen twice is never started twice, whatever happened to whoever started it first.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import { tryCommand } from "../contract/TryCommand.ts"
import type { Command } from "../machine/Command.ts"
import { errorInfo } from "../machine/ErrorTable.ts"
import type { CallState } from "../machine/State.ts"
import { callOf, runsInClient, workspaceOf } from "../machine/view/Select.ts"
import type { AgentId, CallId, TurnId } from "../rune/Ids.ts"
import type { BlobRef } from "../rune/kinds/shared.ts"
import { type KeepMedia, withMediaKept } from "../tool/Media.ts"
import type { Authorization, ToolOutcome, ToolPort } from "../tool/ToolPort.ts"
import type { Commands } from "./Commands.ts"
import { type Ended, messageOf, underDeadline, windingUp } from "./Deadline.ts"
import { Progress } from "./Progress.ts"
import type { Streams } from "./Streams.ts"
import { limits } from "./TurnLimits.ts"

export interface ToolCallOptions {
  readonly commands: Commands
  readonly tools: ToolPort
  readonly streams: Streams
  readonly monotonicMs: () => number
  /** Resolves at the next change of the conversation's state, or when the signal aborts. */
  readonly changed: (signal: AbortSignal) => Promise<void>
  /** Keeps an output that is too long for a result; there may be no such place. */
  readonly keepOutput?: (output: string) => Promise<BlobRef>
  /** Keeps images and documents of a tool that has no place of its own for them. */
  readonly keepMedia?: KeepMedia
}

export interface ToolCallRequest {
  readonly agent_id: AgentId
  readonly turn_id: TurnId
  readonly call_id: CallId
  readonly timeout_ms: number
}

/** Asks the policy about a pending call and does what it says, short of running it; tells whether it is to run. */
export const routeCall = Effect.fnUntraced(function* (
  { commands, tools }: ToolCallOptions,
  callId: CallId,
  question: { readonly expires_ms: number | undefined }
): Effect.fn.Return<"run" | "settled"> {
  const state = commands.state()
  const call = callOf(state, callId)
  if (call === undefined) return "settled"
  const verdict = yield* tools.authorize(state, call, { settled: commands.settled })
  if (verdict._tag === "Allow") return "run"
  yield* Effect.promise(() => tryCommand(commands, commandFor(verdict, callId, question)))
  return "settled"
})

/** What a verdict other than yes makes of a call. */
const commandFor = (
  verdict: Exclude<Authorization, { readonly _tag: "Allow" }>,
  callId: CallId,
  question: { readonly expires_ms: number | undefined }
): Command => {
  const id = { call_id: callId }
  switch (verdict._tag) {
    case "Ask": {
      const { _tag: _, ...asked } = verdict
      const expiry = question.expires_ms === undefined ? {} : { expires_ms: question.expires_ms }
      return { _tag: "RequireApproval", ...id, ...asked, ...expiry }
    }
    case "Deny":
      return { _tag: "DenyCall", ...id, approver: "policy", reason: verdict.reason, channel: "policy" }
    case "Reject":
      return { _tag: "FinishCall", ...id, status: "error", error: verdict.error, duration_ms: 0 }
  }
}

/** It had started, nobody knows how far it got, and it must not run again. */
const isSpent = (call: CallState): boolean => call.attempt > 0 && call.effect_class === "effect"

/** Puts the start of a call on record; tells whether it may start in fact. */
export const startCall = async ({ commands, tools }: ToolCallOptions, callId: CallId): Promise<boolean> => {
  const call = callOf(commands.state(), callId)
  if (call === undefined) return false
  // It was started before this process was, and runs on where it is: its result is all that is missing.
  if (isSpent(call) && runsInClient(call)) return true
  if (isSpent(call)) {
    await tryCommand(commands, { _tag: "CrashCall", call_id: callId, message: "what ran the call broke down" })
    return false
  }
  const sandbox = tools.sandbox(commands.state(), call)
  return (await tryCommand(commands, { _tag: "StartCall", call_id: callId, sandbox })) === undefined
}

/** An effect that runs here and must not run twice: not one of a client or of another server. */
const endsWithServer = ({ effect_class: effectClass, provenance }: CallState): boolean =>
  effectClass === "effect" && provenance !== "remote" && provenance !== "mcp"

/** Runs a call whose start is on record, to its single result. */
export const finishCall = Effect.fnUntraced(function* (
  options: ToolCallOptions,
  request: ToolCallRequest
): Effect.fn.Return<void> {
  const { commands, monotonicMs } = options
  const call = callOf(commands.state(), request.call_id)
  if (call === undefined) return
  const startedMs = monotonicMs()
  const finish = async (outcome: ToolOutcome): Promise<void> => {
    const durationMs = Math.max(0, Math.round(monotonicMs() - startedMs))
    const result = await fitted(options, outcome)
    await tryCommand(commands, { _tag: "FinishCall", call_id: request.call_id, ...result, duration_ms: durationMs })
  }
  const onCancelled = (last: ToolOutcome | undefined): Effect.Effect<void> =>
    endsWithServer(call) && last?.status === "cancelled" ? Effect.promise(() => finish(last)) : Effect.void
  const ended = yield* execute(options, request, call, onCancelled)
  if (ended._tag === "Threw" && !ended.late) {
    const message = messageOf(ended.cause)
    yield* Effect.promise(() => tryCommand(commands, { _tag: "CrashCall", call_id: request.call_id, message }))
    return
  }
  yield* Effect.promise(() => finish(resultOf(ended, call, request)))
})

/**
 * Runs the tool. When the call is interrupted, so is the tool, and it has a moment to say what became of it: what was ended
 * with us and says so is cancelled, what may be repeated runs again, and what runs elsewhere goes on.
 */
const execute = (
  options: ToolCallOptions,
  request: ToolCallRequest,
  call: CallState,
  onCancelled: (last: ToolOutcome | undefined) => Effect.Effect<void>
): Effect.Effect<Ended<ToolOutcome>> =>
  Effect.suspend(() => {
    const { commands, streams } = options
    const progress = new Progress(commands, request.call_id)
    streams.add(progress)
    let last: ToolOutcome | undefined
    let fiber: Fiber.Fiber<ToolOutcome> | undefined
    const work = options.tools.run(commands.state(), call, {
      ...contextOf(options, request, call),
      progress: progress.add,
      interruptedWith: (outcome) => {
        last = outcome
      }
    })
    const onFork = (forked: Fiber.Fiber<ToolOutcome>): void => {
      fiber = forked
    }
    const lastWords = Effect.suspend(() => {
      streams.delete(progress)
      progress.discard()
      const wait = fiber === undefined ? Effect.void : windingUp(fiber)
      return Effect.andThen(
        wait,
        Effect.suspend(() => onCancelled(outcomeOf(fiber) ?? last))
      )
    })
    return underDeadline(work, { timeoutMs: request.timeout_ms, last: () => last, onFork }).pipe(
      Effect.map((ended) => (ended._tag === "Returned" && !isOutcome(ended.value) ? noOutcome(ended.value) : ended)),
      Effect.tap(() => {
        streams.delete(progress)
        return Effect.promise(() => progress.finish())
      }),
      Effect.onInterrupt(() => lastWords)
    )
  })

/** What the tool came to, if it has. */
const outcomeOf = (fiber: Fiber.Fiber<ToolOutcome> | undefined): ToolOutcome | undefined => {
  const exit = fiber?.pollUnsafe()
  return exit !== undefined && Exit.isSuccess(exit) ? exit.value : undefined
}

const contextOf = ({ changed, commands }: ToolCallOptions, request: ToolCallRequest, call: CallState) => ({
  conversation_id: commands.conversationId,
  agent_id: request.agent_id,
  turn_id: request.turn_id,
  call_id: request.call_id,
  attempt: call.attempt,
  workspace: workspaceOf(commands.state(), request.agent_id),
  conversation: { state: commands.state, submit: commands.submit, changed }
})

const statuses: ReadonlySet<unknown> = new Set([
  "success",
  "error",
  "timeout",
  "cancelled",
  "unknown",
  "sandbox_violation"
])

/** Runners come from outside: what they return is not always what their type says. */
const isOutcome = (value: unknown): value is ToolOutcome => {
  const outcome = value as Partial<ToolOutcome> | null | undefined
  return statuses.has(outcome?.status) && (outcome?.output === undefined || typeof outcome.output === "string")
}

const noOutcome = (value: unknown): Ended<never> => {
  const seen = value === null ? "null" : typeof value
  return { _tag: "Threw", cause: new TypeError(`the runner returned no outcome but ${seen}`), late: false }
}

/** Success counts however late it comes; anything else after the deadline is a timeout, with what there was to show. */
const resultOf = (ended: Ended<ToolOutcome>, call: CallState, request: ToolCallRequest): ToolOutcome => {
  if (ended._tag === "Returned" && (!ended.late || ended.value.status === "success")) return ended.value
  const message = `${call.tool_name} did not end within ${request.timeout_ms} ms`
  const output = ended._tag === "Returned" ? ended.value.output : callOutput(call)
  const shown = output === undefined || output === "" ? {} : { output }
  return { status: "timeout", error: errorInfo("tool_timeout", message), ...shown }
}

/** What a call had printed; the state keeps its end. */
const callOutput = (call: CallState): string => call.progress_tail

/** Keeps head and tail of an output that is too long for a result, and all of it beside the log if it can. */
const fitted = async ({ keepMedia, keepOutput }: ToolCallOptions, ended: ToolOutcome): Promise<ToolOutcome> => {
  const result = await withMediaKept(ended, keepMedia)
  const { output } = result
  if (output === undefined || output.length <= limits.outputCharsMax) return result
  const half = Math.floor(limits.outputCharsMax / 2)
  const dropped = output.length - 2 * half
  const short = `${output.slice(0, half)}\n… ${dropped} characters left out …\n${output.slice(-half)}`.toWellFormed()
  // No room for the whole is no reason to lose the rest.
  const blob = await keepOutput?.(output).catch(() => undefined)
  return { ...result, output: short, ...(blob === undefined ? {} : { output_blob: blob }) }
}
