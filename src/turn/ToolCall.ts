// Runs one tool call: started on record before it starts in fact, output gathered into progress runes, exactly one
// end. A runner that breaks is reported as such; the machine decides whether it is tried again.
import { errorInfo } from "../machine/ErrorTable.ts"
import { callOf } from "../machine/Select.ts"
import type { CallState } from "../machine/State.ts"
import type { AgentId, CallId, TurnId } from "../rune/Ids.ts"
import type { ProgressStream } from "../rune/kinds/tool.ts"
import type { ToolContext, ToolOutcome, ToolPort } from "../tool/Port.ts"
import { Coalescer } from "./Coalescer.ts"
import { type Commands, offer } from "./Commands.ts"
import { limits } from "./Limits.ts"

export interface ToolCallOptions {
  readonly commands: Commands
  readonly tools: ToolPort
  readonly monotonicMs: () => number
}

export interface ToolCallRequest {
  readonly agent_id: AgentId
  readonly turn_id: TurnId
  readonly call_id: CallId
  readonly timeout_ms: number
}

/** Asks the policy about a pending call and does what it says, short of running it; tells whether it is to run. */
export const routeCall = async (
  { commands, tools }: ToolCallOptions,
  callId: CallId,
  question: { readonly expires_ms: number | undefined }
): Promise<"run" | "settled"> => {
  const state = commands.state()
  const call = callOf(state, callId)
  if (call === undefined) return "settled"
  const verdict = tools.authorize(state, call)
  switch (verdict._tag) {
    case "Allow":
      return "run"
    case "Ask": {
      const { _tag: _, ...asked } = verdict
      const expiry = question.expires_ms === undefined ? {} : { expires_ms: question.expires_ms }
      await offer(commands, { _tag: "RequireApproval", call_id: callId, ...asked, ...expiry })
      return "settled"
    }
    case "Deny":
      await offer(commands, {
        _tag: "DenyCall",
        call_id: callId,
        approver: "policy",
        reason: verdict.reason,
        channel: "policy"
      })
      return "settled"
    case "Reject":
      await offer(commands, {
        _tag: "FinishCall",
        call_id: callId,
        status: "error",
        error: verdict.error,
        duration_ms: 0
      })
      return "settled"
  }
}

/** Runs a call that may run, to its single result. */
export const runCall = async (
  options: ToolCallOptions,
  request: ToolCallRequest,
  signal: AbortSignal
): Promise<void> => {
  const { commands, tools, monotonicMs } = options
  const before = callOf(commands.state(), request.call_id)
  if (before === undefined) return
  const sandbox = tools.sandbox(commands.state(), before)
  if (!(await offer(commands, { _tag: "StartCall", call_id: request.call_id, sandbox }))) return
  const call = callOf(commands.state(), request.call_id)
  if (call === undefined || signal.aborted) return
  const startedMs = monotonicMs()
  const outcome = await execute(options, request, call, signal)
  if (signal.aborted) return
  const durationMs = Math.max(0, Math.round(monotonicMs() - startedMs))
  if (outcome._tag === "Crashed")
    await offer(commands, { _tag: "CrashCall", call_id: request.call_id, message: outcome.message })
  else
    await offer(commands, {
      _tag: "FinishCall",
      call_id: request.call_id,
      ...capped(outcome.result),
      duration_ms: durationMs
    })
}

type Execution =
  | { readonly _tag: "Ended"; readonly result: ToolOutcome }
  | { readonly _tag: "Crashed"; readonly message: string }

const execute = async (
  options: ToolCallOptions,
  request: ToolCallRequest,
  call: CallState,
  signal: AbortSignal
): Promise<Execution> => {
  const { commands, tools } = options
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(), request.timeout_ms)
  const progress = progressOf(commands, request.call_id)
  const context: ToolContext = {
    conversation_id: commands.conversationId,
    agent_id: request.agent_id,
    turn_id: request.turn_id,
    call_id: request.call_id,
    attempt: call.attempt,
    workspace: commands.state().session.config.workspace,
    signal: AbortSignal.any([signal, deadline.signal]),
    progress: progress.add
  }
  try {
    const result = await Promise.race([tools.run(commands.state(), call, context), aborted(context.signal)])
    if (!deadline.signal.aborted || (result !== "aborted" && result.status === "timeout")) {
      return result === "aborted" ? { _tag: "Ended", result: { status: "cancelled" } } : { _tag: "Ended", result }
    }
    const message = `${call.tool_name} did not end within ${request.timeout_ms} ms`
    return { _tag: "Ended", result: { status: "timeout", error: errorInfo("tool_timeout", message) } }
  } catch (error) {
    return { _tag: "Crashed", message: error instanceof Error ? error.message : String(error) }
  } finally {
    clearTimeout(timer)
    await progress.finish()
  }
}

const aborted = (signal: AbortSignal): Promise<"aborted"> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve("aborted")
    else signal.addEventListener("abort", () => resolve("aborted"), { once: true })
  })

/** Gathers output per stream; a call that talks without end stops making runes, not output. */
const progressOf = (commands: Commands, callId: CallId) => {
  const streams = new Map<ProgressStream, Coalescer>()
  let runes = 0
  let ended = false
  const send = (stream: ProgressStream) => async (chunk: string) => {
    runes += 1
    await offer(commands, { _tag: "AppendProgress", call_id: callId, stream, chunk })
  }
  return {
    add: (stream: ProgressStream, chunk: string): void => {
      if (ended || chunk === "" || runes >= limits.progressRunesMax) return
      const coalescer = streams.get(stream) ?? new Coalescer({ send: send(stream) })
      streams.set(stream, coalescer)
      void coalescer.add(chunk)
    },
    finish: async (): Promise<void> => {
      ended = true
      for (const coalescer of streams.values()) await coalescer.finish().catch(() => undefined)
    }
  }
}

/** Keeps head and tail of an output that is too long for a result. */
const capped = (result: ToolOutcome): ToolOutcome => {
  const { output } = result
  if (output === undefined || output.length <= limits.outputCharsMax) return result
  const half = Math.floor(limits.outputCharsMax / 2)
  const dropped = output.length - 2 * half
  return {
    ...result,
    output: `${output.slice(0, half)}\n… ${dropped} characters left out …\n${output.slice(-half)}`.toWellFormed()
  }
}
