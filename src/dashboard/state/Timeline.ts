// The timeline: a lane for each agent, with what it did when. Model, tools, waiting for a person, waiting for a provider.
import type { AnyRune } from "../../client/Client.ts"
import { objectOf, textOf } from "./Payload.ts"

export type SpanKind = "model" | "tool" | "person" | "retry"

export interface Span {
  readonly kind: SpanKind
  readonly eventId: number
  readonly fromMs: number
  /** Undefined while it lasts. */
  readonly toMs: number | undefined
  readonly label: string
}

export interface Lane {
  readonly agentId: string
  readonly spans: ReadonlyArray<Span>
}

export interface Timeline {
  readonly lanes: ReadonlyArray<Lane>
  readonly fromMs: number
  readonly toMs: number
}

type OpenSpan = { -readonly [Field in keyof Span]: Span[Field] }

class Builder {
  readonly lanes = new Map<string, Array<OpenSpan>>()
  private readonly open = new Map<string, OpenSpan>()

  begin(rune: AnyRune, key: string, kind: SpanKind, label: string): void {
    this.end(key, rune.ts_ms)
    const span: OpenSpan = { kind, eventId: rune.event_id, fromMs: rune.ts_ms, toMs: undefined, label }
    const agent = rune.agent_id ?? ""
    const lane = this.lanes.get(agent) ?? []
    this.lanes.set(agent, lane)
    lane.push(span)
    this.open.set(key, span)
  }

  get isOpen(): boolean {
    return this.open.size > 0
  }

  end(key: string, atMs: number): void {
    const span = this.open.get(key)
    if (span !== undefined) span.toMs = atMs
    this.open.delete(key)
  }
}

const modelEnds = new Set([
  "turn.assistant_final",
  "turn.completed",
  "turn.interrupted",
  "turn.error",
  "turn.retry_scheduled"
])

const step = (builder: Builder, rune: AnyRune): void => {
  const payload = objectOf(rune.payload)
  const agent = rune.agent_id ?? ""
  const call = textOf(payload["call_id"])
  if (modelEnds.has(rune.kind)) {
    builder.end(`model ${agent}`, rune.ts_ms)
    builder.end(`retry ${agent}`, rune.ts_ms)
  }
  if (rune.kind === "turn.model_requested") {
    builder.end(`retry ${agent}`, rune.ts_ms)
    builder.begin(rune, `model ${agent}`, "model", textOf(payload["model"]))
  } else if (rune.kind === "plan.created" && payload["needs_approval"] !== undefined)
    builder.begin(rune, "plan", "person", "the plan")
  else if (rune.kind === "plan.approved" || rune.kind === "plan.rejected" || rune.kind === "plan.stopped")
    builder.end("plan", rune.ts_ms)
  else if (rune.kind === "turn.retry_scheduled")
    builder.begin(rune, `retry ${agent}`, "retry", textOf(payload["message"]))
  else if (rune.kind === "tool.approval_requested")
    builder.begin(rune, `person ${call}`, "person", textOf(objectOf(payload["shown_as"])["title"]))
  else if (rune.kind === "tool.approved" || rune.kind === "tool.denied") builder.end(`person ${call}`, rune.ts_ms)
  else if (rune.kind === "tool.started") builder.begin(rune, `tool ${call}`, "tool", call)
  else if (rune.kind === "tool.result") {
    builder.end(`tool ${call}`, rune.ts_ms)
    builder.end(`person ${call}`, rune.ts_ms)
  }
}

/** Up to the last rune; what still lasts, up to now. */
export const timelineOf = (runes: ReadonlyArray<AnyRune>, nowMs = 0): Timeline => {
  const builder = new Builder()
  for (const rune of runes) step(builder, rune)
  const fromMs = runes[0]?.ts_ms ?? 0
  return {
    lanes: [...builder.lanes].map(([agentId, spans]) => ({ agentId, spans })),
    fromMs,
    toMs: Math.max(fromMs + 1, runes.at(-1)?.ts_ms ?? 0, builder.isOpen ? nowMs : 0)
  }
}

/** The part of the width that a pause without work takes at most: hours of waiting must not hide seconds of work. */
const pausePart = 0.08

interface Stretch {
  readonly fromMs: number
  readonly toMs: number
  readonly start: number
  readonly length: number
}

const workOf = ({ lanes, toMs }: Timeline): ReadonlyArray<readonly [number, number]> => {
  const spans = lanes
    .flatMap(({ spans: all }) => all)
    .filter(({ kind }) => kind === "model" || kind === "tool")
    .map(({ fromMs, toMs: end }) => [fromMs, end ?? toMs] as const)
    .sort(([one], [other]) => one - other)
  const merged: Array<[number, number]> = []
  for (const [from, to] of spans) {
    const last = merged.at(-1)
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to)
    else merged.push([from, to])
  }
  return merged
}

/** Where a time lies in the width, from 0 to 1: work to scale, longer pauses shortened. */
export const scaleOf = (timeline: Timeline): ((ms: number) => number) => {
  const { fromMs, toMs } = timeline
  const work = workOf(timeline)
  const worked = Math.max(
    1,
    work.reduce((sum, [from, to]) => sum + to - from, 0)
  )
  const pauseMax = worked * pausePart
  const stretches: Array<Stretch> = []
  let [at, start] = [fromMs, 0]
  const add = (until: number, isWork: boolean): void => {
    if (until <= at) return
    const length = isWork ? until - at : Math.min(until - at, pauseMax)
    stretches.push({ fromMs: at, toMs: until, start, length })
    start += length
    at = until
  }
  for (const [from, to] of work) {
    add(from, false)
    add(to, true)
  }
  add(toMs, false)
  const whole = Math.max(1e-9, start)
  return (ms) => {
    const inside = stretches.find((one) => ms <= one.toMs)
    if (inside === undefined) return 1
    const part = Math.max(0, ms - inside.fromMs) / (inside.toMs - inside.fromMs)
    return (inside.start + part * inside.length) / whole
  }
}
