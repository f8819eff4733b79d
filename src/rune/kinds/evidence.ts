/** Evidence: how a task or a goal is shown to be done. The server runs every check itself; a model only proposes them. */
import * as Schema from "effect/Schema"
import { EventId } from "../Ids.ts"
import { Count, JsonValue, Name, Ordinal } from "./shared.ts"

const optional = Schema.optionalKey
const Argv = Schema.Array(Schema.String)
const Paths = Schema.Array(Name)

export const EvidenceSpec = Schema.Union([
  /** The program exits with this code. */
  Schema.Struct({ type: Schema.Literal("command"), command: Argv, expected_exit: Schema.Int }),
  Schema.Struct({ type: Schema.Literal("file"), path: Name }),
  /** A report that somebody wrote. Only in old logs: a file proves nothing, `tests` is counted from a run of the server. */
  Schema.Struct({ type: Schema.Literal("report"), path: Name, description: optional(Schema.String) }),
  /** The program runs tests, at least `min_tests` of them (1) and none fails: read from its output, or from a file it writes. */
  Schema.Struct({
    type: Schema.Literal("tests"),
    command: Argv,
    report: optional(Name),
    min_tests: optional(Ordinal)
  }),
  /** `start` brings a server up; it then answers this address of the same machine with this status and this text. */
  Schema.Struct({
    type: Schema.Literal("http"),
    start: Argv,
    url: Name,
    status: optional(Schema.Int),
    includes: optional(Schema.String)
  }),
  /** A value in JSON, named by a JSON pointer: in a file, or in what a command prints. */
  Schema.Struct({
    type: Schema.Literal("json"),
    path: optional(Name),
    command: optional(Argv),
    pointer: Schema.String,
    equals: JsonValue
  }),
  /** A number that a command prints (lint problems, type errors, coverage, time) may only fall, or only rise, from where it began. */
  Schema.Struct({
    type: Schema.Literal("delta"),
    name: Name,
    command: Argv,
    /** The number is the first one after the last of these words; without them, the last one that is printed. */
    after: optional(Name),
    may: Schema.Literals(["fall", "rise"]),
    /** How far it may move the other way. */
    tolerance: optional(Schema.Finite)
  }),
  /** How much may change from the state the goal began with. */
  Schema.Struct({
    type: Schema.Literal("diff"),
    max_files: optional(Count),
    max_lines: optional(Count),
    /** Only files that match one of these change. */
    only: optional(Paths)
  }),
  /** No file that matches one of these changes, comes or goes. */
  Schema.Struct({ type: Schema.Literal("unchanged"), paths: Paths })
])
export type EvidenceSpec = typeof EvidenceSpec.Type

/** Whose check it is: one of the plan (where it is left out), the person's, or one that no model sees. */
export const EvidenceOrigin = Schema.Literals(["person", "hidden"])
export type EvidenceOrigin = typeof EvidenceOrigin.Type

export const Evidence = Schema.Struct({
  spec: EvidenceSpec,
  passed: Schema.Boolean,
  detail: optional(Schema.String),
  exit_code: optional(Schema.Int),
  event_ids: optional(Schema.Array(EventId)),
  origin: optional(EvidenceOrigin),
  /** The state of the files it ran on: a git tree, or a hash of their contents. */
  tree: optional(Schema.String),
  /** What was measured. */
  value: optional(Schema.Finite),
  /** It passed before any work was done, so its pass says nothing about the work. */
  was_green: optional(Schema.Boolean),
  /** Files that it names and that workers changed: whoever judges should look at them. */
  suspect: optional(Schema.Array(Schema.String))
})
export type Evidence = typeof Evidence.Type

/** What a person demands of a goal, whatever its plan says. */
export const GoalDemands = {
  evidence: optional(Schema.Array(EvidenceSpec)),
  /** No model sees these commands or their output, only that something failed. */
  hidden_evidence: optional(Schema.Array(EvidenceSpec)),
  /** Paths that no worker may change. */
  protect: optional(Paths)
}

/** Models by role; the conversation's own where a role is left out. */
export const GoalModels = Schema.Struct({
  planner: optional(Name),
  worker: optional(Name),
  critic: optional(Name)
})
export type GoalModels = typeof GoalModels.Type
