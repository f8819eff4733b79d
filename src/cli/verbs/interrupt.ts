// `echs interrupt`: ends the turn that is running; the conversation stays open.
import type { RemoteParts } from "../Remote.ts"
import { makeConversationAction } from "../shared/ConversationAction.ts"
import type { Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeConversationAction(parts, { name: "interrupt", op: "turn.interrupt", done: "interrupted" })
