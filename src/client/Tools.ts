/**
 * Tools that this client runs for a conversation. They are registered anew on every connection; calls are learnt from the
 * runes of the conversation, and from the server where they began to wait before; each is run once and answered once,
 * whatever happens to the connection meanwhile.
 */
import { pause } from "./Backoff.ts"
import { LinkLost, RequestFailed } from "./ClientErrors.ts"
import { clientLimits } from "./ClientLimits.ts"
import type { LinkSource, TailOptions } from "./Subscription.ts"
import type { AnyRune, TailItem } from "./Wire.ts"

export interface ToolCallInfo {
  readonly conversationId: string
  readonly callId: string
  readonly attempt: number
  /** Aborts when the call is over for the server: it was cancelled, or took too long. */
  readonly signal: AbortSignal
}

export type ToolAnswer = string | { readonly status: "success" | "error"; readonly output: string }

export interface ClientTool {
  /** Letters, digits, `_` and `-`; at most 64. */
  readonly name: string
  readonly description?: string
  /** JSON Schema of the arguments; its root is an object. */
  readonly parameters?: Readonly<Record<string, unknown>>
  /** Whether it changes anything; it does, unless told. */
  readonly mutating?: boolean
  /** What running it twice would mean; `effect` unless told. */
  readonly effect_class?: "pure" | "idempotent" | "effect"
  readonly timeout_ms?: number
  /** A person answers every call, whatever the policy. */
  readonly approval?: "always"
  /** Throwing gives the model an error with the message. */
  readonly run: (input: Readonly<Record<string, unknown>>, call: ToolCallInfo) => Promise<ToolAnswer> | ToolAnswer
}

export interface RegisteredTools {
  /** Withdraws the tools; calls that still run are given up. */
  readonly close: () => Promise<void>
  /** Settles when the tools are no longer offered: after `close`, or with the reason why the server does not take them. */
  readonly ended: Promise<void>
}

/** What this needs of the client. */
export interface ToolHost {
  readonly source: LinkSource
  readonly call: (
    op: "tool.result",
    fields: {
      readonly conversation_id: string
      readonly call_id: string
      readonly status: "success" | "error"
      readonly output: string
    },
    options: { readonly idempotencyKey: string; readonly signal: AbortSignal }
  ) => Promise<unknown>
  readonly tail: (conversationId: string, options: TailOptions) => AsyncGenerator<TailItem, void, void>
}

interface Call {
  readonly call_id: string
  readonly tool_name: string
  readonly attempt: number
  readonly arguments: Readonly<Record<string, unknown>>
}

interface Registered {
  readonly event_id: number
  /** Calls that were asked for and are not over. */
  readonly open: ReadonlyArray<Omit<Call, "attempt">>
  /** Those of them that have started. */
  readonly waiting: ReadonlyArray<Call>
}

const kinds = ["tool.call", "tool.approved", "tool.started", "tool.result"]

const asAnswer = (answer: ToolAnswer): { readonly status: "success" | "error"; readonly output: string } =>
  typeof answer === "string" ? { status: "success", output: answer } : answer

/** What a result may be answered with while the server stops, or the tools are not yet registered on this connection. */
const isTooSoon = (error: unknown): boolean =>
  error instanceof RequestFailed && ["unauthorized", "invalid_state", "busy"].includes(error.code)

export class ToolRegistration implements RegisteredTools {
  private readonly host: ToolHost
  private readonly conversationId: string
  private readonly tools: ReadonlyMap<string, ClientTool>
  private readonly closing = new AbortController()
  /** Calls that were asked for, as far as the runes told of them, until they are over. */
  private readonly asked = new Map<string, Omit<Call, "attempt">>()
  private readonly running = new Map<string, AbortController>()
  private readonly begun = new Set<string>()
  readonly ended: Promise<void>

  private constructor(host: ToolHost, conversationId: string, tools: ReadonlyArray<ClientTool>) {
    this.host = host
    this.conversationId = conversationId
    this.tools = new Map(tools.map((tool) => [tool.name, tool]))
    this.ended = this.closed
  }

  private settle: { readonly resolve: () => void; readonly reject: (error: unknown) => void } | undefined
  private readonly closed = new Promise<void>((resolve, reject) => {
    this.settle = { resolve, reject }
  })

  /** Resolves when the server knows the tools; rejects when it does not want them. */
  static async open(
    host: ToolHost,
    conversationId: string,
    tools: ReadonlyArray<ClientTool>
  ): Promise<RegisteredTools> {
    const registration = new ToolRegistration(host, conversationId, tools)
    registration.closed.catch(() => undefined)
    const first = Promise.withResolvers<Registered>()
    void registration.keepRegistered(first.resolve).then(
      () => registration.settle?.resolve(),
      (error: unknown) => {
        first.reject(error)
        registration.end(error)
      }
    )
    const { event_id: after } = await first.promise
    void registration.follow(after)
    return registration
  }

  async close(): Promise<void> {
    this.end(undefined)
    const link = await this.host.source.link(AbortSignal.timeout(clientLimits.probeWithinMs)).catch(() => undefined)
    await link?.request("tool.register", this.registration([])).catch(() => undefined)
    await this.closed.catch(() => undefined)
  }

  private end(error: unknown): void {
    this.closing.abort()
    for (const running of this.running.values()) running.abort()
    if (error !== undefined) this.settle?.reject(error)
  }

  private registration(tools: ReadonlyArray<ClientTool>) {
    const specs = tools.map(({ run: _, ...spec }) => spec)
    return { conversation_id: this.conversationId, tools: specs }
  }

  /** Registers on every connection there is, until closed. */
  private async keepRegistered(onFirst: (registered: Registered) => void): Promise<void> {
    const { signal } = this.closing
    const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()))
    for (;;) {
      const link = await this.host.source.link(signal)
      if (link === undefined) return
      try {
        const body = this.registration([...this.tools.values()])
        const registered = (await link.request("tool.register", body)) as Registered
        onFirst(registered)
        for (const call of registered.open) this.asked.set(call.call_id, call)
        for (const call of registered.waiting) this.begin(call)
        await Promise.race([link.ended, aborted])
      } catch (error) {
        if (error instanceof LinkLost) continue
        if (!(await this.host.source.waitBusy(error, signal))) throw error
      }
      if (signal.aborted) return
    }
  }

  private async follow(after: number): Promise<void> {
    try {
      const { signal } = this.closing
      for await (const item of this.host.tail(this.conversationId, { after, kinds, signal })) {
        if ("rune" in item) this.hear(item.rune)
      }
    } catch (error) {
      this.end(error)
    }
  }

  private hear({ kind, payload }: AnyRune): void {
    const told = payload as Partial<Call> & { readonly call_id: string }
    const known = this.asked.get(told.call_id)
    if (kind === "tool.call" && told.tool_name !== undefined && this.tools.has(told.tool_name)) {
      this.asked.set(told.call_id, {
        call_id: told.call_id,
        tool_name: told.tool_name,
        arguments: told.arguments ?? {}
      })
    } else if (kind === "tool.approved" && known !== undefined && told.arguments !== undefined) {
      this.asked.set(told.call_id, { ...known, arguments: told.arguments })
    } else if (kind === "tool.started" && known !== undefined) this.begin({ ...known, attempt: told.attempt ?? 1 })
    else if (kind === "tool.result") {
      this.asked.delete(told.call_id)
      this.running.get(told.call_id)?.abort()
    }
  }

  /** Runs the call, unless it runs or has run already. */
  private begin(call: Call): void {
    const tool = this.tools.get(call.tool_name)
    const key = `${call.call_id} ${call.attempt}`
    if (tool === undefined || this.begun.has(key) || this.closing.signal.aborted) return
    this.begun.add(key)
    const [oldest] = this.begun
    if (this.begun.size > clientLimits.toolCallsRemembered && oldest !== undefined) this.begun.delete(oldest)
    void this.run(tool, call, key)
  }

  private async run(tool: ClientTool, call: Call, key: string): Promise<void> {
    const over = new AbortController()
    const { signal } = over
    this.running.set(call.call_id, over)
    const { attempt, call_id: callId } = call
    const { conversationId } = this
    try {
      const info = { conversationId, callId, attempt, signal }
      const answer = await Promise.resolve()
        .then(() => tool.run(call.arguments, info))
        .then(asAnswer, (error: unknown) => ({
          status: "error" as const,
          output: error instanceof Error ? error.message : String(error)
        }))
      if (!signal.aborted) await this.answer(callId, answer, { key, signal })
    } finally {
      if (this.running.get(callId) === over) this.running.delete(callId)
    }
  }

  private async answer(
    callId: string,
    answer: { readonly status: "success" | "error"; readonly output: string },
    { key, signal }: { readonly key: string; readonly signal: AbortSignal }
  ): Promise<void> {
    const fields = { conversation_id: this.conversationId, call_id: callId, ...answer }
    const options = { idempotencyKey: `${this.conversationId} ${key}`, signal }
    for (let tries = 1; !signal.aborted; tries += 1) {
      try {
        await this.host.call("tool.result", fields, options)
        return
      } catch (error) {
        // Over for the server: it had the result already, or wants none any more.
        if (!isTooSoon(error) || tries >= clientLimits.toolAnswerTriesMax) return
        await pause(Math.min(clientLimits.backoffFirstMs * 2 ** tries, clientLimits.toolAnswerPauseMaxMs), signal)
      }
    }
  }
}
