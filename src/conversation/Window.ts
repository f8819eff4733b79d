// What happened in conversations since a time, counted from their runes. What a turn used is known call by call; what
// only its end says is counted there.
import type { Usage } from "../rune/kinds/shared.ts"
import { type AnyRune, isKnown, type Rune, type RuneOf } from "../rune/Rune.ts"
import { addTo, beyond, costUsd, type MutableTotals, noUsage } from "../rune/UsageTotals.ts"
import { cursorSince } from "../store/runes/Since.ts"
import type { Store } from "../store/Store.ts"
import { limits } from "./ConversationLimits.ts"

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
  readonly days: ReadonlyArray<Share & { readonly day_ms: number }>
  readonly models: ReadonlyArray<Share & { readonly model: string }>
  readonly workspaces: ReadonlyArray<Share & { readonly workspace: string }>
  /** Conversations that were too many to be counted. */
  readonly left_out?: number
}

/** A part of the usage: of a day, a model or a workspace. */
export interface Share {
  readonly input_tokens: number
  readonly output_tokens: number
  /** As far as prices are known. */
  readonly usd: number
  readonly runes: number
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

const dayMs = 86_400_000

/** Usage by something. */
class Shares<Key> {
  private readonly parts = new Map<Key, Mutable<Share>>()

  add(key: Key, { input_tokens, output_tokens, runes, usd }: Share): void {
    const part = this.parts.get(key) ?? { input_tokens: 0, output_tokens: 0, usd: 0, runes: 0 }
    part.input_tokens += input_tokens
    part.output_tokens += output_tokens
    part.usd += usd
    part.runes += runes
    this.parts.set(key, part)
  }

  /** The largest, by cost and then by tokens. */
  top(max: number): ReadonlyArray<readonly [Key, Share]> {
    const tokens = (one: Share): number => one.input_tokens + one.output_tokens
    return [...this.parts]
      .sort(([, one], [, other]) => other.usd - one.usd || tokens(other) - tokens(one))
      .slice(0, max)
  }
}

/** Where the usage of the window went: each rune's part of the totals goes to its day, its model and its workspace. */
class Breakdown {
  private readonly totals: MutableTotals
  private readonly days = new Shares<number>()
  private readonly models = new Shares<string>()
  private readonly workspaces = new Shares<string>()
  private readonly modelOfAgent = new Map<string, string>()
  private workspace = ""
  private rootModel = ""

  constructor(totals: MutableTotals) {
    this.totals = totals
  }

  enter(row: { readonly model: string; readonly workspace: string | null } | undefined): void {
    this.modelOfAgent.clear()
    this.workspace = row?.workspace ?? ""
    this.rootModel = row?.model ?? ""
  }

  /** `counted` adds the rune to the totals. */
  add(rune: AnyRune, counted: () => void): void {
    const agentId: string = rune.agent_id ?? ""
    if (isKnown(rune) && rune.kind === "turn.model_requested") this.modelOfAgent.set(agentId, rune.payload.model)
    const before = { ...this.totals }
    counted()
    const part: Share = {
      input_tokens: this.totals.input_tokens - before.input_tokens,
      output_tokens: this.totals.output_tokens - before.output_tokens,
      usd: Math.max(0, this.totals.usd - before.usd),
      runes: 1
    }
    this.days.add(Math.floor(rune.ts_ms / dayMs) * dayMs, part)
    if (part.input_tokens + part.output_tokens === 0) return
    this.models.add(this.modelOfAgent.get(agentId) ?? this.rootModel, part)
    this.workspaces.add(this.workspace, part)
  }

  read(): Pick<WindowFigures, "days" | "models" | "workspaces"> {
    const days = this.days.top(Number.POSITIVE_INFINITY).map(([day_ms, share]) => ({ day_ms, ...share }))
    return {
      days: days.sort((one, other) => one.day_ms - other.day_ms),
      models: this.models.top(limits.windowSharesMax).map(([model, share]) => ({ model, ...share })),
      workspaces: this.workspaces.top(limits.windowSharesMax).map(([workspace, share]) => ({ workspace, ...share }))
    }
  }
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
    ...{ days: [], models: [], workspaces: [] },
    ...(leftOut === 0 ? {} : { left_out: leftOut })
  }
  const totals = noUsage()
  const breakdown = new Breakdown(totals)
  for (const id of conversations) {
    breakdown.enter(store.catalog.get(id))
    const before = figures.runes
    const after = await cursorSince(store.runes, id, sinceMs)
    const spent = new Spent(totals)
    for await (const page of store.runes.pagesNow(id, { after })) {
      for (const rune of page.runes) {
        count(figures, rune)
        breakdown.add(rune, () => {
          if (isKnown(rune)) spent.add(rune)
        })
      }
    }
    if (figures.runes > before) figures.conversations += 1
  }
  const { cached_tokens, input_tokens, output_tokens, reasoning_tokens } = totals
  figures.usage = { input_tokens, output_tokens, cached_tokens, reasoning_tokens }
  figures.cost_usd = costUsd(totals)
  return { ...figures, ...breakdown.read() }
}
