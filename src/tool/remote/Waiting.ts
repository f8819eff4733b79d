// Calls that wait for the result of a client. Each ends once: by its result, by its signal, or because its client is
// gone. A result may come before its call has begun to wait, and may come twice.
import type { ToolContext, ToolOutcome } from "../Port.ts"
import type { Input } from "../Tool.ts"
import { remoteLimits } from "./Limits.ts"

export interface RemoteResult {
  readonly status: "success" | "error"
  readonly output: string
}

export interface WaitingCall {
  readonly call_id: string
  readonly tool_name: string
  readonly attempt: number
  readonly arguments: Input
}

interface Entry extends WaitingCall {
  readonly end: (outcome: ToolOutcome) => void
}

const keyOf = (conversationId: string, callId: string): string => `${conversationId} ${callId}`

const outcomeOf = ({ output, status }: RemoteResult): ToolOutcome =>
  status === "success"
    ? { status, output }
    : { status, output, error: { code: "remote_tool_failed", message: output.slice(0, 500), source: "tool" } }

/** The outcome of a call whose client is not there. */
export const clientGone = (toolName: string, why: string): ToolOutcome => ({
  status: "error",
  error: {
    code: "client_gone",
    message: `the client that runs ${toolName} ${why}; it is not known whether the call took effect`,
    retryable: false,
    source: "tool"
  }
})

/** A map that forgets its oldest entry when it has too many. */
class Recent<Value> {
  private readonly values = new Map<string, Value>()
  private readonly max: number

  constructor(max: number) {
    this.max = max
  }

  set(key: string, value: Value): void {
    this.values.delete(key)
    this.values.set(key, value)
    const [oldest] = this.values.keys()
    if (this.values.size > this.max && oldest !== undefined) this.values.delete(oldest)
  }

  get(key: string): Value | undefined {
    return this.values.get(key)
  }

  take(key: string): Value | undefined {
    const value = this.values.get(key)
    this.values.delete(key)
    return value
  }
}

export class WaitingCalls {
  private readonly entries = new Map<string, Entry>()
  private readonly early = new Recent<RemoteResult>(remoteLimits.earlyMax)
  private readonly taken = new Recent<string>(remoteLimits.takenMax)

  /** Waits for the end of a call. */
  wait(toolName: string, input: Input, context: ToolContext): Promise<ToolOutcome> {
    const { attempt, call_id: callId, conversation_id: conversationId, signal } = context
    const key = keyOf(conversationId, callId)
    const early = this.early.take(key)
    if (early !== undefined) return Promise.resolve(outcomeOf(early))
    if (signal.aborted) return Promise.resolve({ status: "cancelled" })
    return new Promise((resolve) => {
      const onAbort = (): void => end({ status: "cancelled" })
      const end = (outcome: ToolOutcome): void => {
        this.entries.delete(key)
        signal.removeEventListener("abort", onAbort)
        resolve(outcome)
      }
      signal.addEventListener("abort", onAbort)
      this.entries.set(key, { call_id: callId, tool_name: toolName, attempt, arguments: input, end })
    })
  }

  /** What a result is to this process: `unexpected` when no call waits for it and none has started. */
  settle(
    conversationId: string,
    callId: string,
    result: RemoteResult,
    { hasStarted }: { readonly hasStarted: boolean }
  ): "taken" | "repeated" | "decided" | "unexpected" {
    const key = keyOf(conversationId, callId)
    const body = JSON.stringify([result.status, result.output])
    const before = this.taken.get(key)
    const entry = this.entries.get(key)
    if (entry === undefined && before !== undefined) return before === body ? "repeated" : "decided"
    if (entry === undefined && !hasStarted) return "unexpected"
    this.taken.set(key, body)
    if (entry === undefined) this.early.set(key, result)
    else entry.end(outcomeOf(result))
    return "taken"
  }

  /** Ends the calls of a tool whose client is gone. */
  giveUp(conversationId: string, toolName: string, why: string): void {
    for (const [key, entry] of this.entries) {
      if (entry.tool_name === toolName && key.startsWith(`${conversationId} `)) entry.end(clientGone(toolName, why))
    }
  }

  of(conversationId: string, isWanted: (toolName: string) => boolean): ReadonlyArray<WaitingCall> {
    const found: Array<WaitingCall> = []
    for (const [key, { end: _, ...call }] of this.entries) {
      if (key.startsWith(`${conversationId} `) && isWanted(call.tool_name)) found.push(call)
    }
    return found
  }
}
