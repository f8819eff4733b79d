// Followers of all conversations at once. Those with the same filter share one name and, for each conversation that
// shows a sign of life, one topic; a conversation that has been quiet for a while costs them nothing, because
// the next sign of life says where it begins. A conversation that cannot be read is tried again from where the
// follower is in it; when that does not help, the follower is told which one it is.
import { after, type Cancel } from "../../contract/Timers.ts"
import { limits } from "../../wire/WireLimits.ts"
import { wireErrorOfRejection } from "../operations/Failures.ts"
import { BadRequest, NotFound } from "../operations/OperationErrors.ts"
import { pushedFrame } from "../socket/PushedFrame.ts"
import { hasRoom, type SocketSink, waitForRoom } from "../socket/SocketSink.ts"
import { ConversationFeed, type Reader } from "./ConversationFeed.ts"
import { caughtUpFrame, type Membership, type ReadingOptions, readingOf } from "./Feeds.ts"
import { filterKey, type RuneFilter } from "./Filter.ts"

interface Followed {
  readonly topic: ConversationFeed
  readonly stop: () => void
  usedMs: number
}

/** One conversation of one follower. */
interface Place {
  /** Where the follower is; nothing while its beginning is looked up. */
  after: number | undefined
  /** Absent while the beginning is looked up, before the next try, and when the conversation could not be read. */
  reader: Reader | undefined
  /** Tries in a row that failed. */
  failures: number
  cancelRetry: Cancel | undefined
  /** The follower was told that the conversation cannot be read; the next sign of life is the next try. */
  isLost: boolean
  /** Something became durable while its beginning was looked up. */
  isNoticed: boolean
  /** Resolves when the follower has everything there was, or was told that it does not. */
  readonly settled: PromiseWithResolvers<void>
}

interface Follower {
  readonly sink: SocketSink
  readonly places: Map<string, Place>
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

/** A place and whose it is. */
interface Member {
  readonly group: Group
  readonly follower: Follower
  readonly conversationId: string
  readonly place: Place
}

export interface AllFeedOptions extends ReadingOptions {
  readonly newName: () => string
  readonly onFailure: (error: unknown, conversationId: string) => void
}

export interface FollowAll {
  readonly filter: RuneFilter
  readonly sink: SocketSink
  /** Where to begin with conversations that are named. */
  readonly cursors: Readonly<Record<string, number>>
  /** Conversations that are not named: from their beginning, or only what is new. */
  readonly others: "all" | "new"
  /** Where new begins for those; from now on when left out. */
  readonly sinceMs: number | undefined
  readonly taken: ReadonlySet<string>
  /** Tells the follower that its subscription is over; it leaves. */
  readonly onFailure: (sub: string, error: unknown) => void
}

/** A place to begin: an event, or to be looked up. */
type Start = number | "unknown"

const newPlace = (): Place => ({
  after: undefined,
  reader: undefined,
  failures: 0,
  cancelRetry: undefined,
  isLost: false,
  isNoticed: false,
  settled: Promise.withResolvers<void>()
})

export class AllFeed {
  private readonly options: AllFeedOptions
  private readonly groups = new Map<string, Group>()
  private readonly members = new WeakMap<Reader, Member>()

  constructor(options: AllFeedOptions) {
    this.options = options
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
        const place = follower.places.get(conversationId)
        if (place === undefined)
          this.begin(group, follower, conversationId, startOf(follower, conversationId, firstEventId))
        else if (place.isLost) this.tryAgain({ group, follower, conversationId, place })
        else place.isNoticed = true
      }
    }
  }

  join(request: FollowAll): Membership {
    const group = this.groupFor(request)
    const follower: Follower = { sink: request.sink, places: new Map(), request, isBackfilling: true, left: false }
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
    const { sink } = follower
    const wanted = this.wanted(follower.request)
    const lane = async (): Promise<void> => {
      for (let next = await wanted.next(); next.done !== true && !follower.left; next = await wanted.next()) {
        // What is only told takes room too.
        if (!hasRoom(sink) && !(await waitForRoom(sink))) return
        const { conversationId, start } = next.value
        await this.begin(group, follower, conversationId, start).settled.promise
      }
    }
    try {
      await Promise.all(Array.from({ length: limits.followAllLanes }, lane))
    } catch (error) {
      // Which conversations there are is not known, so none can be named: the subscription as a whole ends.
      this.options.onFailure(error, "*")
      if (!follower.left) follower.request.onFailure(group.name, error)
    }
    follower.isBackfilling = false
    if (!follower.left) sink.write(caughtUpFrame(group.name, 0))
  }

  private async *wanted(request: FollowAll): AsyncGenerator<{ conversationId: string; start: Start }> {
    const { cursors, others, sinceMs } = request
    for (const conversationId of Object.keys(cursors)) yield { conversationId, start: "unknown" }
    if (others === "new" && sinceMs === undefined) return
    const { conversationStore } = this.options
    const all =
      sinceMs === undefined ? conversationStore.conversations() : await conversationStore.changedSince(sinceMs)
    for await (const conversationId of all) {
      if (Object.hasOwn(cursors, conversationId)) continue
      yield { conversationId, start: sinceMs === undefined ? 0 : "unknown" }
    }
  }

  private begin(group: Group, follower: Follower, conversationId: string, start: Start): Place {
    const known = follower.places.get(conversationId)
    if (known !== undefined) return known
    const place = newPlace()
    follower.places.set(conversationId, place)
    void this.enter({ group, follower, conversationId, place }, start)
    return place
  }

  /** Follows the conversation from its start; whatever keeps it from that is a failed try. */
  private async enter(member: Member, start: Start): Promise<void> {
    const { follower, place } = member
    place.cancelRetry = undefined
    try {
      const after = start === "unknown" ? await this.lookUp(member) : start
      if (follower.left || after === undefined) this.settle(member)
      else this.follow(member, after)
    } catch (error) {
      this.failed(member, error)
    }
  }

  /** Where to begin; nothing when the follower has everything there is, which is how most are found that are named. */
  private async lookUp(member: Member): Promise<number | undefined> {
    const { conversationId, follower, place } = member
    const { conversationStore } = this.options
    const { cursors, sinceMs = 0 } = follower.request
    const named = Object.hasOwn(cursors, conversationId) ? cursors[conversationId] : undefined
    if (named === undefined) return conversationStore.cursorSince(conversationId, sinceMs)
    const head = await conversationStore.head(conversationId)
    if (named > head) this.tellBeyond(member, named, head)
    if (named < head || place.isNoticed) return Math.min(named, head)
    if (named > head && head > 0) return head
    if (named === head) follower.places.delete(conversationId)
    return undefined
  }

  /** A cursor that the log never reached, as after a restore from a backup: the follower has to know that it has more. */
  private tellBeyond({ conversationId, follower, group, place }: Member, named: number, head: number): void {
    const unknown = `there is no conversation ${conversationId}`
    const beyond = `the cursor ${named} of ${conversationId} is beyond the head ${head}`
    const error = head === 0 ? new NotFound(unknown) : cursorBeyond(beyond, head)
    place.after = head
    place.isLost = head === 0 && !place.isNoticed
    if (!follower.left) follower.sink.write(errorFrame({ sub: group.name, conversation_id: conversationId }, error))
  }

  private follow(member: Member, after: number): void {
    const { conversationId, follower, group, place } = member
    const followed = group.topics.get(conversationId) ?? this.open(group, conversationId)
    followed.usedMs = this.options.monotonicMs()
    place.after = after
    place.reader = followed.topic.join(follower.sink, after, () => this.settle(member))
    this.members.set(place.reader, member)
  }

  private settle({ place }: Member): void {
    place.failures = 0
    place.settled.resolve()
  }

  private failed(member: Member, error: unknown): void {
    const { conversationId, follower, group, place } = member
    if (place.reader !== undefined) place.after = place.reader.cursor
    place.reader = undefined
    place.failures += 1
    if (follower.left) return
    if (place.failures < limits.followAllTriesMax) {
      const delayMs = limits.followAllRetryMs * 5 ** (place.failures - 1)
      place.cancelRetry = after(delayMs, () => void this.enter(member, place.after ?? "unknown"))
      return
    }
    this.options.onFailure(error, conversationId)
    place.isLost = true
    follower.sink.write(errorFrame({ sub: group.name, conversation_id: conversationId }, error))
    place.settled.resolve()
  }

  private tryAgain(member: Member): void {
    const { place } = member
    place.isLost = false
    place.failures = 0
    void this.enter(member, place.after ?? "unknown")
  }

  private open(group: Group, conversationId: string): Followed {
    const { conversationStore } = this.options
    const topic = new ConversationFeed({
      name: group.name,
      conversationId,
      ...readingOf(this.options, conversationId, group.filter),
      onFailure: (error, readers) => {
        for (const reader of readers) {
          const member = this.members.get(reader)
          if (member !== undefined) this.failed(member, error)
        }
      }
    })
    const followed: Followed = {
      topic,
      usedMs: this.options.monotonicMs(),
      stop: conversationStore.watch(conversationId, () => {
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
    for (const [conversationId, place] of follower.places) {
      place.cancelRetry?.()
      if (place.reader !== undefined) group.topics.get(conversationId)?.topic.leave(place.reader)
      place.settled.resolve()
    }
    if (group.followers.size > 0) return
    for (const { stop } of group.topics.values()) stop()
    if (this.groups.get(group.key) === group) this.groups.delete(group.key)
  }

  /** Lets go of conversations in which nothing happened for a while; asked for every so often. */
  sweep(): void {
    const beforeMs = this.options.monotonicMs() - limits.followAllQuietMs
    for (const group of this.groups.values()) {
      // While a follower catches up, only its places say what it has had already.
      if ([...group.followers].some(({ isBackfilling }) => isBackfilling)) continue
      for (const [conversationId, followed] of group.topics) {
        if (followed.usedMs > beforeMs || !followed.topic.isQuiet) continue
        followed.stop()
        group.topics.delete(conversationId)
        for (const { places } of group.followers) {
          // One that could not be read is not forgotten: the next try begins where the follower is.
          if (places.get(conversationId)?.reader !== undefined) places.delete(conversationId)
        }
      }
    }
  }
}

const cursorBeyond = (message: string, head: number) => new BadRequest(message, { head })

/** Says of one conversation that it does not come, or not from where it was asked for; the others go on. */
const errorFrame = (about: { readonly sub: string; readonly conversation_id: string }, error: unknown): Buffer =>
  pushedFrame({ ...about, error: wireErrorOfRejection(error) })

/** What a follower has of a conversation that shows a sign of life for the first time. */
const startOf = ({ isBackfilling, request }: Follower, conversationId: string, firstEventId: number): Start => {
  if (!isBackfilling) return firstEventId - 1
  if (Object.hasOwn(request.cursors, conversationId)) return "unknown"
  if (request.others === "all") return 0
  return request.sinceMs === undefined ? firstEventId - 1 : "unknown"
}
