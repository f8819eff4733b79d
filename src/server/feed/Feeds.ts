// The topics of a server: one per conversation and filter while anybody follows it. Readers of the same topic share its
// name on the wire, which is what lets them share its bytes.
import { privacyRank } from "../../rune/Envelope.ts"
import type { ConversationStore } from "../operations/Context.ts"
import { pushedFrame } from "../socket/PushedFrame.ts"
import type { SocketSink } from "../socket/SocketSink.ts"
import { ConversationFeed, type ConversationFeedOptions, type Reader } from "./ConversationFeed.ts"
import { acceptsFrame, filterKey, type RuneFilter } from "./Filter.ts"
import type { PageBuffers } from "./PageBuffers.ts"

interface Open {
  readonly key: string
  readonly topic: ConversationFeed
  readonly stop: () => void
}

export interface Membership {
  readonly sub: string
  readonly leave: () => void
}

export interface ReadingOptions {
  readonly conversationStore: ConversationStore
  readonly buffers: PageBuffers
  readonly monotonicMs: () => number
  /** Told when a feed may have delivered everything. */
  readonly onQuiet?: () => void
}

export interface FeedsOptions extends ReadingOptions {
  readonly newName: () => string
  /** A topic could not be read; its readers have been told. */
  readonly onFailure: (error: unknown, conversationId: string) => void
}

export interface JoinRequest {
  readonly conversationId: string
  readonly filter: RuneFilter
  readonly sink: SocketSink
  readonly cursor: number
  /** Names this connection uses already. */
  readonly taken: ReadonlySet<string>
  /** Tells one reader that its subscription is over. */
  readonly onFailure: (sub: string, error: unknown) => void
}

/** How the readers of a conversation with this filter read it. */
export const readingOf = (
  { buffers, conversationStore, monotonicMs, onQuiet }: ReadingOptions,
  conversationId: string,
  filter: RuneFilter
): Omit<ConversationFeedOptions, "name" | "onFailure"> => {
  const { kinds, visibility } = filter
  const readRaw = (after: number, into: Buffer) => conversationStore.readRaw(conversationId, { after, into })
  return {
    read: (after, bytesMax) => conversationStore.read(conversationId, { after, bytesMax, visibilityMax: visibility }),
    // Kinds stand in the runes, not in front of them.
    ...(kinds === undefined ? { readRaw } : {}),
    visibilityMax: privacyRank[visibility],
    buffers,
    monotonicMs,
    ...(onQuiet === undefined ? {} : { onQuiet }),
    accepts: acceptsFrame(filter)
  }
}

export const caughtUpFrame = (sub: string, head: number): Buffer => pushedFrame({ sub, caught_up: { head } })

export class Feeds {
  private readonly options: FeedsOptions
  private readonly open = new Map<string, Open>()
  private readonly owners = new WeakMap<Reader, JoinRequest>()

  constructor(options: FeedsOptions) {
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
    const { conversationId, cursor, filter, sink, taken } = request
    const base = `${conversationId} ${filterKey(filter)}`
    let found = this.open.get(base)
    // One connection that follows the same thing twice gets a topic of its own the second time.
    if (found !== undefined && taken.has(found.topic.name)) found = undefined
    const opened = found ?? this.start(base, request)
    const sub = opened.topic.name
    const reader = opened.topic.join(sink, cursor, (head) => sink.write(caughtUpFrame(sub, head)))
    this.owners.set(reader, request)
    return { sub, leave: () => this.leave(opened, reader) }
  }

  private start(base: string, { conversationId, filter }: JoinRequest): Open {
    const { newName, conversationStore } = this.options
    const name = newName()
    const topic = new ConversationFeed({
      name,
      ...readingOf(this.options, conversationId, filter),
      onFailure: (error, readers) => {
        for (const reader of readers) this.owners.get(reader)?.onFailure(name, error)
        this.closeIfEmpty(opened)
        this.options.onFailure(error, conversationId)
      }
    })
    const key = this.open.has(base) ? `${base} ${name}` : base
    const opened: Open = { key, topic, stop: conversationStore.watch(conversationId, () => topic.wake()) }
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
