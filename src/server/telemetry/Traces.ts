// Traces for an OTLP collector, derived from durable runes: one trace a turn, with spans for model calls, tools and
// hooks and the attribute names of the GenAI conventions. Ids follow from the runes, so a turn that goes on after a
// restart stays one trace. Best effort: what cannot be delivered is dropped and counted, never waited for.

import { createHash } from "node:crypto"
import { after, type Cancel } from "../../contract/Timers.ts"
import { dropOldest, textBefore } from "../../rune/Elements.ts"
import { toolRunIdOf } from "../../rune/Ids.ts"
import type { KindIn } from "../../rune/Kinds.ts"
import type { AnyRune } from "../../rune/Rune.ts"
import { limits } from "../../wire/WireLimits.ts"

type Attributes = Readonly<Record<string, string | number | boolean>>

interface OpenSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
  readonly name: string
  readonly kind: number
  readonly startMs: number
  readonly attributes: Attributes
}

export interface TracesOptions {
  readonly endpoint: string
  readonly version: string
  readonly onFailure: (error: unknown) => void
  readonly send?: (url: string, body: string) => Promise<void>
}

const INTERNAL = 1
const CLIENT = 3
const OK = 1
const ERROR = 2

const idOf = (text: string, chars: number): string => createHash("sha256").update(text).digest("hex").slice(0, chars)

const valueOf = (value: string | number | boolean) => {
  if (typeof value === "string") return { stringValue: value }
  if (typeof value === "boolean") return { boolValue: value }
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

const attributesOf = (attributes: Attributes) =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }))

const nanosOf = (ms: number): string => `${ms}000000`

const post = async (url: string, body: string): Promise<void> => {
  const signal = AbortSignal.timeout(limits.tracesWithinMs)
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body, signal })
  if (!response.ok) throw new Error(`the collector answered ${response.status}`)
}

/** The parts of payloads that spans are made of. */
interface Payload {
  readonly call_id?: string
  readonly hook_run_id?: string
  readonly hook_name?: string
  readonly tool_name?: string
  readonly request_id?: string
  readonly provider?: string
  readonly model?: string
  readonly status?: string
  readonly error_type?: string
  readonly message?: string
  readonly attempt?: number
  readonly usage?: { readonly input_tokens?: number; readonly output_tokens?: number }
}

interface ToolRun {
  readonly name: string
  readonly run: string
}

/** Where and when a span began. */
interface Begun {
  readonly agent_id?: string
  readonly conversation_id: string
  readonly event_id: number
  readonly ts_ms: number
}

interface Ending {
  readonly key: string
  readonly status: number
  readonly attributes: Attributes
}

/** What is left of turns that another life of the server began. */
export interface Unfinished {
  readonly conversation_id: string
  readonly agents: ReadonlyArray<{
    readonly agent_id: string
    readonly turn: {
      readonly turn_id: string
      readonly started_event_id: number
      readonly started_ms: number
      readonly request: {
        readonly event_id: number
        readonly requested_ms: number
        readonly provider: string
        readonly model: string
      } | null
    } | null
  }>
  readonly calls: ReadonlyArray<{
    readonly call_id: string
    readonly run_id: string
    readonly turn_id: string | null
    readonly tool_name: string
  }>
}

export class Traces {
  private readonly options: TracesOptions
  private readonly open = new Map<string, OpenSpan>()
  private readonly tools = new Map<string, ToolRun>()
  private finished: Array<object> = []
  private cancelTimer: Cancel | undefined
  private isHurried = false
  private sending: Promise<void> = Promise.resolve()
  /** Spans that were given up. */
  dropped = 0

  constructor(options: TracesOptions) {
    this.options = options
  }

  notice(runes: ReadonlyArray<AnyRune>): void {
    for (const rune of runes) this.take(rune)
  }

  /** Turns that were under way when their server ended, whatever ended it, stay one trace with the root it began with. */
  resume({ agents, calls, conversation_id: conversationId }: Unfinished): void {
    for (const { agent_id: agentId, turn } of agents) {
      const key = `${conversationId} ${turn?.turn_id}`
      if (turn === null || this.open.has(key)) continue
      const place = { agent_id: agentId, conversation_id: conversationId }
      const started = { ...place, event_id: turn.started_event_id, ts_ms: turn.started_ms }
      this.begin(started, key, { key, name: "invoke_agent", kind: INTERNAL })
      const { request } = turn
      if (request !== null)
        this.beginModel({ ...place, event_id: request.event_id, ts_ms: request.requested_ms }, key, request)
    }
    for (const { call_id: callId, run_id: run, tool_name: name, turn_id: turnId } of calls)
      if (turnId !== null) this.remember(`${conversationId} ${turnId} ${callId}`, { name, run })
  }

  private beginModel(
    at: Begun,
    turn: string,
    { model = "", provider = "" }: Pick<Payload, "model" | "provider">
  ): void {
    const attributes = { "gen_ai.request.model": model, "gen_ai.provider.name": provider }
    this.begin(at, turn, { key: `${turn} model`, name: `chat ${model}`, kind: CLIENT, attributes })
  }

  private take(rune: AnyRune): void {
    if (rune.turn_id === undefined) return
    const payload = rune.payload as Payload
    const turn = `${rune.conversation_id} ${rune.turn_id}`
    const kind = rune.kind as KindIn<"trace">
    switch (kind) {
      case "turn.started":
        this.begin(rune, turn, { key: turn, name: "invoke_agent", kind: INTERNAL })
        break
      case "turn.model_requested":
        this.beginModel(rune, turn, payload)
        break
      case "turn.assistant_final":
        this.end(rune, { key: `${turn} model`, status: OK, attributes: usageOf(payload) })
        break
      case "turn.retry_scheduled":
        this.end(rune, { key: `${turn} model`, status: ERROR, attributes: {} })
        break
      case "tool.call":
        this.remember(`${turn} ${payload.call_id}`, {
          name: payload.tool_name ?? "",
          run: toolRunIdOf(rune.rune_id)
        })
        break
      case "tool.started": {
        const key = `${turn} ${payload.call_id}`
        const { name, run } = this.tools.get(key) ?? { name: "", run: "" }
        const attributes = {
          "gen_ai.tool.name": name,
          "gen_ai.tool.call.id": payload.call_id ?? "",
          tool_name: name,
          run_id: run
        }
        this.begin(rune, turn, { key: `${key} run`, name: `execute_tool ${name}`, kind: INTERNAL, attributes })
        break
      }
      case "tool.result": {
        const status = payload.status === "success" ? OK : ERROR
        const attributes = { "echs.tool.status": payload.status ?? "" }
        this.end(rune, { key: `${turn} ${payload.call_id} run`, status, attributes })
        break
      }
      case "hook.started": {
        const key = `${turn} ${payload.hook_run_id}`
        const attributes = { hook_name: payload.hook_name ?? "", run_id: payload.hook_run_id ?? "" }
        this.begin(rune, turn, { key, name: `hook ${payload.hook_name ?? ""}`, kind: INTERNAL, attributes })
        break
      }
      case "hook.completed": {
        const status = payload.status === "succeeded" ? OK : ERROR
        this.end(rune, { key: `${turn} ${payload.hook_run_id}`, status, attributes: {} })
        break
      }
      case "turn.completed":
        this.endTurn(rune, turn, OK)
        break
      case "turn.interrupted":
      case "turn.error":
        this.endTurn(rune, turn, ERROR)
        break
      default:
        kind satisfies never
    }
  }

  private begin(
    rune: Begun,
    turn: string,
    span: { readonly key: string; readonly name: string; readonly kind: number; readonly attributes?: Attributes }
  ): void {
    const { agent_id: agentId = "", conversation_id: conversationId, event_id: eventId, ts_ms: startMs } = rune
    const isRoot = span.key === turn
    this.open.set(span.key, {
      traceId: idOf(turn, 32),
      spanId: isRoot ? idOf(`${turn} root`, 16) : idOf(`${conversationId} ${eventId}`, 16),
      parentId: isRoot ? undefined : idOf(`${turn} root`, 16),
      name: span.name,
      kind: span.kind,
      startMs,
      attributes: {
        "gen_ai.operation.name": textBefore(span.name, " "),
        "gen_ai.conversation.id": conversationId,
        "gen_ai.agent.id": agentId,
        ...span.attributes
      }
    })
    if (this.open.size > limits.openSpansMax) this.drop(this.open)
  }

  private remember(key: string, run: ToolRun): void {
    this.tools.set(key, run)
    if (this.tools.size > limits.openSpansMax) this.drop(this.tools)
  }

  private drop(map: Map<string, unknown>): void {
    dropOldest(map)
    this.dropped += 1
  }

  private endTurn(rune: AnyRune, turn: string, status: number): void {
    for (const key of this.open.keys()) {
      if (key.startsWith(`${turn} `)) this.end(rune, { key, status, attributes: {} })
    }
    for (const key of this.tools.keys()) if (key.startsWith(`${turn} `)) this.tools.delete(key)
    this.end(rune, { key: turn, status, attributes: usageOf(rune.payload as Payload) })
    // A trace is whole now: what is not sent when the process is killed is lost.
    this.sendLater(limits.tracesAfterTurnMs)
  }

  private end(rune: AnyRune, ending: Ending): void {
    const span = this.open.get(ending.key)
    if (span === undefined) return
    this.open.delete(ending.key)
    if (this.finished.length >= limits.finishedSpansMax) {
      this.dropped += 1
      return
    }
    const { attributes, kind, name, parentId, spanId, startMs, traceId } = span
    this.finished.push({
      traceId,
      spanId,
      ...(parentId === undefined ? {} : { parentSpanId: parentId }),
      name,
      kind,
      startTimeUnixNano: nanosOf(startMs),
      endTimeUnixNano: nanosOf(Math.max(startMs, rune.ts_ms)),
      attributes: attributesOf({ ...attributes, ...ending.attributes }),
      status: { code: ending.status }
    })
    this.sendLater()
  }

  private sendLater(withinMs: number = limits.tracesEveryMs): void {
    const isSooner = withinMs < limits.tracesEveryMs
    if (this.cancelTimer !== undefined && (!isSooner || this.isHurried)) return
    this.cancelTimer?.()
    this.isHurried = isSooner
    this.cancelTimer = after(withinMs, () => this.flush())
  }

  private flush(): void {
    this.cancelTimer?.()
    this.cancelTimer = undefined
    this.isHurried = false
    const spans = this.finished
    if (spans.length === 0) return
    this.finished = []
    const resource = attributesOf({ "service.name": "echs", "service.version": this.options.version })
    const scope = { name: "echs", version: this.options.version }
    const body = { resourceSpans: [{ resource: { attributes: resource }, scopeSpans: [{ scope, spans }] }] }
    const url = `${this.options.endpoint.replace(/\/+$/, "")}/v1/traces`
    const { send = post } = this.options
    this.sending = this.sending
      .then(() => send(url, JSON.stringify(body)))
      .catch((error) => {
        this.dropped += spans.length
        this.options.onFailure(error)
      })
  }

  /** Sends what is finished. */
  async close(): Promise<void> {
    this.flush()
    await this.sending
  }
}

const usageOf = ({ usage }: Payload): Attributes => ({
  ...(usage?.input_tokens === undefined ? {} : { "gen_ai.usage.input_tokens": usage.input_tokens }),
  ...(usage?.output_tokens === undefined ? {} : { "gen_ai.usage.output_tokens": usage.output_tokens })
})
