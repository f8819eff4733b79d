// `echs pause`: pauses a conversation: it starts nothing new until it is resumed.
import type { RemoteParts } from "../Remote.ts"
import { makeConversationAction } from "../shared/ConversationAction.ts"
import type { Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeConversationAction(parts, { name: "pause", op: "conversation.pause", done: "paused" })
