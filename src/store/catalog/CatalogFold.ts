// The fold of the catalog: a rune changes the row of its conversation here and nowhere else. It never throws: a rune
// that speaks of something it does not know changes nothing but the head.
import { type AttentionView, evolveAttention } from "../../machine/view/AttentionView.ts"
import { definitions, type Kind, type KindIn } from "../../rune/Kinds.ts"
import type { Content, ConversationConfig, Usage } from "../../rune/kinds/shared.ts"
import { type AnyRune, isKnown, type Rune, type RuneOf } from "../../rune/Rune.ts"
import { addTo, beyond, noUsage } from "../../rune/UsageTotals.ts"
import { limits } from "../StoreLimits.ts"
import type { RowAgent, RowState } from "./CatalogRow.ts"

type Handler<K extends Kind> = (row: RowState, rune: RuneOf<K>) => void

const cut = (text: string, charsMax: number): string => text.slice(0, charsMax).toWellFormed()

const textOf = (content: Content): string => {
  if (typeof content === "string") return content
  const part = content.find(({ type }) => type === "text")
  return part?.type === "text" ? part.text : ""
}

/** A conversation nobody named is known by the first line somebody said in it. */
const suggestTitle = (row: RowState, text: string): void => {
  if (row.title !== "") return
  const line = text.trimStart().split("\n", 1)[0] ?? ""
  row.title = cut(line.trimEnd(), limits.titleCharsMax)
}

const configure = (row: RowState, config: Partial<ConversationConfig>): void => {
  if (config.title !== undefined) {
    row.title = cut(config.title, limits.titleCharsMax)
    row.titled = true
  }
  if (config.model !== undefined) row.model = cut(config.model, limits.labelCharsMax)
  if (config.workspace !== undefined) row.workspace = cut(config.workspace, limits.titleCharsMax * 8)
  if (config.labels === undefined) return
  row.labels = Object.fromEntries(
    Object.entries(config.labels)
      .slice(0, limits.labelsMax)
      .map(([key, value]) => [cut(key, limits.labelCharsMax), cut(value, limits.labelCharsMax)])
  )
}

const findAgent = (row: RowState, agentId: string | undefined): RowAgent | undefined =>
  row.agents.find((agent) => agent.agent_id === agentId)

const pushBounded = <T>(list: Array<T>, item: T): void => {
  list.push(item)
  if (list.length > limits.rowItemsMax) list.shift()
}

interface Place {
  readonly agent_id?: string
  readonly turn_id?: string
}

const runningTurn = (row: RowState, place: Place) => {
  const turn = findAgent(row, place.agent_id)?.turn
  return turn !== null && turn !== undefined && turn.turn_id === place.turn_id ? turn : undefined
}

const countCall = (row: RowState, place: Place, usage: Usage | undefined): void => {
  const turn = runningTurn(row, place)
  if (turn === undefined || usage === undefined) return
  addTo(turn.usage, usage)
  addTo(row.usage, usage)
}

const endTurn = (row: RowState, rune: AnyRune, usage: Usage | undefined): void => {
  const agent = findAgent(row, rune.agent_id)
  const turn = runningTurn(row, rune)
  if (agent === undefined || turn === undefined) return
  if (usage !== undefined) addTo(row.usage, beyond(usage, turn.usage))
  agent.turn = null
}

/** An agent's life is over. A root that failed stays in view: nobody else can tell of it. */
const retire = (row: RowState, agentId: string, how: "failed" | "terminated"): void => {
  const agent = findAgent(row, agentId)
  if (agent === undefined) return
  if (agent.root && how === "failed") Object.assign(agent, { spawning: false, attached: false, turn: null, queued: [] })
  else row.agents = row.agents.filter((one) => one !== agent)
}

const queueInput = (row: RowState, agentId: string | undefined, eventId: number): void => {
  const agent = findAgent(row, agentId)
  if (agent !== undefined) pushBounded(agent.queued, eventId)
}

const planOpens = (row: RowState): void => {
  row.plan_open = true
}
const planCloses = (row: RowState): void => {
  row.plan_open = false
}

const handlers: { readonly [K in KindIn<"catalog">]: Handler<K> } = {
  "session.created": (row, rune) => {
    row.created_ms = rune.ts_ms
    configure(row, rune.payload.config)
  },
  "session.forked": (row, rune) => {
    row.forked_from = rune.payload.from
    if (row.created_ms === 0) row.created_ms = rune.ts_ms
  },
  "config.updated": (row, rune) => configure(row, rune.payload.changes),
  "agent.spawning": (row, rune) => {
    const { agent_id, model, parent_id } = rune.payload
    if (findAgent(row, agent_id) !== undefined) return
    if (parent_id === undefined) row.model = cut(model, limits.labelCharsMax)
    const fresh = { spawning: true, attached: false, turn: null } as const
    pushBounded(row.agents, { agent_id, root: parent_id === undefined, ...fresh, queued: [] })
  },
  "agent.ready": (row, rune) => {
    const agent = findAgent(row, rune.payload.agent_id)
    if (agent !== undefined) agent.spawning = false
  },
  "agent.failed": (row, rune) => retire(row, rune.payload.agent_id, "failed"),
  "agent.terminated": (row, rune) => retire(row, rune.payload.agent_id, "terminated"),
  "agent.message": (row, rune) => queueInput(row, rune.payload.to_agent_id, rune.event_id),
  "turn.queued": (row, rune) => {
    suggestTitle(row, textOf(rune.payload.input))
    queueInput(row, rune.agent_id, rune.event_id)
  },
  "turn.dequeued": (row, rune) => {
    const agent = findAgent(row, rune.agent_id)
    const dropped = new Set<number>(rune.payload.event_ids)
    if (agent !== undefined) agent.queued = agent.queued.filter((id) => !dropped.has(id))
  },
  "turn.started": (row, rune) => {
    const { agent_id: agentId, queued_event_ids: taken, turn_id: turnId } = rune.payload
    suggestTitle(row, textOf(rune.payload.input))
    row.turns += 1
    const agent = findAgent(row, agentId)
    if (agent === undefined) return
    agent.turn = { turn_id: turnId, usage: noUsage() }
    if (taken !== undefined) agent.queued = agent.queued.filter((id) => !taken.includes(id))
  },
  "turn.model_requested": (row, rune) => countCall(row, rune, rune.payload.usage),
  "turn.compacted": (row, rune) => countCall(row, rune, rune.payload.usage),
  "system.recovered": (row, rune) => {
    for (const { usage, ...place } of rune.payload.cut_off ?? []) countCall(row, place, usage)
  },
  "turn.assistant_final": (row, rune) => countCall(row, rune, rune.payload.usage),
  "turn.retry_scheduled": (row, rune) => countCall(row, rune, rune.payload.usage),
  "turn.completed": (row, rune) => endTurn(row, rune, rune.payload.usage),
  "turn.interrupted": (row, rune) => endTurn(row, rune, rune.payload.usage),
  "turn.error": (row, rune) => endTurn(row, rune, rune.payload.usage),
  "plan.goal_received": (row, rune) => {
    suggestTitle(row, rune.payload.goal)
    planOpens(row)
  },
  "plan.goal_met": planCloses,
  "plan.stopped": planCloses,
  "harness.attached": (row, rune) => {
    const agent = findAgent(row, rune.agent_id)
    if (agent !== undefined) agent.attached = true
  },
  "harness.detached": (row, rune) => {
    const agent = findAgent(row, rune.agent_id)
    if (agent !== undefined) agent.attached = false
  }
}

/** Fragments move the head of a row and nothing else. */
const fragments: ReadonlySet<string> = new Set(
  definitions.filter(({ runeClass }) => runeClass === "delta").map(({ kind }) => kind)
)

export const isFragment = (rune: AnyRune): boolean => fragments.has(rune.kind)

/** A log of somebody else may have more at once than any of ours: the oldest go first. */
const bounded = (view: AttentionView): AttentionView =>
  view.agents.length <= limits.rowItemsMax && view.calls.length <= limits.rowCallsMax
    ? view
    : { ...view, agents: view.agents.slice(-limits.rowItemsMax), calls: view.calls.slice(-limits.rowCallsMax) }

/** Moves the head of the row alone: for runes of which nothing else is known or needed. */
export const moveHead = (row: RowState, head: { readonly event_id: number; readonly ts_ms: number }): void => {
  row.last_event_id = head.event_id
  row.updated_ms = Math.max(row.updated_ms, head.ts_ms)
}

/** Folds one rune in. The given row is changed. */
export const foldRow = (row: RowState, rune: AnyRune): void => {
  moveHead(row, rune)
  if (!isKnown(rune) || isFragment(rune)) return
  row.view = bounded(evolveAttention(row.view, rune))
  // The one widening: the handler is looked up by the very kind that the rune carries.
  const handle = (handlers as { readonly [K in Kind]?: unknown })[rune.kind] as
    | ((row: RowState, rune: Rune) => void)
    | undefined
  handle?.(row, rune)
}
