// `echs close`: closes a conversation; it accepts no further messages.
import type { RemoteParts } from "../Remote.ts"
import { makeConversationAction } from "../shared/ConversationAction.ts"
import type { Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeConversationAction(parts, { name: "close", op: "conversation.close", done: "closed" })
