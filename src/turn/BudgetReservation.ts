// Asks for room in the budget before something is spent: waits while calls under way hold what is left, and where a
// limit is used up says so on the record, with what follows from that.
import * as Effect from "effect/Effect"
import { tryCommand } from "../contract/TryCommand.ts"
import { exhaustion } from "../machine/decide/Exhaustion.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { Commands } from "./Commands.ts"
import type { Admission, Estimate, Spending } from "./Spending.ts"

export interface BudgetReservation {
  readonly commands: Commands
  readonly spending: Spending
  readonly nowMs: () => number
}

type Outcome<A> = { readonly _tag: "Done"; readonly value: A | undefined } | { readonly _tag: "Wait"; since: number }

/** Runs the body with what it may need reserved. Nothing runs, and nothing comes back, without a budget. */
export const withBudgetReservation = <A, E>(
  allowance: BudgetReservation,
  agentId: AgentId,
  wanted: Estimate,
  body: Effect.Effect<A, E>
): Effect.Effect<A | undefined, E> => {
  const { commands, nowMs, spending } = allowance
  const use = (admission: Admission): Effect.Effect<Outcome<A>, E> => {
    if (admission._tag === "Reserved") return Effect.map(body, (value) => ({ _tag: "Done", value }))
    if (admission._tag === "Contended") return Effect.succeed({ _tag: "Wait", since: admission.since })
    return Effect.as(
      Effect.promise(() => tryCommand(commands, exhaustion(commands.state(), agentId, admission))),
      { _tag: "Done", value: undefined }
    )
  }
  const once = Effect.acquireUseRelease(
    Effect.sync(() => spending.reserve(commands.state(), agentId, wanted, nowMs())),
    use,
    (admission) => Effect.sync(() => (admission._tag === "Reserved" ? admission.release() : undefined))
  )
  const attempt: Effect.Effect<A | undefined, E> = Effect.flatMap(once, (outcome) =>
    outcome._tag === "Done"
      ? Effect.succeed(outcome.value)
      : Effect.andThen(
          Effect.promise((signal) => spending.freed(outcome.since, signal)),
          Effect.suspend(() => attempt)
        )
  )
  return attempt
}
