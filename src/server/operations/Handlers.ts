// Every operation of the protocol, as a function from its fields to its answer. Each mutating one is one command to one
// conversation, and answers only when what it caused is durable.
import type { Submitted } from "../../conversation/Actor.ts"
import type { Conversations } from "../../conversation/Conversations.ts"
import { durableAnswer } from "../../conversation/DurableAnswer.ts"
import { agentSummary, approvalItems, attentionSummary, summaryOf } from "../../conversation/Summary.ts"
import { emptyContent, isEmptyContent } from "../../rune/Content.ts"
import type { AgentId } from "../../rune/Ids.ts"
import type { Content } from "../../rune/kinds/shared.ts"
import type { AnswerOf, FieldsOf, OperationName } from "../../wire/Operations.ts"
import { limits } from "../../wire/WireLimits.ts"
import { admitted } from "./Admission.ts"
import { withAttachments } from "./Attachments.ts"
import { administrationHandlers } from "./administration.ts"
import type { OperationContext } from "./Context.ts"
import { approvePlan, cancelPlan, createConversation, idFor, rejectPlan, submitGoal } from "./goals.ts"
import { BadRequest, InvalidState, Unauthorized } from "./OperationErrors.ts"
import { registerTools, takeResult } from "./remoteTools.ts"

export type Handler<Name extends OperationName> = (
  fields: FieldsOf<Name>,
  context: OperationContext
) => Promise<AnswerOf<Name>>
/** Operations that belong to a connection and are answered where the connection is. */
export type ConnectionOperation = "subscribe" | "unsubscribe" | "attention.subscribe"
export type HandlerTable = { readonly [Name in Exclude<OperationName, ConnectionOperation>]: Handler<Name> }

type Command = Parameters<Conversations["submit"]>[1]
type Changed = AnswerOf<"turn.retry">

const submit = (context: OperationContext, conversationId: string, command: Command): Promise<Submitted> =>
  context.conversations.submit(conversationId, command, context.idempotency)

const eventOf = async (submitted: Promise<Submitted>): Promise<Changed> => ({ event_id: (await submitted).event_id })

const create: Handler<"conversation.create"> = async (fields, context) => {
  const { conversationId, rootAgentId, submitted } = await createConversation(fields, context)
  return { conversation_id: conversationId, root_agent_id: rootAgentId, event_id: submitted.event_id }
}

/** Messages that steer go first and together, then the others one by one; 0 when its turn has begun meanwhile. */
const placeInQueue = (
  queue: State["agents"][number]["queue"],
  { event_id: last, repeated, runes }: Submitted
): number => {
  const id = runes.find(({ kind }) => kind === "turn.queued")?.event_id ?? repeated?.first_event_id ?? last
  const order = [...queue.filter(({ mode }) => mode === "steer"), ...queue.filter(({ mode }) => mode !== "steer")]
  return order.findIndex(({ event_id }) => event_id === id) + 1
}

const post: Handler<"message.post"> = async (fields, context) => {
  const { conversation_id: id, mode = "queue", ...message } = fields
  // Before hooks are asked about it.
  if (isEmptyContent(fields.content)) throw new BadRequest(emptyContent)
  const content = await attached(context, id, fields)
  const submitted = await submit(context, id, {
    _tag: "PostMessage",
    ...message,
    content: await admitted(context, () => context.conversations.state(id), content),
    mode,
    principal: context.principal.name
  })
  const turnId = submitted.repeated?.turn_id ?? submitted.runes.find((rune) => rune.kind === "turn.started")?.turn_id
  if (turnId !== undefined && turnId !== null) return { event_id: submitted.event_id, turn_id: turnId }
  const state = await context.conversations.state(id)
  const agent = state.agents.find((one) => one.agent_id === (fields.agent_id ?? state.session.root_agent_id))
  return { event_id: submitted.event_id, queued: placeInQueue(agent?.queue ?? [], submitted) }
}

/** The message with its images and files kept, for the model of the one who is spoken to. */
const attached = async (
  context: OperationContext,
  id: string,
  { agent_id: named, content }: Pick<FieldsOf<"message.post">, "agent_id" | "content">
): Promise<Content> => {
  if (typeof content === "string") return content
  const { agents, session } = await context.conversations.state(id)
  const agent = agents.find((one) => one.agent_id === (named ?? session.root_agent_id))
  return withAttachments(content, agent?.model ?? session.config.model ?? context.defaultModel(), context.attachments)
}

const sendToAgent: Handler<"agent.message"> = async (fields, context) => {
  const { agent_id, conversation_id: id } = fields
  if (isEmptyContent(fields.content)) throw new BadRequest(emptyContent)
  const content = await attached(context, id, fields)
  return eventOf(submit(context, id, { _tag: "SendAgentMessage", to_agent_id: agent_id, content }))
}

type State = Awaited<ReturnType<Conversations["state"]>>

/** The states of conversations that are not in memory, a few at a time. One that cannot be read hides no other. */
const statesOf = async (context: OperationContext, ids: ReadonlyArray<string>): Promise<ReadonlyArray<State>> => {
  const found: Array<State> = []
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < ids.length) {
      const state = await context.conversations.state(ids[next++]!).catch(() => undefined)
      if (state !== undefined) found.push(state)
    }
  }
  await Promise.all(Array.from({ length: limits.attentionLanes }, lane))
  return found
}

/** Asks every conversation in which somebody may be waited for; says so when there are too many to be asked. */
const fromWaiting = async <Item>(
  context: OperationContext,
  itemsOf: (state: State) => ReadonlyArray<Item>
): Promise<{ readonly items: ReadonlyArray<Item>; readonly left_out?: number }> => {
  const resident = context.conversations.residentStates()
  const known = new Set<string>(resident.map(({ conversation_id: id }) => id))
  const others = (await context.conversationStore.waiting()).filter((id) => !known.has(id))
  const asked = others.slice(0, limits.attentionConversationsMax)
  const items = [...resident, ...(await statesOf(context, asked))].flatMap((state) => itemsOf(state))
  return asked.length === others.length ? { items } : { items, left_out: others.length - asked.length }
}

const listApprovals: Handler<"approval.list"> = async (fields, context) => {
  const { conversation_id: id } = fields
  if (id !== undefined) return durableAnswer(context.conversations, id, (state) => ({ items: approvalItems(state) }))
  return fromWaiting(context, approvalItems)
}

const approve: Handler<"approval.approve"> = async ({ conversation_id: id, ...decision }, context) => {
  // For good is for all conversations: it changes the policy of the server.
  if (decision.scope === "rule" && context.principal.role !== "admin")
    throw new Unauthorized(`the role ${context.principal.role} may not allow anything for good`)
  const answer = { ...decision, approver: context.principal.name, channel: context.channel }
  const { event_id, learnt } = await context.approvals.approve(id, answer, context.idempotency)
  return { event_id, ...(learnt === undefined ? {} : { learnt }) }
}

const spawn: Handler<"agent.spawn"> = async (fields, context) => {
  const { conversation_id: id, ...wanted } = fields
  const agentId = `agt_${idFor(context, `agent of ${id}`)}` as AgentId
  const state = await context.conversations.state(id)
  const model = wanted.model ?? state.session.config.model ?? context.defaultModel()
  const parent = wanted.parent_id ?? state.session.root_agent_id
  const spec = { ...wanted, agent_id: agentId, model, ...(parent === null ? {} : { parent_id: parent }) }
  const submitted = await submit(context, id, { _tag: "SpawnAgent", spec })
  return { agent_id: submitted.repeated?.agent_id ?? agentId, event_id: submitted.event_id }
}

const setBudget: Handler<"budget.set"> = ({ conversation_id: id, agent_id: agentId, ...budget }, context) =>
  eventOf(
    submit(context, id, {
      _tag: "UpdateConfig",
      changes: agentId === undefined ? { budget } : {},
      ...(agentId === undefined ? {} : { agent_id: agentId, budget }),
      principal: context.principal.name
    })
  )

const fork: Handler<"conversation.fork"> = (fields, context) => {
  const { conversation_id: from, at_event_id: atEventId, continue: isContinued = false } = fields
  const conversationId = `conv_${idFor(context, `fork of ${from}`)}`
  const { idempotency } = context
  const given = idempotency === undefined ? {} : { idempotency }
  return context.conversationStore.fork({ from, atEventId, conversationId, isContinued, ...given })
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `90s`, `15m`, `24h` or `7d`, in milliseconds. */
const windowMs = (window: string): number => {
  const match = /^([1-9][0-9]{0,8})([smhd])$/.exec(window)
  const ms = match === null ? 0 : Number(match[1]) * unitMs[match[2]!]!
  if (ms > 0 && ms <= limits.windowMsMax) return ms
  throw new BadRequest("a window is a number and s, m, h or d, and at most 31 days long")
}

const stats: Handler<"stats"> = async ({ conversation_id: id, window }, context) => {
  const since = window === undefined ? undefined : context.nowMs() - windowMs(window)
  const within = since === undefined ? {} : { window: await context.conversationStore.figuresSince(since, id) }
  if (id === undefined) return { ...context.figures(), providers: context.conversations.circuits(), ...within }
  const summary = await durableAnswer(context.conversations, id, summaryOf)
  const { agents_alive, cost_usd, last_event_id, tool_calls, turns, usage } = summary
  return { agents_alive, cost_usd, last_event_id, tool_calls, turns, usage, ...within }
}

const notYet = (what: string) => async (): Promise<never> => {
  throw new InvalidState(`${what} is not available on this server`)
}

const reasonOf = (reason: string | undefined, fallback: string): string => reason ?? fallback

export const handlers: HandlerTable = {
  "conversation.create": create,
  "conversation.list": async ({ limit, ...query }, context) => ({
    ...(await context.conversationStore.list({ ...query, limit: Math.min(limit ?? 50, limits.listMax) }))
  }),
  "conversation.get": ({ conversation_id: id }, context) => durableAnswer(context.conversations, id, summaryOf),
  "conversation.prompt": ({ agent_id: agentId, conversation_id: id }, context) => context.prompts.show(id, agentId),
  "conversation.pause": ({ conversation_id: id, reason }, context) =>
    eventOf(submit(context, id, { _tag: "Pause", reason: reasonOf(reason, "asked for") })),
  "conversation.resume": ({ conversation_id: id, reason }, context) =>
    eventOf(submit(context, id, { _tag: "Resume", reason: reasonOf(reason, "asked for") })),
  "conversation.unsuspend": ({ conversation_id: id, reason }, context) =>
    eventOf(submit(context, id, { _tag: "Unsuspend", reason: reasonOf(reason, "asked for") })),
  "conversation.close": ({ conversation_id: id, reason }, context) =>
    eventOf(submit(context, id, { _tag: "Close", reason: reasonOf(reason, "asked for") })),
  "conversation.archive": ({ conversation_id: id }, context) =>
    context.conversationStore.archive(id, context.idempotency),
  "conversation.restore": ({ conversation_id: id }, context) =>
    context.conversationStore.restore(id, context.idempotency),
  "conversation.fork": fork,
  "message.post": post,
  "goal.submit": submitGoal,
  "plan.approve": approvePlan,
  "plan.reject": rejectPlan,
  "plan.cancel": cancelPlan,
  "approval.list": listApprovals,
  "approval.approve": approve,
  "approval.deny": ({ conversation_id: id, reason, ...decision }, context) =>
    eventOf(
      submit(context, id, {
        _tag: "DenyCall",
        ...decision,
        reason: reasonOf(reason, "not allowed"),
        approver: context.principal.name,
        channel: context.channel
      })
    ),
  "turn.interrupt": ({ conversation_id: id, reason, agent_id }, context) =>
    eventOf(
      submit(context, id, {
        _tag: "InterruptTurn",
        reason: reasonOf(reason, "asked for"),
        principal: context.principal.name,
        ...(agent_id === undefined ? {} : { agent_id })
      })
    ),
  "turn.retry": ({ conversation_id: id, agent_id }, context) =>
    eventOf(submit(context, id, { _tag: "RetryTurn", ...(agent_id === undefined ? {} : { agent_id }) })),
  "tool.retry": ({ conversation_id: id, call_id }, context) =>
    eventOf(submit(context, id, { _tag: "RetryCall", call_id })),
  "hook.retry": ({ conversation_id: id, hook_run_id }, context) =>
    eventOf(submit(context, id, { _tag: "RetryHook", hook_run_id })),
  "agent.spawn": spawn,
  "agent.message": sendToAgent,
  "agent.kill": ({ conversation_id: id, agent_id, reason, force }, context) =>
    eventOf(
      submit(context, id, { _tag: "KillAgent", agent_id, reason: reasonOf(reason, "asked for"), force: force ?? false })
    ),
  "agent.list": ({ conversation_id: id }, context) =>
    durableAnswer(context.conversations, id, (state) => ({
      items: state.agents.map((agent) => agentSummary(state, agent))
    })),
  "budget.set": setBudget,
  "attention.list": (_fields, context) => fromWaiting(context, attentionSummary),
  "tool.register": registerTools,
  "tool.result": takeResult,
  "harness.list": async () => ({ items: [] }),
  "harness.send": notYet("an outside agent"),
  "harness.interrupt": notYet("an outside agent"),
  ...administrationHandlers,
  stats
}
