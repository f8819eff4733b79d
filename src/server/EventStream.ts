// The feed of a conversation for those who speak only HTTP: JSON lines up to a limit, and server-sent events that go on
// and resume by `Last-Event-ID`. Pages are read by cursor when the reader has taken the one before.
import type { ServerResponse } from "node:http"
import type { Frame, Page } from "../conversation/Reading.ts"
import { limits } from "../wire/Limits.ts"
import type { Shelf } from "./Context.ts"
import { acceptsFrame, type RuneFilter } from "./Filter.ts"
import { plainHeaders } from "./HttpAnswer.ts"
import { hasRoom, type Outlet, streamDrained, waitForRoom } from "./Outlet.ts"
import { hasMore } from "./Progress.ts"
import { wireErrorOf } from "./Requests.ts"

export interface FeedRequest {
  readonly shelf: Shelf
  readonly conversationId: string
  readonly filter: RuneFilter
  readonly after: number
  readonly response: ServerResponse
  readonly stalledMs: number
}

const outletOf = ({ response, stalledMs }: FeedRequest): Outlet => ({
  write: (bytes) => void response.write(bytes),
  pendingBytes: () => response.writableLength,
  // A response is no duplex stream; its socket is what drains.
  drained: () => (response.socket === null ? Promise.resolve() : streamDrained(response.socket)),
  isOpen: () => !response.destroyed && !response.writableEnded,
  closeStalled: () => response.destroy(),
  stalledMs: () => stalledMs
})

const NEWLINE = Buffer.from("\n")

const gapOf = (frame: Frame) => ({ from: frame.eventId, to: frame.lastEventId, reason: "thinned" })

const lineOf = (frame: Frame): ReadonlyArray<Buffer> =>
  frame.kind === "thinned" ? [Buffer.from(`${JSON.stringify({ gap: gapOf(frame) })}\n`)] : [frame.body, NEWLINE]

const eventOf = (frame: Frame): ReadonlyArray<Buffer> =>
  frame.kind === "thinned"
    ? [Buffer.from(`id: ${frame.lastEventId}\nevent: gap\ndata: ${JSON.stringify(gapOf(frame))}\n\n`)]
    : [Buffer.from(`id: ${frame.eventId}\nevent: rune\ndata: `), frame.body, NEWLINE, NEWLINE]

const isWanted = (filter: RuneFilter): ((frame: Frame) => boolean) => {
  const accepts = acceptsFrame(filter)
  return (frame) => frame.kind === "thinned" || accepts(frame)
}

const readNext = ({ conversationId, filter, shelf }: FeedRequest, after: number): Promise<Page> =>
  shelf.read(conversationId, { after, bytesMax: limits.pageBytes, visibilityMax: filter.visibility })

/** Runes after the cursor as JSON lines, at most so many. */
export const sendLines = async (request: FeedRequest, runesMax: number): Promise<void> => {
  const { filter, response } = request
  const outlet = outletOf(request)
  const wanted = isWanted(filter)
  let { after } = request
  let page = await readNext(request, after)
  response.writeHead(200, { ...plainHeaders, "content-type": "application/x-ndjson", "x-echs-head": page.head })
  try {
    for (let left = runesMax; ; ) {
      const frames = page.frames.filter(wanted).slice(0, left)
      left -= frames.length
      if (frames.length > 0) outlet.write(Buffer.concat(frames.flatMap(lineOf)))
      if (left === 0 || !outlet.isOpen()) break
      if (!hasRoom(outlet) && !(await waitForRoom(outlet))) break
      after = page.next
      // Also behind the last page: whether the end of a log is its end, or damage, is known there.
      page = await readNext(request, after)
      if (page.next <= after && !hasMore(after, page)) break
    }
  } catch (error) {
    // The status is sent; without this line what was read would look like all there is.
    outlet.write(Buffer.from(`${JSON.stringify({ error: wireErrorOf(error) })}\n`))
  }
  response.end()
}

/** Runes after the cursor as server-sent events, for as long as the reader stays. */
export class EventStream {
  private readonly request: FeedRequest
  private readonly outlet: Outlet
  private readonly wanted: (frame: Frame) => boolean
  private readonly stopWatching: () => void
  private readonly heartbeat: NodeJS.Timeout
  private readonly onEnd: () => void
  private cursor: number
  private running = false
  private dirty = false
  private isCaughtUp = false
  private ended = false

  constructor(request: FeedRequest, onEnd: () => void) {
    this.request = request
    this.onEnd = onEnd
    this.outlet = outletOf(request)
    this.wanted = isWanted(request.filter)
    this.cursor = request.after
    request.response.writeHead(200, { ...plainHeaders, "content-type": "text/event-stream", "x-accel-buffering": "no" })
    request.response.flushHeaders()
    request.response.on("close", () => this.end())
    this.stopWatching = request.shelf.watch(request.conversationId, () => this.wake())
    this.heartbeat = setInterval(() => this.beat(), limits.pingEveryMs)
    this.heartbeat.unref()
    this.wake()
  }

  end(): void {
    if (this.ended) return
    this.ended = true
    this.stopWatching()
    clearInterval(this.heartbeat)
    if (this.outlet.isOpen()) this.request.response.end()
    this.onEnd()
  }

  private beat(): void {
    if (this.outlet.isOpen() && hasRoom(this.outlet)) this.outlet.write(Buffer.from(": still here\n\n"))
  }

  private wake(): void {
    this.dirty = true
    if (this.running || this.ended) return
    this.running = true
    setImmediate(() => void this.pump())
  }

  private async pump(): Promise<void> {
    try {
      while (this.dirty && !this.ended) {
        this.dirty = false
        if (!hasRoom(this.outlet) && !(await waitForRoom(this.outlet))) return this.end()
        this.deliver(await readNext(this.request, this.cursor))
      }
    } catch (error) {
      this.tell(error)
      this.end()
    } finally {
      this.running = false
    }
  }

  /** Without a word the end of the stream would look like a broken connection. */
  private tell(error: unknown): void {
    if (!this.outlet.isOpen() || this.ended) return
    this.outlet.write(Buffer.from(`event: error\ndata: ${JSON.stringify(wireErrorOf(error))}\n\n`))
  }

  private deliver(page: Page): void {
    if (this.ended) return
    const frames = page.frames.filter(this.wanted)
    const isMore = hasMore(this.cursor, page)
    this.cursor = page.next
    if (frames.length > 0) this.outlet.write(Buffer.concat(frames.flatMap(eventOf)))
    if (isMore) this.dirty = true
    else if (!this.isCaughtUp) {
      this.isCaughtUp = true
      this.outlet.write(Buffer.from(`event: caught_up\ndata: {"head":${page.head}}\n\n`))
      // Whether the end of a log is its end, or damage, is known behind it.
      this.dirty = true
    }
  }
}
