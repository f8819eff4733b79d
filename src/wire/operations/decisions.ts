// Operations with which a person answers: approvals, interrupts and retries.
import * as Schema from "effect/Schema"
import { AgentId, CallId, ConversationId, HookRunId, Sha256Hex } from "../../rune/Ids.ts"
import { JsonValue } from "../../rune/kinds/shared.ts"
import { ApprovalScope } from "../../rune/kinds/tool.ts"
import { ApprovalItem, Changed, fromAll } from "../Answers.ts"
import { defineOperation } from "../OperationDefinition.ts"
import { because, changed, conversation, optional } from "./fields.ts"

export const decisionOperations = [
  defineOperation({
    name: "approval.list",
    role: "viewer",
    mutates: false,
    input: { conversation_id: optional(ConversationId) },
    answer: fromAll(ApprovalItem),
    about:
      "Lists waiting approvals: call, arguments and their hash, path of the agent from the root, reason, preview, choices, and the rule that each choice would add."
  }),
  defineOperation({
    name: "approval.approve",
    role: "operator",
    mutates: true,
    input: {
      ...conversation,
      call_id: CallId,
      scope: ApprovalScope,
      arguments: optional(JsonValue),
      arguments_hash: Sha256Hex
    },
    /** `learnt`: whether a permission for good could be written down. */
    answer: Schema.Struct({ ...changed, learnt: optional(Schema.Boolean) }),
    about:
      "Allows a call. `scope` is `once`, `session` or `rule`; `rule` requires an admin. `learnt` is true if the rule was saved."
  }),
  defineOperation({
    name: "approval.deny",
    role: "operator",
    mutates: true,
    input: {
      ...conversation,
      call_id: CallId,
      reason: optional(Schema.String),
      interrupt: optional(Schema.Boolean)
    },
    answer: Changed,
    about: "Refuses a call; with `interrupt`, also stops the turn."
  }),
  defineOperation({
    name: "turn.interrupt",
    role: "operator",
    mutates: true,
    input: { ...because, agent_id: optional(AgentId) },
    answer: Changed,
    about: "Stops the turn of the root agent, or of the named agent."
  }),
  defineOperation({
    name: "turn.retry",
    role: "operator",
    mutates: true,
    input: { ...because, agent_id: optional(AgentId) },
    answer: Changed,
    about: "Retries a turn immediately that failed or waits for a provider."
  }),
  defineOperation({
    name: "tool.retry",
    role: "operator",
    mutates: true,
    input: { ...conversation, call_id: CallId, repeat_effect: optional(Schema.Boolean) },
    answer: Changed,
    about:
      "Runs a call again: immediately if it waits for its retry, in a new turn if its turn has ended. A call that may have taken effect needs `repeat_effect`."
  }),
  defineOperation({
    name: "hook.retry",
    role: "operator",
    mutates: true,
    input: { ...conversation, hook_run_id: HookRunId, repeat_effect: optional(Schema.Boolean) },
    answer: Changed,
    about:
      "Runs a hook again: immediately if it waits for its retry, in a new turn if its turn has ended, together with the hooks that it blocked. A hook that may have taken effect needs `repeat_effect`."
  })
] as const
