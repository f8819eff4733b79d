/**
 * One post-tool hook of one batch: queued, running, succeeded, failed, canceled.
 * Hooks run one at a time; a failed one may start again when its policy says so.
 */
import type { Rune } from "../../rune/Rune.ts"
import { type Writes, write } from "../decide/Drafts.ts"
import type { Machine, Table } from "./Table.ts"

export type HookRunStatus = "queued" | "running" | "succeeded" | "failed" | "canceled"

export type HookCommand =
  | ({ readonly _tag: "Start" } & Writes<"hook.started">)
  | ({ readonly _tag: "Succeed" } & Writes<"hook.completed">)
  | ({ readonly _tag: "Fail" } & Writes<"hook.completed">)
  | ({ readonly _tag: "Cancel" } & Writes<"hook.completed">)

const start = { to: "running", runes: write("hook.started") } as const
const done = write("hook.completed")
const over = { Start: "refuse", Succeed: "refuse", Fail: "refuse", Cancel: "refuse" } as const

const table: Table<HookRunStatus, HookCommand> = {
  // A hook that never ran leaves no rune: the end of its turn is its end.
  queued: { Start: start, Succeed: "refuse", Fail: "refuse", Cancel: "refuse" },
  running: {
    // A crash of the server leaves a running hook behind; starting it again is one attempt more.
    Start: start,
    Succeed: { to: "succeeded", runes: done },
    Fail: { to: "failed", runes: done },
    Cancel: { to: "canceled", runes: done }
  },
  succeeded: over,
  failed: { Start: start, Succeed: "refuse", Fail: "refuse", Cancel: "refuse" },
  canceled: over
}

export const hook: Machine<HookRunStatus, HookCommand> = {
  name: "Hook",
  initial: "queued",
  terminal: ["succeeded", "canceled"],
  table
}

/** Where a rune of this hook run leaves it. */
export const hookLands = (from: HookRunStatus, rune: Rune): HookRunStatus => {
  if (rune.kind === "hook.started") return "running"
  return rune.kind === "hook.completed" ? rune.payload.status : from
}
