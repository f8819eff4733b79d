// What happened in conversations since a time, counted from their runes. What a turn used is known call by call; what
// only its end says is counted there.
import type { AnyRune, Rune } from "../rune/Rune.ts"
import { cursorSince } from "../store/Since.ts"
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
  readonly cost_usd: number
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

const add = (figures: Mutable<WindowFigures>, rune: AnyRune): void => {
  figures.runes += 1
  const counter = (counters as Readonly<Record<string, (typeof counters)[keyof typeof counters] | undefined>>)[
    rune.kind
  ]
  if (counter !== undefined) figures[counter] += 1
  const known = rune as Rune
  if (known.kind !== "turn.assistant_final" || known.payload.usage === undefined) return
  const { cached_tokens = 0, input_tokens, output_tokens, reasoning_tokens = 0, usd = 0 } = known.payload.usage
  figures.usage.input_tokens += input_tokens
  figures.usage.output_tokens += output_tokens
  figures.usage.cached_tokens += cached_tokens
  figures.usage.reasoning_tokens += reasoning_tokens
  figures.cost_usd += usd
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
  for (const id of conversations) {
    const before = figures.runes
    const after = await cursorSince(store.runes, id, sinceMs)
    for await (const page of store.runes.pagesNow(id, { after })) for (const rune of page.runes) add(figures, rune)
    if (figures.runes > before) figures.conversations += 1
  }
  return figures
}
