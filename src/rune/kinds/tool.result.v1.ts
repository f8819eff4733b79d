/**
 * Version 1 of `tool.result`: the error was free text, so a reader had to match on
 * words to tell a missing file from a crash. Version 2 gives it a code.
 */
import * as Schema from "effect/Schema"
import { CallId } from "../Ids.ts"
import { Count } from "./shared.ts"
import { ToolResultStatus } from "./tool.ts"

export const ToolResultV1 = Schema.Struct({
  call_id: CallId,
  status: ToolResultStatus,
  output: Schema.optionalKey(Schema.String),
  error: Schema.optionalKey(Schema.String),
  duration_ms: Count
})
export type ToolResultV1 = typeof ToolResultV1.Type
