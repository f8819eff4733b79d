/**
 * One tool call, from the model's wish to its single result. An approved call is
 * already `executing`, with no attempt yet: what a crash finds there simply starts.
 * `unknown` is what a crash leaves of an effect that may or may not have happened.
 */
import type { ToolResultStatus } from "../../rune/kinds/tool.ts"
import type { Rune, RuneDraft } from "../../rune/Rune.ts"
import { type Writes, write } from "../decide/Drafts.ts"
import type { Machine, Table } from "./Table.ts"

export type ToolStatus =
  | "pending_call"
  | "awaiting_approval"
  | "executing"
  | "completed"
  | "error"
  | "timeout"
  | "cancelled"
  | "denied"
  | "unknown"

export type ToolCommand =
  | ({ readonly _tag: "RequireApproval" } & Writes<"tool.approval_requested">)
  | ({ readonly _tag: "Approve" } & Writes<"tool.approved">)
  | {
      readonly _tag: "Deny"
      readonly denied: Writes<"tool.denied">
      readonly result: Writes<"tool.result">
    }
  | ({ readonly _tag: "ExpireApproval" } & Writes<"tool.result">)
  /** Auto-approved, no approval needed, approved before, or one attempt more. */
  | ({ readonly _tag: "Start" } & Writes<"tool.started">)
  | ({ readonly _tag: "Progress" } & Writes<"tool.progress">)
  | ({ readonly _tag: "Succeed" } & Writes<"tool.result">)
  /** Also what a call gets that cannot run at all: unknown tool, broken arguments. */
  | ({ readonly _tag: "Fail" } & Writes<"tool.result">)
  | ({ readonly _tag: "TimeOut" } & Writes<"tool.result">)
  | ({ readonly _tag: "Cancel" } & Writes<"tool.result">)
  /** A crash came between start and result of something that must not run twice. */
  | ({ readonly _tag: "Lose" } & Writes<"tool.result">)

type Deny = Extract<ToolCommand, { readonly _tag: "Deny" }>
const deny = (command: Deny): ReadonlyArray<RuneDraft> => [
  ...write("tool.denied")(command.denied),
  ...write("tool.result")(command.result)
]

const result = write("tool.result")
const start = { to: "executing", runes: write("tool.started") } as const
const denied = { to: "denied", runes: deny } as const
const cancelled = { to: "cancelled", runes: result } as const
const failed = { to: "error", runes: result } as const

const over = {
  RequireApproval: "refuse",
  Approve: "refuse",
  Deny: "refuse",
  ExpireApproval: "refuse",
  Start: "refuse",
  Progress: "refuse",
  Succeed: "refuse",
  Fail: "refuse",
  TimeOut: "refuse",
  Cancel: "refuse",
  Lose: "refuse"
} as const

const table: Table<ToolStatus, ToolCommand> = {
  pending_call: {
    RequireApproval: { to: "awaiting_approval", runes: write("tool.approval_requested") },
    Approve: "refuse",
    Deny: denied,
    ExpireApproval: "refuse",
    Start: start,
    Progress: "refuse",
    Succeed: "refuse",
    Fail: failed,
    TimeOut: "refuse",
    Cancel: cancelled,
    Lose: "refuse"
  },
  awaiting_approval: {
    RequireApproval: "refuse",
    Approve: { to: "executing", runes: write("tool.approved") },
    Deny: denied,
    ExpireApproval: { to: "timeout", runes: result },
    Start: "refuse",
    Progress: "refuse",
    Succeed: "refuse",
    Fail: "refuse",
    TimeOut: "refuse",
    Cancel: cancelled,
    Lose: "refuse"
  },
  executing: {
    RequireApproval: "refuse",
    Approve: "refuse",
    Deny: "refuse",
    ExpireApproval: "refuse",
    Start: start,
    Progress: { to: "executing", runes: write("tool.progress") },
    Succeed: { to: "completed", runes: result },
    Fail: failed,
    TimeOut: { to: "timeout", runes: result },
    Cancel: cancelled,
    Lose: { to: "unknown", runes: result }
  },
  completed: over,
  error: over,
  timeout: over,
  cancelled: over,
  denied: over,
  unknown: over
}

export const tool: Machine<ToolStatus, ToolCommand> = {
  name: "Tool",
  initial: "pending_call",
  terminal: ["completed", "error", "timeout", "cancelled", "denied", "unknown"],
  table
}

/** The terminal status that a result of each kind means. */
export const statusOfResult: Readonly<Record<ToolResultStatus, ToolStatus>> = {
  success: "completed",
  error: "error",
  timeout: "timeout",
  cancelled: "cancelled",
  denied: "denied",
  unknown: "unknown",
  sandbox_violation: "error"
}

/** Where a rune of this call leaves it. */
export const toolLands = (from: ToolStatus, rune: Rune): ToolStatus => {
  switch (rune.kind) {
    case "tool.call":
      return "pending_call"
    case "tool.approval_requested":
      return "awaiting_approval"
    case "tool.approved":
    case "tool.started":
      return "executing"
    case "tool.result":
      return statusOfResult[rune.payload.status]
    default:
      return from
  }
}
