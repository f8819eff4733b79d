// `echs archive`: moves a closed conversation into the archive.
import type { RemoteParts } from "../Remote.ts"
import { makeConversationAction } from "../shared/ConversationAction.ts"
import type { Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeConversationAction(parts, { name: "archive", op: "conversation.archive", done: "archived" })
