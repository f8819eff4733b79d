// The HTTP side of the door. Every route but the health check needs the token; what a WebSocket can ask for can be asked
// for here too, by the same operations and with the same answers.
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import { describeError, type Log } from "../../contract/ServerLog.ts"
import type { DerivedView } from "../../conversation/Views.ts"
import { mediaLimits } from "../../rune/Media.ts"
import { limits } from "../../wire/WireLimits.ts"
import { type Auth, bearerOf } from "../Auth.ts"
import { uploaded } from "../operations/Attachments.ts"
import { type AttachmentPort, type ConversationStore, type Principal, visibilityCap } from "../operations/Context.ts"
import { wireErrorOfRejection } from "../operations/Failures.ts"
import type { Operator } from "../operations/Operate.ts"
import { BadRequest, InvalidState, NotFound, ServerBusy, Unauthorized } from "../operations/OperationErrors.ts"
import { parseObject, parseRequest } from "../operations/Requests.ts"
import type { Metrics } from "../telemetry/Metrics.ts"
import { EventStream, sendLines } from "./EventStream.ts"
import { answerError, answerJson, answerText, readBody, readBytes, urlOf } from "./HttpAnswer.ts"

export interface HttpOptions {
  readonly auth: Auth
  readonly operator: Operator
  readonly metrics: Metrics
  readonly conversationStore: ConversationStore
  readonly attachments?: AttachmentPort
  readonly log: Log
  readonly stalledMs: number
  readonly health: () => Health
  /** The socket belongs to somebody who is known. */
  readonly onKnown: (socket: Duplex) => void
}

/** `ok` is the one status with which everything can be asked for. */
export interface Health {
  readonly status: "ok" | "closing" | "read_only"
  readonly version: string
  readonly reason?: string
}

interface Visit {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly principal: Principal
  readonly url: URL
  /** What the pattern of the route caught. */
  readonly id: string
}

interface Route {
  readonly method: "GET" | "POST"
  readonly path: RegExp
  readonly run: (visit: Visit) => Promise<void>
}

export class Http {
  private readonly options: HttpOptions
  private readonly streams = new Set<EventStream>()
  private readonly routes: ReadonlyArray<Route>

  constructor(options: HttpOptions) {
    this.options = options
    this.routes = [
      { method: "GET", path: /^\/metrics$/, run: (visit) => this.metrics(visit) },
      { method: "POST", path: /^\/v1\/rpc$/, run: (visit) => this.rpc(visit) },
      { method: "POST", path: /^\/v1\/tickets$/, run: (visit) => this.ticket(visit) },
      { method: "POST", path: /^\/v1\/blobs$/, run: (visit) => this.upload(visit) },
      { method: "GET", path: /^\/v1\/conversations$/, run: (visit) => this.list(visit) },
      { method: "POST", path: /^\/v1\/conversations$/, run: (visit) => this.create(visit) },
      { method: "GET", path: /^\/v1\/conversations\/([^/]{1,80})$/, run: (visit) => this.get(visit) },
      { method: "GET", path: /^\/v1\/conversations\/([^/]{1,80})\/runes$/, run: (visit) => this.runes(visit) },
      { method: "GET", path: /^\/v1\/conversations\/([^/]{1,80})\/events$/, run: (visit) => this.events(visit) }
    ]
  }

  get eventStreams(): number {
    return this.streams.size
  }

  endStreams(): void {
    for (const stream of this.streams) stream.end()
  }

  /** Answers a request that came through the door. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.route(request, response)
    } catch (error) {
      const wire = wireErrorOfRejection(error)
      if (wire.code === "internal") this.options.log.write("error", "a request failed", { cause: describeError(error) })
      // What was not read of the body is not waited for.
      if (!request.complete && !response.headersSent) response.setHeader("connection", "close")
      if (response.headersSent) response.destroy()
      else answerError(response, wire)
    }
  }

  private async route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = urlOf(request)
    if (url.pathname === "/healthz") return this.health(request, response)
    const principal = this.options.auth.byToken(bearerOf(request.headers.authorization))
    if (principal === undefined) throw new Unauthorized("the token is missing or wrong")
    this.options.onKnown(request.socket)
    const here = this.routes.filter(({ path }) => path.test(url.pathname))
    if (here.length === 0) throw new NotFound(`there is nothing at ${url.pathname.slice(0, 200)}`)
    const route = here.find(({ method }) => method === request.method)
    if (route === undefined) {
      response.setHeader("allow", here.map(({ method }) => method).join(", "))
      const error = { code: "bad_request", message: `${request.method} does not apply here` }
      return answerJson(response, 405, { error })
    }
    const id = route.path.exec(url.pathname)?.[1] ?? ""
    return route.run({ request, response, principal, url, id })
  }

  private async metrics({ response }: Visit): Promise<void> {
    answerText(response, 200, "text/plain; version=0.0.4", this.options.metrics.render())
  }

  private async ticket({ principal, response }: Visit): Promise<void> {
    answerJson(response, 200, this.options.auth.issueTicket(principal))
  }

  /** Bytes that a message can name afterwards: more than fit into a message. */
  private async upload({ principal, request, response }: Visit): Promise<void> {
    const { attachments } = this.options
    if (principal.role === "viewer") throw new Unauthorized("the role viewer may not upload")
    if (attachments === undefined) throw new InvalidState("this server keeps no attachments")
    const bytes = await readBytes(request, mediaLimits.fileBytesMax)
    if (bytes.length === 0) throw new BadRequest("the body is empty")
    answerJson(response, 201, await uploaded(attachments, bytes))
  }

  private async rpc(visit: Visit): Promise<void> {
    const value = parseObject(await readBody(visit.request))
    if (typeof value === "string") throw new BadRequest(value)
    return this.operate(visit, { id: "", ...value }, { status: 200, envelope: true })
  }

  /** Not ok is not 200: who only looks at the status, or asks with HEAD, must see it too. */
  private health(request: IncomingMessage, response: ServerResponse): void {
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD")
      const error = { code: "bad_request", message: "the health check is asked for with GET or HEAD" }
      answerJson(response, 405, { error })
      return
    }
    const health = this.options.health()
    answerJson(response, health.status === "ok" ? 200 : 503, health)
  }

  private async list(visit: Visit): Promise<void> {
    const { limit, ...query } = Object.fromEntries(visit.url.searchParams)
    const number = limit === undefined ? {} : { limit: wholeNumber("limit", limit) }
    return this.operate(visit, { ...query, ...number, id: "", op: "conversation.list" }, { status: 200 })
  }

  private async create(visit: Visit): Promise<void> {
    const value = parseObject(await readBody(visit.request))
    if (typeof value === "string") throw new BadRequest(value)
    const key = visit.request.headers["idempotency-key"]
    const withKey = typeof key === "string" ? { idempotency_key: key } : {}
    return this.operate(visit, { ...withKey, ...value, id: "", op: "conversation.create" }, { status: 201 })
  }

  private async get(visit: Visit): Promise<void> {
    return this.operate(visit, { id: "", op: "conversation.get", conversation_id: visit.id }, { status: 200 })
  }

  private async operate(
    { principal, response }: Visit,
    message: Readonly<Record<string, unknown>>,
    answer: { readonly status: number; readonly envelope?: true }
  ): Promise<void> {
    const parsed = parseRequest(message)
    const id = answer.envelope === undefined || parsed._tag === "Refused" ? undefined : parsed.request.id
    if (parsed._tag === "Refused") return answerError(response, parsed.error, parsed.id ?? undefined)
    const outcome = await this.options.operator.run(parsed.request, { principal, channel: "http" })
    if (outcome._tag === "Failed") return answerError(response, outcome.error, id)
    answerJson(response, answer.status, answer.envelope === true ? { id, ok: outcome.ok } : outcome.ok)
  }

  private async runes(visit: Visit): Promise<void> {
    const feed = await this.feed(visit, visit.url.searchParams.get("after"))
    const asked = visit.url.searchParams.get("limit")
    const limit = asked === null ? limits.httpRunesMax : wholeNumber("limit", asked)
    if (limit < 1) throw new BadRequest("limit must be at least 1")
    return sendLines(feed, Math.min(limit, limits.httpRunesMax))
  }

  private async events(visit: Visit): Promise<void> {
    if (this.streams.size >= limits.eventStreamsMax) {
      throw new ServerBusy("too many event streams", { retry_after_ms: 5_000 })
    }
    const resumed = visit.request.headers["last-event-id"]
    const after = typeof resumed === "string" ? resumed : visit.url.searchParams.get("after")
    const view = viewOf(visit.url.searchParams.get("view"))
    const stream = new EventStream({ ...(await this.feed(visit, after)), view }, () => this.streams.delete(stream))
    this.streams.add(stream)
  }

  private async feed({ id, principal, response, url }: Visit, asked: string | null) {
    const { conversationStore, stalledMs } = this.options
    const head = await conversationStore.head(id)
    if (head === 0) throw new NotFound(`there is no conversation ${id}`)
    const after = asked === "tail" ? head : asked === null || asked === "" ? 0 : wholeNumber("after", asked)
    if (after > head) {
      throw new BadRequest(`the cursor ${after} lies beyond the head ${head}`, { head })
    }
    const visibility = url.searchParams.get("visibility") === "public" ? "public" : visibilityCap(principal)
    const kinds = url.searchParams.get("kinds")?.split(",")
    return { conversationStore, conversationId: id, filter: { visibility, kinds }, after, response, stalledMs } as const
  }
}

const viewOf = (asked: string | null): DerivedView | undefined => {
  if (asked === null || asked === "runes") return undefined
  if (asked === "state_events" || asked === "agent_events") return asked
  throw new BadRequest("view must be one of runes, state_events, agent_events")
}

const wholeNumber = (name: string, text: string): number => {
  if (!/^\d{1,15}$/.test(text)) throw new BadRequest(`${name} must be a whole number`)
  return Number(text)
}
