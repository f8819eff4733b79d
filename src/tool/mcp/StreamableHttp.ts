// An MCP server at an address, over Streamable HTTP: every message is a POST, answered with JSON or with a stream of
// events; another stream, where the server offers one, brings what it says by itself. A stream that breaks off is taken
// up from its last event. Redirects are not followed: what was configured is what is spoken to.

import { textBefore } from "../../rune/Elements.ts"
import { bodyText, serverEvents } from "./EventStream.ts"
import { inDoubt, McpError } from "./McpErrors.ts"
import { mcpLimits } from "./McpLimits.ts"
import { type Json, type MessageId, parseMessages } from "./Message.ts"
import { Rate } from "./Rate.ts"
import { sleep } from "./Sleep.ts"
import type { Transport, TransportListener } from "./Transport.ts"

export interface HttpOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly monotonicMs: () => number
}

interface Exchange {
  /** The request that the stream has to answer; none on the stream of what the server says by itself. */
  readonly awaited: MessageId | undefined
  isAnswered: boolean
  lastEventId: string | undefined
  retryMs: number
}

const resumesMax = 5
const retryMsMax = 10_000

/** What goes wrong before a connection is there: nothing was said yet. Whatever is not listed may have happened later. */
const beforeConnection =
  /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|EADDR|ENETDOWN|UND_ERR_CONNECT_TIMEOUT|ERR_INVALID|UND_ERR_INVALID_ARG|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS_CERT)/u

const wasNeverSent = (cause: unknown): boolean =>
  beforeConnection.test(String((cause as { readonly code?: unknown } | null | undefined)?.code))

const mediaTypeOf = (response: Response): string =>
  textBefore(response.headers.get("content-type") ?? "", ";")
    .trim()
    .toLowerCase()

class HttpTransport implements Transport {
  private readonly options: HttpOptions
  private readonly listener: TransportListener
  private readonly closing = new AbortController()
  private readonly rate: Rate
  private session: string | undefined
  private version: string | undefined
  private isOver = false
  /** Requests and answers under way. */
  private readonly exchanges = new Set<Promise<void>>()

  constructor(options: HttpOptions, listener: TransportListener) {
    this.options = options
    this.listener = listener
    this.rate = new Rate(mcpLimits.bytesPerSecondMax, options.monotonicMs)
  }

  private headers(more: Readonly<Record<string, string>>): Record<string, string> {
    return {
      ...this.options.headers,
      ...(this.session === undefined ? {} : { "mcp-session-id": this.session }),
      ...(this.version === undefined ? {} : { "mcp-protocol-version": this.version }),
      ...more
    }
  }

  private async fetch(init: RequestInit): Promise<Response> {
    try {
      return await fetch(this.options.url, { ...init, redirect: "manual", signal: this.closing.signal })
    } catch (error) {
      const { cause, message } = error as Error
      const reason = cause instanceof Error && cause.message !== "" ? cause.message : message
      if (wasNeverSent(cause)) throw new McpError("mcp_unavailable", reason)
      throw new McpError("mcp_server_gone", reason, { isInDoubt: true })
    }
  }

  send(message: Json): Promise<void> {
    return this.tracked(this.post(message))
  }

  private tracked(work: Promise<void>): Promise<void> {
    this.exchanges.add(work)
    const done = (): void => void this.exchanges.delete(work)
    work.then(done, done)
    return work
  }

  private async post(message: Json): Promise<void> {
    if (this.isOver) throw new McpError("mcp_server_gone", "the connection is over")
    const response = await this.fetch({
      method: "POST",
      headers: this.headers({ "content-type": "application/json", accept: "application/json, text/event-stream" }),
      body: JSON.stringify(message)
    })
    await this.checkStatus(response)
    this.session = response.headers.get("mcp-session-id") ?? this.session
    const { id, method } = message
    const awaited = typeof method === "string" && (typeof id === "string" || typeof id === "number") ? id : undefined
    if (awaited === undefined) return void response.body?.cancel()
    void this.tracked(this.answer(response, awaited))
  }

  private async checkStatus(response: Response): Promise<void> {
    const { status } = response
    if (status >= 200 && status < 300) return
    const text = response.body === null ? "" : await bodyText(response.body).catch(() => "")
    // The protocol says 404; servers that were restarted also say 400.
    if ((status === 404 || status === 400) && this.session !== undefined)
      throw new McpError("mcp_session_over", "it no longer knows the session")
    const told = parseMessages(text)?.find(({ type }) => type === "error")
    const reason = told?.type === "error" ? told.message : text.slice(0, 200)
    const failure = status >= 300 && status < 400 ? "mcp_unavailable" : "mcp_error"
    // What failed inside, or behind a proxy, may have done its work before.
    throw new McpError(failure, `HTTP ${status}: ${reason}`, { isInDoubt: status >= 500 })
  }

  /** Hears the answer to one request, to its end. */
  private async answer(response: Response, awaited: MessageId): Promise<void> {
    const exchange: Exchange = { awaited, isAnswered: false, lastEventId: undefined, retryMs: mcpLimits.backoffFirstMs }
    let failure = new McpError("mcp_server_gone", "the answer broke off", { isInDoubt: true })
    try {
      if (response.body !== null) await this.hear(response, response.body, exchange)
      for (let tries = 0; this.isResumable(exchange) && tries < resumesMax; tries += 1) await this.resume(exchange)
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
      failure = inDoubt(error instanceof McpError ? error : cause, "mcp_server_gone")
    }
    if (!exchange.isAnswered) this.listener.onUnanswered(awaited, failure)
  }

  private isResumable({ isAnswered, lastEventId }: Exchange): boolean {
    return !isAnswered && lastEventId !== undefined && !this.isOver
  }

  private async resume(exchange: Exchange): Promise<void> {
    await sleep(exchange.retryMs, this.closing.signal)
    const { lastEventId } = exchange
    const from = lastEventId === undefined ? {} : { "last-event-id": lastEventId }
    const response = await this.fetch({ headers: this.headers({ accept: "text/event-stream", ...from }) })
    await this.checkStatus(response)
    if (response.body !== null) await this.hear(response, response.body, exchange)
  }

  private async hear(response: Response, body: ReadableStream<Uint8Array>, exchange: Exchange): Promise<void> {
    const type = mediaTypeOf(response)
    if (type === "application/json") return this.tell(await bodyText(body), exchange)
    if (type !== "text/event-stream") {
      await body.cancel()
      throw new McpError("mcp_protocol_error", `it answered with ${type === "" ? "nothing" : type}`)
    }
    try {
      for await (const event of serverEvents(body, this.rate, this.closing.signal)) {
        exchange.lastEventId = event.id ?? exchange.lastEventId
        exchange.retryMs = Math.min(event.retryMs ?? exchange.retryMs, retryMsMax)
        if (event.data !== "") this.tell(event.data, exchange)
        if (exchange.isAnswered) return
      }
    } catch (error) {
      // A stream that can be taken up again has not ended yet.
      if (error instanceof McpError || exchange.lastEventId === undefined) throw error
    }
  }

  private tell(text: string, exchange: Exchange): void {
    const messages = parseMessages(text)
    if (messages === undefined) throw new McpError("mcp_protocol_error", "what it sends is not the protocol")
    for (const message of messages) {
      const isAnswer = message.type === "result" || message.type === "error"
      if (isAnswer && message.id === exchange.awaited) exchange.isAnswered = true
      if (!this.isOver) this.listener.onMessage(message)
    }
  }

  agreed(version: string): void {
    this.version = version
    void this.listen()
  }

  /** Hears what the server says by itself, for as long as it offers a stream for it. */
  private async listen(): Promise<void> {
    const exchange: Exchange = {
      awaited: undefined,
      isAnswered: false,
      lastEventId: undefined,
      retryMs: mcpLimits.backoffFirstMs
    }
    for (let failures = 0; !this.isOver && failures < resumesMax; ) {
      const startedMs = this.options.monotonicMs()
      try {
        await this.resume(exchange)
        failures = 0
      } catch (error) {
        if (!(error instanceof McpError)) return
        if (error.failure === "mcp_session_over") return this.finishAfterExchanges(error.message)
        // A server that offers no such stream says so at once.
        if (error.failure !== "mcp_unavailable" && error.failure !== "mcp_server_gone") return
        failures += 1
      }
      const isShort = this.options.monotonicMs() - startedMs < 1_000
      exchange.retryMs = isShort ? Math.min(exchange.retryMs * 2, retryMsMax) : mcpLimits.backoffFirstMs
    }
  }

  /** What is under way learns for itself what became of it: asked too late for the session, it has done nothing. */
  private async finishAfterExchanges(reason: string): Promise<void> {
    await Promise.allSettled(this.exchanges)
    this.finish(reason)
  }

  private finish(reason: string): void {
    if (this.isOver) return
    this.isOver = true
    this.closing.abort()
    this.listener.onClosed(reason)
  }

  async close(): Promise<void> {
    const wasOver = this.isOver
    this.isOver = true
    const { session } = this
    this.closing.abort()
    if (session === undefined || wasOver) return
    const signal = AbortSignal.timeout(mcpLimits.closeWithinMs)
    await fetch(this.options.url, { method: "DELETE", headers: this.headers({}), redirect: "manual", signal })
      .then((response) => response.body?.cancel())
      .catch(() => undefined)
  }
}

export const openHttp = async (options: HttpOptions, listener: TransportListener): Promise<Transport> =>
  new HttpTransport(options, listener)
