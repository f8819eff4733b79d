// Operations on a conversation as a whole: made, looked at, paused, ended, archived, forked.
import * as Effect from "effect/Effect"
import type { Submitted } from "../../conversation/Actor.ts"
import { attempt } from "../../conversation/Attempt.ts"
import { summaryOf } from "../../conversation/Summary.ts"
import type { AgentId, ConversationId } from "../../rune/Ids.ts"
import type { FieldsOf } from "../../wire/Operations.ts"
import { limits } from "../../wire/WireLimits.ts"
import type { OperationContext } from "./Context.ts"
import { CurrentOperation, change, type HandlersOf, type Operating, tell, using } from "./CurrentOperation.ts"
import { idFor } from "./NewIds.ts"

export type CreateFields = FieldsOf<"conversation.create">

export interface Created {
  readonly conversationId: ConversationId
  readonly rootAgentId: AgentId
  readonly submitted: Submitted
}

export const newConversationId = (context: OperationContext): ConversationId =>
  `conv_${idFor(context, "conversation")}` as ConversationId

export const createConversation = (fields: CreateFields, named?: ConversationId): Operating<Created> =>
  Effect.gen(function* () {
    const context = yield* CurrentOperation
    const conversationId = named ?? newConversationId(context)
    const rootAgentId = `agt_${idFor(context, "agent")}` as AgentId
    const model = fields.model ?? context.defaultModel()
    const command = {
      _tag: "CreateConversation",
      conversation_id: conversationId,
      config: { ...fields, model },
      root: { agent_id: rootAgentId, role: "root", model },
      principal: context.principal.name
    } as const
    const submitted = yield* attempt(() => context.conversations.create(command, context.idempotency))
    return { conversationId, rootAgentId, submitted }
  })

const askedFor = "asked for"

export const conversationHandlers: HandlersOf<"conversation"> = {
  "conversation.create": (fields) =>
    Effect.map(createConversation(fields), ({ conversationId, rootAgentId, submitted }) => ({
      conversation_id: conversationId,
      root_agent_id: rootAgentId,
      event_id: submitted.event_id
    })),
  "conversation.list": ({ limit = 50, ...query }) =>
    using(({ conversationStore }) => conversationStore.list({ ...query, limit: Math.min(limit, limits.listMax) })),
  "conversation.get": ({ at_event_id: at, conversation_id: id }) =>
    at === undefined
      ? tell(id, summaryOf)
      : using(async ({ conversationStore }) => summaryOf(await conversationStore.stateAt(id, at))),
  "conversation.prompt": ({ agent_id: agentId, conversation_id: id }) =>
    using(({ prompts }) => prompts.show(id, agentId)),
  "conversation.pause": ({ conversation_id: id, reason = askedFor }) => change(id, { _tag: "Pause", reason }),
  "conversation.resume": ({ conversation_id: id, reason = askedFor }) => change(id, { _tag: "Resume", reason }),
  "conversation.unsuspend": ({ conversation_id: id, reason = askedFor }) => change(id, { _tag: "Unsuspend", reason }),
  "conversation.close": ({ conversation_id: id, reason = askedFor }) => change(id, { _tag: "Close", reason }),
  "conversation.archive": ({ conversation_id: id }) =>
    using(({ conversationStore, idempotency }) => conversationStore.archive(id, idempotency)),
  "conversation.restore": ({ conversation_id: id }) =>
    using(({ conversationStore, idempotency }) => conversationStore.restore(id, idempotency)),
  "conversation.fork": ({ at_event_id: atEventId, continue: isContinued = false, conversation_id: from }) =>
    using((context) => {
      const conversationId = `conv_${idFor(context, `fork of ${from}`)}`
      const { idempotency } = context
      const given = idempotency === undefined ? {} : { idempotency }
      return context.conversationStore.fork({ from, atEventId, conversationId, isContinued, ...given })
    })
}
