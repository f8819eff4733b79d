// Delivery of one conversation to everybody who follows it with the same filter. Readers at the head share one page:
// it is read once, framed once and written once to each socket. A reader whose socket is full leaves the head and
// catches up from its own cursor when the socket drains; nothing is queued for it meanwhile but its cursor.
// Promise to each reader: every rune after its cursor once, in order, or an explicit gap.
import type { Frame, Page } from "../conversation/Reading.ts"
import { limits } from "../wire/Limits.ts"
import { frameAll, textFrame } from "./WebSocketFrame.ts"

/** A socket as far as delivery is concerned. */
export interface Outlet {
  readonly write: (bytes: Buffer) => void
  /** Bytes that wait for the other side. */
  readonly pendingBytes: () => number
  /** Resolves when nothing waits any more, or when the socket is gone. */
  readonly drained: () => Promise<void>
  readonly isOpen: () => boolean
  /** Ends a reader that takes nothing for too long. */
  readonly closeStalled: () => void
}

export interface TopicOptions {
  /** The name that pushed frames carry; the same for all readers of the topic. */
  readonly name: string
  /** Reads a page after the cursor; an empty page with `next` equal to the cursor means the head. */
  readonly read: (after: number, bytesMax: number) => Promise<Page>
  /** Whether a rune is for these readers; the body is its JSON. */
  readonly accepts: (frame: Frame) => boolean
  readonly setTimer: (run: () => void, delayMs: number) => () => void
  /** The log can no longer be read here; the readers are told. */
  readonly onFailure: (error: unknown) => void
}

export interface Reader {
  readonly outlet: Outlet
  cursor: number
  caughtUp: boolean
  left: boolean
}

export class Topic {
  private readonly options: TopicOptions
  private readonly prefix: Buffer
  private readonly suffix = Buffer.from("}")
  private readonly atHead = new Set<Reader>()
  private readonly behind = new Set<Reader>()
  /** Readers at the head have everything up to here. */
  private cursor: number
  private pumping = false
  private dirty = false

  constructor(options: TopicOptions, cursor: number) {
    this.options = options
    this.cursor = cursor
    this.prefix = Buffer.from(`{"sub":${JSON.stringify(options.name)},"rune":`)
  }

  get readers(): number {
    return this.atHead.size + this.behind.size
  }

  /** Adds a reader that has everything up to `cursor`. */
  join(outlet: Outlet, cursor: number): Reader {
    const reader: Reader = { outlet, cursor, caughtUp: false, left: false }
    this.behind.add(reader)
    void this.catchUp(reader)
    return reader
  }

  leave(reader: Reader): void {
    reader.left = true
    this.atHead.delete(reader)
    this.behind.delete(reader)
  }

  /** The log has new durable runes. */
  wake(): void {
    this.dirty = true
    if (this.pumping || this.atHead.size === 0) return
    this.pumping = true
    setImmediate(() => {
      this.pump().catch(this.options.onFailure)
    })
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
    } finally {
      this.pumping = false
    }
  }

  /** Hands one page to everybody at the head, in one go: nobody joins or leaves in between. */
  private deliver(page: Page): void {
    const from = this.cursor
    this.cursor = page.next
    const shared = this.encode(page, from)
    for (const reader of this.atHead) {
      if (reader.cursor >= page.next) continue
      if (reader.outlet.pendingBytes() > limits.socketBytesMax) {
        this.fallBehind(reader)
        continue
      }
      // One that came from its own reading may have the first part of the page already.
      const bytes = reader.cursor === from ? shared : this.encode(page, reader.cursor)
      if (bytes !== undefined) reader.outlet.write(bytes)
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
    try {
      while (!reader.left) {
        if (reader.outlet.pendingBytes() > limits.socketBytesMax && !(await this.waitForRoom(reader))) return
        const page = await this.options.read(reader.cursor, limits.pageBytes)
        if (reader.left) return
        const bytes = page.next === reader.cursor ? undefined : this.encode(page, reader.cursor)
        if (bytes !== undefined) reader.outlet.write(bytes)
        reader.cursor = page.next
        if (reader.cursor >= page.head && reader.cursor >= this.cursor) return this.reachHead(reader, page.head)
      }
    } catch (error) {
      this.options.onFailure(error)
    }
  }

  private reachHead(reader: Reader, head: number): void {
    if (this.atHead.size === 0 && !this.pumping) this.cursor = reader.cursor
    this.behind.delete(reader)
    this.atHead.add(reader)
    if (!reader.caughtUp) {
      reader.caughtUp = true
      reader.outlet.write(textFrame(`{"sub":${JSON.stringify(this.options.name)},"caught_up":{"head":${head}}}`))
    }
    this.wake()
  }

  /** False when the reader took nothing for too long and was sent away. */
  private async waitForRoom(reader: Reader): Promise<boolean> {
    let stalled = false
    const cancel = this.options.setTimer(() => {
      stalled = true
      this.leave(reader)
      reader.outlet.closeStalled()
    }, limits.stalledMs)
    await reader.outlet.drained()
    cancel()
    return !stalled && reader.outlet.isOpen()
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
        pieces.push(this.gap(frame))
      } else if (this.options.accepts(frame)) {
        bodies.push(frame.body)
      }
    }
    flush()
    return pieces.length === 0 ? undefined : pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)
  }

  private gap(frame: Frame): Buffer {
    const gap = { from: frame.eventId, to: frame.lastEventId, reason: "thinned" }
    return textFrame(JSON.stringify({ sub: this.options.name, gap }))
  }
}
