/** Runes of post-tool hooks: they run one at a time, after a batch that changed something. */
import * as Schema from "effect/Schema"
import { CallId, HookRunId } from "../Ids.ts"
import { defineKind } from "../KindDefinition.ts"
import { Count, ErrorInfo, Name, Ordinal } from "./shared.ts"

export const HookStatus = Schema.Literals(["succeeded", "failed", "canceled"])
export type HookStatus = typeof HookStatus.Type

export const hookKinds = [
  defineKind("hook.started", {
    meaning: "A post-tool hook is about to run; written before it starts.",
    views: ["state_events", "trace"],
    payload: Schema.Struct({
      hook_run_id: HookRunId,
      hook_name: Name,
      call_ids: Schema.Array(CallId),
      attempt: Ordinal
    })
  }),
  defineKind("hook.completed", {
    meaning: "A post-tool hook ended.",
    views: ["state_events", "trace"],
    payload: Schema.Struct({
      hook_run_id: HookRunId,
      status: HookStatus,
      exit_code: Schema.optionalKey(Schema.Int),
      duration_ms: Count,
      output: Schema.optionalKey(Schema.String),
      error: Schema.optionalKey(ErrorInfo)
    }),
    runeClass: "terminal"
  })
] as const
