// The feed of a conversation for those who speak only HTTP: JSON lines up to a limit, and server-sent events that go on
// and resume by `Last-Event-ID`. Pages are read by cursor when the reader has taken the one before.

import type { ServerResponse } from "node:http"
import type { Frame, Page } from "../../conversation/Reading.ts"
import { type DerivedView, makeView, runeIn, type ViewFold } from "../../conversation/Views.ts"
import { limits } from "../../wire/WireLimits.ts"
import { acceptsFrame, acceptsKind, type RuneFilter } from "../feed/Filter.ts"
import { hasMore } from "../feed/ReadProgress.ts"
import type { ConversationStore } from "../operations/Context.ts"
import { wireErrorOfRejection } from "../operations/Failures.ts"
import { hasRoom, type SocketSink, streamDrained, waitForRoom } from "../socket/SocketSink.ts"
import { plainHeaders } from "./HttpAnswer.ts"

export interface FeedRequest {
  readonly conversationStore: ConversationStore
  readonly conversationId: string
  readonly filter: RuneFilter
  readonly after: number
  /** The events of a view instead of the runes themselves; only server-sent events have it. */
  readonly view?: DerivedView | undefined
  readonly response: ServerResponse
  readonly stalledMs: number
}

const sinkOf = ({ response, stalledMs }: FeedRequest): SocketSink => ({
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

/** The events of the runes after the cursor that the reader may see; all runes are folded, for a state follows from all. */
class ViewEvents {
  private readonly request: FeedRequest & { readonly view: DerivedView }
  private readonly fold: ViewFold
  private readonly accepts: (kind: string) => boolean

  constructor(request: FeedRequest & { readonly view: DerivedView }) {
    this.request = request
    this.fold = makeView(request.view)
    this.accepts = acceptsKind(request.filter.kinds)
  }

  read(frame: Frame): ReadonlyArray<Buffer> {
    const { after, conversationId, filter, view } = this.request
    if (frame.kind === "thinned") return []
    const rune = runeIn(conversationId, frame)
    const events = this.fold(rune)
    const isSeen = filter.visibility === "internal" || rune.visibility === "public"
    if (rune.event_id <= after || !isSeen || !this.accepts(rune.kind)) return []
    const name = view === "state_events" ? "state_event" : "agent_event"
    // Only the last one has the id: a reader that was cut off between two gets both again, and misses none.
    return events.map((event, at) => {
      const id = at === events.length - 1 ? `id: ${rune.event_id}\n` : ""
      return Buffer.from(`${id}event: ${name}\ndata: ${JSON.stringify(event)}\n\n`)
    })
  }
}

const readNext = ({ conversationId, filter, conversationStore, view }: FeedRequest, after: number): Promise<Page> =>
  conversationStore.read(conversationId, {
    after,
    bytesMax: limits.pageBytes,
    visibilityMax: view === undefined ? filter.visibility : "internal"
  })

/** Runes after the cursor as JSON lines, at most so many. */
export const sendLines = async (request: FeedRequest, runesMax: number): Promise<void> => {
  const { filter, response } = request
  const sink = sinkOf(request)
  const wanted = isWanted(filter)
  let { after } = request
  let page = await readNext(request, after)
  response.writeHead(200, { ...plainHeaders, "content-type": "application/x-ndjson", "x-echs-head": page.head })
  try {
    for (let left = runesMax; ; ) {
      const frames = page.frames.filter(wanted).slice(0, left)
      left -= frames.length
      if (frames.length > 0) sink.write(Buffer.concat(frames.flatMap(lineOf)))
      if (left === 0 || !sink.isOpen()) break
      if (!hasRoom(sink) && !(await waitForRoom(sink))) break
      after = page.next
      // Also behind the last page: whether the end of a log is its end, or damage, is known there.
      page = await readNext(request, after)
      if (page.next <= after && !hasMore(after, page)) break
    }
  } catch (error) {
    // The status is sent; without this line what was read would look like all there is.
    sink.write(Buffer.from(`${JSON.stringify({ error: wireErrorOfRejection(error) })}\n`))
  }
  response.end()
}

/** Runes after the cursor as server-sent events, for as long as the reader stays. */
export class EventStream {
  private readonly request: FeedRequest
  private readonly sink: SocketSink
  private readonly wanted: (frame: Frame) => boolean
  private readonly view: ViewEvents | undefined
  private readonly stopWatching: () => void
  private readonly onEnd: () => void
  private cursor: number
  private running = false
  private dirty = false
  private isCaughtUp = false
  private ended = false

  constructor(request: FeedRequest, onEnd: () => void) {
    this.request = request
    this.onEnd = onEnd
    this.sink = sinkOf(request)
    this.wanted = isWanted(request.filter)
    const { view } = request
    this.view = view === undefined ? undefined : new ViewEvents({ ...request, view })
    // What a view shows follows from the beginning on.
    this.cursor = view === undefined ? request.after : 0
    request.response.writeHead(200, { ...plainHeaders, "content-type": "text/event-stream", "x-accel-buffering": "no" })
    request.response.flushHeaders()
    request.response.on("close", () => this.end())
    this.stopWatching = request.conversationStore.watch(request.conversationId, () => this.wake())
    this.wake()
  }

  end(): void {
    if (this.ended) return
    this.ended = true
    this.stopWatching()
    if (this.sink.isOpen()) this.request.response.end()
    this.onEnd()
  }

  /** A line that readers ignore, so that nobody in between takes silence for the end. */
  beat(): void {
    if (this.sink.isOpen() && hasRoom(this.sink)) this.sink.write(Buffer.from(": still here\n\n"))
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
        if (!hasRoom(this.sink) && !(await waitForRoom(this.sink))) return this.end()
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
    if (!this.sink.isOpen() || this.ended) return
    this.sink.write(Buffer.from(`event: error\ndata: ${JSON.stringify(wireErrorOfRejection(error))}\n\n`))
  }

  private partsOf({ frames }: Page): ReadonlyArray<Buffer> {
    const { view } = this
    return view === undefined
      ? frames.filter(this.wanted).flatMap(eventOf)
      : frames.flatMap((frame) => view.read(frame))
  }

  private deliver(page: Page): void {
    if (this.ended) return
    const parts = this.partsOf(page)
    const isMore = hasMore(this.cursor, page)
    this.cursor = page.next
    if (parts.length > 0) this.sink.write(Buffer.concat(parts))
    if (isMore) this.dirty = true
    else if (!this.isCaughtUp) {
      this.isCaughtUp = true
      this.sink.write(Buffer.from(`event: caught_up\ndata: {"head":${page.head}}\n\n`))
      // Whether the end of a log is its end, or damage, is known behind it.
      this.dirty = true
    }
  }
}
