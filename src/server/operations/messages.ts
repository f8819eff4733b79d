// Messages to agents: attachments are kept first, then hooks have their say, then the message is posted.
import * as Effect from "effect/Effect"
import type { Submitted } from "../../conversation/Actor.ts"
import { attempt } from "../../conversation/Attempt.ts"
import { emptyContent, isEmptyContent } from "../../rune/Content.ts"
import type { Content } from "../../rune/kinds/shared.ts"
import type { FieldsOf } from "../../wire/Operations.ts"
import { admitted } from "./Admission.ts"
import { withAttachments } from "./Attachments.ts"
import { CurrentOperation, type HandlersOf, type Operating, type State, stateOf, submit } from "./CurrentOperation.ts"
import { BadRequest } from "./OperationErrors.ts"

type Said = Pick<FieldsOf<"message.post">, "agent_id" | "content" | "conversation_id">

/** The message with its images and files kept, for the model of the one who is spoken to. */
export const contentOf = ({ agent_id: named, content, conversation_id: id }: Said): Operating<Content> =>
  Effect.gen(function* () {
    // Before anything is kept, and before hooks are asked about it.
    if (isEmptyContent(content)) return yield* new BadRequest(emptyContent)
    if (typeof content === "string") return content
    const { attachments, defaultModel } = yield* CurrentOperation
    const { agents, session } = yield* stateOf(id)
    const agent = agents.find((one) => one.agent_id === (named ?? session.root_agent_id))
    const model = agent?.model ?? session.config.model ?? defaultModel()
    return yield* attempt(() => withAttachments(content, model, attachments))
  })

/** Messages that steer go first and together, then the others one by one; 0 when its turn has begun meanwhile. */
const placeInQueue = (
  queue: State["agents"][number]["queue"],
  { event_id: last, repeated, runes }: Submitted
): number => {
  const id = runes.find(({ kind }) => kind === "turn.queued")?.event_id ?? repeated?.first_event_id ?? last
  const order = [...queue.filter(({ mode }) => mode === "steer"), ...queue.filter(({ mode }) => mode !== "steer")]
  return order.findIndex(({ event_id }) => event_id === id) + 1
}

/** A message to an agent of another program is typed there: no model of ours answers it. */
const outsideAgentOf = ({ agent_id, content, conversation_id: id }: Said) =>
  Effect.gen(function* () {
    const { outsideAgents, principal } = yield* CurrentOperation
    if (outsideAgents === undefined || outsideAgents.count() === 0) return undefined
    const { agents, session } = yield* stateOf(id)
    const agent = agents.find((one) => one.agent_id === (agent_id ?? session.root_agent_id))
    if (agent?.harness?.born_outside !== true) return undefined
    if (typeof content !== "string") return Effect.fail(new BadRequest("an outside agent accepts text only"))
    return Effect.map(outsideAgents.send(id, content, principal.name), ({ event_id }) => ({ event_id, queued: 0 }))
  })

export const messageHandlers: HandlersOf<"message"> = {
  "message.post": (fields) =>
    Effect.gen(function* () {
      const outside = yield* outsideAgentOf(fields)
      if (outside !== undefined) return yield* outside
      const { conversation_id: id, mode = "queue", ...message } = fields
      const { principal } = yield* CurrentOperation
      const content = yield* admitted(stateOf(id), yield* contentOf(fields))
      const command = { _tag: "PostMessage", ...message, content, mode, principal: principal.name } as const
      const submitted = yield* submit(id, command)
      const { event_id, repeated, runes } = submitted
      const turnId = repeated?.turn_id ?? runes.find((rune) => rune.kind === "turn.started")?.turn_id
      if (turnId !== undefined && turnId !== null) return { event_id, turn_id: turnId }
      const state = yield* stateOf(id)
      const agent = state.agents.find((one) => one.agent_id === (fields.agent_id ?? state.session.root_agent_id))
      return { event_id, queued: placeInQueue(agent?.queue ?? [], submitted) }
    })
}
