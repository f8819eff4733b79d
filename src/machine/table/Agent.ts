/**
 * The life of one agent inside a conversation: spawning, idle, running_turn,
 * terminated, failed. At most one turn at a time; only force ends an agent that is
 * in the middle of one.
 */
import type { Rune, RuneDraft } from "../../rune/Rune.ts"
import { type Writes, write } from "../decide/Drafts.ts"
import type { Machine, Table } from "./Table.ts"

export type AgentStatus = "spawning" | "idle" | "running_turn" | "terminated" | "failed"

export type AgentCommand =
  | ({ readonly _tag: "CompleteInit" } & Writes<"agent.ready">)
  | ({ readonly _tag: "FailInit" } & Writes<"agent.failed">)
  | ({ readonly _tag: "AssignTurn" } & Writes<"turn.started">)
  | ({ readonly _tag: "EndTurnCompleted" } & Writes<"turn.completed">)
  | ({ readonly _tag: "EndTurnInterrupted" } & Writes<"turn.interrupted">)
  | ({ readonly _tag: "EndTurnError" } & Writes<"turn.error">)
  /** A kill, or a parent that closed. */
  | ({ readonly _tag: "Kill" } & Writes<"agent.terminated">)
  /** The turn has to be ended first; the batch that kills says so before this rune. */
  | ({ readonly _tag: "ForceKill" } & Writes<"agent.terminated">)
  | ({ readonly _tag: "ReportExhaustion" } & Writes<"agent.budget_exhausted">)
  | {
      readonly _tag: "TerminateExhausted"
      readonly exhausted: Writes<"agent.budget_exhausted">
      readonly terminated: Writes<"agent.terminated">
    }
  | ({ readonly _tag: "Deliver" } & Writes<"agent.message">)

const terminated = { to: "terminated", runes: write("agent.terminated") } as const
const report = write("agent.budget_exhausted")
const deliver = write("agent.message")

type Exhausted = Extract<AgentCommand, { readonly _tag: "TerminateExhausted" }>
const terminateExhausted = (command: Exhausted): ReadonlyArray<RuneDraft> => [
  ...report(command.exhausted),
  ...write("agent.terminated")(command.terminated)
]

const over = {
  CompleteInit: "refuse",
  FailInit: "refuse",
  AssignTurn: "refuse",
  EndTurnCompleted: "refuse",
  EndTurnInterrupted: "refuse",
  EndTurnError: "refuse",
  Kill: "refuse",
  ForceKill: "refuse",
  ReportExhaustion: "refuse",
  TerminateExhausted: "refuse",
  Deliver: "refuse"
} as const

const table: Table<AgentStatus, AgentCommand> = {
  spawning: {
    CompleteInit: { to: "idle", runes: write("agent.ready") },
    FailInit: { to: "failed", runes: write("agent.failed") },
    AssignTurn: "refuse",
    EndTurnCompleted: "refuse",
    EndTurnInterrupted: "refuse",
    EndTurnError: "refuse",
    Kill: "refuse",
    ForceKill: terminated,
    ReportExhaustion: "refuse",
    TerminateExhausted: "refuse",
    Deliver: { to: "spawning", runes: deliver }
  },
  idle: {
    CompleteInit: "refuse",
    FailInit: "refuse",
    AssignTurn: { to: "running_turn", runes: write("turn.started") },
    EndTurnCompleted: "refuse",
    EndTurnInterrupted: "refuse",
    EndTurnError: "refuse",
    Kill: terminated,
    ForceKill: terminated,
    ReportExhaustion: { to: "idle", runes: report },
    TerminateExhausted: { to: "terminated", runes: terminateExhausted },
    Deliver: { to: "idle", runes: deliver }
  },
  running_turn: {
    CompleteInit: "refuse",
    FailInit: "refuse",
    AssignTurn: "refuse",
    EndTurnCompleted: { to: "idle", runes: write("turn.completed") },
    EndTurnInterrupted: { to: "idle", runes: write("turn.interrupted") },
    EndTurnError: { to: "idle", runes: write("turn.error") },
    Kill: "refuse",
    ForceKill: terminated,
    ReportExhaustion: { to: "running_turn", runes: report },
    TerminateExhausted: "refuse",
    Deliver: { to: "running_turn", runes: deliver }
  },
  terminated: over,
  failed: over
}

export const agent: Machine<AgentStatus, AgentCommand> = {
  name: "Agent",
  initial: "spawning",
  terminal: ["terminated", "failed"],
  table
}

/** Where a rune of this agent leaves it. */
export const agentLands = (from: AgentStatus, rune: Rune): AgentStatus => {
  switch (rune.kind) {
    case "agent.spawning":
      return "spawning"
    case "agent.ready":
    case "turn.completed":
    case "turn.interrupted":
    case "turn.error":
      return "idle"
    case "turn.started":
      return "running_turn"
    case "agent.failed":
      return "failed"
    case "agent.terminated":
      return "terminated"
    default:
      return from
  }
}
