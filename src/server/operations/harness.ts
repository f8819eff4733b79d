// Operations on outside agents: launched, followed, listed, spoken to, interrupted.
import * as Effect from "effect/Effect"
import type { OutsideAgents } from "../../contract/OutsideAgents.ts"
import { attempt } from "../../conversation/Attempt.ts"
import type { AgentId } from "../../rune/Ids.ts"
import { CurrentOperation, type Handler, type HandlersOf, type Operating } from "./CurrentOperation.ts"
import { newConversationId } from "./conversations.ts"
import { idFor } from "./NewIds.ts"
import { BadRequest, InvalidState } from "./OperationErrors.ts"

const outside: Operating<OutsideAgents> = Effect.flatMap(CurrentOperation, ({ outsideAgents }) =>
  outsideAgents === undefined
    ? Effect.fail(new InvalidState("an outside agent is not available on this server"))
    : Effect.succeed(outsideAgents)
)

const launch: Handler<"harness.launch"> = ({ command, harness, workspace, ...fields }) =>
  Effect.gen(function* () {
    const agents = yield* outside
    const context = yield* CurrentOperation
    if (command.length === 0) return yield* new BadRequest("the command is empty")
    const conversationId = newConversationId(context)
    const agentId = `agt_${idFor(context, "agent")}` as AgentId
    const model = `outside/${harness}`
    const { event_id } = yield* attempt(() =>
      context.conversations.create(
        {
          _tag: "CreateConversation",
          conversation_id: conversationId,
          // No tool of ours runs there: whether the place is a good one is for the program to say.
          config: { title: command.join(" ").slice(0, 200), ...fields, model, workspace, unsafe_workspace: true },
          root: { agent_id: agentId, role: "root", model, harness },
          principal: context.principal.name
        },
        context.idempotency
      )
    )
    const prepared = yield* agents.prepare({ conversationId, agentId, harness, command, workspace })
    return { event_id, conversation_id: conversationId, agent_id: agentId, ...prepared }
  })

export const harnessHandlers: HandlersOf<"harness"> = {
  "harness.launch": launch,
  "harness.attach": ({ conversation_id: id }) => Effect.flatMap(outside, (agents) => agents.attach(id)),
  "harness.list": ({ conversation_id: id }) =>
    Effect.map(
      Effect.flatMap(CurrentOperation, ({ outsideAgents }) => outsideAgents?.list(id) ?? Effect.succeed([])),
      (items) => ({ items })
    ),
  "harness.send": ({ conversation_id: id, text }) =>
    Effect.flatMap(CurrentOperation, ({ principal }) =>
      Effect.flatMap(outside, (agents) => agents.send(id, text, principal.name))
    ),
  "harness.interrupt": ({ conversation_id: id }) =>
    Effect.flatMap(CurrentOperation, ({ principal }) =>
      Effect.flatMap(outside, (agents) => agents.interrupt(id, principal.name))
    )
}
