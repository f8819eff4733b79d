// Goal: no number of parallel calls overshoots a limit by more than one call, on any level; the state is a fold that
// can be stored and rebuilt. Verifies: AGENT-BUDGET. Method: random trees and random schedules of reserve, settle,
// release and time, checked after every step against a plain recount; the rules by hand.
import * as HashMap from "effect/HashMap"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  exhausted,
  open,
  release,
  remaining,
  report,
  reserve,
  setLimits,
  settle,
  wallDeadlineMs
} from "#src/budget/Budget.ts"
import {
  type Amounts,
  type BudgetChange,
  type BudgetState,
  consumables,
  emptyBudget,
  evolve,
  type Limits,
  lineage,
  nodeOf,
  nothing,
  plus,
  wallUsedMs
} from "#src/budget/State.ts"
import { encodeBudget } from "../support/budgetCodec.ts"
import { count, reportCount } from "../support/counts.ts"
import { seedFor } from "../support/seed.ts"

const amounts = (more: Partial<Amounts>): Amounts => ({ ...nothing, ...more })

const node = (
  id: string,
  level: "goal" | "conversation" | "agent",
  parent: string | null,
  limits: Limits = {}
): BudgetChange => ({
  type: "opened",
  id,
  level,
  parent,
  limits
})

const fold = (changes: ReadonlyArray<BudgetChange>, from: BudgetState = emptyBudget): BudgetState =>
  changes.reduce(evolve, from)

/** Goal g, conversation c, agents a and b below it. */
const tree = (
  limits: { readonly g?: Limits; readonly c?: Limits; readonly a?: Limits; readonly b?: Limits } = {}
): BudgetState =>
  fold([
    node("g", "goal", null, limits.g),
    node("c", "conversation", "g", limits.c),
    node("a", "agent", "c", limits.a),
    node("b", "agent", "c", limits.b)
  ])

const ask = (state: BudgetState, id: string, at: string, wanted: Partial<Amounts>, nowMs = 0) =>
  reserve(state, { id, node: at, wanted: amounts(wanted), nowMs })

/** Reserves, or fails the test. */
const take = (state: BudgetState, id: string, at: string, wanted: Partial<Amounts>): BudgetState => {
  const outcome = ask(state, id, at, wanted)
  if (outcome._tag !== "Accepted") throw new Error(`not admitted: ${JSON.stringify(outcome)}`)
  return evolve(state, outcome.change)
}

const pay = (state: BudgetState, id: string, actual: Partial<Amounts>): BudgetState => {
  const outcome = settle(state, id, amounts(actual))
  if (outcome._tag !== "Accepted") throw new Error("not settled")
  return evolve(state, outcome.change)
}

describe("reserve", () => {
  it("admits what fits under every limit above", () => {
    const state = tree({ g: { tokens: 100 } })
    expect(ask(state, "1", "a", { tokens: 100 })).toMatchObject({ _tag: "Accepted", change: { type: "reserved" } })
  })

  it("counts what others have reserved anywhere under the limit", () => {
    const state = take(tree({ g: { tokens: 100 } }), "1", "a", { tokens: 60 })
    expect(ask(state, "2", "b", { tokens: 41 })).toEqual({
      _tag: "Contended",
      limit: { which: "tokens", node: "g", level: "goal", limit: 100, spent: 0, reserved: 60 }
    })
    expect(ask(state, "2", "b", { tokens: 40 })._tag).toBe("Accepted")
  })

  it("admits one last call that is larger than the rest, alone", () => {
    const state = pay(take(tree({ c: { micro_usd: 1000 } }), "1", "a", { micro_usd: 900 }), "1", { micro_usd: 900 })
    const last = take(state, "2", "a", { micro_usd: 500 })
    expect(ask(last, "3", "b", { micro_usd: 1 })._tag).toBe("Contended")
    const after = pay(last, "2", { micro_usd: 450 })
    expect(ask(after, "3", "b", { micro_usd: 1 })).toEqual({
      _tag: "Exhausted",
      limit: { which: "micro_usd", node: "c", level: "conversation", limit: 1000, spent: 1350, reserved: 0 }
    })
  })

  it("names the limit that is used up, the nearest first", () => {
    const used = pay(take(tree({ a: { tool_calls: 1 }, g: { tool_calls: 1 } }), "1", "a", { tool_calls: 1 }), "1", {
      tool_calls: 1
    })
    expect(ask(used, "2", "a", { tool_calls: 1 })).toMatchObject({
      _tag: "Exhausted",
      limit: { which: "tool_calls", node: "a" }
    })
    expect(ask(used, "2", "b", { tool_calls: 1 })).toMatchObject({
      _tag: "Exhausted",
      limit: { which: "tool_calls", node: "g" }
    })
    expect(ask(used, "2", "a", { tokens: 1 })._tag).toBe("Accepted")
  })

  it("prefers saying exhausted to saying contended", () => {
    const held = take(tree({ a: { tokens: 10 }, g: { tool_calls: 0 } }), "1", "a", { tokens: 8 })
    expect(ask(held, "2", "a", { tokens: 5, tool_calls: 1 })).toMatchObject({ _tag: "Exhausted", limit: { node: "g" } })
  })

  it("refuses what makes no sense", () => {
    const state = take(tree(), "1", "a", { tokens: 1 })
    expect(ask(state, "2", "nobody", {})).toEqual({ _tag: "Refused", reason: "unknown_node" })
    expect(ask(state, "1", "a", {})).toEqual({ _tag: "Refused", reason: "already_reserved" })
    for (const tokens of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
      expect(ask(state, "2", "a", { tokens })).toEqual({ _tag: "Refused", reason: "invalid_amount" })
      expect(settle(state, "1", amounts({ tokens }))).toEqual({ _tag: "Refused", reason: "invalid_amount" })
    }
    expect(settle(state, "9", nothing)).toEqual({ _tag: "Refused", reason: "unknown_reservation" })
    expect(release(state, "9")).toEqual({ _tag: "Refused", reason: "unknown_reservation" })
  })

  it("is open again when the limit is raised", () => {
    const used = pay(take(tree({ c: { tokens: 10 } }), "1", "a", { tokens: 10 }), "1", { tokens: 10 })
    expect(exhausted(used, "a", 0)).toMatchObject({ which: "tokens", node: "c" })
    const raised = setLimits(used, "c", { tokens: 20 })
    if (raised._tag !== "Accepted") throw new Error("refused")
    const state = evolve(used, raised.change)
    expect(exhausted(state, "a", 0)).toBeUndefined()
    expect(remaining(state, "a", "tokens")).toBe(10)
  })
})

describe("settle and release", () => {
  it("move the real use up the tree and free the reservation", () => {
    const state = pay(take(tree(), "1", "a", { tokens: 50, tool_calls: 1 }), "1", { tokens: 30, tool_calls: 1 })
    for (const id of ["a", "c", "g"])
      expect(nodeOf(state, id)).toMatchObject({ spent: { tokens: 30, tool_calls: 1 }, reserved: nothing, calls: 0 })
    expect(nodeOf(state, "b")).toMatchObject({ spent: nothing })
  })

  it("hide nothing: a call that used more than it reserved counts in full", () => {
    const state = pay(take(tree({ c: { tokens: 100 } }), "1", "a", { tokens: 10 }), "1", { tokens: 500 })
    expect(exhausted(state, "b", 0)).toMatchObject({ which: "tokens", spent: 500 })
  })

  it("are idempotent in the fold", () => {
    const state = pay(take(tree(), "1", "a", { tokens: 50 }), "1", { tokens: 30 })
    expect(
      encodeBudget(evolve(state, { type: "settled", reservation_id: "1", actual: amounts({ tokens: 30 }) }))
    ).toEqual(encodeBudget(state))
    expect(encodeBudget(evolve(state, { type: "released", reservation_id: "1" }))).toEqual(encodeBudget(state))
  })

  it("take use nobody reserved into account", () => {
    const state = evolve(tree({ g: { tokens: 5 } }), { type: "spent", id: "a", amounts: amounts({ tokens: 7 }) })
    expect(exhausted(state, "b", 0)).toMatchObject({ node: "g", spent: 7 })
  })
})

describe("the tree", () => {
  it("refuses nodes in the wrong place", () => {
    const state = tree()
    const at = (id: string, level: "goal" | "conversation" | "agent", parent: string | null, limits: Limits = {}) =>
      open(state, { id, level, parent, limits })
    expect(at("g", "goal", null)).toEqual({ _tag: "Refused", reason: "already_open" })
    expect(at("x", "goal", "g")).toEqual({ _tag: "Refused", reason: "misplaced" })
    expect(at("x", "agent", null)).toEqual({ _tag: "Refused", reason: "misplaced" })
    expect(at("x", "conversation", "c")).toEqual({ _tag: "Refused", reason: "misplaced" })
    expect(at("x", "agent", "nobody")).toEqual({ _tag: "Refused", reason: "unknown_node" })
    expect(at("x", "agent", "c", { tokens: -1 })).toEqual({ _tag: "Refused", reason: "invalid_amount" })
    expect(at("x", "agent", "a")).toMatchObject({ _tag: "Accepted" })
    expect(at("x", "conversation", null)).toMatchObject({ _tag: "Accepted" })
    expect(setLimits(state, "nobody", {})).toEqual({ _tag: "Refused", reason: "unknown_node" })
  })
})

describe("wall time", () => {
  it("runs while anything runs below, once, however many do", () => {
    const state = fold(
      [
        { type: "clock_started", id: "a", at_ms: 1000 },
        { type: "clock_started", id: "b", at_ms: 1500 },
        { type: "clock_stopped", id: "a", at_ms: 2000 },
        { type: "clock_stopped", id: "b", at_ms: 3000 },
        { type: "clock_started", id: "a", at_ms: 9000 }
      ],
      tree()
    )
    const used = (id: string, nowMs: number) => wallUsedMs(nodeOf(state, id) ?? (undefined as never), nowMs)
    expect([used("c", 9000), used("a", 9000), used("b", 9000)]).toEqual([2000, 1000, 1500])
    expect(used("g", 9500)).toBe(2500)
    expect(used("g", 8000)).toBe(2000)
  })

  it("exhausts like any other limit, at a moment known beforehand", () => {
    const state = evolve(tree({ c: { wall_ms: 500 } }), { type: "clock_started", id: "a", at_ms: 1000 })
    expect(wallDeadlineMs(state, "a", 1200)).toBe(1500)
    expect(ask(state, "1", "a", { tokens: 1 }, 1499)._tag).toBe("Accepted")
    expect(ask(state, "1", "a", { tokens: 1 }, 1500)).toMatchObject({
      _tag: "Exhausted",
      limit: { which: "wall_ms", node: "c", spent: 500 }
    })
    expect(wallDeadlineMs(tree({ c: { wall_ms: 500 } }), "a", 0)).toBeUndefined()
  })

  it("ignores a stop that had no start", () => {
    expect(encodeBudget(evolve(tree(), { type: "clock_stopped", id: "a", at_ms: 5 }))).toEqual(encodeBudget(tree()))
  })
})

describe("report and remaining", () => {
  it("show every limit from the bottom up and the tightest rest", () => {
    const state = take(tree({ a: { tokens: 100 }, g: { tokens: 50, wall_ms: 9 } }), "1", "b", { tokens: 20 })
    expect(remaining(state, "a", "tokens")).toBe(30)
    expect(remaining(state, "a", "micro_usd")).toBeUndefined()
    expect(report(state, "a", 0).map((row) => [row.node, row.which, row.limit, row.reserved])).toEqual([
      ["a", "tokens", 100, 0],
      ["g", "tokens", 50, 20],
      ["g", "wall_ms", 9, 0]
    ])
  })
})

interface Step {
  readonly agent: number
  readonly kind: "reserve" | "settle" | "release" | "start" | "stop"
  readonly tokens: number
  readonly share: number
}

const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.record({
    agent: fc.nat(5),
    kind: fc.constantFrom("reserve", "reserve", "reserve", "settle", "settle", "release", "start", "stop"),
    tokens: fc.integer({ min: 1, max: 100 }),
    share: fc.double({ min: 0, max: 1, noNaN: true })
  }),
  { minLength: 40, maxLength: 160, size: "max" }
)

const limitSets = fc.array(fc.option(fc.nat(600), { nil: undefined }), { minLength: 8, maxLength: 8 })

const limitOf = (tokens: number | undefined): Limits =>
  tokens === undefined ? {} : { tokens, micro_usd: tokens * 3, tool_calls: Math.ceil(tokens / 40) }

/** Six agents, the last two under the first, so that reservations cross levels. */
const randomTree = (sizes: ReadonlyArray<number | undefined>): ReadonlyArray<BudgetChange> => [
  node("g", "goal", null, limitOf(sizes[0])),
  node("c", "conversation", "g", limitOf(sizes[1])),
  ...[0, 1, 2, 3].map((agent) => node(`agent${agent}`, "agent", "c", limitOf(sizes[agent + 2]))),
  ...[4, 5].map((agent) => node(`agent${agent}`, "agent", "agent0", limitOf(sizes[agent + 2])))
]

/** Recounts what a node holds from the open reservations alone. */
const recount = (state: BudgetState, id: string): Amounts =>
  [...HashMap.values(state.reservations)]
    .filter((one) => lineage(state, one.node).some((above) => above.id === id))
    .reduce((sum, one) => plus(sum, one.amounts), nothing)

const checkState = (state: BudgetState, largest: Amounts) => {
  for (const held of HashMap.values(state.nodes)) {
    expect(held.reserved).toEqual(recount(state, held.id))
    for (const which of consumables) {
      const limit = held.limits[which]
      if (limit === undefined) continue
      const overshoot = Math.max(0, held.spent[which] - limit)
      expect(overshoot, `${held.id} ${which}`).toBeLessThanOrEqual(largest[which])
      // What is promised never exceeds the limit unless a single last call holds it.
      if (held.spent[which] + held.reserved[which] > limit && held.reserved[which] > 0) {
        const holders = [...HashMap.values(state.reservations)].filter(
          (one) => one.amounts[which] > 0 && lineage(state, one.node).some((above) => above.id === held.id)
        )
        expect(holders.length, `${held.id} ${which}`).toBe(1)
      }
    }
  }
}

const share = (amount: Amounts, part: number): Amounts => ({
  tokens: Math.floor(amount.tokens * part),
  micro_usd: Math.floor(amount.micro_usd * part),
  tool_calls: Math.floor(amount.tool_calls * part)
})

/** Plays a schedule of many calls side by side and returns every change that was recorded. */
const playSchedule = (opening: ReadonlyArray<BudgetChange>, schedule: ReadonlyArray<Step>) => {
  const changes: Array<BudgetChange> = [...opening]
  const openCalls: Array<{ readonly id: string; readonly wanted: Amounts }> = []
  let state = fold(opening)
  let largest = nothing
  let admitted = 0
  const apply = (change: BudgetChange) => {
    changes.push(change)
    state = evolve(state, change)
    checkState(state, largest)
  }
  for (const [at, step] of schedule.entries()) {
    const agent = `agent${step.agent}`
    if (step.kind === "start" || step.kind === "stop") {
      apply({ type: step.kind === "start" ? "clock_started" : "clock_stopped", id: agent, at_ms: at * 10 })
    } else if (step.kind === "reserve") {
      const wanted = { tokens: step.tokens, micro_usd: step.tokens * 2, tool_calls: step.tokens % 2 }
      const outcome = reserve(state, { id: `call${at}`, node: agent, wanted, nowMs: at * 10 })
      if (outcome._tag !== "Accepted") continue
      admitted++
      largest = {
        tokens: Math.max(largest.tokens, wanted.tokens),
        micro_usd: Math.max(largest.micro_usd, wanted.micro_usd),
        tool_calls: 1
      }
      openCalls.push({ id: `call${at}`, wanted })
      apply(outcome.change)
    } else {
      const call = openCalls.splice(Math.floor(step.share * openCalls.length), 1)[0]
      if (call === undefined) continue
      const outcome =
        step.kind === "settle" ? settle(state, call.id, share(call.wanted, step.share)) : release(state, call.id)
      if (outcome._tag === "Accepted") apply(outcome.change)
    }
  }
  return { state, changes, admitted }
}

describe("many calls side by side", { timeout: 900_000 }, () => {
  const runs = count("budget schedules", { fast: 500, soak: 10_000 })

  it("never overshoot a limit by more than one call, on any level", () => {
    let admitted = 0
    fc.assert(
      fc.property(limitSets, steps, (sizes, schedule) => {
        admitted += playSchedule(randomTree(sizes), schedule).admitted
      }),
      { numRuns: runs, seed: seedFor("budget schedules") }
    )
    expect(admitted).toBeGreaterThan(runs * 5)
    reportCount("budget reservations admitted", admitted)
  })

  it("leave a state that is the fold of its changes, in one go and with a stop anywhere", () => {
    fc.assert(
      fc.property(limitSets, steps, fc.double({ min: 0, max: 1, noNaN: true }), (sizes, schedule, where) => {
        const { state, changes } = playSchedule(randomTree(sizes), schedule)
        const cut = Math.floor(where * changes.length)
        const begun = fold(changes.slice(0, cut))
        const whole = JSON.stringify(encodeBudget(state))
        expect(JSON.stringify(encodeBudget(fold(changes)))).toBe(whole)
        expect(JSON.stringify(encodeBudget(fold(changes.slice(cut), begun)))).toBe(whole)
      }),
      { numRuns: Math.ceil(runs / 5), seed: seedFor("budget fold") }
    )
  })

  it("fifty agents under one dollar overshoot by one call at most", () => {
    const call = 60_000
    let state = fold([
      node("g", "goal", null, { micro_usd: 1_000_000 }),
      node("c", "conversation", "g"),
      ...Array.from({ length: 50 }, (_, at) => node(`a${at}`, "agent", "c"))
    ])
    let inFlight: Array<string> = []
    for (let round = 0; round < 100; round++) {
      for (let at = 0; at < 50; at++) {
        const outcome = reserve(state, {
          id: `${round}.${at}`,
          node: `a${at}`,
          wanted: amounts({ micro_usd: call }),
          nowMs: 0
        })
        if (outcome._tag !== "Accepted") continue
        state = evolve(state, outcome.change)
        inFlight.push(`${round}.${at}`)
      }
      for (const id of inFlight) state = pay(state, id, { micro_usd: call - (round % 7) })
      inFlight = []
    }
    const spent = nodeOf(state, "g")?.spent.micro_usd ?? 0
    expect(spent).toBeGreaterThanOrEqual(1_000_000)
    expect(spent).toBeLessThanOrEqual(1_000_000 + call)
    expect(exhausted(state, "a7", 0)).toMatchObject({ which: "micro_usd", node: "g" })
  })
})
