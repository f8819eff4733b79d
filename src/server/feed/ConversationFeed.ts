// Delivery of one conversation to everybody who follows it with the same filter. Readers at the head share one page:
// it is read once, framed once and written once to each socket. A reader whose socket is full leaves the head and
// catches up from its own cursor when the socket drains; nothing is queued for it meanwhile but its cursor.
// Promise to each reader: every rune after its cursor once, in order, or an explicit gap.
import type { Frame, Page, RawPage } from "../../conversation/Reading.ts"
import { limits } from "../../wire/WireLimits.ts"
import { pushedFrame } from "../socket/PushedFrame.ts"
import { hasRoom, type SocketSink, waitForRoom } from "../socket/SocketSink.ts"
import { frameAll } from "../socket/WebSocketFrame.ts"
import { CatchUpPages, type Content, type SharedPage } from "./CatchUpPages.ts"
import type { PageBuffers } from "./PageBuffers.ts"
import { turnAfterEmptyPage } from "./ReadProgress.ts"
import { makeWrapInPlace } from "./WirePage.ts"

export interface ConversationFeedOptions {
  /** The name that pushed frames carry; the same for all readers of the topic. */
  readonly name: string
  /** Reads a page after the cursor; an empty page with `next` equal to the cursor means the head. */
  readonly read: (after: number, bytesMax: number) => Promise<Page>
  /** Reads a page as it lies in the log, where every rune is for these readers that is not too private. */
  readonly readRaw?: (after: number, into: Buffer) => Promise<RawPage | undefined>
  /** The rank of what is not too private. */
  readonly visibilityMax: number
  readonly buffers: PageBuffers
  readonly monotonicMs: () => number
  /** Told when everybody may have everything. */
  readonly onQuiet?: () => void
  /** Named in what is said about a gap, where readers follow many conversations under one name. */
  readonly conversationId?: string
  /** Whether a rune is for these readers; the body is its JSON. */
  readonly accepts: (frame: Frame) => boolean
  /** The log can no longer be read for these readers, who have left the topic. */
  readonly onFailure: (error: unknown, readers: ReadonlyArray<Reader>) => void
}

export interface Reader {
  readonly sink: SocketSink
  /** Called once, when the reader has everything there was when it came. */
  readonly onCaughtUp: (head: number) => void
  cursor: number
  caughtUp: boolean
  left: boolean
}

export class ConversationFeed {
  private readonly options: ConversationFeedOptions
  private readonly prefix: Buffer
  private readonly suffix = Buffer.from("}")
  private readonly atHead = new Set<Reader>()
  private readonly behind = new Set<Reader>()
  private readonly pages: CatchUpPages
  /** Readers at the head have everything up to here. Only what was read moves it, never what a reader claims to have. */
  private cursor = 0
  private pumping = false
  private dirty = false
  private pumpedMs = Number.NEGATIVE_INFINITY

  constructor(options: ConversationFeedOptions) {
    this.options = options
    this.prefix = Buffer.from(`{"sub":${JSON.stringify(options.name)},"rune":`)
    const { buffers, readRaw, visibilityMax } = options
    this.pages = new CatchUpPages({
      read: (after, bytesMax) => this.readPage(after, bytesMax),
      readRaw,
      wrap: makeWrapInPlace({ prefix: this.prefix, visibilityMax, gap: (from, to) => this.gap(from, to) }),
      buffers
    })
  }

  get name(): string {
    return this.options.name
  }

  get readers(): number {
    return this.atHead.size + this.behind.size
  }

  /** Everybody has everything, as far as anybody knows. */
  get isQuiet(): boolean {
    return this.behind.size === 0 && !this.pumping && !this.dirty
  }

  /** Adds a reader that has everything up to `cursor`; nothing is written to it before the next turn of the loop. */
  join(sink: SocketSink, cursor: number, onCaughtUp: (head: number) => void): Reader {
    const reader: Reader = { sink, onCaughtUp, cursor, caughtUp: false, left: false }
    this.behind.add(reader)
    setImmediate(() => void this.catchUp(reader))
    return reader
  }

  leave(reader: Reader): void {
    reader.left = true
    this.atHead.delete(reader)
    this.behind.delete(reader)
    if (this.behind.size === 0) this.pages.clear()
    this.options.onQuiet?.()
  }

  /** The log has new durable runes. */
  wake(): void {
    this.dirty = true
    if (this.pumping || this.atHead.size === 0) return
    this.pumping = true
    // What comes after a pause is delivered at once; what comes in a stream is worth a page.
    if (this.options.monotonicMs() - this.pumpedMs >= limits.pauseMs) void this.pump()
    else setImmediate(() => void this.pump())
  }

  private async pump(): Promise<void> {
    try {
      while (this.dirty && this.atHead.size > 0) {
        this.dirty = false
        const page = await this.options.read(this.cursor, limits.pageBytes)
        if (page.next === this.cursor) continue
        this.deliver(page)
        if (page.next < page.head) this.dirty = true
      }
    } catch (error) {
      this.fail(error, [...this.atHead])
    } finally {
      this.pumping = false
      this.pumpedMs = this.options.monotonicMs()
      this.options.onQuiet?.()
    }
  }

  /** Hands one page to everybody at the head, in one go: nobody joins or leaves in between. */
  private deliver(page: Page): void {
    const from = this.cursor
    this.cursor = page.next
    const shared = this.encode(page, from)
    for (const reader of this.atHead) {
      if (reader.cursor >= page.next) continue
      if (reader.sink.pendingBytes() > limits.socketBytesMax) {
        this.fallBehind(reader)
        continue
      }
      // One that came from its own reading may have the first part of the page already.
      const bytes = reader.cursor === from ? shared : this.encode(page, reader.cursor)
      if (bytes !== undefined) reader.sink.write(bytes)
      reader.cursor = page.next
    }
  }

  private fallBehind(reader: Reader): void {
    this.atHead.delete(reader)
    this.behind.add(reader)
    void this.catchUp(reader)
  }

  /** Reads for one reader alone until it is where the others are. */
  private async catchUp(reader: Reader): Promise<void> {
    if (reader.left) return
    let page: SharedPage | undefined = this.pageBehind(reader.cursor)
    let emptyPages = 0
    try {
      while (page !== undefined && !reader.left) {
        if (!hasRoom(reader.sink) && !(await this.waitForRoom(reader))) return
        const content: Content = await page.content
        if (reader.left) return
        const isLast = content.next >= content.head && content.next >= this.cursor
        emptyPages = content.next > reader.cursor ? 0 : emptyPages + 1
        // A page that was read before the others got more says nothing of it: the next one does, after everybody's turn.
        if (emptyPages > 0 && !isLast) await turnAfterEmptyPage(reader.cursor, content, emptyPages)
        if (reader.left) return
        // The next page is read while this one is on its way.
        const following: SharedPage | undefined = isLast ? undefined : this.pageBehind(content.next)
        send(reader.sink, page, content)
        page.release()
        page = following
        reader.cursor = content.next
        if (isLast) this.reachHead(reader, content.head)
      }
    } catch (error) {
      this.fail(error, [reader])
    } finally {
      page?.release()
    }
  }

  private pageBehind(cursor: number): SharedPage {
    return this.pages.take(cursor, { isShared: this.behind.size > 1 })
  }

  private async readPage(after: number, bytesMax: number): Promise<Content> {
    const page = await this.options.read(after, bytesMax)
    const bytes = page.next === after ? undefined : this.encode(page, after)
    return { pieces: bytes === undefined ? [] : [bytes], next: page.next, head: page.head }
  }

  private reachHead(reader: Reader, head: number): void {
    if (this.atHead.size === 0 && !this.pumping) this.cursor = reader.cursor
    this.behind.delete(reader)
    if (this.behind.size === 0) this.pages.clear()
    this.atHead.add(reader)
    if (!reader.caughtUp) {
      reader.caughtUp = true
      reader.onCaughtUp(head)
    }
    this.wake()
  }

  private async waitForRoom(reader: Reader): Promise<boolean> {
    const hasComeBack = await waitForRoom(reader.sink)
    if (!hasComeBack) this.leave(reader)
    return hasComeBack
  }

  private fail(error: unknown, readers: ReadonlyArray<Reader>): void {
    for (const reader of readers) this.leave(reader)
    this.options.onFailure(error, readers)
  }

  private encode(page: Page, after: number): Buffer | undefined {
    const pieces: Array<Buffer> = []
    let bodies: Array<Uint8Array> = []
    const flush = (): void => {
      if (bodies.length > 0) pieces.push(frameAll(this.prefix, bodies, this.suffix))
      bodies = []
    }
    for (const frame of page.frames) {
      if (frame.lastEventId <= after) continue
      if (frame.kind === "thinned") {
        flush()
        pieces.push(this.gap(frame.eventId, frame.lastEventId))
      } else if (this.options.accepts(frame)) {
        bodies.push(frame.body)
      }
    }
    flush()
    return pieces.length === 0 ? undefined : pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)
  }

  private gap(from: number, to: number): Buffer {
    const { conversationId, name } = this.options
    const gap = { ...(conversationId === undefined ? {} : { conversation_id: conversationId }), from, to }
    return pushedFrame({ sub: name, gap: { ...gap, reason: "thinned" } })
  }
}

/** Hands a page to a socket; its bytes stay as they are until the socket has them. */
const send = (sink: SocketSink, page: SharedPage, { pieces }: Content): void => {
  for (const piece of pieces) {
    page.retain()
    sink.write(piece, page.release)
  }
}
