// Tickets, uploads, figures, and the description of the endpoints themselves.
import type { IncomingMessage } from "node:http"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { attempt } from "../../../conversation/Attempt.ts"
import { mediaLimits } from "../../../rune/Media.ts"
import { uploaded } from "../../operations/Attachments.ts"

import { BadRequest, InvalidState, Unauthorized } from "../../operations/OperationErrors.ts"
import { CurrentPrincipal } from "../EndpointGuards.ts"
import { routed } from "../Endpoints.ts"
import { readBytes } from "../HttpAnswer.ts"
import { type HttpOptions, HttpParts } from "../HttpParts.ts"
import { openApiDocument } from "../OpenApiDocument.ts"

export const accessHandlers = HttpApiBuilder.group(routed, "access", (handlers) =>
  handlers.handle("issueTicket", () =>
    Effect.gen(function* () {
      const { auth } = yield* HttpParts
      return auth.issueTicket(yield* CurrentPrincipal)
    })
  )
)

/** Bytes that a message can name afterwards: more than fit into a message. */
const upload = Effect.fnUntraced(function* (source: IncomingMessage) {
  const { attachments } = yield* HttpParts
  const { role } = yield* CurrentPrincipal
  if (role === "viewer") return yield* new Unauthorized("the role viewer may not upload")
  if (attachments === undefined) return yield* new InvalidState("this server does not store attachments")
  const bytes = yield* attempt(() => readBytes(source, mediaLimits.fileBytesMax))
  if (bytes.length === 0) return yield* new BadRequest("the body is empty")
  return yield* attempt(() => uploaded(attachments, bytes))
})

export const blobHandlers = HttpApiBuilder.group(routed, "blob", (handlers) =>
  handlers.handleRaw("uploadBlob", ({ request }) => upload(request.source as IncomingMessage))
)

const metricsText = (parts: HttpOptions): string => {
  const { counted, gauges } = parts.metrics.read(parts.gauges())
  return PrometheusMetrics.formatUnsafe(counted) + PrometheusMetrics.formatUnsafe(gauges)
}

/** Made when first asked for: a server that nobody asks does without. */
let openApiText: string | undefined

export const serverHandlers = HttpApiBuilder.group(routed, "server", (handlers) =>
  handlers
    .handle("readMetrics", () => HttpParts.use((parts) => Effect.sync(() => metricsText(parts))))
    .handle("readOpenApi", () =>
      Effect.sync(() => {
        openApiText ??= JSON.stringify(openApiDocument())
        return HttpServerResponse.text(openApiText, { contentType: "application/json" })
      })
    )
)
