// Goals and plans over the wire: a goal is handed in, with a conversation of its own or in one that is there; a plan that
// waits is approved, rejected or cancelled. Each is one command, and answers when what it caused is durable.
import { createHash } from "node:crypto"
import type { Submitted } from "../conversation/Actor.ts"
import type { Conversations } from "../conversation/Conversations.ts"
import type { AgentId, ConversationId, PlanId } from "../rune/Ids.ts"
import type { FieldsOf } from "../wire/Operations.ts"
import { type OperationContext, OperationFailed } from "./Context.ts"

type Answer = Readonly<Record<string, unknown>>
type GoalFields = FieldsOf<"goal.submit">
type Command = Parameters<Conversations["submit"]>[1]
type Step = Extract<Command, { readonly _tag: "AdvancePlan" }>["step"]
type PlanFields = FieldsOf<"plan.approve">

/** A new id; the same one when the same key comes again, however long ago the first time was. */
export const idFor = (context: Pick<OperationContext, "idempotency" | "newId">, what: string): string => {
  const { idempotency, newId } = context
  if (idempotency === undefined) return newId()
  return createHash("sha256").update(`${what}\n${idempotency.key}`).digest("hex").slice(0, 32)
}

export interface Created {
  readonly conversationId: ConversationId
  readonly rootAgentId: AgentId
  readonly submitted: Submitted
}

type CreateFields = FieldsOf<"conversation.create">

export const createConversation = async (fields: CreateFields, context: OperationContext): Promise<Created> => {
  const conversationId = `conv_${idFor(context, "conversation")}` as ConversationId
  const rootAgentId = `agt_${idFor(context, "agent")}` as AgentId
  const model = fields.model ?? context.defaultModel()
  const submitted = await context.conversations.create(
    {
      _tag: "CreateConversation",
      conversation_id: conversationId,
      config: { ...fields, model },
      root: { agent_id: rootAgentId, role: "root", model },
      principal: context.principal.name
    },
    context.idempotency
  )
  return { conversationId, rootAgentId, submitted }
}

/** The second command of one request: found again by a key that follows from the first. */
const secondKey = ({ idempotency }: OperationContext): OperationContext["idempotency"] =>
  idempotency === undefined
    ? undefined
    : { ...idempotency, key: createHash("sha256").update(`goal\n${idempotency.key}`).digest("hex") }

const placeOf = async (fields: GoalFields, context: OperationContext): Promise<ConversationId> => {
  const { auto_start: _a, budget: _b, conversation_id: id, goal, max_parallel: _m, options: _o, ...create } = fields
  if (id === undefined) {
    const title = create.title ?? goal.trim().split("\n", 1)[0]!.slice(0, 80)
    return (await createConversation({ ...create, title }, context)).conversationId
  }
  const extra = Object.keys(create)
  if (extra.length === 0) return id
  const message = `${extra.join(", ")}: chosen when a conversation is created, and ${id} is there already`
  throw new OperationFailed("bad_request", message)
}

export const submitGoal = async (fields: GoalFields, context: OperationContext): Promise<Answer> => {
  const conversationId = await placeOf(fields, context)
  const planId = `plan_${idFor(context, `plan of ${conversationId}`)}` as PlanId
  const { auto_start = true, budget, goal, max_parallel, options } = fields
  const payload = {
    plan_id: planId,
    goal,
    auto_start,
    ...(max_parallel === undefined ? {} : { max_parallel }),
    ...(budget === undefined ? {} : { budget }),
    ...(options === undefined ? {} : { options }),
    principal: context.principal.name
  }
  const command: Command = { _tag: "SubmitGoal", payload }
  const submitted = await context.conversations.submit(conversationId, command, secondKey(context))
  return { conversation_id: conversationId, plan_id: planId, event_id: submitted.event_id }
}

const advance = async (fields: PlanFields, context: OperationContext, step: Step): Promise<Answer> => {
  const { conversation_id: id, plan_id, revision } = fields
  const command: Command = { _tag: "AdvancePlan", plan_id, step, ...(revision === undefined ? {} : { revision }) }
  const submitted = await context.conversations.submit(id, command, context.idempotency)
  return { event_id: submitted.event_id }
}

export const approvePlan = (fields: PlanFields, context: OperationContext): Promise<Answer> => {
  const { channel, principal } = context
  const payload = { plan_id: fields.plan_id, approver: principal.name, channel }
  return advance(fields, context, { _tag: "ApprovePlan", payload })
}

export const rejectPlan = (fields: PlanFields, context: OperationContext): Promise<Answer> => {
  const { plan_id, reason = "not wanted like this" } = fields
  const payload = { plan_id, reason, approver: context.principal.name }
  return advance(fields, context, { _tag: "RejectPlan", payload })
}

export const cancelPlan = (fields: PlanFields, context: OperationContext): Promise<Answer> => {
  const { plan_id, reason } = fields
  const payload = { plan_id, reason: "user_cancel", ...(reason === undefined ? {} : { summary: reason }) }
  return advance(fields, context, { _tag: "Cancel", payload })
}
