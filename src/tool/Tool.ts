// One tool: what a model sees of it, what a policy has to know before it runs, and its work. Where it comes from (built
// in, an MCP server, a client of the server, an embedding program) makes no difference to whoever uses it.
import type * as Effect from "effect/Effect"
import type { Access, Provenance } from "../contract/ToolAccess.ts"
import type { ToolFacts } from "../machine/Command.ts"
import type { ConversationState } from "../machine/State.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { ShownAs } from "../rune/kinds/tool.ts"
import type { WorkspaceChoice } from "../sandbox/WorkspaceCheck.ts"
import type { LeftOutTools, ToolContext, ToolOutcome } from "./ToolPort.ts"

export type Input = Readonly<Record<string, unknown>>

export interface Tool extends ToolFacts {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments; its root is an object. */
  readonly parameters: { readonly [key: string]: unknown }
  readonly provenance: Provenance
  /** Where it comes from, for people, if it is not ours: the server and how it is reached, the client. */
  readonly origin?: string
  /** Its server has not said yet what it is. */
  readonly isUnknown?: boolean
  /** `always`: a person answers every call, whatever the policy; `never`: it only talks to ECHS itself. */
  readonly approval?: "always" | "never"
  /** It runs in a process of its own, inside the sandbox; the others are held by checks of their paths. */
  readonly sandboxed?: boolean
  readonly access: (input: Input) => Access
  /** What a person is shown before deciding: title, detail, and the difference an edit would make. */
  readonly preview: (input: Input, place: WorkspaceChoice) => Effect.Effect<ShownAs>
  readonly run: (input: Input, context: ToolContext) => Effect.Effect<ToolOutcome>
}

/** What a call would touch; nothing when its arguments do not tell, as those of an approver or of an old log may not. */
export const accessOf = (tool: Pick<Tool, "access">, input: Input): Access | undefined => {
  try {
    return tool.access(input)
  } catch {
    return undefined
  }
}

/** Where tools come from. The list may differ by conversation and agent, and may change while it runs. */
export interface ToolSource {
  /** Waits until its tools are known as far as they can be. Takes bounded time. */
  readonly ready?: (state: ConversationState, agentId: AgentId) => Effect.Effect<void>
  readonly tools: (state: ConversationState, agentId: AgentId) => ReadonlyArray<Tool>
  /** What it has and cannot offer. */
  readonly leftOut?: (state: ConversationState, agentId: AgentId) => ReadonlyArray<LeftOutTools>
  readonly find: (state: ConversationState, agentId: AgentId, name: string) => Tool | undefined
}
