/**
 * A conversation as an async iterable that outlives its connections. The cursor moves with what the reader was handed,
 * never with what only arrived, so whatever is lost on the way is asked for again: no rune twice, none missing.
 */
import { LinkLost, RequestFailed } from "./ClientErrors.ts"
import { Feed } from "./Feed.ts"
import { attentionKey, type Link } from "./Link.ts"
import { AllPosition, type Place, type Position, RunePosition, ViewPosition } from "./Position.ts"
import type { Answer, AttentionChange, AttentionItem, Fields, TailItem, View } from "./Wire.ts"

export interface TailOptions {
  /** The event id after which to begin; 0 is the beginning, "tail" is now. */
  readonly after?: number | "tail"
  /** Kinds, or families such as `tool.*`; all when left out. */
  readonly kinds?: ReadonlyArray<string>
  readonly visibility?: "public" | "internal"
  readonly view?: View
  /** Also bring text that is not durable yet. */
  readonly live?: boolean
  readonly signal?: AbortSignal
}

/** What a subscription needs of the client. */
export interface LinkSource {
  /** The connection in use, or the next one; rejects when there will be none. */
  readonly link: (signal: AbortSignal) => Promise<Link | undefined>
  readonly waitBusy: (error: unknown, signal: AbortSignal) => Promise<boolean>
}

const never = new AbortController().signal

const subscribeFields = (conversationId: string, options: TailOptions, place: Place): Fields<"subscribe"> => ({
  conversation_id: conversationId,
  ...place,
  ...(options.kinds === undefined ? {} : { kinds: options.kinds }),
  ...(options.visibility === undefined ? {} : { visibility: options.visibility }),
  ...(options.view === undefined ? {} : { view: options.view }),
  ...(options.live === undefined ? {} : { live: options.live })
})

interface Opened {
  readonly feed: Feed
  readonly leave: () => Promise<void>
}

/** Subscribes on this connection; undefined when it ended meanwhile. */
export const open = async <Op extends "subscribe" | "attention.subscribe" | "terminal.attach">(
  link: Link,
  request: { readonly op: Op; readonly fields: object; readonly key?: string },
  onOk: (ok: Answer<Op>) => void
): Promise<Opened | undefined> => {
  let sub = ""
  let left: Promise<void> | undefined
  const leave = (): Promise<void> => {
    left ??= link.leave(sub, feed)
    return left
  }
  const feed = new Feed(() => void leave())
  try {
    await link.request(request.op, request.fields as Readonly<Record<string, unknown>>, (ok) => {
      const answer = ok as Answer<Op>
      sub = request.key ?? answer.sub
      link.follow(sub, feed)
      onOk(answer)
    })
    return { feed, leave }
  } catch (error) {
    if (error instanceof LinkLost) return undefined
    throw error
  }
}

const positionFor = (conversationId: string, { after = 0, view = "runes" }: TailOptions): Position => {
  if (conversationId === "*") return new AllPosition(after)
  return view === "runes" ? new RunePosition(after) : new ViewPosition(after)
}

/** Opens the subscription on whatever connection there is, for as often as it takes. */
export const openAgain = async (
  source: LinkSource,
  signal: AbortSignal,
  attempt: (link: Link) => Promise<Opened | undefined>
): Promise<Opened | undefined> => {
  for (;;) {
    const link = await source.link(signal)
    if (link === undefined) return undefined
    try {
      const opened = await attempt(link)
      if (opened !== undefined) return opened
    } catch (error) {
      if (!(error instanceof RequestFailed) || !(await source.waitBusy(error, signal))) throw error
    }
  }
}

export async function* tail(
  source: LinkSource,
  conversationId: string,
  options: TailOptions
): AsyncGenerator<TailItem, void, void> {
  const signal = options.signal ?? never
  const position = positionFor(conversationId, options)
  for (;;) {
    const opened = await openAgain(source, signal, (link) => {
      const fields = subscribeFields(conversationId, options, position.place())
      return open(link, { op: "subscribe", fields }, ({ head, since_ms: sinceMs }) => position.opened(head, sinceMs))
    })
    if (opened === undefined) return
    try {
      for (;;) {
        const frame = await opened.feed.next(signal)
        if (frame === "aborted") return
        if (typeof frame === "string") break
        // An error that names a conversation is about that one alone; the position knows what it means.
        if (frame.error !== undefined && frame.conversation_id === undefined)
          throw new RequestFailed("subscribe", frame.error)
        const item = position.take(frame)
        if (item !== undefined) yield item
      }
      // A name may be used again: nothing of the old subscription may come after the new one is open.
      await opened.leave()
    } finally {
      // Whoever stops reading does not wait for a server that may never answer.
      void opened.leave()
    }
  }
}

export type AttentionUpdate =
  /** Everything that needs a person now; comes first, and again whenever changes may have been missed. */
  { readonly items: ReadonlyArray<AttentionItem> } | { readonly changed: AttentionChange }

export async function* attention(
  source: LinkSource,
  list: () => Promise<Answer<"attention.list">>,
  signal: AbortSignal = never
): AsyncGenerator<AttentionUpdate, void, void> {
  for (;;) {
    const opened = await openAgain(source, signal, (link) =>
      open(link, { op: "attention.subscribe", fields: {}, key: attentionKey }, () => {})
    )
    if (opened === undefined) return
    try {
      yield { items: (await list()).items }
      for (;;) {
        const frame = await opened.feed.next(signal)
        if (frame === "aborted") return
        if (typeof frame === "string") break
        if (frame.attention !== undefined) yield { changed: frame.attention }
      }
      // A name may be used again: nothing of the old subscription may come after the new one is open.
      await opened.leave()
    } finally {
      // Whoever stops reading does not wait for a server that may never answer.
      void opened.leave()
    }
  }
}
