// Answers over HTTP: JSON, with the headers that keep a browser from doing anything else with them; and the body of a
// request, read up to a limit.
import type { IncomingMessage, ServerResponse } from "node:http"
import { errorCodes, type WireError } from "../../wire/Codes.ts"
import { limits } from "../../wire/WireLimits.ts"
import { BadRequest, LimitExceeded } from "../operations/OperationErrors.ts"

export const plainHeaders = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'"
} as const

export const answerJson = (response: ServerResponse, status: number, value: unknown): void => {
  const body = JSON.stringify(value)
  const length = Buffer.byteLength(body)
  response.writeHead(status, { ...plainHeaders, "content-type": "application/json", "content-length": length })
  response.end(body)
}

export const answerText = (response: ServerResponse, status: number, type: string, body: string): void => {
  const length = Buffer.byteLength(body)
  response.writeHead(status, { ...plainHeaders, "content-type": type, "content-length": length })
  response.end(body)
}

/** Headers that only an error has. */
export const errorHeaders = ({ code, data }: WireError): Readonly<Record<string, string>> => {
  const retryAfterMs = data?.["retry_after_ms"]
  return {
    ...(code === "unauthorized" ? { "www-authenticate": "Bearer" } : {}),
    ...(typeof retryAfterMs === "number" ? { "retry-after": String(Math.ceil(retryAfterMs / 1000)) } : {})
  }
}

export const errorBody = (error: WireError, id: string | undefined) => (id === undefined ? { error } : { id, error })

export const answerError = (response: ServerResponse, error: WireError, id?: string): void => {
  for (const [name, value] of Object.entries(errorHeaders(error))) response.setHeader(name, value)
  answerJson(response, errorCodes[error.code].http, errorBody(error, id))
}

/** What was not read of the body is not waited for. */
export const closeUnread = (request: IncomingMessage, response: ServerResponse): void => {
  if (!request.complete && !response.headersSent) response.setHeader("connection", "close")
}

/** The address of a request; whatever it is, it is one on this server. */
export const urlOf = (request: IncomingMessage): URL => {
  const { url = "/" } = request
  return new URL(url.startsWith("/") ? `http://here${url}` : "http://here/")
}

/** The text of a JSON body. */
export const readBody = async (request: IncomingMessage): Promise<string> => {
  const type = request.headers["content-type"] ?? ""
  if (!/^application\/json\b/i.test(type)) {
    throw new BadRequest("the body must be application/json")
  }
  return (await readBytes(request, limits.messageBytesMax)).toString("utf8")
}

/** A number of a query. */
export const wholeNumber = (name: string, text: string): number => {
  if (!/^\d{1,15}$/.test(text)) throw new BadRequest(`${name} must be a whole number`)
  return Number(text)
}

/** The bytes of a body, up to a limit. */
export const readBytes = async (request: IncomingMessage, bytesMax: number): Promise<Buffer> => {
  const pieces: Array<Buffer> = []
  let bytes = 0
  for await (const piece of request) {
    bytes += (piece as Buffer).length
    if (bytes > bytesMax) throw new LimitExceeded(`the body is too large; the limit is ${bytesMax} bytes`)
    pieces.push(piece as Buffer)
  }
  return Buffer.concat(pieces)
}
