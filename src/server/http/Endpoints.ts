// Every HTTP endpoint: method, path, what it takes and what it answers with. The router, the table of allowed methods and
// the OpenAPI document are derived from it. `routed` goes through the router, `direct` past it: those are asked for often
// enough that the router would be felt (`npm run bench -- http`).
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { BlobRef, JsonValue } from "../../rune/kinds/shared.ts"
import { Answer, Ticket } from "../../wire/Frames.ts"
import { operationNames, operations, requestSchema } from "../../wire/Operations.ts"
import { directPaths } from "./DirectPaths.ts"
import { Authorization, WireErrors } from "./EndpointGuards.ts"

const optional = Schema.optionalKey
const { String: Text, Struct } = Schema

const about = (summary: string) => OpenApi.annotations({ summary })
const inConversation = { conversation_id: Text }
const cursor = { after: optional(Text), visibility: optional(Text), kinds: optional(Text) }

const Health = Struct({
  status: Schema.Literals(["ok", "read_only", "closing"]),
  version: Text,
  reason: optional(Text)
})

const conversationGroup = HttpApiGroup.make("conversation").add(
  HttpApiEndpoint.get("listConversations", "/v1/conversations", {
    query: {
      state: optional(Text),
      label: optional(Text),
      q: optional(Text),
      limit: optional(Text),
      cursor: optional(Text)
    },
    success: operations["conversation.list"].answer
  }).annotateMerge(about("Lists conversations; the operation conversation.list")),
  HttpApiEndpoint.post("createConversation", "/v1/conversations", {
    headers: { "idempotency-key": optional(Text) },
    payload: Struct(operations["conversation.create"].input),
    success: operations["conversation.create"].answer.pipe(HttpApiSchema.status(201))
  }).annotateMerge(about("Starts a conversation; the operation conversation.create"))
)

/** Asked for by whoever polls a conversation; documented beside the others. */
const stateGroup = HttpApiGroup.make("conversation.state")
  .add(
    HttpApiEndpoint.get("getConversation", directPaths.getConversation, {
      params: inConversation,
      success: operations["conversation.get"].answer
    }).annotateMerge(
      OpenApi.annotations({
        identifier: "conversation.getConversation",
        summary: "Shows a conversation; the operation conversation.get"
      })
    )
  )
  .annotate(OpenApi.Title, "conversation")

const accessGroup = HttpApiGroup.make("access").add(
  HttpApiEndpoint.post("issueTicket", "/v1/tickets", { success: Ticket }).annotateMerge(
    about("Issues a ticket with which a browser opens one WebSocket")
  )
)

const blobGroup = HttpApiGroup.make("blob").add(
  HttpApiEndpoint.post("uploadBlob", "/v1/blobs", {
    payload: Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array()),
    success: BlobRef.pipe(HttpApiSchema.status(201))
  }).annotateMerge(about("Stores the bytes of an image or a file, for a message that refers to them"))
)

const serverGroup = HttpApiGroup.make("server").add(
  HttpApiEndpoint.get("readMetrics", "/metrics", {
    success: Text.pipe(HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4" }))
  }).annotateMerge(about("Figures for Prometheus")),
  HttpApiEndpoint.get("readOpenApi", "/openapi.json", { success: JsonValue }).annotateMerge(about("This document"))
)

/** What the router answers. Every endpoint above `middleware` needs a token; one that does not is added below it. */
export const routed = HttpApi.make("echs")
  .add(conversationGroup, accessGroup, blobGroup, serverGroup)
  .middleware(Authorization)
  .middleware(WireErrors)

const publicGroup = HttpApiGroup.make("public").add(
  HttpApiEndpoint.get("checkHealth", directPaths.checkHealth, {
    success: [Health, Health.pipe(HttpApiSchema.status(503))]
  }).annotateMerge(about("Whether the server is ready; 503 if not"))
)

/** The requests of all operations that need no connection. */
const calls = operationNames
  .filter((name) => operations[name].answeredBy === "server")
  .map((name) => requestSchema(name).annotate({ identifier: name, description: operations[name].about }))

const operationGroup = HttpApiGroup.make("operation").add(
  HttpApiEndpoint.post("callOperation", directPaths.callOperation, {
    payload: Schema.Union(calls),
    success: Answer
  }).annotateMerge(about("Any operation as one request"))
)

const feedGroup = HttpApiGroup.make("feed").add(
  HttpApiEndpoint.get("readRunes", directPaths.readRunes, {
    params: inConversation,
    query: { ...cursor, limit: optional(Text) },
    success: Text.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" }))
  }).annotateMerge(about("Runes after a cursor, one JSON object a line")),
  HttpApiEndpoint.get("followEvents", directPaths.followEvents, {
    params: inConversation,
    query: { ...cursor, view: optional(Schema.Literals(["runes", "state_events", "agent_events"])) },
    headers: { "last-event-id": optional(Text) },
    success: Text.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" }))
  }).annotateMerge(about("Runes after a cursor, and those to come, as server-sent events"))
)

const blobFeedGroup = HttpApiGroup.make("bytes").add(
  HttpApiEndpoint.get("readBlob", directPaths.readBlob, {
    params: { sha256: Text },
    headers: { range: optional(Text) },
    success: Schema.Uint8Array.pipe(HttpApiSchema.asUint8Array())
  }).annotateMerge(
    about("Bytes that a rune names: the whole output of a tool, an image; one range of them where asked")
  )
)

/** What is answered without the router. */
const direct = HttpApi.make("echs")
  .add(operationGroup, stateGroup, feedGroup, blobFeedGroup)
  .middleware(Authorization)
  .middleware(WireErrors)
  .add(publicGroup)

/** All of it, as the OpenAPI document shows it. */
export const everyEndpoint = HttpApi.make("echs")
  .addHttpApi(routed)
  .addHttpApi(direct)
  .annotateMerge(OpenApi.annotations({ title: "ECHS", version: "1" }))
