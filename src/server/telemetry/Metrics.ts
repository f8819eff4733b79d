// Figures of the process in the text format of Prometheus. Counters follow from durable runes and from what the sockets
// do; gauges are asked for when somebody reads them.

import type { Conversations } from "../../conversation/Conversations.ts"
import { makeView, type ViewFold } from "../../conversation/Views.ts"
import type { AnyRune } from "../../rune/Rune.ts"

type Labels = Readonly<Record<string, string>>

interface Histogram {
  readonly counts: Array<number>
  sum: number
  count: number
}

/** Upper bounds in milliseconds. */
const BOUNDS_MS: ReadonlyArray<number> = [1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000, 600_000]
/** Conversations whose view is kept to count transitions; the longest unused are forgotten. */
const VIEWS_MAX = 4_096
/** Series of one name; more go into one without labels. */
const SERIES_MAX = 1_000

const escaped = (value: string): string => value.replace(/[\\"\n]/g, (char) => (char === "\n" ? "\\n" : `\\${char}`))

const labelText = (labels: Labels): string => {
  const parts = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return parts.length === 0 ? "" : `{${parts.join(",")}}`
}

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
  private readonly counters = new Map<string, Map<string, number>>()
  private readonly histograms = new Map<string, Histogram>()
  private readonly views = new Map<string, ViewFold>()
  private readonly gauges: () => Readonly<Record<string, number>>

  private readonly onEvent: MetricsOptions["onEvent"]

  constructor(gauges: () => Readonly<Record<string, number>>, { onEvent }: MetricsOptions = {}) {
    this.gauges = gauges
    this.onEvent = onEvent
  }

  /** A conversation that another life of the server began: what follows is counted from its state on. */
  resume(state: StateOfView): void {
    this.keep(state.conversation_id, makeView("state_events", state))
  }

  count(name: string, labels: Labels = {}, by = 1): void {
    const series = this.counters.get(name) ?? new Map<string, number>()
    this.counters.set(name, series)
    const text = labelText(labels)
    const key = series.has(text) || series.size < SERIES_MAX ? text : ""
    series.set(key, (series.get(key) ?? 0) + by)
  }

  observe(name: string, valueMs: number): void {
    const histogram = this.histograms.get(name) ?? { counts: BOUNDS_MS.map(() => 0), sum: 0, count: 0 }
    this.histograms.set(name, histogram)
    histogram.sum += valueMs
    histogram.count += 1
    const at = BOUNDS_MS.findIndex((bound) => valueMs <= bound)
    if (at >= 0) histogram.counts[at]! += 1
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
    if (this.views.size > VIEWS_MAX) this.views.delete(this.views.keys().next().value!)
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

  /** Everything, in the text format. */
  render(): string {
    const lines: Array<string> = []
    for (const [name, series] of this.counters) {
      lines.push(`# TYPE ${name} counter`)
      for (const [labels, value] of series) lines.push(`${name}${labels} ${value}`)
    }
    for (const [name, histogram] of this.histograms) lines.push(...renderHistogram(name, histogram))
    let last = ""
    for (const [series, value] of Object.entries(this.gauges())) {
      const [name] = series.split("{", 1)
      if (name !== last) lines.push(`# TYPE ${name} gauge`)
      last = name!
      lines.push(`${series} ${value}`)
    }
    return `${lines.join("\n")}\n`
  }
}

/** Series by provider, those of one name side by side. */
export const circuitGauges = (circuits: ReturnType<Conversations["circuits"]>): Readonly<Record<string, number>> => {
  const all = Object.entries(circuits).map(([provider, one]) => ({
    label: `{provider=${JSON.stringify(provider)}}`,
    one
  }))
  return Object.fromEntries([
    ...all.map(({ label, one }) => [`provider_circuit_open${label}`, one.circuit === "closed" ? 0 : 1]),
    ...all.map(({ label, one }) => [`provider_calls_held${label}`, one.held])
  ])
}

const renderHistogram = (name: string, { count, counts, sum }: Histogram): ReadonlyArray<string> => {
  let below = 0
  const buckets = BOUNDS_MS.map((bound, at) => {
    below += counts[at]!
    return `${name}_bucket{le="${bound}"} ${below}`
  })
  return [
    `# TYPE ${name} histogram`,
    ...buckets,
    `${name}_bucket{le="+Inf"} ${count}`,
    `${name}_sum ${sum}`,
    `${name}_count ${count}`
  ]
}
