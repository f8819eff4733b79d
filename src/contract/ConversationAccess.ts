// Conversations as those see them who only look and speak: hooks that post a message, the clean-up of worktrees.
import * as Context from "effect/Context"
import type { Command } from "../machine/Command.ts"
import type { ConversationState } from "../machine/State.ts"

export interface ConversationPort {
  /** Its state, which may be ahead of the log; not to be kept across an await. */
  readonly state: (conversationId: string) => Promise<ConversationState>
  readonly submit: (conversationId: string, command: Command) => Promise<{ readonly event_id: number }>
}

export class ConversationAccess extends Context.Service<ConversationAccess, ConversationPort>()(
  "echs/ConversationAccess"
) {}
