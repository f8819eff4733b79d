// `echs send`: sends a message to an agent; it is answered in the next turn.
import type { RemoteParts } from "../Remote.ts"
import { makeMessageVerb } from "../shared/MessageVerb.ts"
import type { Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeMessageVerb(parts, {
    name: "send",
    mode: "queue",
    example: "echs send --new --wait 'what is in this directory?'"
  })
