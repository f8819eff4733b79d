// Calls that wait for the result of a client. Each ends once: by its result, by its signal, or because its client is
// gone. A result may come before its call has begun to wait, and may come twice.
import { createHash } from "node:crypto"
import type { EffectClass } from "../../rune/kinds/shared.ts"
import type { Input } from "../Tool.ts"
import type { SignalContext, ToolOutcome } from "../ToolPort.ts"
import { remoteLimits } from "./RemoteToolLimits.ts"

export interface RemoteResult {
  readonly status: "success" | "error"
  readonly output: string
}

export interface RemoteTool {
  readonly name: string
  readonly effect_class: EffectClass
}

export interface WaitingCall {
  readonly call_id: string
  readonly tool_name: string
  readonly attempt: number
  readonly arguments: Input
}

interface Entry extends WaitingCall {
  readonly effect_class: EffectClass
  readonly end: (outcome: ToolOutcome) => void
}

const keyOf = (conversationId: string, callId: string): string => `${conversationId} ${callId}`

/** The same for the same result, word for word, in every life of the server. */
export const answerHash = ({ output, status }: RemoteResult): string =>
  createHash("sha256")
    .update(JSON.stringify([status, output]))
    .digest("hex")

const outcomeOf = (result: RemoteResult): ToolOutcome => {
  const { output, status } = result
  const answer = { status, output, answer_sha256: answerHash(result) }
  if (status === "success") return answer
  return { ...answer, error: { code: "remote_tool_failed", message: output.slice(0, 500), source: "tool" } }
}

/** The outcome of a call whose client is not there. */
export const clientGone = (toolName: string, effectClass: EffectClass, why: string): ToolOutcome => ({
  status: effectClass === "effect" ? "unknown" : "error",
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
  /** The attempt whose result was taken and may not be on record yet. */
  private readonly taken = new Recent<number>(remoteLimits.takenMax)

  /** Waits for the end of a call. */
  wait({ effect_class, name }: RemoteTool, input: Input, context: SignalContext): Promise<ToolOutcome> {
    const { attempt, call_id: callId, conversation_id: conversationId, signal } = context
    const key = keyOf(conversationId, callId)
    const early = this.early.take(key)
    if (early !== undefined) {
      this.taken.set(key, attempt)
      return Promise.resolve(outcomeOf(early))
    }
    if (signal.aborted) return Promise.resolve({ status: "cancelled" })
    return new Promise((resolve) => {
      const onAbort = (): void => end({ status: "cancelled" })
      const end = (outcome: ToolOutcome): void => {
        this.entries.delete(key)
        signal.removeEventListener("abort", onAbort)
        resolve(outcome)
      }
      signal.addEventListener("abort", onAbort)
      this.entries.set(key, { call_id: callId, tool_name: name, attempt, arguments: input, effect_class, end })
    })
  }

  /** Ends a call that has started, now or as soon as it waits here. A second result of the same attempt changes nothing. */
  settle(
    conversationId: string,
    { attempt, call_id: callId }: { readonly attempt: number; readonly call_id: string },
    result: RemoteResult
  ): void {
    const key = keyOf(conversationId, callId)
    const entry = this.entries.get(key)
    if (entry !== undefined) {
      this.taken.set(key, entry.attempt)
      entry.end(outcomeOf(result))
    } else if (this.taken.get(key) !== attempt && this.early.get(key) === undefined) this.early.set(key, result)
  }

  /** Ends the calls of a tool whose client is gone. */
  giveUp(conversationId: string, toolName: string, why: string): void {
    for (const [key, entry] of this.entries) {
      if (entry.tool_name === toolName && key.startsWith(`${conversationId} `))
        entry.end(clientGone(toolName, entry.effect_class, why))
    }
  }

  of(conversationId: string, isWanted: (toolName: string) => boolean): ReadonlyArray<WaitingCall> {
    const found: Array<WaitingCall> = []
    for (const [key, { effect_class: _class, end: _, ...call }] of this.entries) {
      if (key.startsWith(`${conversationId} `) && isWanted(call.tool_name)) found.push(call)
    }
    return found
  }
}
