// Goals and plans over the wire: a goal is handed in, with a conversation of its own or in one that is there; a plan that
// waits is approved, rejected or cancelled. Hooks have their say about a goal before anything is there. Each is one command,
// and answers when what it caused is durable.

import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import type { PromptScene } from "../../contract/CallGates.ts"
import { attempt } from "../../conversation/Attempt.ts"
import { emptyGoal, isEmptyContent } from "../../rune/Content.ts"
import { demandsIssue } from "../../rune/Demands.ts"
import { textBefore } from "../../rune/Elements.ts"
import type { ConversationId, PlanId } from "../../rune/Ids.ts"
import type { Content } from "../../rune/kinds/shared.ts"
import type { AnswerOf, FieldsOf } from "../../wire/Operations.ts"
import { admitted } from "./Admission.ts"
import type { OperationContext } from "./Context.ts"
import {
  type Command,
  CurrentOperation,
  change,
  type Handler,
  type HandlersOf,
  type Operating,
  stateOf
} from "./CurrentOperation.ts"
import { type CreateFields, createConversation, newConversationId } from "./conversations.ts"
import { idFor } from "./NewIds.ts"
import { BadRequest, InvalidState } from "./OperationErrors.ts"
import { taskHandlers } from "./planTasks.ts"

type GoalFields = FieldsOf<"goal.submit">
type Step = Extract<Command, { readonly _tag: "AdvancePlan" }>["step"]
type PlanFields = FieldsOf<"plan.approve">

/** The second command of one request: found again by a key that follows from the first. */
const secondKey = ({ idempotency }: OperationContext): OperationContext["idempotency"] =>
  idempotency === undefined
    ? undefined
    : { ...idempotency, key: createHash("sha256").update(`goal\n${idempotency.key}`).digest("hex") }

/** The conversation that a goal is for: one that is there, or one that is made for it. */
type GoalPlace =
  | { readonly _tag: "There"; readonly conversationId: ConversationId }
  | { readonly _tag: "New"; readonly conversationId: ConversationId; readonly create: CreateFields }

const ofGoal = [
  "auto_start",
  "budget",
  "max_parallel",
  "options",
  "evidence",
  "hidden_evidence",
  "protect",
  "models"
] as const satisfies ReadonlyArray<keyof GoalFields>

/** The fields that are about the goal alone. */
const goalPart = (fields: Partial<GoalFields>): Pick<GoalFields, (typeof ofGoal)[number]> =>
  Object.fromEntries(ofGoal.filter((name) => fields[name] !== undefined).map((name) => [name, fields[name]]))

const withoutGoal = (fields: Partial<GoalFields>): CreateFields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !(ofGoal as ReadonlyArray<string>).includes(name)))

const placeOf = (fields: GoalFields, context: OperationContext): Effect.Effect<GoalPlace, BadRequest> => {
  const { conversation_id: id, goal, ...others } = fields
  const create = withoutGoal(others)
  if (id === undefined) {
    const title = create.title ?? textBefore(goal.trim(), "\n").slice(0, 80)
    return Effect.succeed({ _tag: "New", conversationId: newConversationId(context), create: { ...create, title } })
  }
  const extra = Object.keys(create)
  if (extra.length === 0) return Effect.succeed({ _tag: "There", conversationId: id })
  const message = `${extra.join(", ")}: can only be set for a new conversation, and ${id} already exists`
  return Effect.fail(new BadRequest(message))
}

const sceneOf = (place: GoalPlace): Operating<PromptScene> =>
  place._tag === "There"
    ? stateOf(place.conversationId)
    : Effect.succeed({
        conversation_id: place.conversationId,
        turns: 0,
        agents: [],
        session: { config: place.create }
      })

/** Whether the same request was answered before: what was taken then is not put to hooks again. */
const isTaken = ({ conversationId }: GoalPlace, planId: PlanId): Operating<boolean> =>
  Effect.gen(function* () {
    const { conversationStore, idempotency } = yield* CurrentOperation
    if (idempotency === undefined || (yield* attempt(() => conversationStore.head(conversationId))) === 0) return false
    return (yield* stateOf(conversationId)).plan?.plan_id === planId
  })

const textOf = (content: Content): string =>
  typeof content === "string"
    ? content
    : content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n\n")

const submitGoal: Handler<"goal.submit"> = (fields) =>
  Effect.gen(function* () {
    if (isEmptyContent(fields.goal)) return yield* new BadRequest(emptyGoal)
    const issue = demandsIssue(fields)
    if (issue !== undefined) return yield* new BadRequest(issue)
    const context = yield* CurrentOperation
    const place = yield* placeOf(fields, context)
    const { conversationId } = place
    const planId = `plan_${idFor(context, `plan of ${conversationId}`)}` as PlanId
    const goal = (yield* isTaken(place, planId)) ? fields.goal : textOf(yield* admitted(sceneOf(place), fields.goal))
    if (place._tag === "New") yield* createConversation(place.create, conversationId)
    const payload = {
      plan_id: planId,
      goal,
      auto_start: true,
      ...goalPart(fields),
      principal: context.principal.name
    }
    const command: Command = { _tag: "SubmitGoal", payload }
    const { event_id } = yield* attempt(() => context.conversations.submit(conversationId, command, secondKey(context)))
    return { conversation_id: conversationId, plan_id: planId, event_id }
  })

const submitDemo: Handler<"goal.demo"> = () =>
  Effect.gen(function* () {
    const { prepareDemo } = yield* CurrentOperation
    if (prepareDemo === undefined) return yield* new InvalidState("this server has no demo")
    return yield* submitGoal(yield* attempt(prepareDemo))
  })

const advance = (fields: PlanFields, step: Step): Operating<AnswerOf<"plan.approve">> => {
  const { conversation_id: id, plan_id, revision } = fields
  return change(id, { _tag: "AdvancePlan", plan_id, step, ...(revision === undefined ? {} : { revision }) })
}

export const goalHandlers: HandlersOf<"goal" | "plan"> = {
  "goal.submit": submitGoal,
  "goal.demo": submitDemo,
  "goal.resume": ({ budget, conversation_id: id, plan_id, reason = "asked for" }) =>
    CurrentOperation.use(({ principal }) =>
      change(id, {
        _tag: "ResumeGoal",
        plan_id,
        reason,
        ...(budget === undefined ? {} : { budget }),
        principal: principal.name
      })
    ),
  ...taskHandlers,
  "plan.approve": (fields) =>
    CurrentOperation.use(({ channel, principal }) => {
      const payload = { plan_id: fields.plan_id, approver: principal.name, channel }
      return advance(fields, { _tag: "ApprovePlan", payload })
    }),
  "plan.reject": (fields) =>
    CurrentOperation.use(({ principal }) => {
      const { plan_id, reason = "not wanted like this" } = fields
      return advance(fields, { _tag: "RejectPlan", payload: { plan_id, reason, approver: principal.name } })
    }),
  "plan.cancel": (fields) => {
    const { plan_id, reason } = fields
    const payload = { plan_id, reason: "user_cancel", ...(reason === undefined ? {} : { summary: reason }) }
    return advance(fields, { _tag: "Cancel", payload })
  }
}
