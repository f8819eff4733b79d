// The topics of a server: one per conversation and filter while anybody follows it. Readers of the same topic share its
// name on the wire, which is what lets them share its bytes.
import { privacyRank } from "../../rune/Envelope.ts"
import type { Shelf } from "../operations/Context.ts"
import type { Outlet } from "../socket/SocketSink.ts"
import { textFrame } from "../socket/WebSocketFrame.ts"
import { type Reader, Topic, type TopicOptions } from "./ConversationFeed.ts"
import { acceptsFrame, filterKey, type RuneFilter } from "./Filter.ts"
import type { PageBuffers } from "./PageBuffers.ts"

interface Open {
  readonly key: string
  readonly topic: Topic
  readonly stop: () => void
}

export interface Membership {
  readonly sub: string
  readonly leave: () => void
}

export interface ReadingOptions {
  readonly shelf: Shelf
  readonly buffers: PageBuffers
  readonly monotonicMs: () => number
}

export interface TopicsOptions extends ReadingOptions {
  readonly newName: () => string
  /** A topic could not be read; its readers have been told. */
  readonly onFailure: (error: unknown, conversationId: string) => void
}

export interface JoinRequest {
  readonly conversationId: string
  readonly filter: RuneFilter
  readonly outlet: Outlet
  readonly cursor: number
  /** Names this connection uses already. */
  readonly taken: ReadonlySet<string>
  /** Tells one reader that its subscription is over. */
  readonly onFailure: (sub: string, error: unknown) => void
}

/** How the readers of a conversation with this filter read it. */
export const readingOf = (
  { buffers, monotonicMs, shelf }: ReadingOptions,
  conversationId: string,
  filter: RuneFilter
): Omit<TopicOptions, "name" | "onFailure"> => {
  const { kinds, visibility } = filter
  const readRaw = (after: number, into: Buffer) => shelf.readRaw(conversationId, { after, into })
  return {
    read: (after, bytesMax) => shelf.read(conversationId, { after, bytesMax, visibilityMax: visibility }),
    // Kinds stand in the runes, not in front of them.
    ...(kinds === undefined ? { readRaw } : {}),
    visibilityMax: privacyRank[visibility],
    buffers,
    monotonicMs,
    accepts: acceptsFrame(filter)
  }
}

export const caughtUpFrame = (sub: string, head: number): Buffer =>
  textFrame(`{"sub":${JSON.stringify(sub)},"caught_up":{"head":${head}}}`)

export class Topics {
  private readonly options: TopicsOptions
  private readonly open = new Map<string, Open>()
  private readonly owners = new WeakMap<Reader, JoinRequest>()

  constructor(options: TopicsOptions) {
    this.options = options
  }

  get size(): number {
    return this.open.size
  }

  get readers(): number {
    let sum = 0
    for (const { topic } of this.open.values()) sum += topic.readers
    return sum
  }

  get isQuiet(): boolean {
    for (const { topic } of this.open.values()) if (!topic.isQuiet) return false
    return true
  }

  /** Follows a conversation from a cursor; the first frame comes after the current turn of the loop. */
  join(request: JoinRequest): Membership {
    const { conversationId, cursor, filter, outlet, taken } = request
    const base = `${conversationId} ${filterKey(filter)}`
    let found = this.open.get(base)
    // One connection that follows the same thing twice gets a topic of its own the second time.
    if (found !== undefined && taken.has(found.topic.name)) found = undefined
    const opened = found ?? this.start(base, request)
    const sub = opened.topic.name
    const reader = opened.topic.join(outlet, cursor, (head) => outlet.write(caughtUpFrame(sub, head)))
    this.owners.set(reader, request)
    return { sub, leave: () => this.leave(opened, reader) }
  }

  private start(base: string, { conversationId, filter }: JoinRequest): Open {
    const { newName, shelf } = this.options
    const name = newName()
    const topic = new Topic({
      name,
      ...readingOf(this.options, conversationId, filter),
      onFailure: (error, readers) => {
        for (const reader of readers) this.owners.get(reader)?.onFailure(name, error)
        this.closeIfEmpty(opened)
        this.options.onFailure(error, conversationId)
      }
    })
    const key = this.open.has(base) ? `${base} ${name}` : base
    const opened: Open = { key, topic, stop: shelf.watch(conversationId, () => topic.wake()) }
    this.open.set(key, opened)
    return opened
  }

  private leave(opened: Open, reader: Reader): void {
    opened.topic.leave(reader)
    this.closeIfEmpty(opened)
  }

  private closeIfEmpty(opened: Open): void {
    if (opened.topic.readers > 0 || this.open.get(opened.key) !== opened) return
    opened.stop()
    this.open.delete(opened.key)
  }
}
