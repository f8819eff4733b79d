// What a browser wants to hear before a page of another origin may use the server. Only origins that were named in the
// settings get here; the token is asked of them as of everybody.
import type { IncomingMessage, ServerResponse } from "node:http"

const allowed = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": "authorization, content-type, idempotency-key, last-event-id",
  "access-control-max-age": "600"
} as const

/** Marks the answer as one for the page. Says whether that was all: the browser only asked what it may ask. */
export const answerPage = (
  request: IncomingMessage,
  response: ServerResponse,
  origins: ReadonlySet<string>
): "answered" | "goes_on" => {
  const { origin } = request.headers
  if (origin === undefined || !origins.has(origin.toLowerCase())) return "goes_on"
  response.setHeader("access-control-allow-origin", origin)
  response.setHeader("vary", "origin")
  if (request.method !== "OPTIONS" || request.headers["access-control-request-method"] === undefined) return "goes_on"
  for (const [name, value] of Object.entries(allowed)) response.setHeader(name, value)
  if (request.headers["access-control-request-private-network"] === "true")
    response.setHeader("access-control-allow-private-network", "true")
  response.writeHead(204).end()
  return "answered"
}
