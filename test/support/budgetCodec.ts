// A budget as plain JSON in one order, so that tests can compare states by their bytes.
import * as HashMap from "effect/HashMap"
import type { BudgetState } from "#src/budget/State.ts"

const byId = <A extends { readonly id: string }>(a: A, b: A): number => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)

export const encodeBudget = (state: BudgetState): object => ({
  nodes: [...HashMap.values(state.nodes)].sort(byId),
  reservations: [...HashMap.values(state.reservations)].sort(byId)
})
