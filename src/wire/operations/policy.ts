// Operations on the policy of the server, and on permissions that people gave in conversations.
import * as Schema from "effect/Schema"
import { CallId, ConversationId, EventId, Sha256Hex } from "../../rune/Ids.ts"
import { Count, JsonValue } from "../../rune/kinds/shared.ts"
import { ApprovalScope } from "../../rune/kinds/tool.ts"
import { Changed } from "../Answers.ts"
import { defineOperation } from "../OperationDefinition.ts"
import { conversation, optional } from "./fields.ts"

const { Array: List, NullOr, String: Text, Struct } = Schema

const Policy = Schema.Record(Text, JsonValue)

/** A call on record, and what a policy would have said about it. */
const ReplayedCall = Struct({
  conversation_id: ConversationId,
  event_id: EventId,
  ts_ms: Count,
  call_id: CallId,
  tool_name: Text,
  arguments: JsonValue,
  happened: Text,
  would: Schema.Literals(["allow", "ask", "deny"]),
  reason: Text,
  change: Schema.Literals(["blocked", "asked", "let_run", "same"]),
  rule: NullOr(Count)
})

const Grant = Struct({
  conversation_id: ConversationId,
  title: Text,
  /** The event that gave it. */
  event_id: EventId,
  tool_name: Text,
  scope: ApprovalScope,
  approver: Text,
  expires_ms: NullOr(Count),
  rule: optional(JsonValue)
})

export const policyOperations = [
  defineOperation({
    name: "policy.get",
    role: "viewer",
    mutates: false,
    input: {},
    answer: Struct({
      /** Changes with the file. */
      revision: Sha256Hex,
      mode: NullOr(Text),
      rules: List(JsonValue),
      learnt: List(JsonValue),
      /** Why the file cannot be read; everything is asked about then. */
      issue: NullOr(Text)
    }),
    about: "The rules of the policy file, those that people wrote and those that they allowed for good."
  }),
  defineOperation({
    name: "policy.test",
    role: "operator",
    mutates: false,
    input: { policy: optional(Policy), conversation_id: optional(ConversationId) },
    answer: Struct({
      conversations: Count,
      calls: Count,
      counts: Struct({ blocked: Count, asked: Count, let_run: Count, same: Count }),
      /** For each rule, then each learnt one: calls it applies to, by what became of them. */
      rules: List(Struct({ ran: Count, approved: Count, denied: Count, other: Count })),
      /** Calls about which it would have decided differently, newest first. */
      items: List(ReplayedCall),
      complete: Schema.Boolean
    }),
    about:
      "Puts the calls on record to a policy, or to that of the server: how often each rule applies, and which decisions would change. Nothing is changed. Newest conversations first; `complete` is false when older ones were left out."
  }),
  defineOperation({
    name: "policy.set",
    role: "admin",
    mutates: false,
    input: { policy: Policy, revision: Sha256Hex },
    answer: Struct({ revision: Sha256Hex }),
    about: "Replaces the policy file. `invalid_state` when the file is no longer the one with this `revision`."
  }),
  defineOperation({
    name: "grant.list",
    role: "viewer",
    mutates: false,
    input: { conversation_id: optional(ConversationId) },
    answer: Struct({ items: List(Grant), complete: Schema.Boolean }),
    about:
      "Permissions that hold in a conversation, or in the newest ones: what was allowed for longer, by whom, in which event."
  }),
  defineOperation({
    name: "grant.revoke",
    role: "operator",
    mutates: true,
    input: { ...conversation, grant_event_id: EventId },
    answer: Changed,
    about:
      "Ends a permission in its conversation; the next call is asked about again. A rule that was learnt for the whole server stays until `policy.set` removes it."
  })
] as const
