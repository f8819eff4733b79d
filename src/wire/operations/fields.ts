// Fields that several operations take or answer with.
import * as Schema from "effect/Schema"
import { ConversationId } from "../../rune/Ids.ts"
import { Budget, Count, JsonValue, LimitOverrides, PermissionPolicy } from "../../rune/kinds/shared.ts"

export const optional: typeof Schema.optionalKey = Schema.optionalKey

export const conversation = { conversation_id: ConversationId }
export const because = { ...conversation, reason: optional(Schema.String) }

export const changed = { event_id: Count }

export const createFields = {
  title: optional(Schema.String),
  workspace: optional(Schema.String),
  /** A home, a directory of the system or the like is meant to be the workspace. */
  unsafe_workspace: optional(Schema.Boolean),
  model: optional(Schema.String),
  instructions: optional(Schema.String),
  policy: optional(PermissionPolicy),
  budget: optional(Budget),
  /** Times and retries; an approval that may take for ever has `approval_timeout_ms` 0. */
  limits: optional(LimitOverrides),
  tools: optional(Schema.Array(JsonValue)),
  labels: optional(Schema.Record(Schema.String, Schema.String))
}
