// Goals and plans over the wire: a goal is handed in, with a conversation of its own or in one that is there; a plan that
// waits is approved, rejected or cancelled. Hooks have their say about a goal before anything is there. Each is one command,
// and answers when what it caused is durable.
import { createHash } from "node:crypto"
import type { Submitted } from "../../conversation/Actor.ts"
import type { Conversations } from "../../conversation/Conversations.ts"
import { emptyGoal, isEmptyContent } from "../../rune/Content.ts"
import type { AgentId, ConversationId, PlanId } from "../../rune/Ids.ts"
import type { Content } from "../../rune/kinds/shared.ts"
import type { AnswerOf, FieldsOf } from "../../wire/Operations.ts"
import { admitted } from "./Admission.ts"
import type { OperationContext, PromptScene } from "./Context.ts"
import { BadRequest } from "./OperationErrors.ts"

type Changed = AnswerOf<"plan.approve">
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

const newConversationId = (context: OperationContext): ConversationId =>
  `conv_${idFor(context, "conversation")}` as ConversationId

export const createConversation = async (
  fields: CreateFields,
  context: OperationContext,
  conversationId: ConversationId = newConversationId(context)
): Promise<Created> => {
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

/** The conversation that a goal is for: one that is there, or one that is made for it. */
type GoalPlace =
  | { readonly _tag: "There"; readonly conversationId: ConversationId }
  | { readonly _tag: "New"; readonly conversationId: ConversationId; readonly create: CreateFields }

const placeOf = (fields: GoalFields, context: OperationContext): GoalPlace => {
  const { auto_start: _a, budget: _b, conversation_id: id, goal, max_parallel: _m, options: _o, ...create } = fields
  if (id === undefined) {
    const title = create.title ?? goal.trim().split("\n", 1)[0]!.slice(0, 80)
    return { _tag: "New", conversationId: newConversationId(context), create: { ...create, title } }
  }
  const extra = Object.keys(create)
  if (extra.length === 0) return { _tag: "There", conversationId: id }
  const message = `${extra.join(", ")}: chosen when a conversation is created, and ${id} is there already`
  throw new BadRequest(message)
}

const sceneOf = async (place: GoalPlace, { conversations }: OperationContext): Promise<PromptScene> =>
  place._tag === "There"
    ? conversations.state(place.conversationId)
    : { conversation_id: place.conversationId, turns: 0, agents: [], session: { config: place.create } }

/** Whether the same request was answered before: what was taken then is not put to hooks again. */
const isTaken = async (place: GoalPlace, planId: PlanId, context: OperationContext): Promise<boolean> => {
  const { conversations, idempotency, conversationStore } = context
  if (idempotency === undefined || (await conversationStore.head(place.conversationId)) === 0) return false
  return (await conversations.state(place.conversationId)).plan?.plan_id === planId
}

const textOf = (content: Content): string =>
  typeof content === "string"
    ? content
    : content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n")

export const submitGoal = async (fields: GoalFields, context: OperationContext): Promise<AnswerOf<"goal.submit">> => {
  if (isEmptyContent(fields.goal)) throw new BadRequest(emptyGoal)
  const place = placeOf(fields, context)
  const { conversationId } = place
  const planId = `plan_${idFor(context, `plan of ${conversationId}`)}` as PlanId
  const { auto_start = true, budget, max_parallel, options } = fields
  const goal = (await isTaken(place, planId, context))
    ? fields.goal
    : textOf(await admitted(context, () => sceneOf(place, context), fields.goal))
  if (place._tag === "New") await createConversation(place.create, context, conversationId)
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

const advance = async (fields: PlanFields, context: OperationContext, step: Step): Promise<Changed> => {
  const { conversation_id: id, plan_id, revision } = fields
  const command: Command = { _tag: "AdvancePlan", plan_id, step, ...(revision === undefined ? {} : { revision }) }
  const submitted = await context.conversations.submit(id, command, context.idempotency)
  return { event_id: submitted.event_id }
}

export const approvePlan = (fields: PlanFields, context: OperationContext): Promise<Changed> => {
  const { channel, principal } = context
  const payload = { plan_id: fields.plan_id, approver: principal.name, channel }
  return advance(fields, context, { _tag: "ApprovePlan", payload })
}

export const rejectPlan = (fields: PlanFields, context: OperationContext): Promise<Changed> => {
  const { plan_id, reason = "not wanted like this" } = fields
  const payload = { plan_id, reason, approver: context.principal.name }
  return advance(fields, context, { _tag: "RejectPlan", payload })
}

export const cancelPlan = (fields: PlanFields, context: OperationContext): Promise<Changed> => {
  const { plan_id, reason } = fields
  const payload = { plan_id, reason: "user_cancel", ...(reason === undefined ? {} : { summary: reason }) }
  return advance(fields, context, { _tag: "Cancel", payload })
}
