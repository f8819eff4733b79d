// Tells followers when something in any conversation begins or ceases to need a person. Changes are followed while anybody
// listens, and only then. A reader whose socket is full gets the last word about each thing once there is room, and is
// sent away when there is none for too long.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Attention, AttentionChange } from "../../attention/Attention.ts"
import { limits } from "../../wire/WireLimits.ts"
import { pushedFrame } from "../socket/PushedFrame.ts"
import { type SocketSink, waitForRoom } from "../socket/SocketSink.ts"

/** From the first follower to the last. */
interface Watch {
  readonly scope: Scope.Closeable
  /** Resolves when it is known what waited at the beginning. */
  readonly ready: Promise<void>
}

interface Follower {
  readonly sink: SocketSink
  /** What it is told when its socket has room again; absent while it has. */
  missed: Map<string, AttentionChange> | undefined
}

export interface AttentionFollowing {
  readonly leave: () => void
  /** Resolves when every change from now on is told. */
  readonly ready: Promise<void>
}

export class AttentionFeed {
  private readonly attention: Pick<Attention["Service"], "changes">
  private readonly sinks = new Set<Follower>()
  private watch: Watch | undefined

  constructor(attention: Pick<Attention["Service"], "changes">) {
    this.attention = attention
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
    if (this.sinks.size > 0 || this.watch === undefined) return
    Effect.runFork(Scope.close(this.watch.scope, Exit.void))
    this.watch = undefined
  }

  private begin(): Watch {
    const scope = Scope.makeUnsafe()
    const following = Effect.flatMap(this.attention.changes, (changes) =>
      Effect.forkScoped(Stream.runForEach(changes, (change) => Effect.sync(() => this.tell(change))))
    )
    return { scope, ready: Effect.runPromise(Effect.asVoid(Scope.provide(following, scope))) }
  }

  private tell(change: AttentionChange): void {
    for (const follower of this.sinks) this.tellOne(follower, change)
  }

  private tellOne(follower: Follower, change: AttentionChange): void {
    const { missed, sink } = follower
    if (missed !== undefined) {
      missed.set(change.name, lastWord(missed.get(change.name), change))
      if (missed.size > limits.attentionMissedMax) sink.closeStalled()
      return
    }
    if (!sink.isOpen()) return
    sink.write(frameOf(change))
    if (sink.pendingBytes() > limits.socketBytesMax) void this.hold(follower)
  }

  /** Keeps what there is to be told until the socket has room, and only the last word about each thing. */
  private async hold(follower: Follower): Promise<void> {
    const missed = new Map<string, AttentionChange>()
    follower.missed = missed
    if (!(await waitForRoom(follower.sink))) return this.leave(follower)
    follower.missed = undefined
    for (const change of missed.values()) this.tellOne(follower, change)
  }
}

/** To whoever has not heard that it began, what changed since has just begun. */
const lastWord = (before: AttentionChange | undefined, now: AttentionChange): AttentionChange =>
  before?.change === "raised" && now.change === "changed" ? { ...now, change: "raised" } : now

const frameOf = ({ change, item }: AttentionChange): Buffer => pushedFrame({ sub: "*", attention: { change, ...item } })
