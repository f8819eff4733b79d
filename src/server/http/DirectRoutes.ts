// Endpoints answered without the router, for what it costs per request would be felt. Operations answer
// here as over a socket; feeds write to the response themselves, page by page.
import type { IncomingMessage, ServerResponse } from "node:http"
import type { DerivedView } from "../../conversation/Views.ts"
import type { WireError } from "../../wire/Codes.ts"
import { limits } from "../../wire/WireLimits.ts"
import { type Principal, visibilityCap } from "../operations/Context.ts"
import { BadRequest, NotFound, ServerBusy } from "../operations/OperationErrors.ts"
import { parseObject, parseRequest } from "../operations/Requests.ts"
import { sendBlob } from "./BlobDownload.ts"
import { directPaths, patternOf } from "./DirectPaths.ts"
import { EventStream, sendLines } from "./EventStream.ts"
import { answerError, answerJson, closeUnread, readBody, wholeNumber } from "./HttpAnswer.ts"
import type { HttpOptions } from "./HttpParts.ts"

export interface Visit {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly principal: Principal
  readonly url: URL
}

/** With the one parameter of the path. */
type Answer = (visit: Visit, parameter: string) => Promise<void>

export class DirectRoutes {
  private readonly options: HttpOptions
  private readonly streams = new Set<EventStream>()
  private readonly routes: ReadonlyArray<{ readonly method: string; readonly pattern: RegExp; readonly answer: Answer }>

  constructor(options: HttpOptions) {
    this.options = options
    this.routes = [
      { method: "POST", pattern: patternOf(directPaths.callOperation), answer: (visit) => this.callOperation(visit) },
      {
        method: "GET",
        pattern: patternOf(directPaths.getConversation),
        answer: (visit, id) => this.getConversation(visit, id)
      },
      { method: "GET", pattern: patternOf(directPaths.readRunes), answer: (visit, id) => this.readRunes(visit, id) },
      {
        method: "GET",
        pattern: patternOf(directPaths.followEvents),
        answer: (visit, id) => this.followEvents(visit, id)
      },
      { method: "GET", pattern: patternOf(directPaths.readBlob), answer: (visit, sha) => this.readBlob(visit, sha) }
    ]
  }

  get eventStreams(): number {
    return this.streams.size
  }

  beat(): void {
    for (const stream of this.streams) stream.beat()
  }

  endStreams(): void {
    for (const stream of this.streams) stream.end()
  }

  /** Nothing when the request is one for the router. */
  answer(visit: Visit): Promise<void> | undefined {
    for (const { answer, method, pattern } of this.routes) {
      const match = visit.request.method === method ? pattern.exec(visit.url.pathname) : null
      if (match !== null) return answer(visit, match[1] ?? "")
    }
    return undefined
  }

  private async callOperation({ principal, request, response }: Visit): Promise<void> {
    const value = parseObject(await readBody(request))
    if (typeof value === "string") throw new BadRequest(value)
    const parsed = parseRequest({ id: "", ...value })
    if (parsed._tag === "Refused") return answerError(response, parsed.error, parsed.id ?? undefined)
    const { id } = parsed.request
    const outcome = await this.options.operator.run(parsed.request, { principal, channel: "http" })
    if (outcome._tag === "Failed") return answerError(response, outcome.error, id)
    answerJson(response, 200, { id, ok: outcome.ok })
  }

  private async getConversation({ principal, request, response }: Visit, conversationId: string): Promise<void> {
    const parsed = parseRequest({ id: "", op: "conversation.get", conversation_id: conversationId })
    if (parsed._tag === "Refused") return refuse(request, response, parsed.error, parsed.id ?? undefined)
    const outcome = await this.options.operator.run(parsed.request, { principal, channel: "http" })
    if (outcome._tag === "Failed") return refuse(request, response, outcome.error)
    answerJson(response, 200, outcome.ok)
  }

  private async readRunes(visit: Visit, conversationId: string): Promise<void> {
    const { searchParams } = visit.url
    const feed = await this.feed(visit, conversationId, searchParams.get("after"))
    const asked = searchParams.get("limit")
    const limit = asked === null ? limits.httpRunesMax : wholeNumber("limit", asked)
    if (limit < 1) throw new BadRequest("limit must be at least 1")
    return sendLines(feed, Math.min(limit, limits.httpRunesMax))
  }

  private async followEvents(visit: Visit, conversationId: string): Promise<void> {
    if (this.streams.size >= limits.eventStreamsMax) {
      throw new ServerBusy("too many event streams", { retry_after_ms: 5_000 })
    }
    const { searchParams } = visit.url
    const resumed = visit.request.headers["last-event-id"]
    const after = typeof resumed === "string" ? resumed : searchParams.get("after")
    const view = viewOf(searchParams.get("view"))
    const feed = await this.feed(visit, conversationId, after)
    const stream = new EventStream({ ...feed, view }, () => this.streams.delete(stream))
    this.streams.add(stream)
  }

  private async readBlob({ request, response }: Visit, sha256: string): Promise<void> {
    const { blobs } = this.options
    if (blobs === undefined) throw new NotFound("this server keeps no blobs")
    return sendBlob(blobs, sha256, response, request.headers.range)
  }

  private async feed({ principal, response, url }: Visit, conversationId: string, asked: string | null) {
    const { conversationStore, stalledMs } = this.options
    const head = await conversationStore.head(conversationId)
    if (head === 0) throw new NotFound(`there is no conversation ${conversationId}`)
    const after = asked === "tail" ? head : asked === null || asked === "" ? 0 : wholeNumber("after", asked)
    if (after > head) {
      throw new BadRequest(`the cursor ${after} is beyond the head ${head}`, { head })
    }
    const visibility = url.searchParams.get("visibility") === "public" ? "public" : visibilityCap(principal)
    const kinds = url.searchParams.get("kinds")?.split(",")
    return { conversationStore, conversationId, filter: { visibility, kinds }, after, response, stalledMs } as const
  }
}

const refuse = (request: IncomingMessage, response: ServerResponse, error: WireError, id?: string): void => {
  closeUnread(request, response)
  answerError(response, error, id)
}

const viewOf = (asked: string | null): DerivedView | undefined => {
  if (asked === null || asked === "runes") return undefined
  if (asked === "state_events" || asked === "agent_events") return asked
  throw new BadRequest("view must be one of runes, state_events, agent_events")
}
