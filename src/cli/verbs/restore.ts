// `echs restore`: brings a conversation back from the archive, ready for messages.
import type { RemoteParts } from "../Remote.ts"
import { makeConversationAction } from "../shared/ConversationAction.ts"
import type { Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeConversationAction(parts, { name: "restore", op: "conversation.restore", done: "restored" })
