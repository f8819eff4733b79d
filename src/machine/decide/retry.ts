/** Starting the retry that a turn waits for: by its timer, or by a person who will not wait. */
import { turn as turnMachine } from "../table/Turn.ts"
import { type Drafting, placeOf } from "./Drafting.ts"
import type { Running } from "./Require.ts"

const commandOf = { llm: "StartLlmRetry", tool: "StartToolRetry", hook: "StartHookRetry" } as const

export const startRetry = (sheet: Drafting, { agent, turn }: Running): undefined => {
  const { retry } = turn
  if (retry === null) {
    sheet.refuse("invalid_state", `Turn is ${turn.status}: no retry is due`, { state: turn.status })
    return
  }
  const payload = { attempt: retry.attempt, target: retry.target }
  sheet.step(turnMachine, turn.status, { _tag: commandOf[retry.target.type], payload, place: placeOf(agent, turn) })
}
