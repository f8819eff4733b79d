// The budget as JSON, for snapshots: sorted by id, so that equal states are equal bytes. Reading checks the shape and
// that the sums of reservations agree with what the nodes hold.

import * as Data from "effect/Data"
import * as HashMap from "effect/HashMap"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { type Amounts, type BudgetState, consumables, lineage, type Node, nodeOf, nothing, plus } from "./State.ts"

const Natural = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const AmountsJson = Schema.Struct({ tokens: Natural, micro_usd: Natural, tool_calls: Natural })

const LimitsJson = Schema.Struct({
  tokens: Schema.optionalKey(Natural),
  micro_usd: Schema.optionalKey(Natural),
  tool_calls: Schema.optionalKey(Natural),
  wall_ms: Schema.optionalKey(Natural)
})

const NodeJson = Schema.Struct({
  id: Schema.String,
  level: Schema.Literals(["goal", "conversation", "agent"]),
  parent: Schema.NullOr(Schema.String),
  limits: LimitsJson,
  spent: AmountsJson,
  reserved: AmountsJson,
  calls: Natural,
  wallMs: Natural,
  running: Natural,
  runningSinceMs: Schema.NullOr(Schema.Int)
})

const ReservationJson = Schema.Struct({ id: Schema.String, node: Schema.String, amounts: AmountsJson })

export const BudgetJson = Schema.Struct({
  nodes: Schema.Array(NodeJson),
  reservations: Schema.Array(ReservationJson)
})

export type BudgetJson = typeof BudgetJson.Type

export class BudgetStateInvalid extends Data.TaggedError("BudgetStateInvalid")<{ readonly reason: string }> {
  override get message() {
    return `the stored budget is not valid: ${this.reason}`
  }
}

const byId = <A extends { readonly id: string }>(a: A, b: A): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

export const encodeBudget = (state: BudgetState): BudgetJson => ({
  nodes: [...HashMap.values(state.nodes)].sort(byId),
  reservations: [...HashMap.values(state.reservations)].sort(byId)
})

const decode = Schema.decodeUnknownResult(BudgetJson, { onExcessProperty: "error" })

/** Every parent exists, and following parents ends. */
const brokenLineage = (state: BudgetState): string | undefined => {
  const size = HashMap.size(state.nodes)
  for (const node of HashMap.values(state.nodes)) {
    let at = node.parent
    for (let steps = 0; at !== null; steps++) {
      const parent: Node | undefined = nodeOf(state, at)
      if (parent === undefined) return `node "${node.id}" stands under "${at}", which does not exist`
      if (steps > size) return `node "${node.id}" stands under itself`
      at = parent.parent
    }
  }
  return undefined
}

const disagreement = (state: BudgetState): string | undefined => {
  const sums = new Map<string, Amounts>()
  for (const reservation of HashMap.values(state.reservations)) {
    const nodes = lineage(state, reservation.node)
    if (nodes.length === 0) return `reservation "${reservation.id}" is for "${reservation.node}", which does not exist`
    for (const node of nodes) sums.set(node.id, plus(sums.get(node.id) ?? nothing, reservation.amounts))
  }
  for (const node of HashMap.values(state.nodes)) {
    const sum = sums.get(node.id) ?? nothing
    if (consumables.some((name) => sum[name] !== node.reserved[name]))
      return `node "${node.id}" holds other sums than its reservations`
  }
  return undefined
}

export const decodeBudget = (value: unknown): Result.Result<BudgetState, BudgetStateInvalid> => {
  const decoded = decode(value)
  if (Result.isFailure(decoded)) return Result.fail(new BudgetStateInvalid({ reason: decoded.failure.message }))
  const state: BudgetState = {
    nodes: HashMap.fromIterable(decoded.success.nodes.map((node) => [node.id, node])),
    reservations: HashMap.fromIterable(decoded.success.reservations.map((one) => [one.id, one]))
  }
  const reason = brokenLineage(state) ?? disagreement(state)
  return reason === undefined ? Result.succeed(state) : Result.fail(new BudgetStateInvalid({ reason }))
}
