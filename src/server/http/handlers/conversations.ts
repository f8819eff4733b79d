// Conversations over HTTP: two operations under addresses of their own, with the same answers as over a socket.
import type { IncomingMessage } from "node:http"
import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { attempt } from "../../../conversation/Attempt.ts"

import { BadRequest } from "../../operations/OperationErrors.ts"
import { parseObject, parseRequest } from "../../operations/Requests.ts"
import { errorAnswer } from "../EndpointAnswers.ts"
import { CurrentPrincipal } from "../EndpointGuards.ts"
import { routed } from "../Endpoints.ts"
import { readBody, wholeNumber } from "../HttpAnswer.ts"
import { HttpParts } from "../HttpParts.ts"

type Message = Readonly<Record<string, unknown>>

/** The answer of the operation as it is: what it has beside its schema is not cut off. */
const operate = Effect.fnUntraced(function* (message: Message, status: number) {
  const { operator } = yield* HttpParts
  const principal = yield* CurrentPrincipal
  const parsed = parseRequest(message)
  if (parsed._tag === "Refused") return errorAnswer(parsed.error, parsed.id ?? undefined)
  const outcome = yield* Effect.promise(() => operator.run(parsed.request, { principal, channel: "http" }))
  return outcome._tag === "Failed" ? errorAnswer(outcome.error) : HttpServerResponse.jsonUnsafe(outcome.ok, { status })
})

const list = Effect.fnUntraced(function* () {
  const { limit, ...query } = yield* HttpServerRequest.ParsedSearchParams
  const number = limit === undefined ? {} : { limit: yield* attempt(async () => wholeNumber("limit", String(limit))) }
  return yield* operate({ ...query, ...number, id: "", op: "conversation.list" }, 200)
})

const create = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest, key: string | undefined) {
  const value = parseObject(yield* attempt(() => readBody(request.source as IncomingMessage)))
  if (typeof value === "string") return yield* new BadRequest(value)
  const withKey = key === undefined ? {} : { idempotency_key: key }
  return yield* operate({ ...withKey, ...value, id: "", op: "conversation.create" }, 201)
})

export const conversationHandlers = HttpApiBuilder.group(routed, "conversation", (handlers) =>
  handlers
    .handle("listConversations", () => list())
    .handleRaw("createConversation", ({ headers, request }) => create(request, headers["idempotency-key"]))
)
