// What happened in conversations since a time, counted from their runes. What a turn used is known call by call; what
// only its end says is counted there.
import type { Usage } from "../rune/kinds/shared.ts"
import { type AnyRune, isKnown, type Rune, type RuneOf } from "../rune/Rune.ts"
import { addTo, beyond, costUsd, type MutableTotals, noUsage } from "../rune/UsageTotals.ts"
import { cursorSince } from "../store/runes/Since.ts"
import type { Store } from "../store/Store.ts"

export interface WindowFigures {
  readonly since_ms: number
  /** Conversations in which anything happened. */
  readonly conversations: number
  readonly runes: number
  readonly turns_started: number
  readonly turns_completed: number
  readonly turns_failed: number
  readonly turns_interrupted: number
  readonly tool_results: number
  readonly usage: {
    readonly input_tokens: number
    readonly output_tokens: number
    readonly cached_tokens: number
    readonly reasoning_tokens: number
  }
  /** Null where some of it has no known price. */
  readonly cost_usd: number | null
  /** Conversations that were too many to be counted. */
  readonly left_out?: number
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends object ? Mutable<T[K]> : T[K] }

const counters = {
  "turn.started": "turns_started",
  "turn.completed": "turns_completed",
  "turn.error": "turns_failed",
  "turn.interrupted": "turns_interrupted",
  "tool.result": "tool_results"
} as const

const isEnd = (rune: Rune): rune is RuneOf<"turn.completed" | "turn.interrupted" | "turn.error"> =>
  rune.kind === "turn.completed" || rune.kind === "turn.interrupted" || rune.kind === "turn.error"

const tellsCall = (rune: Rune): rune is RuneOf<(typeof callKinds)[number]> =>
  (callKinds as ReadonlyArray<string>).includes(rune.kind)

const callKinds = ["turn.assistant_final", "turn.retry_scheduled", "turn.model_requested", "turn.compacted"] as const

/** What one conversation used. A turn's end says more than its calls did where one of them was cut off. */
class Spent {
  readonly totals: MutableTotals
  private readonly turns = new Map<string, MutableTotals>()

  constructor(totals: MutableTotals) {
    this.totals = totals
  }

  add(rune: Rune): void {
    if (rune.kind === "turn.started") this.turns.set(rune.payload.turn_id, noUsage())
    else if (rune.kind === "system.recovered")
      for (const { turn_id, usage } of rune.payload.cut_off ?? []) this.count(turn_id, usage)
    else if (isEnd(rune)) this.end(rune)
    else if (tellsCall(rune)) this.count(rune.turn_id, rune.payload.usage)
  }

  private count(turnId: string | undefined, usage: Usage | undefined): void {
    if (usage === undefined) return
    addTo(this.totals, usage)
    const turn = this.turns.get(turnId ?? "")
    if (turn !== undefined) addTo(turn, usage)
  }

  /** Of a turn that began before the time in question nobody knows which part of its sum came later. */
  private end({ payload, turn_id: id }: RuneOf<"turn.completed" | "turn.interrupted" | "turn.error">): void {
    const turnId: string = id ?? ""
    const turn = this.turns.get(turnId)
    this.turns.delete(turnId)
    if (turn !== undefined && payload.usage !== undefined) addTo(this.totals, beyond(payload.usage, turn))
  }
}

const count = (figures: Mutable<WindowFigures>, rune: AnyRune): void => {
  figures.runes += 1
  const counter = (counters as Readonly<Record<string, (typeof counters)[keyof typeof counters] | undefined>>)[
    rune.kind
  ]
  if (counter !== undefined) figures[counter] += 1
}

export const windowFigures = async (
  store: Store,
  request: { readonly conversations: ReadonlyArray<string>; readonly sinceMs: number; readonly leftOut: number }
): Promise<WindowFigures> => {
  const { conversations, leftOut, sinceMs } = request
  const figures: Mutable<WindowFigures> = {
    since_ms: sinceMs,
    conversations: 0,
    runes: 0,
    turns_started: 0,
    turns_completed: 0,
    turns_failed: 0,
    turns_interrupted: 0,
    tool_results: 0,
    usage: { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 },
    cost_usd: 0,
    ...(leftOut === 0 ? {} : { left_out: leftOut })
  }
  const totals = noUsage()
  for (const id of conversations) {
    const before = figures.runes
    const after = await cursorSince(store.runes, id, sinceMs)
    const spent = new Spent(totals)
    for await (const page of store.runes.pagesNow(id, { after })) {
      for (const rune of page.runes) {
        count(figures, rune)
        if (isKnown(rune)) spent.add(rune)
      }
    }
    if (figures.runes > before) figures.conversations += 1
  }
  const { cached_tokens, input_tokens, output_tokens, reasoning_tokens } = totals
  figures.usage = { input_tokens, output_tokens, cached_tokens, reasoning_tokens }
  figures.cost_usd = costUsd(totals)
  return figures
}
