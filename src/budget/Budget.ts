// The decisions of the reservation tree: may this call happen, what did it cost, which limit is used up. Pure: each
// decision returns the change to record; the state moves only when that change is folded in (`State.evolve`).
//
// Admission. A call is admitted when what it wants fits under every limit above it, next to what others have reserved.
// If it does not fit but nothing else is reserved under that limit and some of it is left, it is admitted as the last
// call: otherwise a worst case larger than the rest would strand the rest. So, as long as no call uses more than it
// reserved, a limit is overshot by at most one call, however many run side by side.
import {
  type Amounts,
  type BudgetChange,
  type BudgetState,
  type Consumable,
  consumables,
  type Level,
  type Limits,
  lineage,
  mayStandUnder,
  type Node,
  nodeOf,
  type Resource,
  reservationOf,
  wallUsedMs
} from "./State.ts"

/** Which limit stands in the way, and how it stands. */
export interface LimitReached {
  readonly which: Resource
  readonly node: string
  readonly level: Level
  readonly limit: number
  readonly spent: number
  readonly reserved: number
}

export type Refusal =
  | "unknown_node"
  | "unknown_reservation"
  | "already_open"
  | "already_reserved"
  | "misplaced"
  | "invalid_amount"

export type Refused = { readonly _tag: "Refused"; readonly reason: Refusal }

export type Accepted = { readonly _tag: "Accepted"; readonly change: BudgetChange }

export type ReserveOutcome =
  | Accepted
  /** The limit is used up: stop and tell a person. */
  | { readonly _tag: "Exhausted"; readonly limit: LimitReached }
  /** Others hold what is left: try again when one of them is settled. */
  | { readonly _tag: "Contended"; readonly limit: LimitReached }
  | Refused

const refused = (reason: Refusal): Refused => ({ _tag: "Refused", reason })

const isAmount = (value: number | undefined): boolean =>
  value === undefined || (Number.isSafeInteger(value) && value >= 0)

const areAmounts = (amounts: Amounts): boolean => consumables.every((name) => isAmount(amounts[name]))

const areLimits = (limits: Limits): boolean =>
  isAmount(limits.tokens) && isAmount(limits.micro_usd) && isAmount(limits.tool_calls) && isAmount(limits.wall_ms)

export const open = (
  state: BudgetState,
  node: { readonly id: string; readonly level: Level; readonly parent: string | null; readonly limits: Limits }
): Accepted | Refused => {
  if (nodeOf(state, node.id) !== undefined) return refused("already_open")
  const parent = node.parent === null ? undefined : nodeOf(state, node.parent)
  if (node.parent !== null && parent === undefined) return refused("unknown_node")
  if (!mayStandUnder(node.level, parent?.level)) return refused("misplaced")
  return areLimits(node.limits) ? { _tag: "Accepted", change: { type: "opened", ...node } } : refused("invalid_amount")
}

export const setLimits = (state: BudgetState, id: string, limits: Limits): Accepted | Refused => {
  if (nodeOf(state, id) === undefined) return refused("unknown_node")
  return areLimits(limits)
    ? { _tag: "Accepted", change: { type: "limits_set", id, limits } }
    : refused("invalid_amount")
}

const reached = (node: Node, which: Resource, nowMs: number): LimitReached => ({
  which,
  node: node.id,
  level: node.level,
  limit: node.limits[which] ?? 0,
  spent: which === "wall_ms" ? wallUsedMs(node, nowMs) : node.spent[which],
  reserved: which === "wall_ms" ? 0 : node.reserved[which]
})

type Verdict = "fits" | "exhausted" | "contended"

const verdict = (node: Node, which: Consumable, wanted: number): Verdict => {
  const limit = node.limits[which]
  if (limit === undefined || wanted === 0) return "fits"
  if (node.spent[which] >= limit) return "exhausted"
  if (node.spent[which] + node.reserved[which] + wanted <= limit) return "fits"
  return node.reserved[which] === 0 ? "fits" : "contended"
}

const outOfTime = (node: Node, nowMs: number): boolean =>
  node.limits.wall_ms !== undefined && wallUsedMs(node, nowMs) >= node.limits.wall_ms

/** The worst obstacle on the way up: an exhausted limit before a contended one. */
const obstacle = (state: BudgetState, id: string, wanted: Amounts, nowMs: number): ReserveOutcome | undefined => {
  let contended: ReserveOutcome | undefined
  for (const node of lineage(state, id)) {
    if (outOfTime(node, nowMs)) return { _tag: "Exhausted", limit: reached(node, "wall_ms", nowMs) }
    for (const which of consumables) {
      const found = verdict(node, which, wanted[which])
      if (found === "exhausted") return { _tag: "Exhausted", limit: reached(node, which, nowMs) }
      if (found === "contended") contended ??= { _tag: "Contended", limit: reached(node, which, nowMs) }
    }
  }
  return contended
}

/** Asks for the worst case of a call before it is made. */
export const reserve = (
  state: BudgetState,
  call: { readonly id: string; readonly node: string; readonly wanted: Amounts; readonly nowMs: number }
): ReserveOutcome => {
  if (nodeOf(state, call.node) === undefined) return refused("unknown_node")
  if (reservationOf(state, call.id) !== undefined) return refused("already_reserved")
  if (!areAmounts(call.wanted)) return refused("invalid_amount")
  const reservation = { id: call.id, node: call.node, amounts: call.wanted }
  return (
    obstacle(state, call.node, call.wanted, call.nowMs) ?? {
      _tag: "Accepted",
      change: { type: "reserved", reservation }
    }
  )
}

/** Records what a call really used, more than reserved included: nothing is hidden. */
export const settle = (state: BudgetState, id: string, actual: Amounts): Accepted | Refused => {
  if (reservationOf(state, id) === undefined) return refused("unknown_reservation")
  if (!areAmounts(actual)) return refused("invalid_amount")
  return { _tag: "Accepted", change: { type: "settled", reservation_id: id, actual } }
}

/** Gives back the reservation of a call that never happened. */
export const release = (state: BudgetState, id: string): Accepted | Refused =>
  reservationOf(state, id) === undefined
    ? refused("unknown_reservation")
    : { _tag: "Accepted", change: { type: "released", reservation_id: id } }

/** The limit that is used up at or above a node, if any: what `agent.budget_exhausted` reports. */
export const exhausted = (state: BudgetState, id: string, nowMs: number): LimitReached | undefined => {
  for (const node of lineage(state, id)) {
    if (outOfTime(node, nowMs)) return reached(node, "wall_ms", nowMs)
    const which = consumables.find((name) => node.spent[name] >= (node.limits[name] ?? Number.POSITIVE_INFINITY))
    if (which !== undefined) return reached(node, which, nowMs)
  }
  return undefined
}

/**
 * What is left of a resource under every limit above a node, reservations of others counted; undefined if unlimited.
 * Use it to ask for no more output than can be paid.
 */
export const remaining = (state: BudgetState, id: string, which: Consumable): number | undefined => {
  const left = lineage(state, id).flatMap((node) => {
    const limit = node.limits[which]
    return limit === undefined ? [] : [Math.max(0, limit - node.spent[which] - node.reserved[which])]
  })
  return left.length === 0 ? undefined : Math.min(...left)
}

/** When a wall-time limit above a node will be used up if its clocks keep running; undefined if none will. */
export const wallDeadlineMs = (state: BudgetState, id: string, nowMs: number): number | undefined => {
  const ends = lineage(state, id).flatMap((node) => {
    const limit = node.limits.wall_ms
    return limit === undefined || node.running === 0 ? [] : [nowMs + Math.max(0, limit - wallUsedMs(node, nowMs))]
  })
  return ends.length === 0 ? undefined : Math.min(...ends)
}

/** Every limit at or above a node and how it stands, from the bottom up: what a suspended session shows. */
export const report = (state: BudgetState, id: string, nowMs: number): ReadonlyArray<LimitReached> =>
  lineage(state, id).flatMap((node) =>
    ([...consumables, "wall_ms"] as const)
      .filter((which) => node.limits[which] !== undefined)
      .map((which) => reached(node, which, nowMs))
  )
