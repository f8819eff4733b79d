/**
 * Runes of one tool call, from the model's wish to its single result. The current
 * `tool.result` is version 2: its error is typed; `tool.result.v1.ts` keeps the
 * first shape for stored runes.
 */
import * as Schema from "effect/Schema"
import { CallId, Sha256Hex } from "../Ids.ts"
import { defineKind } from "../KindDefinition.ts"
import { Attachment, BlobRef, Count, EffectClass, ErrorInfo, JsonValue, Name, Ordinal } from "./shared.ts"

export const ToolResultStatus = Schema.Literals([
  "success",
  "error",
  "timeout",
  "cancelled",
  "denied",
  "unknown",
  "sandbox_violation"
])
export type ToolResultStatus = typeof ToolResultStatus.Type

export const ApprovalScope = Schema.Literals(["once", "session", "rule"])
export type ApprovalScope = typeof ApprovalScope.Type

/** What a person is shown before deciding: exactly what would run, and with which reach. */
export const ShownAs = Schema.Struct({
  title: Schema.String,
  detail: Schema.optionalKey(Schema.String),
  diff: Schema.optionalKey(Schema.String),
  workspace: Schema.optionalKey(Schema.String),
  roots: Schema.optionalKey(Schema.Array(Schema.String)),
  network: Schema.optionalKey(Schema.Boolean),
  /** Where a tool that is not built in comes from. */
  origin: Schema.optionalKey(Schema.String),
  /** Hash of what that tool said it is: the approval is for this one. */
  definition: Schema.optionalKey(Schema.String)
})
export type ShownAs = typeof ShownAs.Type

export const SandboxInfo = Schema.Struct({
  level: Schema.String,
  network: Schema.optionalKey(Schema.Boolean),
  roots: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Why the policy let it run without asking anybody. */
  allowed_by: Schema.optionalKey(Schema.String)
})
export type SandboxInfo = typeof SandboxInfo.Type

/** What allowing it for longer would be written down as: for this conversation, and for good. */
export const Learns = Schema.Struct({
  session: Schema.optionalKey(JsonValue),
  rule: Schema.optionalKey(JsonValue)
})
export type Learns = typeof Learns.Type

export const ProgressStream = Schema.Literals(["stdout", "stderr", "status"])
export type ProgressStream = typeof ProgressStream.Type

export const toolKinds = [
  defineKind("tool.call", {
    meaning: "The model asked for a tool call.",
    views: ["state_events", "agent_events", "trace"],
    payload: Schema.Struct({
      call_id: CallId,
      tool_name: Schema.String,
      arguments: JsonValue,
      arguments_hash: Sha256Hex,
      /** What the model wrote when it was not a JSON object, cut to a limit; `arguments` is then empty. */
      arguments_text: Schema.optionalKey(Schema.String),
      effect_class: EffectClass,
      mutating: Schema.Boolean,
      timeout_ms: Schema.optionalKey(Ordinal),
      provider_call_id: Schema.optionalKey(Schema.String),
      provenance: Schema.optionalKey(Schema.String),
      /** Whose tool it is, where a client runs it: nobody else answers for the call, also after a restart. */
      origin: Schema.optionalKey(Schema.String)
    })
  }),
  defineKind("tool.approval_requested", {
    meaning: "A call waits for approval, with exactly what would run.",
    views: ["state_events", "agent_events"],
    payload: Schema.Struct({
      call_id: CallId,
      policy_reason: Schema.String,
      shown_as: ShownAs,
      expires_ms: Schema.optionalKey(Count),
      choices: Schema.optionalKey(Schema.Array(ApprovalScope)),
      learns: Schema.optionalKey(Learns),
      /** The JSON Schema that the answer to a question has to fit. */
      answer_schema: Schema.optionalKey(JsonValue)
    })
  }),
  defineKind("tool.approved", {
    meaning: "Somebody allowed a call, with the scope of the permission.",
    views: ["state_events", "agent_events"],
    payload: Schema.Struct({
      call_id: CallId,
      approver: Name,
      channel: Schema.String,
      scope: ApprovalScope,
      expires_ms: Schema.optionalKey(Count),
      arguments: Schema.optionalKey(JsonValue),
      arguments_hash: Schema.optionalKey(Sha256Hex),
      rule: Schema.optionalKey(JsonValue)
    })
  }),
  defineKind("tool.denied", {
    meaning: "Somebody refused a call.",
    views: ["state_events"],
    payload: Schema.Struct({
      call_id: CallId,
      approver: Name,
      reason: Schema.String,
      channel: Schema.optionalKey(Schema.String)
    })
  }),
  defineKind("tool.started", {
    meaning: "A call is about to run; written before it starts.",
    views: ["state_events", "agent_events", "trace"],
    payload: Schema.Struct({ call_id: CallId, attempt: Ordinal, sandbox: SandboxInfo })
  }),
  defineKind("tool.progress", {
    meaning: "Output of a running call; the result replaces it.",
    payload: Schema.Struct({ call_id: CallId, stream: ProgressStream, chunk: Schema.String }),
    runeClass: "delta",
    scope: "call"
  }),
  defineKind("tool.result", {
    meaning: "The single outcome of a call.",
    views: ["state_events", "agent_events", "trace"],
    version: 2,
    payload: Schema.Struct({
      call_id: CallId,
      status: ToolResultStatus,
      output: Schema.optionalKey(Schema.String),
      output_blob: Schema.optionalKey(BlobRef),
      attachments: Schema.optionalKey(Schema.Array(Attachment)),
      error: Schema.optionalKey(ErrorInfo),
      exit_code: Schema.optionalKey(Schema.Int),
      duration_ms: Count,
      /** Of what a client answered, before anything of it was masked or shortened: the same answer again is known by it. */
      answer_sha256: Schema.optionalKey(Sha256Hex)
    }),
    runeClass: "terminal",
    scope: "call",
    supersedes: ["tool.progress"]
  })
] as const
