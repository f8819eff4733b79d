// A local HTTP server that answers model requests with the bytes a test prepared: whole, in pieces of any size, cut
// after any byte, stalled, or refused. It knows the routes and the keys of the real APIs, nothing of our adapters.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

export type WireFormat = "responses" | "chat" | "messages"

export interface WireRequest {
  readonly format: WireFormat
  readonly path: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  readonly bodyText: string
  readonly body: unknown
}

export interface Exchange {
  readonly status?: number
  readonly headers?: { readonly [name: string]: string }
  readonly body: string | Uint8Array
  /** Bytes per write; all at once if absent. */
  readonly pieceBytes?: number
  /** Stop after this many bytes of the body. */
  readonly cutAfter?: number
  /** What happens after the last byte: a proper end, a reset connection, or silence. */
  readonly ending?: "clean" | "reset" | "stall"
  /** Silence before the status line. */
  readonly neverAnswer?: boolean
  /** Awaited between two pieces. */
  readonly between?: () => Promise<void>
}

export type Script = (request: WireRequest, index: number) => Exchange | Promise<Exchange>

export interface ProviderServer {
  readonly url: string
  readonly requests: Array<WireRequest>
  /** Replaces what the server does from now on and forgets earlier requests. */
  readonly respond: (script: Script) => void
  /** Requests whose connection is still open. */
  readonly open: () => number
  /** Resolves once no request is open. */
  readonly idle: () => Promise<void>
  readonly close: () => Promise<void>
}

export const serverKey = "test-key-1234567890"

const routes: { readonly [path: string]: WireFormat } = {
  "/v1/responses": "responses",
  "/v1/chat/completions": "chat",
  "/v1/messages": "messages"
}

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString("utf8")
}

/** Both header styles of the Messages API are in use: a bearer token and the older `x-api-key`. */
const authorised = (format: WireFormat, request: IncomingMessage): boolean => {
  const bearer = request.headers.authorization === `Bearer ${serverKey}`
  return bearer || (format === "messages" && request.headers["x-api-key"] === serverKey)
}

const unauthorised = (format: WireFormat): Exchange => ({
  status: 401,
  headers: { "content-type": "application/json" },
  body:
    format === "messages"
      ? '{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"},"request_id":"req_011"}'
      : `{"error":{"message":"Incorrect API key provided: ${serverKey}x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`
})

const streamHeaders = (format: WireFormat): { readonly [name: string]: string } => ({
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  ...(format === "messages" ? { "request-id": "req_011CSHoEeqs5C35K2UUqR7Fy" } : { "x-request-id": "req_5a3f" })
})

const deliver = async (exchange: Exchange, response: ServerResponse): Promise<void> => {
  const whole = typeof exchange.body === "string" ? Buffer.from(exchange.body, "utf8") : Buffer.from(exchange.body)
  const bytes = whole.subarray(0, exchange.cutAfter ?? whole.length)
  const step = Math.max(1, exchange.pieceBytes ?? bytes.length)
  for (let at = 0; at < bytes.length && !response.destroyed; at += step) {
    await new Promise((resolve) => response.write(bytes.subarray(at, at + step), resolve))
    if (exchange.between !== undefined) await exchange.between()
  }
  if (exchange.ending === "reset") response.destroy()
  else if (exchange.ending !== "stall") response.end()
}

const answer = async (format: WireFormat, exchange: Exchange, response: ServerResponse): Promise<void> => {
  if (exchange.neverAnswer === true) return
  response.writeHead(exchange.status ?? 200, { ...streamHeaders(format), ...exchange.headers })
  response.flushHeaders()
  await deliver(exchange, response)
}

export const startProviderServer = async (options: { readonly key?: string | null } = {}): Promise<ProviderServer> => {
  const requests: Array<WireRequest> = []
  const responses = new Set<ServerResponse>()
  let waiting: Array<() => void> = []
  let script: Script = () => ({ status: 500, body: '{"error":{"message":"no script"}}' })
  const finished = (response: ServerResponse) => {
    responses.delete(response)
    if (responses.size > 0) return
    for (const resolve of waiting) resolve()
    waiting = []
  }
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    responses.add(response)
    response.on("close", () => finished(response))
    const path = new URL(request.url ?? "/", "http://localhost").pathname
    const format = routes[path]
    const bodyText = await readBody(request)
    if (format === undefined || request.method !== "POST") {
      response.writeHead(404, { "content-type": "application/json" }).end('{"error":{"message":"not found"}}')
      return
    }
    const recorded: WireRequest = { format, path, headers: request.headers, bodyText, body: JSON.parse(bodyText) }
    requests.push(recorded)
    const refused = options.key !== null && !authorised(format, request)
    await answer(format, refused ? unauthorised(format) : await script(recorded, requests.length - 1), response)
  }
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    respond: (next) => {
      script = next
      requests.length = 0
    },
    open: () => responses.size,
    idle: () => (responses.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
