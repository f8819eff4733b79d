// What the model of an agent is told before and beside the messages, as `echs show --prompt` prints it: made of the same
// state as requests are, so that it is what was sent; before the first request, what would be.

import { CommandRefused } from "../contract/CommandErrors.ts"
import type { AgentState, ConversationState } from "../machine/State.ts"
import { instructionsOf } from "../machine/view/Request.ts"
import { agentOf, isAlive } from "../machine/view/Select.ts"
import { knownParts, type PromptPort, type Told } from "../prompt/PromptPort.ts"
import type { AgentId } from "../rune/Ids.ts"

export interface PromptViewOptions {
  readonly state: (conversationId: string) => Promise<ConversationState>
  /** What agents are told about where they work; nothing, without one. */
  readonly prompts?: PromptPort | undefined
  readonly contextTokens: (model: string) => number
}

export interface ShownPrompt {
  readonly agent_id: AgentId
  readonly role: string
  readonly model: string
  readonly instructions: string | null
  readonly sent: boolean
  readonly notes: ReadonlyArray<{ readonly event_id: number; readonly text: string }>
  readonly next: string | null
  readonly parts: ReadonlyArray<{ readonly name: string; readonly sha256: string }>
}

const noAgent = (agentId: AgentId | null): CommandRefused =>
  new CommandRefused({
    refusal: { code: "not_found", message: `there is no agent ${agentId ?? "yet"} in this conversation` },
    command: "conversation.prompt"
  })

/** The agent as it would be once it was told. */
const instructed = (agent: AgentState, told: Told | undefined): AgentState =>
  told === undefined || agent.prompt !== null
    ? agent
    : { ...agent, prompt: { event_id: 0, content: told.text, parts: told.parts } }

const notesOf = (agent: AgentState): ShownPrompt["notes"] =>
  agent.transcript.flatMap((item) => (item.type === "note" ? [{ event_id: item.event_id, text: item.content }] : []))

export class PromptView {
  private readonly options: PromptViewOptions

  constructor(options: PromptViewOptions) {
    this.options = options
  }

  /** Of the root agent, unless told. Throws not_found. */
  async show(conversationId: string, wanted?: AgentId): Promise<ShownPrompt> {
    const state = await this.options.state(conversationId)
    const agent = agentOf(state, wanted ?? state.session.root_agent_id)
    if (agent === undefined) throw noAgent(wanted ?? null)
    const told = isAlive(agent) ? await this.news(state, agent) : undefined
    const { agent_id, model, role } = agent
    const isSent = agent.prompt !== null
    const current = instructed(agent, told)
    return {
      ...{ agent_id, role, model, sent: isSent, notes: notesOf(agent) },
      instructions: isSent || isAlive(agent) ? instructionsOf(state, current) : null,
      next: isSent ? (told?.text ?? null) : null,
      parts: [...knownParts(current)].flatMap(([name, sha256]) => (sha256 === undefined ? [] : [{ name, sha256 }]))
    }
  }

  private async news(state: ConversationState, agent: AgentState): Promise<Told | undefined> {
    const { contextTokens, prompts } = this.options
    const { signal } = new AbortController()
    return prompts?.news({ state, agentId: agent.agent_id, contextTokens: contextTokens(agent.model), signal })
  }
}
