/**
 * One turn of one agent: an input, model calls, tool batches, post-tool hooks, and
 * exactly one terminal rune. `processing` is the moment between an answer and what
 * it asks for; `retry_waiting` is an error whose retry is due. `idle` is the empty
 * slot: a finished turn returns to it without a rune.
 */
import type { Rune, RuneDraft } from "../../rune/Rune.ts"
import { type Writes, write } from "../decide/Drafts.ts"
import { type Machine, silent, type Table } from "./Table.ts"

export type TurnStatus =
  | "idle"
  | "streaming"
  | "processing"
  | "tool_executing"
  | "hooks_running"
  | "retry_waiting"
  | "completed"
  | "interrupted"
  | "error"

/** The runes of a batch of calls: who was called, then every call. */
interface CallBatch {
  readonly received: Writes<"turn.tool_calls_received">
  readonly calls: ReadonlyArray<Writes<"tool.call">>
}

export type TurnCommand =
  | ({ readonly _tag: "Start" } & Writes<"turn.started">)
  /** A person has a call of an earlier turn run again, then its hooks and the model follow. */
  | ({ readonly _tag: "StartWithCalls"; readonly started: Writes<"turn.started"> } & CallBatch)
  /** A person has the hooks of an earlier turn run again, from the one that failed on. */
  | {
      readonly _tag: "StartWithHooks"
      readonly started: Writes<"turn.started">
      readonly finished: Writes<"turn.tools_finished">
    }
  | ({ readonly _tag: "RequestModel" } & Writes<"turn.model_requested">)
  | ({ readonly _tag: "AppendText" } & Writes<"turn.assistant_delta">)
  | ({ readonly _tag: "AppendReasoning" } & Writes<"turn.reasoning_delta">)
  /** The answer and the calls it asks for, in one batch. */
  | ({ readonly _tag: "RespondWithCalls"; readonly final: Writes<"turn.assistant_final"> } & CallBatch)
  /** The answer, and with it the end. */
  | {
      readonly _tag: "RespondAndComplete"
      readonly final: Writes<"turn.assistant_final">
      readonly completed: Writes<"turn.completed">
    }
  /** The stream is complete; what the answer asks for is decided next. */
  | ({ readonly _tag: "ReceiveResponse" } & Writes<"turn.assistant_final">)
  | ({ readonly _tag: "ReceiveToolCalls" } & CallBatch)
  | ({ readonly _tag: "Complete" } & Writes<"turn.completed">)
  /** The batch is done and nothing it changed wants a hook: on to the next model call. */
  | ({ readonly _tag: "FinishTools" } & Writes<"turn.tools_finished">)
  /** The batch is done, it changed something, and hooks wait for that. */
  | ({ readonly _tag: "FinishToolsWithHooks" } & Writes<"turn.tools_finished">)
  /** The batch is done and ends the turn: no more calls are wanted. */
  | {
      readonly _tag: "FinishToolsAndComplete"
      readonly finished: Writes<"turn.tools_finished">
      readonly completed: Writes<"turn.completed">
    }
  | ({ readonly _tag: "FinishHooks" } & Writes<"turn.hooks_finished">)
  /** The hooks ran again for a batch that the model has answered already. */
  | {
      readonly _tag: "FinishHooksAndComplete"
      readonly finished: Writes<"turn.hooks_finished">
      readonly completed: Writes<"turn.completed">
    }
  | ({ readonly _tag: "ScheduleRetry" } & Writes<"turn.retry_scheduled">)
  | ({ readonly _tag: "StartLlmRetry" } & Writes<"turn.retry_started">)
  | ({ readonly _tag: "StartToolRetry" } & Writes<"turn.retry_started">)
  | ({ readonly _tag: "StartHookRetry" } & Writes<"turn.retry_started">)
  | ({ readonly _tag: "Interrupt" } & Writes<"turn.interrupted">)
  /** New input takes over: at once while the model speaks, at the batch boundary while tools run. */
  | ({ readonly _tag: "Steer" } & Writes<"turn.interrupted">)
  | ({ readonly _tag: "Fail" } & Writes<"turn.error">)
  | ({ readonly _tag: "Compact" } & Writes<"turn.compacted">)
  | { readonly _tag: "Finalise" }

const callBatch = (command: CallBatch): ReadonlyArray<RuneDraft> => [
  ...write("turn.tool_calls_received")(command.received),
  ...command.calls.flatMap(write("tool.call"))
]

type Responds<Tag extends string> = Extract<TurnCommand, { readonly _tag: Tag }>
const respondWithCalls = (command: Responds<"RespondWithCalls">): ReadonlyArray<RuneDraft> => [
  ...write("turn.assistant_final")(command.final),
  ...callBatch(command)
]
const respondAndComplete = (command: Responds<"RespondAndComplete">): ReadonlyArray<RuneDraft> => [
  ...write("turn.assistant_final")(command.final),
  ...write("turn.completed")(command.completed)
]

type FinishAndComplete = Extract<TurnCommand, { readonly _tag: "FinishToolsAndComplete" }>
const finishAndComplete = (command: FinishAndComplete): ReadonlyArray<RuneDraft> => [
  ...write("turn.tools_finished")(command.finished),
  ...write("turn.completed")(command.completed)
]

type HooksAndComplete = Extract<TurnCommand, { readonly _tag: "FinishHooksAndComplete" }>
const hooksAndComplete = (command: HooksAndComplete): ReadonlyArray<RuneDraft> => [
  ...write("turn.hooks_finished")(command.finished),
  ...write("turn.completed")(command.completed)
]

type StartsWith<Tag extends string> = Extract<TurnCommand, { readonly _tag: Tag }>
const startWithCalls = (command: StartsWith<"StartWithCalls">): ReadonlyArray<RuneDraft> => [
  ...write("turn.started")(command.started),
  ...callBatch(command)
]
const startWithHooks = (command: StartsWith<"StartWithHooks">): ReadonlyArray<RuneDraft> => [
  ...write("turn.started")(command.started),
  ...write("turn.tools_finished")(command.finished)
]

const receiveCalls = { to: "tool_executing", runes: callBatch } as const
const completed = { to: "completed", runes: write("turn.completed") } as const
const interrupted = { to: "interrupted", runes: write("turn.interrupted") } as const
const failed = { to: "error", runes: write("turn.error") } as const
const retryLater = { to: "retry_waiting", runes: write("turn.retry_scheduled") } as const
const retryNow = write("turn.retry_started")
const finalised = { to: "idle", runes: silent } as const

const table: Table<TurnStatus, TurnCommand> = {
  idle: {
    Start: { to: "streaming", runes: write("turn.started") },
    StartWithCalls: { to: "tool_executing", runes: startWithCalls },
    StartWithHooks: { to: "hooks_running", runes: startWithHooks },
    RequestModel: "refuse",
    AppendText: "refuse",
    AppendReasoning: "refuse",
    RespondWithCalls: "refuse",
    RespondAndComplete: "refuse",
    ReceiveResponse: "refuse",
    ReceiveToolCalls: "refuse",
    Complete: "refuse",
    FinishTools: "refuse",
    FinishToolsWithHooks: "refuse",
    FinishToolsAndComplete: "refuse",
    FinishHooks: "refuse",
    FinishHooksAndComplete: "refuse",
    ScheduleRetry: "refuse",
    StartLlmRetry: "refuse",
    StartToolRetry: "refuse",
    StartHookRetry: "refuse",
    Interrupt: "refuse",
    Steer: "refuse",
    Fail: "refuse",
    Compact: { to: "idle", runes: write("turn.compacted") },
    Finalise: "refuse"
  },
  streaming: {
    Start: "refuse",
    StartWithCalls: "refuse",
    StartWithHooks: "refuse",
    RequestModel: { to: "streaming", runes: write("turn.model_requested") },
    AppendText: { to: "streaming", runes: write("turn.assistant_delta") },
    AppendReasoning: { to: "streaming", runes: write("turn.reasoning_delta") },
    RespondWithCalls: { to: "tool_executing", runes: respondWithCalls },
    RespondAndComplete: { to: "completed", runes: respondAndComplete },
    ReceiveResponse: { to: "processing", runes: write("turn.assistant_final") },
    ReceiveToolCalls: "refuse",
    Complete: "refuse",
    FinishTools: "refuse",
    FinishToolsWithHooks: "refuse",
    FinishToolsAndComplete: "refuse",
    FinishHooks: "refuse",
    FinishHooksAndComplete: "refuse",
    ScheduleRetry: retryLater,
    StartLlmRetry: "refuse",
    StartToolRetry: "refuse",
    StartHookRetry: "refuse",
    Interrupt: interrupted,
    Steer: interrupted,
    Fail: failed,
    Compact: { to: "streaming", runes: write("turn.compacted") },
    Finalise: "refuse"
  },
  processing: {
    Start: "refuse",
    StartWithCalls: "refuse",
    StartWithHooks: "refuse",
    RequestModel: "refuse",
    AppendText: "refuse",
    AppendReasoning: "refuse",
    RespondWithCalls: "refuse",
    RespondAndComplete: "refuse",
    ReceiveResponse: "refuse",
    ReceiveToolCalls: receiveCalls,
    Complete: completed,
    FinishTools: "refuse",
    FinishToolsWithHooks: "refuse",
    FinishToolsAndComplete: "refuse",
    FinishHooks: "refuse",
    FinishHooksAndComplete: "refuse",
    ScheduleRetry: "refuse",
    StartLlmRetry: "refuse",
    StartToolRetry: "refuse",
    StartHookRetry: "refuse",
    Interrupt: interrupted,
    Steer: interrupted,
    Fail: failed,
    Compact: "refuse",
    Finalise: "refuse"
  },
  tool_executing: {
    Start: "refuse",
    StartWithCalls: "refuse",
    StartWithHooks: "refuse",
    RequestModel: "refuse",
    AppendText: "refuse",
    AppendReasoning: "refuse",
    RespondWithCalls: "refuse",
    RespondAndComplete: "refuse",
    ReceiveResponse: "refuse",
    ReceiveToolCalls: "refuse",
    Complete: "refuse",
    FinishTools: { to: "streaming", runes: write("turn.tools_finished") },
    FinishToolsWithHooks: { to: "hooks_running", runes: write("turn.tools_finished") },
    FinishToolsAndComplete: { to: "completed", runes: finishAndComplete },
    FinishHooks: "refuse",
    FinishHooksAndComplete: "refuse",
    ScheduleRetry: retryLater,
    StartLlmRetry: "refuse",
    StartToolRetry: "refuse",
    StartHookRetry: "refuse",
    Interrupt: interrupted,
    Steer: "refuse",
    Fail: failed,
    Compact: "refuse",
    Finalise: "refuse"
  },
  hooks_running: {
    Start: "refuse",
    StartWithCalls: "refuse",
    StartWithHooks: "refuse",
    RequestModel: "refuse",
    AppendText: "refuse",
    AppendReasoning: "refuse",
    RespondWithCalls: "refuse",
    RespondAndComplete: "refuse",
    ReceiveResponse: "refuse",
    ReceiveToolCalls: "refuse",
    Complete: "refuse",
    FinishTools: "refuse",
    FinishToolsWithHooks: "refuse",
    FinishToolsAndComplete: "refuse",
    FinishHooks: { to: "streaming", runes: write("turn.hooks_finished") },
    FinishHooksAndComplete: { to: "completed", runes: hooksAndComplete },
    ScheduleRetry: retryLater,
    StartLlmRetry: "refuse",
    StartToolRetry: "refuse",
    StartHookRetry: "refuse",
    Interrupt: interrupted,
    Steer: "refuse",
    Fail: failed,
    Compact: "refuse",
    Finalise: "refuse"
  },
  retry_waiting: {
    Start: "refuse",
    StartWithCalls: "refuse",
    StartWithHooks: "refuse",
    RequestModel: "refuse",
    AppendText: "refuse",
    AppendReasoning: "refuse",
    RespondWithCalls: "refuse",
    RespondAndComplete: "refuse",
    ReceiveResponse: "refuse",
    ReceiveToolCalls: "refuse",
    Complete: "refuse",
    FinishTools: "refuse",
    FinishToolsWithHooks: "refuse",
    FinishToolsAndComplete: "refuse",
    FinishHooks: "refuse",
    FinishHooksAndComplete: "refuse",
    ScheduleRetry: "refuse",
    StartLlmRetry: { to: "streaming", runes: retryNow },
    StartToolRetry: { to: "tool_executing", runes: retryNow },
    StartHookRetry: { to: "hooks_running", runes: retryNow },
    Interrupt: interrupted,
    Steer: interrupted,
    Fail: failed,
    Compact: "refuse",
    Finalise: "refuse"
  },
  completed: {
    Start: "refuse",
    StartWithCalls: "refuse",
    StartWithHooks: "refuse",
    RequestModel: "refuse",
    AppendText: "refuse",
    AppendReasoning: "refuse",
    RespondWithCalls: "refuse",
    RespondAndComplete: "refuse",
    ReceiveResponse: "refuse",
    ReceiveToolCalls: "refuse",
    Complete: "refuse",
    FinishTools: "refuse",
    FinishToolsWithHooks: "refuse",
    FinishToolsAndComplete: "refuse",
    FinishHooks: "refuse",
    FinishHooksAndComplete: "refuse",
    ScheduleRetry: "refuse",
    StartLlmRetry: "refuse",
    StartToolRetry: "refuse",
    StartHookRetry: "refuse",
    Interrupt: "refuse",
    Steer: "refuse",
    Fail: "refuse",
    Compact: "refuse",
    Finalise: finalised
  },
  interrupted: {
    Start: "refuse",
    StartWithCalls: "refuse",
    StartWithHooks: "refuse",
    RequestModel: "refuse",
    AppendText: "refuse",
    AppendReasoning: "refuse",
    RespondWithCalls: "refuse",
    RespondAndComplete: "refuse",
    ReceiveResponse: "refuse",
    ReceiveToolCalls: "refuse",
    Complete: "refuse",
    FinishTools: "refuse",
    FinishToolsWithHooks: "refuse",
    FinishToolsAndComplete: "refuse",
    FinishHooks: "refuse",
    FinishHooksAndComplete: "refuse",
    ScheduleRetry: "refuse",
    StartLlmRetry: "refuse",
    StartToolRetry: "refuse",
    StartHookRetry: "refuse",
    Interrupt: "refuse",
    Steer: "refuse",
    Fail: "refuse",
    Compact: "refuse",
    Finalise: finalised
  },
  error: {
    Start: "refuse",
    StartWithCalls: "refuse",
    StartWithHooks: "refuse",
    RequestModel: "refuse",
    AppendText: "refuse",
    AppendReasoning: "refuse",
    RespondWithCalls: "refuse",
    RespondAndComplete: "refuse",
    ReceiveResponse: "refuse",
    ReceiveToolCalls: "refuse",
    Complete: "refuse",
    FinishTools: "refuse",
    FinishToolsWithHooks: "refuse",
    FinishToolsAndComplete: "refuse",
    FinishHooks: "refuse",
    FinishHooksAndComplete: "refuse",
    ScheduleRetry: "refuse",
    StartLlmRetry: "refuse",
    StartToolRetry: "refuse",
    StartHookRetry: "refuse",
    Interrupt: "refuse",
    Steer: "refuse",
    Fail: "refuse",
    Compact: "refuse",
    Finalise: finalised
  }
}

export const turn: Machine<TurnStatus, TurnCommand> = {
  name: "Turn",
  initial: "idle",
  terminal: ["completed", "interrupted", "error"],
  table
}

const retryLands = { llm: "streaming", tool: "tool_executing", hook: "hooks_running" } as const

/** Where a rune of this turn leaves it. */
export const turnLands = (from: TurnStatus, rune: Rune): TurnStatus => {
  switch (rune.kind) {
    case "turn.started":
      return retryLands[rune.payload.target?.type ?? "llm"]
    case "turn.hooks_finished":
      return "streaming"
    case "turn.assistant_final":
      return "processing"
    case "turn.tool_calls_received":
      return "tool_executing"
    case "turn.tools_finished":
      return (rune.payload.hooks ?? []).length > 0 ? "hooks_running" : "streaming"
    case "turn.retry_scheduled":
      return "retry_waiting"
    case "turn.retry_started":
      return retryLands[rune.payload.target.type]
    case "turn.completed":
      return "completed"
    case "turn.interrupted":
      return "interrupted"
    case "turn.error":
      return "error"
    default:
      return from
  }
}
