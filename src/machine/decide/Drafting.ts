/**
 * The working sheet of one decision: table steps are taken one after another, their
 * drafts add up, and the first refusal ends it. Nothing is written if anything is
 * refused.
 */
import type { AgentId, TurnId } from "../../rune/Ids.ts"
import type { RuneDraft } from "../../rune/Rune.ts"
import type { AgentState, ConversationState, TurnState } from "../State.ts"
import { decideIn, type Machine, type Tagged } from "../table/Table.ts"
import type { Place } from "./Drafts.ts"

export type RefusalCode =
  | "not_found"
  | "invalid_state"
  | "already_decided"
  | "idempotency_conflict"
  | "limit_exceeded"
  | "bad_request"

export interface Refusal {
  readonly code: RefusalCode
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
}

/** Facts of the moment that deciding may use and must not fetch itself. */
export interface Moment {
  readonly at_ms: number
}

export class Drafting {
  readonly state: ConversationState
  readonly atMs: number
  readonly drafts: Array<RuneDraft> = []
  refusal: Refusal | undefined

  constructor(state: ConversationState, moment: Moment) {
    this.state = state
    this.atMs = moment.at_ms
  }

  refuse(code: RefusalCode, message: string, data?: Readonly<Record<string, unknown>>): undefined {
    this.refusal ??= data === undefined ? { code, message } : { code, message, data }
    return undefined
  }

  /** Takes one step of one machine; returns where it lands. */
  step<Status extends string, Command extends Tagged>(
    machine: Machine<Status, Command>,
    status: Status,
    command: Command
  ): Status {
    const decision = decideIn(machine, status, command)
    if (decision._tag === "Accepted") {
      for (const rune of decision.runes) this.drafts.push(rune)
      return decision.to
    }
    this.refuse("invalid_state", `${machine.name} is ${status}: ${command._tag} does not apply`, { state: status })
    return status
  }

  /** Asks a machine whether the step applies, and writes nothing. */
  guard<Status extends string, Command extends Tagged>(
    machine: Machine<Status, Command>,
    status: Status,
    command: Command
  ): undefined {
    const written = this.drafts.length
    this.step(machine, status, command)
    this.drafts.length = written
  }

  write(rune: RuneDraft): undefined {
    this.drafts.push(rune)
  }
}

/** One decider for each command of a family; leaving one out does not compile. */
export type Deciders<Command extends Tagged> = {
  readonly [Tag in Command["_tag"]]: (sheet: Drafting, command: Extract<Command, { readonly _tag: Tag }>) => undefined
}

/** The envelope fields of runes that belong to an agent's running turn. */
export const placeOf = (agent: AgentState, turn: TurnState): Place & { agent_id: AgentId; turn_id: TurnId } => ({
  agent_id: agent.agent_id,
  turn_id: turn.turn_id
})
