/**
 * Every operation a client can ask for: its fields, and whether it changes anything.
 * Names are fixed. Commands refuse fields they do not know; answers may grow.
 */
import * as Schema from "effect/Schema"
import { AgentId, CallId, ConversationId, HookRunId, IdempotencyKey, PlanId, Sha256Hex } from "../rune/Ids.ts"
import { GoalOptions } from "../rune/kinds/plan.ts"
import { Budget, Count, JsonValue, LimitOverrides, Name, Ordinal, PermissionPolicy } from "../rune/kinds/shared.ts"
import { ApprovalScope } from "../rune/kinds/tool.ts"
import { MessageMode } from "../rune/kinds/turn.ts"
import { InputContent } from "./Input.ts"

const optional = Schema.optionalKey

const conversation = { conversation_id: ConversationId }
const because = { ...conversation, reason: optional(Schema.String) }

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

export const View = Schema.Literals(["runes", "state_events", "agent_events"])
export type View = typeof View.Type

interface Operation<Fields extends Schema.Struct.Fields> {
  readonly fields: Fields
  /** Changes something: takes an idempotency key and answers with an event id. */
  readonly mutates: boolean
  /** The least role that may ask for it. */
  readonly role: Role
}

export const roles = ["viewer", "operator", "admin"] as const
export type Role = (typeof roles)[number]

const reads = <Fields extends Schema.Struct.Fields>(fields: Fields): Operation<Fields> => ({
  fields,
  mutates: false,
  role: "viewer"
})
const changes = <Fields extends Schema.Struct.Fields>(fields: Fields, role: Role = "operator"): Operation<Fields> => ({
  fields,
  mutates: true,
  role
})

/** Changes nothing, and shows what is not for everybody who may come in. */
const looksInside = <Fields extends Schema.Struct.Fields>(fields: Fields): Operation<Fields> => ({
  fields,
  mutates: false,
  role: "operator"
})

/** What changes the server itself, and not a conversation of it. */
const administers = <Fields extends Schema.Struct.Fields>(fields: Fields): Operation<Fields> => ({
  fields,
  mutates: false,
  role: "admin"
})
const TokenName = Schema.String.check(Schema.isPattern(/^[\w.-]{1,64}$/u))

export const operations = {
  "conversation.create": changes(createFields),
  "conversation.list": reads({
    state: optional(Schema.String),
    label: optional(Schema.String),
    q: optional(Schema.String),
    limit: optional(Ordinal),
    cursor: optional(Schema.String)
  }),
  "conversation.get": reads(conversation),
  "conversation.prompt": looksInside({ ...conversation, agent_id: optional(AgentId) }),
  "conversation.pause": changes(because),
  "conversation.resume": changes(because),
  "conversation.unsuspend": changes(because),
  "conversation.close": changes(because),
  "conversation.archive": changes(because),
  "conversation.restore": changes(because),
  "conversation.fork": changes({
    ...conversation,
    at_event_id: Ordinal,
    /** What was under way goes on in the fork too; it is over there, unless told. */
    continue: optional(Schema.Boolean)
  }),
  "message.post": changes({
    ...conversation,
    agent_id: optional(AgentId),
    content: InputContent,
    mode: optional(MessageMode)
  }),
  "goal.submit": changes({
    goal: Name,
    conversation_id: optional(ConversationId),
    ...createFields,
    auto_start: optional(Schema.Boolean),
    max_parallel: optional(Ordinal),
    options: optional(GoalOptions)
  }),
  "plan.approve": changes({ ...because, plan_id: PlanId, revision: optional(Ordinal) }),
  "plan.reject": changes({ ...because, plan_id: PlanId, revision: optional(Ordinal) }),
  "plan.cancel": changes({ ...because, plan_id: PlanId }),
  "approval.list": reads({ conversation_id: optional(ConversationId) }),
  "approval.approve": changes({
    ...conversation,
    call_id: CallId,
    scope: ApprovalScope,
    arguments: optional(JsonValue),
    arguments_hash: Sha256Hex
  }),
  "approval.deny": changes({
    ...conversation,
    call_id: CallId,
    reason: optional(Schema.String),
    interrupt: optional(Schema.Boolean)
  }),
  "turn.interrupt": changes({ ...because, agent_id: optional(AgentId) }),
  "turn.retry": changes({ ...because, agent_id: optional(AgentId) }),
  "tool.retry": changes({ ...conversation, call_id: CallId }),
  "hook.retry": changes({ ...conversation, hook_run_id: HookRunId }),
  "agent.spawn": changes({
    ...conversation,
    role: Name,
    model: optional(Schema.String),
    parent_id: optional(AgentId),
    name: optional(Schema.String),
    instructions: optional(Schema.String),
    tools: optional(Schema.Array(JsonValue)),
    budget: optional(Budget)
  }),
  "agent.message": changes({ ...conversation, agent_id: AgentId, content: InputContent }),
  "agent.kill": changes({ ...because, agent_id: AgentId, force: optional(Schema.Boolean) }),
  "agent.list": reads(conversation),
  "budget.set": changes({ ...conversation, agent_id: optional(AgentId), ...Budget.fields }),
  subscribe: reads({
    conversation_id: Schema.Union([ConversationId, Schema.Literal("*")]),
    after: optional(Schema.Union([Count, Schema.Literal("tail")])),
    /** With "*": the last event the client has of each conversation it knows. */
    cursors: optional(Schema.Record(ConversationId, Count)),
    /** With "*" and "tail": conversations that are not named begin with their first rune at or after this time. */
    since_ms: optional(Count),
    view: optional(View),
    kinds: optional(Schema.Array(Schema.String)),
    visibility: optional(Schema.Literals(["public", "internal"])),
    live: optional(Schema.Boolean)
  }),
  unsubscribe: reads({ sub: Schema.String }),
  "attention.subscribe": reads({}),
  "attention.list": reads({}),
  "tool.register": changes({ ...conversation, tools: Schema.Array(JsonValue) }),
  "tool.result": changes({
    ...conversation,
    call_id: CallId,
    status: optional(Schema.Literals(["success", "error"])),
    output: optional(Schema.String)
  }),
  "harness.list": reads({ conversation_id: optional(ConversationId) }),
  "harness.send": changes({ ...conversation, text: Schema.String }),
  "harness.interrupt": changes(conversation),
  "token.list": administers({}),
  "token.create": administers({ name: TokenName, role: Schema.Literals(roles) }),
  "token.remove": administers({ name: TokenName }),
  "server.stop": administers({ reason: optional(Schema.String) }),
  stats: reads({ conversation_id: optional(ConversationId), window: optional(Schema.String) })
} as const

export type OperationName = keyof typeof operations
export type FieldsOf<Name extends OperationName> = Schema.Struct.Type<(typeof operations)[Name]["fields"]>

export const operationNames = Object.keys(operations) as ReadonlyArray<OperationName>
export const isOperation = (name: string): name is OperationName => Object.hasOwn(operations, name)

/** The schema of a whole request. */
export const requestSchema = (name: OperationName): Schema.ConstraintCodec<unknown, unknown> => {
  const { fields, mutates } = operations[name]
  const all: { readonly [key: string]: Schema.ConstraintCodec<unknown, unknown> } = {
    id: Schema.String,
    op: Schema.Literal(name),
    ...(mutates ? { idempotency_key: optional(IdempotencyKey) } : {}),
    ...fields
  }
  return Schema.Struct(all)
}
