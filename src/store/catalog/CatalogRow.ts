// A line of the catalog: what a listing shows of a conversation, and the little more that its fold has to remember
// to go on from there. All of it follows from the log.
import type { AttentionStatus as Attention } from "../../machine/table/Attention.ts"
import { type AttentionView, emptyAttention } from "../../machine/view/AttentionView.ts"
import { type MutableTotals, noUsage, shownUsage } from "../../rune/UsageTotals.ts"

export type ConversationStatus = "created" | "active" | "paused" | "suspended" | "closing" | "closed" | "archived"

export const statuses: ReadonlyArray<ConversationStatus> = [
  "created",
  "active",
  "paused",
  "suspended",
  "closing",
  "closed",
  "archived"
]

/** What a listing shows. */
export interface CatalogRow {
  readonly conversation_id: string
  readonly title: string
  readonly state: ConversationStatus
  readonly labels: Readonly<Record<string, string>>
  readonly created_ms: number
  readonly updated_ms: number
  readonly last_event_id: number
  readonly attention: Attention
  readonly turns: number
  readonly usage: ReturnType<typeof shownUsage>
  /** Of its root agent. */
  readonly model: string
  /** Where it works; null where nowhere. */
  readonly workspace: string | null
  readonly agents_alive: number
  readonly forked_from?: string
  /** There is work that a restart has to go on with. */
  readonly unfinished: boolean
  /** The log cannot be read to its end; what is shown is what could be. */
  readonly damaged?: string
}

export interface OpenTurn {
  readonly turn_id: string
  usage: MutableTotals
}

export interface RowAgent {
  readonly agent_id: string
  readonly root: boolean
  spawning: boolean
  attached: boolean
  turn: OpenTurn | null
  /** Event ids of inputs that no turn has taken yet. */
  queued: Array<number>
}

export type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** The fold of a conversation's runes. Plain JSON. */
export interface RowState {
  readonly format: typeof ROW_FORMAT
  readonly conversation_id: string
  last_event_id: number
  created_ms: number
  updated_ms: number
  title: string
  /** Somebody chose the title; else it is the beginning of the first input. */
  titled: boolean
  labels: Record<string, string>
  /** Its state, and whether a person is needed. */
  view: AttentionView
  turns: number
  usage: MutableTotals
  model: string
  workspace: string | null
  forked_from: string | null
  agents: Array<RowAgent>
  plan_open: boolean
}

/** Raised when the fold changes: rows of another format are folded anew. */
export const ROW_FORMAT = 4

export const emptyRow = (conversationId: string): RowState => ({
  format: ROW_FORMAT,
  conversation_id: conversationId,
  last_event_id: 0,
  created_ms: 0,
  updated_ms: 0,
  title: "",
  titled: false,
  labels: {},
  view: emptyAttention(),
  turns: 0,
  usage: noUsage(),
  model: "",
  workspace: null,
  forked_from: null,
  agents: [],
  plan_open: false
})

const isOver = (state: ConversationStatus): boolean => state === "closed" || state === "archived"

const hasWork = (agent: RowAgent): boolean =>
  agent.turn !== null || agent.queued.length > 0 || agent.spawning || agent.attached

/** Whether somebody has to go on with this conversation after a restart; says yes when in doubt. */
export const isUnfinished = (row: RowState): boolean => {
  const { session } = row.view
  if (isOver(session)) return false
  return session === "created" || session === "closing" || row.plan_open || row.agents.some(hasWork)
}

export const rowOf = (row: RowState, damaged?: string): CatalogRow => ({
  conversation_id: row.conversation_id,
  title: row.title,
  state: row.view.session,
  labels: row.labels,
  created_ms: row.created_ms,
  updated_ms: row.updated_ms,
  last_event_id: row.last_event_id,
  attention: row.view.attention,
  turns: row.turns,
  usage: shownUsage(row.usage),
  model: row.model,
  workspace: row.workspace,
  agents_alive: row.agents.length,
  ...(row.forked_from === null ? {} : { forked_from: row.forked_from }),
  unfinished: isUnfinished(row),
  ...(damaged === undefined ? {} : { damaged })
})
