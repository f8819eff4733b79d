// Tells followers when something in any conversation begins or ceases to need a person. Knows what waits everywhere, in
// memory or not, while anybody listens, and only then. A reader whose socket is full gets the last word about
// each thing once there is room, and is sent away when there is none for too long.
import { attentionSummary } from "../../conversation/Summary.ts"
import { limits } from "../../wire/WireLimits.ts"
import { pushedFrame } from "../socket/PushedFrame.ts"
import { type SocketSink, waitForRoom } from "../socket/SocketSink.ts"

type State = Parameters<typeof attentionSummary>[0]
type Item = ReturnType<typeof attentionSummary>[number]
type Change = "raised" | "changed" | "resolved"

export interface AttentionOptions {
  readonly stateOf: (conversationId: string) => Promise<State>
  /** The states of conversations in memory. */
  readonly known: () => ReadonlyArray<State>
  /** All conversations in which somebody may be waited for. */
  readonly waiting: () => Promise<ReadonlyArray<string>>
  readonly onFailure: (error: unknown) => void
}

/** What is said of each conversation, by the keys of its items. */
type Told = Map<string, ReadonlyMap<string, string>>

/** From the first follower to the last. */
interface Watch {
  readonly told: Told
  /** Resolves when it is known what waited at the beginning. */
  readonly ready: Promise<void>
}

interface News {
  readonly change: Change
  /** As JSON. */
  readonly item: string
}

interface Follower {
  readonly sink: SocketSink
  /** What it is told when its socket has room again; absent while it has. */
  missed: Map<string, News> | undefined
}

export interface AttentionFollowing {
  readonly leave: () => void
  /** Resolves when every change from now on is told. */
  readonly ready: Promise<void>
}

const byKey = (state: State): Map<string, string> =>
  new Map(attentionSummary(state).map((item) => [item.key, JSON.stringify(item)]))

export class Attention {
  private readonly options: AttentionOptions
  private readonly sinks = new Set<Follower>()
  private readonly looking = new Set<string>()
  private watch: Watch | undefined

  constructor(options: AttentionOptions) {
    this.options = options
  }

  get followers(): number {
    return this.sinks.size
  }

  follow(sink: SocketSink): AttentionFollowing {
    const follower: Follower = { sink, missed: undefined }
    this.sinks.add(follower)
    this.watch ??= this.begin()
    return { ready: this.watch.ready, leave: () => this.leave(follower) }
  }

  private leave(follower: Follower): void {
    this.sinks.delete(follower)
    if (this.sinks.size === 0) this.watch = undefined
  }

  private begin(): Watch {
    const told: Told = new Map()
    return { told, ready: this.learn(told).catch((error: unknown) => this.options.onFailure(error)) }
  }

  /** Finds out what waits now, also in conversations that are not in memory. */
  private async learn(told: Told): Promise<void> {
    const { known, onFailure, stateOf, waiting } = this.options
    const resident = new Set<string>()
    for (const state of known()) {
      resident.add(state.conversation_id)
      remember(told, state.conversation_id, byKey(state))
    }
    const others = (await waiting()).filter((id) => !resident.has(id)).slice(0, limits.attentionConversationsMax)
    const ids = others.values()
    const lane = async (): Promise<void> => {
      for (const id of ids) {
        // One that cannot be read hides no other.
        const state = await stateOf(id).catch(onFailure)
        if (state !== undefined) remember(told, id, byKey(state))
      }
    }
    await Promise.all(Array.from({ length: limits.attentionLanes }, lane))
  }

  /** Something happened in a conversation. */
  notice(conversationId: string): void {
    if (this.sinks.size === 0 || this.looking.has(conversationId)) return
    this.looking.add(conversationId)
    setImmediate(() => void this.look(conversationId))
  }

  private async look(conversationId: string): Promise<void> {
    const { watch } = this
    try {
      // What waited before has to be known before a change can be.
      await watch?.ready
      this.looking.delete(conversationId)
      if (watch === undefined || watch !== this.watch) return
      const now = byKey(await this.options.stateOf(conversationId))
      if (watch === this.watch) this.compare(watch.told, conversationId, now)
    } catch (error) {
      this.options.onFailure(error)
    }
  }

  private compare(told: Told, conversationId: string, now: ReadonlyMap<string, string>): void {
    const before = told.get(conversationId) ?? new Map<string, string>()
    remember(told, conversationId, now)
    const tell = (key: string, news: News): void => this.tell(`${conversationId} ${key}`, news)
    for (const [key, item] of now) {
      if (before.get(key) !== item) tell(key, { change: before.has(key) ? "changed" : "raised", item })
    }
    for (const [key, item] of before) if (!now.has(key)) tell(key, { change: "resolved", item })
  }

  private tell(key: string, news: News): void {
    for (const follower of this.sinks) this.tellOne(follower, key, news)
  }

  private tellOne(follower: Follower, key: string, news: News): void {
    const { missed, sink } = follower
    if (missed !== undefined) {
      missed.set(key, lastWord(missed.get(key), news))
      if (missed.size > limits.attentionMissedMax) sink.closeStalled()
      return
    }
    if (!sink.isOpen()) return
    sink.write(frameOf(news))
    if (sink.pendingBytes() > limits.socketBytesMax) void this.hold(follower)
  }

  /** Keeps what there is to be told until the socket has room, and only the last word about each thing. */
  private async hold(follower: Follower): Promise<void> {
    const missed = new Map<string, News>()
    follower.missed = missed
    if (!(await waitForRoom(follower.sink))) return this.leave(follower)
    follower.missed = undefined
    for (const [key, news] of missed) this.tellOne(follower, key, news)
  }
}

const remember = (told: Told, conversationId: string, items: ReadonlyMap<string, string>): void => {
  if (items.size === 0) told.delete(conversationId)
  else told.set(conversationId, items)
}

/** To whoever has not heard that it began, what changed since has just begun. */
const lastWord = (before: News | undefined, now: News): News =>
  before?.change === "raised" && now.change === "changed" ? { ...now, change: "raised" } : now

const frameOf = ({ change, item }: News): Buffer => {
  const attention: Item = JSON.parse(item)
  return pushedFrame({ sub: "*", attention: { change, ...attention } })
}
