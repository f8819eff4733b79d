// What a turn needs to know about the place an agent works in: what its model has not been told yet. Whatever is told
// goes on record before it is sent.
import type { AgentState, ConversationState } from "../machine/State.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { InstructionPart } from "../rune/kinds/agent.ts"

export interface Told {
  readonly text: string
  readonly parts: ReadonlyArray<InstructionPart>
}

export interface PromptRequest {
  readonly state: ConversationState
  readonly agentId: AgentId
  /** Of the model that will be asked. */
  readonly contextTokens: number
  readonly signal: AbortSignal
}

export interface PromptPort {
  /** What the agent has to be told before its next request; nothing when it knows all of it. Never rejects. */
  readonly news: (request: PromptRequest) => Promise<Told | undefined>
}

/** What the agent's model knows: the beginning of its prompt, and the notes that its transcript still has. */
export const knownParts = (agent: AgentState): ReadonlyMap<string, string | undefined> => {
  const notes = agent.transcript.flatMap((item) => (item.type === "note" ? item.parts : []))
  return new Map([...(agent.prompt?.parts ?? []), ...notes].map(({ name, sha256 }) => [name, sha256]))
}
