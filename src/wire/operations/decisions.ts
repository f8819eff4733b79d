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
      "Of each: call, arguments and their hash, path of the agent from the root, why it is asked, what is shown, choices, what each would teach the policy."
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
      "`scope` is `once`, `session` or `rule`; a rule is for admins. `learnt` says whether the rule could be written down."
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
    about: "With `interrupt`, the turn ends too."
  }),
  defineOperation({
    name: "turn.interrupt",
    role: "operator",
    mutates: true,
    input: { ...because, agent_id: optional(AgentId) },
    answer: Changed,
    about: "Stops the turn of the root agent, or of the agent that is named."
  }),
  defineOperation({
    name: "turn.retry",
    role: "operator",
    mutates: true,
    input: { ...because, agent_id: optional(AgentId) },
    answer: Changed,
    about: "Tries a turn that failed, or that waits for a provider, again at once."
  }),
  defineOperation({
    name: "tool.retry",
    role: "operator",
    mutates: true,
    input: { ...conversation, call_id: CallId, repeat_effect: optional(Schema.Boolean) },
    answer: Changed,
    about:
      "Runs a call again: one that waits for its retry at once, one of a turn that is over in a new turn. What may have taken effect needs `repeat_effect`."
  }),
  defineOperation({
    name: "hook.retry",
    role: "operator",
    mutates: true,
    input: { ...conversation, hook_run_id: HookRunId, repeat_effect: optional(Schema.Boolean) },
    answer: Changed,
    about:
      "Runs a hook again: one that waits for its retry at once, one of a turn that is over in a new turn, with those it kept from running. What may have taken effect needs `repeat_effect`."
  })
] as const
