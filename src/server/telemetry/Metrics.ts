// Figures of the process, for Prometheus to read. Counters follow from durable runes and from what the sockets
// do; gauges are asked for when somebody reads them. Each instance has a registry of its own: two servers in one process
// do not count together.

import * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import type { Conversations } from "../../conversation/Conversations.ts"
import { makeView, type ViewFold } from "../../conversation/Views.ts"
import { dropOldest } from "../../rune/Elements.ts"
import type { AnyRune } from "../../rune/Rune.ts"

type Labels = Readonly<Record<string, string>>

/** Upper bounds in milliseconds. */
const BOUNDS_MS: ReadonlyArray<number> = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000, 600_000]
/** Conversations whose view is kept to count transitions; the longest unused are forgotten. */
const VIEWS_MAX = 4_096
/** Series of one name; more go into one without labels. */
const SERIES_MAX = 1_000

/** Metrics as one server keeps them. */
type Registry = Context.Context<never>

const makeRegistry = (): Registry => Context.make(Metric.MetricRegistry, new Map())

/** The parts of state events that are counted and logged. */
export interface SeenEvent {
  readonly type: string
  readonly agentId?: string
  readonly from?: string
  readonly to?: string
  readonly reason?: string
  readonly code?: string
  readonly detail?: string
  readonly runId?: string
  readonly toolName?: string
  readonly hookName?: string
  readonly status?: string
  readonly attempt?: number
  readonly errorCode?: string
  readonly retryable?: boolean
}

export interface MetricsOptions {
  /** Told of every state event, with the rune that it follows from. */
  readonly onEvent?: (event: SeenEvent, rune: AnyRune) => void
}

type StateOfView = NonNullable<Parameters<typeof makeView>[1]>

export class Metrics {
  private readonly registry = makeRegistry()
  private readonly counters = new Map<string, Map<string, Metric.Counter<number>>>()
  private readonly histograms = new Map<string, Metric.Histogram<number>>()
  private readonly views = new Map<string, ViewFold>()
  private readonly gauges: () => ReadonlyArray<Gauge>

  private readonly onEvent: MetricsOptions["onEvent"]

  constructor(gauges: () => ReadonlyArray<Gauge>, { onEvent }: MetricsOptions = {}) {
    this.gauges = gauges
    this.onEvent = onEvent
  }

  /** A conversation that another life of the server began: what follows is counted from its state on. */
  resume(state: StateOfView): void {
    this.keep(state.conversation_id, makeView("state_events", state))
  }

  count(name: string, labels: Labels = {}, by = 1): void {
    this.counterOf(name, labels).updateUnsafe(by, this.registry)
  }

  private counterOf(name: string, labels: Labels): Metric.Counter<number> {
    const series = this.counters.get(name) ?? new Map<string, Metric.Counter<number>>()
    this.counters.set(name, series)
    const key = Object.values(labels).reduce((text, value) => `${text}\n${value}`, "")
    const known = series.get(key)
    if (known !== undefined) return known
    if (series.size >= SERIES_MAX && key !== "") return this.counterOf(name, {})
    const made = Metric.counter(name, { attributes: labels })
    series.set(key, made)
    return made
  }

  observe(name: string, valueMs: number): void {
    const histogram = this.histograms.get(name) ?? Metric.histogram(name, { boundaries: BOUNDS_MS })
    this.histograms.set(name, histogram)
    histogram.updateUnsafe(valueMs, this.registry)
  }

  countOperation(op: string, code: string, durationMs: number): void {
    this.count("operations_total", { op, code })
    this.observe("operation_duration_ms", durationMs)
  }

  /** Durable runes of a conversation, in order. */
  notice(conversationId: string, runes: ReadonlyArray<AnyRune>): void {
    this.count("runes_total", {}, runes.length)
    const fold = this.viewOf(conversationId)
    for (const rune of runes) {
      this.noteDuration(rune)
      for (const event of fold(rune) as ReadonlyArray<SeenEvent>) {
        this.noteEvent(event)
        this.onEvent?.(event, rune)
      }
    }
  }

  private viewOf(conversationId: string): ViewFold {
    const known = this.views.get(conversationId) ?? makeView("state_events")
    this.keep(conversationId, known)
    return known
  }

  private keep(conversationId: string, view: ViewFold): void {
    this.views.delete(conversationId)
    this.views.set(conversationId, view)
    if (this.views.size > VIEWS_MAX) dropOldest(this.views)
  }

  private noteDuration(rune: AnyRune): void {
    if (rune.kind !== "tool.result" && rune.kind !== "hook.completed") return
    const { duration_ms: durationMs } = rune.payload as { readonly duration_ms?: unknown }
    if (typeof durationMs !== "number") return
    this.observe(rune.kind === "tool.result" ? "tool_run_duration_ms" : "hook_run_duration_ms", durationMs)
  }

  private noteEvent({ code, from, to, type }: SeenEvent): void {
    if (type === "state_changed") this.count("agent_state_transitions_total", { from: from ?? "", to: to ?? "" })
    if (type === "session_error") this.count("session_errors_total", { code: code ?? "" })
  }

  /** What was counted so far, and the gauges as they are now. */
  read(): { readonly counted: Registry; readonly gauges: Registry } {
    const now = makeRegistry()
    for (const { labels = {}, name, value } of this.gauges())
      Metric.gauge(name, { attributes: labels }).updateUnsafe(value, now)
    return { counted: this.registry, gauges: now }
  }
}

export interface Gauge {
  readonly name: string
  readonly labels?: Labels
  readonly value: number
}

export const plainGauges = (figures: Readonly<Record<string, number>>): ReadonlyArray<Gauge> =>
  Object.entries(figures).map(([name, value]) => ({ name, value }))

/** Of every provider, whether calls to it are held back, and how many. */
export const circuitGauges = (circuits: ReturnType<Conversations["circuits"]>): ReadonlyArray<Gauge> =>
  Object.entries(circuits).flatMap(([provider, { circuit, held }]) => [
    { name: "provider_circuit_open", labels: { provider }, value: circuit === "closed" ? 0 : 1 },
    { name: "provider_calls_held", labels: { provider }, value: held }
  ])
