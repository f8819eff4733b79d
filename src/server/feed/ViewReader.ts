// Delivery of a derived view to one follower: reads the conversation from its beginning, folds every rune, and sends
// the events of those after the cursor that the follower may see. Its fold is its own; nothing is queued.
import type { Page } from "../../conversation/Reading.ts"
import { type DerivedView, makeView, runeIn, type ViewFold } from "../../conversation/Views.ts"
import { limits } from "../../wire/WireLimits.ts"
import type { ConversationStore } from "../operations/Context.ts"
import { pushedFrame } from "../socket/PushedFrame.ts"
import { hasRoom, type SocketSink, waitForRoom } from "../socket/SocketSink.ts"
import { caughtUpFrame } from "./Feeds.ts"
import { acceptsKind, type RuneFilter } from "./Filter.ts"
import { hasMore } from "./ReadProgress.ts"

export interface ViewRequest {
  readonly sub: string
  readonly view: DerivedView
  readonly conversationId: string
  readonly filter: RuneFilter
  readonly sink: SocketSink
  readonly cursor: number
  readonly conversationStore: ConversationStore
  readonly onFailure: (error: unknown) => void
}

export class ViewReader {
  private readonly request: ViewRequest
  private readonly fold: ViewFold
  private readonly accepts: (kind: string) => boolean
  private readonly stop: () => void
  private position = 0
  private running = true
  private dirty = true
  private isCaughtUp = false
  private left = false

  constructor(request: ViewRequest) {
    this.request = request
    this.fold = makeView(request.view)
    this.accepts = acceptsKind(request.filter.kinds)
    this.stop = request.conversationStore.watch(request.conversationId, () => this.wake())
    setImmediate(() => void this.pump())
  }

  leave(): void {
    this.left = true
    this.stop()
  }

  private wake(): void {
    this.dirty = true
    if (this.running || this.left) return
    this.running = true
    setImmediate(() => void this.pump())
  }

  private async pump(): Promise<void> {
    const { onFailure, sink } = this.request
    try {
      while (this.dirty && !this.left) {
        this.dirty = false
        if (!hasRoom(sink) && !(await waitForRoom(sink))) return this.leave()
        await this.step()
      }
    } catch (error) {
      this.leave()
      onFailure(error)
    } finally {
      this.running = false
    }
  }

  private async step(): Promise<void> {
    const { conversationId, sink, conversationStore, sub } = this.request
    // Every rune is folded, also those the follower may not see: a state follows from all of them.
    const request = { after: this.position, bytesMax: limits.pageBytes, visibilityMax: "internal" } as const
    const page = await conversationStore.read(conversationId, request)
    if (this.left) return
    const isMore = hasMore(this.position, page)
    if (page.next !== this.position) this.deliver(page)
    if (isMore) this.dirty = true
    else if (!this.isCaughtUp) {
      this.isCaughtUp = true
      sink.write(caughtUpFrame(sub, page.head))
      // Whether the end of a log is its end, or damage, is known behind it.
      this.dirty = true
    }
  }

  private deliver(page: Page): void {
    const { conversationId, cursor, filter, sink, sub } = this.request
    const frames: Array<Buffer> = []
    this.position = page.next
    for (const frame of page.frames) {
      if (frame.kind === "thinned") continue
      const rune = runeIn(conversationId, frame)
      const events = this.fold(rune)
      const isSeen = filter.visibility === "internal" || rune.visibility === "public"
      if (rune.event_id <= cursor || !isSeen || !this.accepts(rune.kind)) continue
      for (const event of events) frames.push(pushedFrame({ sub, event }))
    }
    if (frames.length > 0) sink.write(Buffer.concat(frames))
  }
}
