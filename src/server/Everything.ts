// Followers of all conversations at once. Those with the same filter share one name and, for each conversation that
// shows a sign of life, one topic; a conversation that has been quiet for a while costs them nothing, because
// the next sign of life says where it begins.
import { limits } from "../wire/Limits.ts"
import { filterKey, type RuneFilter } from "./Filter.ts"
import type { Outlet } from "./Outlet.ts"
import { type Reader, Topic } from "./Topic.ts"
import { caughtUpFrame, type Membership, type ReadingOptions, readingOf } from "./Topics.ts"

interface Followed {
  readonly topic: Topic
  readonly stop: () => void
  usedMs: number
}

interface Follower {
  readonly outlet: Outlet
  readonly readers: Map<string, Reader>
  readonly request: FollowAll
  isBackfilling: boolean
  left: boolean
}

interface Group {
  readonly key: string
  readonly name: string
  readonly filter: RuneFilter
  readonly followers: Set<Follower>
  readonly topics: Map<string, Followed>
}

export interface EverythingOptions extends ReadingOptions {
  readonly newName: () => string
  readonly onFailure: (error: unknown, conversationId: string) => void
}

export interface FollowAll {
  readonly filter: RuneFilter
  readonly outlet: Outlet
  /** Where to begin with conversations that are named. */
  readonly cursors: Readonly<Record<string, number>>
  /** Conversations that are not named: from their beginning, or only what is new. */
  readonly others: "all" | "new"
  /** Where new begins for those; from now on when left out. */
  readonly sinceMs: number | undefined
  readonly taken: ReadonlySet<string>
}

export class Everything {
  private readonly options: EverythingOptions
  private readonly groups = new Map<string, Group>()
  private readonly sweeper: NodeJS.Timeout

  constructor(options: EverythingOptions) {
    this.options = options
    this.sweeper = setInterval(() => this.sweep(), limits.followAllQuietMs)
    this.sweeper.unref()
  }

  close(): void {
    clearInterval(this.sweeper)
  }

  get isQuiet(): boolean {
    for (const group of this.groups.values()) {
      for (const { topic } of group.topics.values()) if (!topic.isQuiet) return false
    }
    return true
  }

  get followers(): number {
    let sum = 0
    for (const { followers } of this.groups.values()) sum += followers.size
    return sum
  }

  /** A conversation has new durable runes, beginning with this one. */
  notice(conversationId: string, firstEventId: number): void {
    for (const group of this.groups.values()) {
      for (const follower of group.followers) {
        if (follower.readers.has(conversationId)) continue
        const after = startOf(follower, conversationId, firstEventId)
        if (after === "unknown") void this.followSince(group, follower, conversationId)
        else this.follow(group, follower, conversationId, after)
      }
    }
  }

  join(request: FollowAll): Membership {
    const group = this.groupFor(request)
    const follower: Follower = { outlet: request.outlet, readers: new Map(), request, isBackfilling: true, left: false }
    group.followers.add(follower)
    setImmediate(() => void this.backfill(group, follower))
    return { sub: group.name, leave: () => this.leave(group, follower) }
  }

  private groupFor({ filter, taken }: FollowAll): Group {
    const key = filterKey(filter)
    const found = this.groups.get(key)
    if (found !== undefined && !taken.has(found.name)) return found
    const name = this.options.newName()
    const group: Group = {
      key: found === undefined ? key : `${key} ${name}`,
      name,
      filter,
      followers: new Set(),
      topics: new Map()
    }
    this.groups.set(group.key, group)
    return group
  }

  /** Catches up with what is named, and with all others if asked for, a few conversations at a time. */
  private async backfill(group: Group, follower: Follower): Promise<void> {
    const wanted = this.wanted(follower.request)
    const lane = async (): Promise<void> => {
      for (let next = await wanted.next(); next.done !== true && !follower.left; next = await wanted.next()) {
        const { after, conversationId } = next.value
        await new Promise<void>((resolve) => this.follow(group, follower, conversationId, after, resolve))
      }
    }
    try {
      await Promise.all(Array.from({ length: limits.followAllLanes }, lane))
    } catch (error) {
      this.options.onFailure(error, "*")
    }
    follower.isBackfilling = false
    if (!follower.left) follower.outlet.write(caughtUpFrame(group.name, 0))
  }

  private async *wanted({
    cursors,
    others,
    sinceMs
  }: FollowAll): AsyncGenerator<{ conversationId: string; after: number }> {
    for (const [conversationId, after] of Object.entries(cursors)) {
      const head = await this.options.shelf.head(conversationId).catch(() => 0)
      if (head > after) yield { conversationId, after }
    }
    if (others === "new") {
      if (sinceMs !== undefined) yield* this.changedSince(sinceMs, cursors)
      return
    }
    for await (const conversationId of this.options.shelf.conversations()) {
      if (cursors[conversationId] === undefined) yield { conversationId, after: 0 }
    }
  }

  private async *changedSince(sinceMs: number, cursors: FollowAll["cursors"]) {
    const { shelf } = this.options
    for (const conversationId of await shelf.changedSince(sinceMs)) {
      if (cursors[conversationId] !== undefined) continue
      yield { conversationId, after: await shelf.cursorSince(conversationId, sinceMs) }
    }
  }

  /** Finds out where to begin with a conversation that shows a sign of life before its turn in the backfill comes. */
  private async followSince(group: Group, follower: Follower, conversationId: string): Promise<void> {
    const { sinceMs = 0 } = follower.request
    try {
      const after = await this.options.shelf.cursorSince(conversationId, sinceMs)
      this.follow(group, follower, conversationId, after)
    } catch (error) {
      this.options.onFailure(error, conversationId)
    }
  }

  private follow(
    group: Group,
    follower: Follower,
    conversationId: string,
    after: number,
    onCaughtUp: () => void = () => undefined
  ): void {
    if (follower.left || follower.readers.has(conversationId)) {
      onCaughtUp()
      return
    }
    const followed = group.topics.get(conversationId) ?? this.open(group, conversationId, after)
    followed.usedMs = this.options.monotonicMs()
    follower.readers.set(conversationId, followed.topic.join(follower.outlet, after, onCaughtUp))
  }

  private open(group: Group, conversationId: string, cursor: number): Followed {
    const { onFailure, shelf } = this.options
    const topic = new Topic(
      {
        name: group.name,
        ...readingOf(this.options, conversationId, group.filter),
        onFailure: (error, readers) => {
          for (const reader of readers) reader.onCaughtUp(0)
          onFailure(error, conversationId)
        }
      },
      cursor
    )
    const followed: Followed = {
      topic,
      usedMs: this.options.monotonicMs(),
      stop: shelf.watch(conversationId, () => {
        followed.usedMs = this.options.monotonicMs()
        topic.wake()
      })
    }
    group.topics.set(conversationId, followed)
    return followed
  }

  private leave(group: Group, follower: Follower): void {
    follower.left = true
    group.followers.delete(follower)
    for (const [conversationId, reader] of follower.readers) group.topics.get(conversationId)?.topic.leave(reader)
    if (group.followers.size > 0) return
    for (const { stop } of group.topics.values()) stop()
    if (this.groups.get(group.key) === group) this.groups.delete(group.key)
  }

  private sweep(): void {
    const beforeMs = this.options.monotonicMs() - limits.followAllQuietMs
    for (const group of this.groups.values()) {
      if ([...group.followers].some(({ isBackfilling }) => isBackfilling)) continue
      for (const [conversationId, followed] of group.topics) {
        if (followed.usedMs > beforeMs || !followed.topic.isQuiet) continue
        followed.stop()
        group.topics.delete(conversationId)
        for (const follower of group.followers) follower.readers.delete(conversationId)
      }
    }
  }
}

/** What a follower has of a conversation that shows a sign of life for the first time. */
const startOf = (
  { isBackfilling, request }: Follower,
  conversationId: string,
  firstEventId: number
): number | "unknown" => {
  if (!isBackfilling) return firstEventId - 1
  const named = request.cursors[conversationId]
  if (named !== undefined) return named
  if (request.others === "all") return 0
  return request.sinceMs === undefined ? firstEventId - 1 : "unknown"
}
