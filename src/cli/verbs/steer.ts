// `echs steer`: sends a message into the turn that is running.
import type { RemoteParts } from "../Remote.ts"
import { makeMessageVerb } from "../shared/MessageVerb.ts"
import type { Verb } from "../Verb.ts"

export const make = (parts: RemoteParts): Verb =>
  makeMessageVerb(parts, { name: "steer", mode: "steer", example: "echs steer last 'use the other file instead'" })
