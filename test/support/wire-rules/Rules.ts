// An independent judge of request bodies: what is wrong with one, by the documented rules of its format. Nothing of the
// product is used, so that it cannot share a mistake with it.
import type { WireFormat } from "../provider-server/Server.ts"
import { checkChat } from "./Chat.ts"
import { Findings, isMap, type Json } from "./Common.ts"
import { checkMessages } from "./Messages.ts"
import { checkResponses } from "./Responses.ts"

const checks: { readonly [F in WireFormat]: (found: Findings, body: Json) => undefined } = {
  chat: checkChat,
  responses: checkResponses,
  messages: checkMessages
}

const loneSurrogate = /\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}/i

/** What the API of the format would refuse a body for; nothing when it takes it. */
export const problemsOf = (format: WireFormat, bodyText: string): ReadonlyArray<string> => {
  const found = new Findings()
  found.must(bodyText.isWellFormed() && !loneSurrogate.test(bodyText), "body", "a character that cannot be encoded")
  const body: unknown = JSON.parse(bodyText)
  if (!isMap(body)) return ["body: no object"]
  checks[format](found, body)
  return found.list
}
