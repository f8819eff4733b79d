// Figures of the process, for Prometheus to read. Counters follow from durable runes and from what the sockets
// do; gauges are given by whoever reads. Each instance has a registry of its own: two servers in one process do not count
// together.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import { listening } from "../../contract/Channel.ts"
import { DurableNotices } from "../../contract/DurableNotices.ts"
import type { Conversations } from "../../conversation/Conversations.ts"
import type { AnyRune } from "../../rune/Rune.ts"
import { type SeenEvent, StateEvents } from "./StateEvents.ts"

type Labels = Readonly<Record<string, string>>

/** Upper bounds in milliseconds. */
const BOUNDS_MS: ReadonlyArray<number> = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000, 600_000]
/** Series of one name; more go into one without labels. */
const SERIES_MAX = 1_000

/** Metrics as one server keeps them. */
type Registry = Context.Context<never>

const makeRegistry = (): Registry => Context.make(Metric.MetricRegistry, new Map())

export class Metrics {
  private readonly registry = makeRegistry()
  private readonly counters = new Map<string, Map<string, Metric.Counter<number>>>()
  private readonly histograms = new Map<string, Metric.Histogram<number>>()
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

  /** Durable runes of a conversation. */
  notice(runes: ReadonlyArray<AnyRune>): void {
    this.count("runes_total", {}, runes.length)
    for (const rune of runes) this.noteDuration(rune)
  }

  private noteDuration(rune: AnyRune): void {
    if (rune.kind !== "tool.result" && rune.kind !== "hook.completed") return
    const { duration_ms: durationMs } = rune.payload as { readonly duration_ms?: unknown }
    if (typeof durationMs !== "number") return
    this.observe(rune.kind === "tool.result" ? "tool_run_duration_ms" : "hook_run_duration_ms", durationMs)
  }

  noteEvent({ code, from, to, type }: SeenEvent): void {
    if (type === "state_changed") this.count("agent_state_transitions_total", { from: from ?? "", to: to ?? "" })
    if (type === "session_error") this.count("session_errors_total", { code: code ?? "" })
  }

  /** What was counted so far, beside gauges as they are now. */
  read(given: ReadonlyArray<Gauge>): { readonly counted: Registry; readonly gauges: Registry } {
    const now = makeRegistry()
    for (const { labels = {}, name, value } of given)
      Metric.gauge(name, { attributes: labels }).updateUnsafe(value, now)
    return { counted: this.registry, gauges: now }
  }
}

/** The counters of a server, from its start to its end. */
export class ServerMetrics extends Context.Service<ServerMetrics, Metrics>()("echs/ServerMetrics") {
  static readonly layer: Layer.Layer<ServerMetrics, never, DurableNotices | StateEvents> = Layer.effect(
    ServerMetrics,
    Effect.gen(function* () {
      const metrics = new Metrics()
      const events = yield* StateEvents
      yield* DurableNotices.listen({ name: "metrics", appended: (_conversationId, runes) => metrics.notice(runes) })
      yield* listening(() => events.add("metrics", (event) => metrics.noteEvent(event)))
      return metrics
    })
  )
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
