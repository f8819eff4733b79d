/**
 * Total transition tables. Every status × command cell is written, `"refuse"`
 * included; leaving one out does not compile. A cell says where it lands and which
 * runes it writes; the landing of those runes, folded, is the same status.
 */
import { valueAt } from "../../rune/Elements.ts"
import type { RuneDraft } from "../../rune/Rune.ts"

export interface Tagged {
  readonly _tag: string
}

export interface Step<Status, Command> {
  readonly to: Status
  readonly runes: (command: Command) => ReadonlyArray<RuneDraft>
}

export type Cell<Status, Command> = "refuse" | Step<Status, Command>

export type Table<Status extends string, Command extends Tagged> = {
  readonly [S in Status]: {
    readonly [Tag in Command["_tag"]]: Cell<Status, Extract<Command, { readonly _tag: Tag }>>
  }
}

export interface Machine<Status extends string, Command extends Tagged> {
  readonly name: string
  readonly initial: Status
  /** Statuses in which the thing's life is over. */
  readonly terminal: ReadonlyArray<Status>
  readonly table: Table<Status, Command>
}

export type Decision<Status extends string> =
  | { readonly _tag: "Accepted"; readonly to: Status; readonly runes: ReadonlyArray<RuneDraft> }
  | { readonly _tag: "Refused"; readonly machine: string; readonly status: Status; readonly command: string }

/** Looks the command up in the table. Pure: the table is the only thing consulted. */
export const decideIn = <Status extends string, Command extends Tagged>(
  machine: Machine<Status, Command>,
  status: Status,
  command: Command
): Decision<Status> => {
  // The one widening: a row is keyed by the tag that `command` carries.
  const row = machine.table[status] as Readonly<Record<string, Cell<Status, Command>>>
  const cell = valueAt(row, command._tag)
  return cell === "refuse"
    ? { _tag: "Refused", machine: machine.name, status, command: command._tag }
    : { _tag: "Accepted", to: cell.to, runes: cell.runes(command) }
}

export const statusesOf = <Status extends string, Command extends Tagged>(
  machine: Machine<Status, Command>
): ReadonlyArray<Status> => Object.keys(machine.table) as Array<Status>

export const commandsOf = <Status extends string, Command extends Tagged>(
  machine: Machine<Status, Command>
): ReadonlyArray<Command["_tag"]> => Object.keys(machine.table[machine.initial])

/** Writes nothing: the transition is internal and shows in no rune of its own. */
export const silent = (): ReadonlyArray<RuneDraft> => []
