// The reservation tree goal > conversation > agent > call, as a value: nodes with limits and use, and the calls that
// hold a reservation. It changes only through `evolve`, a total fold over plain changes, so that it can be rebuilt
// from a log: live, after a crash and in a test it is the same state. What is spent below counts on every level above.
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"

/** What a call uses up. Money is integer micro-USD. */
export interface Amounts {
  readonly tokens: number
  readonly micro_usd: number
  readonly tool_calls: number
}

export type Consumable = keyof Amounts

/** Everything that can be limited. Wall time is not reserved: it passes. */
export type Resource = Consumable | "wall_ms"

export type Limits = { readonly [R in Resource]?: number }

export type Level = "goal" | "conversation" | "agent"

export interface Node {
  readonly id: string
  readonly level: Level
  readonly parent: string | null
  readonly limits: Limits
  readonly spent: Amounts
  readonly reserved: Amounts
  /** Calls under this node that hold a reservation. */
  readonly calls: number
  /** Time in which something ran under this node, up to the last change. */
  readonly wallMs: number
  /** How many clocks run under this node, and since when at least one does. */
  readonly running: number
  readonly runningSinceMs: number | null
}

export interface Reservation {
  readonly id: string
  readonly node: string
  readonly amounts: Amounts
}

export interface BudgetState {
  readonly nodes: HashMap.HashMap<string, Node>
  readonly reservations: HashMap.HashMap<string, Reservation>
}

export type BudgetChange =
  | {
      readonly type: "opened"
      readonly id: string
      readonly level: Level
      readonly parent: string | null
      readonly limits: Limits
    }
  | { readonly type: "limits_set"; readonly id: string; readonly limits: Limits }
  | { readonly type: "reserved"; readonly reservation: Reservation }
  /** The call is over and used this much. */
  | { readonly type: "settled"; readonly reservation_id: string; readonly actual: Amounts }
  /** The call never happened. */
  | { readonly type: "released"; readonly reservation_id: string }
  /** Use that nobody reserved, such as what an outside agent reports. */
  | { readonly type: "spent"; readonly id: string; readonly amounts: Amounts }
  | { readonly type: "clock_started"; readonly id: string; readonly at_ms: number }
  | { readonly type: "clock_stopped"; readonly id: string; readonly at_ms: number }

export const nothing: Amounts = { tokens: 0, micro_usd: 0, tool_calls: 0 }

export const emptyBudget: BudgetState = { nodes: HashMap.empty(), reservations: HashMap.empty() }

export const consumables: ReadonlyArray<Consumable> = ["tokens", "micro_usd", "tool_calls"]

export const plus = (a: Amounts, b: Amounts): Amounts => ({
  tokens: a.tokens + b.tokens,
  micro_usd: a.micro_usd + b.micro_usd,
  tool_calls: a.tool_calls + b.tool_calls
})

const minus = (a: Amounts, b: Amounts): Amounts => ({
  tokens: a.tokens - b.tokens,
  micro_usd: a.micro_usd - b.micro_usd,
  tool_calls: a.tool_calls - b.tool_calls
})

export const nodeOf = (state: BudgetState, id: string): Node | undefined =>
  Option.getOrUndefined(HashMap.get(state.nodes, id))

export const reservationOf = (state: BudgetState, id: string): Reservation | undefined =>
  Option.getOrUndefined(HashMap.get(state.reservations, id))

/** The node and everything above it, from the bottom up. Parents are opened before children, so this ends. */
export const lineage = (state: BudgetState, id: string): ReadonlyArray<Node> => {
  const nodes: Array<Node> = []
  for (let at: string | null = id; at !== null; ) {
    const node = nodeOf(state, at)
    if (node === undefined) break
    nodes.push(node)
    at = node.parent
  }
  return nodes
}

/** Time something has been running under a node, also when the wall clock went backwards meanwhile. */
export const wallUsedMs = (node: Node, nowMs: number): number =>
  node.wallMs + (node.runningSinceMs === null ? 0 : Math.max(0, nowMs - node.runningSinceMs))

/** A conversation may stand alone or under a goal; an agent stands under a conversation or another agent. */
export const mayStandUnder = (level: Level, parent: Level | undefined): boolean => {
  if (level === "goal") return parent === undefined
  if (level === "conversation") return parent === undefined || parent === "goal"
  return parent === "conversation" || parent === "agent"
}

const onLineage = (state: BudgetState, id: string, change: (node: Node) => Node): BudgetState => ({
  ...state,
  nodes: lineage(state, id).reduce((nodes, node) => HashMap.set(nodes, node.id, change(node)), state.nodes)
})

const opened = (state: BudgetState, change: Extract<BudgetChange, { readonly type: "opened" }>): BudgetState => {
  const parent = change.parent === null ? undefined : nodeOf(state, change.parent)
  const placed = change.parent === null ? parent === undefined : parent !== undefined
  if (!placed || HashMap.has(state.nodes, change.id) || !mayStandUnder(change.level, parent?.level)) return state
  const { id, level, limits } = change
  const fresh = { spent: nothing, reserved: nothing, calls: 0, wallMs: 0, running: 0, runningSinceMs: null }
  return { ...state, nodes: HashMap.set(state.nodes, id, { id, level, parent: change.parent, limits, ...fresh }) }
}

const limited = (state: BudgetState, id: string, limits: Limits): BudgetState => {
  const node = nodeOf(state, id)
  return node === undefined ? state : { ...state, nodes: HashMap.set(state.nodes, id, { ...node, limits }) }
}

const reserved = (state: BudgetState, reservation: Reservation): BudgetState => {
  if (HashMap.has(state.reservations, reservation.id) || nodeOf(state, reservation.node) === undefined) return state
  const held = onLineage(state, reservation.node, (node) => ({
    ...node,
    reserved: plus(node.reserved, reservation.amounts),
    calls: node.calls + 1
  }))
  return { ...held, reservations: HashMap.set(state.reservations, reservation.id, reservation) }
}

const ended = (state: BudgetState, id: string, actual: Amounts): BudgetState => {
  const reservation = reservationOf(state, id)
  if (reservation === undefined) return state
  const freed = onLineage(state, reservation.node, (node) => ({
    ...node,
    reserved: minus(node.reserved, reservation.amounts),
    spent: plus(node.spent, actual),
    calls: node.calls - 1
  }))
  return { ...freed, reservations: HashMap.remove(state.reservations, id) }
}

const clockStarted = (state: BudgetState, id: string, atMs: number): BudgetState =>
  onLineage(state, id, (node) => ({
    ...node,
    running: node.running + 1,
    runningSinceMs: node.runningSinceMs ?? atMs
  }))

const clockStopped = (state: BudgetState, id: string, atMs: number): BudgetState =>
  onLineage(state, id, (node) => {
    if (node.running === 0) return node
    const running = node.running - 1
    return running > 0
      ? { ...node, running }
      : { ...node, running, wallMs: wallUsedMs(node, atMs), runningSinceMs: null }
  })

/** Folds one change in. A change that does not fit (an unknown id, a second time) changes nothing. */
export const evolve = (state: BudgetState, change: BudgetChange): BudgetState => {
  switch (change.type) {
    case "opened":
      return opened(state, change)
    case "limits_set":
      return limited(state, change.id, change.limits)
    case "reserved":
      return reserved(state, change.reservation)
    case "settled":
      return ended(state, change.reservation_id, change.actual)
    case "released":
      return ended(state, change.reservation_id, nothing)
    case "spent":
      return onLineage(state, change.id, (node) => ({ ...node, spent: plus(node.spent, change.amounts) }))
    case "clock_started":
      return clockStarted(state, change.id, change.at_ms)
    case "clock_stopped":
      return clockStopped(state, change.id, change.at_ms)
  }
}
