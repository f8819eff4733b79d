// The request an agent's next model call sends, built from the state as it is now.
import type { AgentState, ConversationState } from "../machine/State.ts"
import type { Message, ModelRequest } from "../provider/Canonical.ts"
import type { ResolvedModel } from "../provider/Registry.ts"
import type { RequestId } from "../rune/Ids.ts"
import { naming, type Sight } from "./MediaParts.ts"
import { assemble } from "./Messages.ts"
import type { ToolOffer } from "./ToolOffer.ts"

export interface RequestContext {
  readonly requestId: RequestId
  readonly resolved: ResolvedModel
  readonly tools: ToolOffer["offered"]
  readonly turnId: string
  readonly attempt: number
  /** What the model can be shown; nothing, unless told. */
  readonly sight?: Sight
}

/** The next request of the agent's turn. */
export const turnRequest = (state: ConversationState, agent: AgentState, context: RequestContext): ModelRequest => {
  const { instructions, messages } = assemble(state, agent, context.sight)
  const { tools } = context
  return {
    requestId: context.requestId,
    model: context.resolved.model,
    messages,
    ...(instructions === undefined ? {} : { instructions }),
    ...(tools.length === 0 ? {} : { tools }),
    metadata: {
      conversationId: state.conversation_id,
      agentId: agent.agent_id,
      role: agent.role,
      turnId: context.turnId,
      attempt: context.attempt
    }
  }
}

export interface Aside {
  readonly requestId: RequestId
  readonly model: string
  readonly role: string
  readonly prompt: string
  /** Some providers refuse calls in a request that has no tools. */
  readonly tools?: ModelRequest["tools"]
}

/** A request for something about the agent's conversation that is no turn of it. */
export const asideRequest = (state: ConversationState, agent: AgentState, aside: Aside): ModelRequest => {
  const { instructions, messages } = assemble(state, agent, naming)
  const question: Message = { role: "user", content: [{ type: "text", text: aside.prompt }] }
  return {
    requestId: aside.requestId,
    model: aside.model,
    messages: [...messages, question],
    ...(aside.tools === undefined ? {} : { tools: aside.tools }),
    ...(instructions === undefined ? {} : { instructions }),
    metadata: { conversationId: state.conversation_id, agentId: agent.agent_id, role: aside.role }
  }
}
