// What hooks are told on their standard input, in both forms. Arguments and results that are too long are left out, and
// said to be, so that no hook is handed more than it can be expected to read.
import type { CallState, ConversationState, HookState } from "../machine/State.ts"
import type { AgentId } from "../rune/Ids.ts"
import { claudeInputOf, claudeNameOf } from "./ClaudeNames.ts"
import type { HookEvent, HookScene } from "./Definition.ts"
import { hookLimits } from "./HookLimits.ts"

const fitted = (value: unknown): unknown => {
  const text = JSON.stringify(value) ?? "null"
  return text.length <= hookLimits.inputCharsMax ? value : { left_out: `${text.length} characters of JSON` }
}

const runOf = (call: CallState) => ({
  call_id: call.call_id,
  tool_name: call.tool_name,
  mutating: call.mutating,
  status: call.result?.status ?? "unknown",
  attempt: call.attempt,
  duration_ms: call.duration_ms,
  arguments: fitted(call.arguments)
})

/** For a hook of a batch: the runs of the batch, in the order in which the model asked for them. */
export const batchInput = (
  state: ConversationState,
  hook: HookState,
  batch: ReadonlyArray<CallState>,
  agentId: AgentId
) => ({
  hook_event_name: "PostTools",
  hook_name: hook.hook_name,
  hook_run_id: hook.hook_run_id,
  attempt: hook.attempt,
  conversation_id: state.conversation_id,
  agent_id: agentId,
  tool_runs: fitted(batch.map(runOf))
})

const modes: Readonly<Record<string, string>> = { read_only: "plan", auto: "default", full_access: "bypassPermissions" }

/** What every event tells. There is no transcript file here: the log is read through the server. */
export const eventInput = (state: HookScene, event: HookEvent, more: object): Readonly<Record<string, unknown>> => ({
  session_id: state.conversation_id,
  transcript_path: "",
  cwd: state.session.config.workspace ?? "",
  permission_mode: modes[state.session.config.policy?.mode ?? "auto"],
  hook_event_name: event,
  ...more
})

export const callInput = (call: CallState, workspace: string) => ({
  tool_name: claudeNameOf(call.tool_name, call.provenance),
  echs_tool_name: call.tool_name,
  tool_input: fitted(claudeInputOf(call, workspace)),
  tool_use_id: call.call_id
})

export const resultInput = (call: CallState) => ({
  tool_response: fitted({
    success: call.result?.status === "success",
    status: call.result?.status ?? "unknown",
    ...(call.result?.output === undefined ? {} : { output: call.result.output }),
    ...(call.result?.error === undefined ? {} : { error: call.result.error.message })
  }),
  duration_ms: call.duration_ms
})
