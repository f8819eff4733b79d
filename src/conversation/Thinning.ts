// Lets the log drop what it no longer needs of conversations at rest: deltas whose text a later rune holds in full. One
// conversation at a time and behind all other work; one that is missed, because too many wait or the process ends, is
// thinned when it is next at rest.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type RunFork, scopedFork } from "../contract/Timers.ts"
import type { ConversationId } from "../rune/Ids.ts"
import { limits } from "./ConversationLimits.ts"

export interface Thinner {
  /** Bytes that packing would go through; 0 when there is nothing to pack, or nobody knows. */
  readonly unsealedBytes: (conversationId: ConversationId) => number
  /** Closes what the log has of the conversation, drops superseded deltas from it, and packs what is left. */
  readonly pack: (conversationId: ConversationId) => Promise<unknown>
}

export interface ThinningOptions {
  readonly thinner: Thinner
  readonly onThinned: (conversationId: ConversationId) => void
  /** Costs room on the disk, and nothing else. */
  readonly onFailed: (conversationId: ConversationId, cause: unknown) => void
  readonly waitingMax?: number
  readonly runFork?: RunFork | undefined
}

export class Thinning {
  private readonly options: ThinningOptions
  private readonly waitingMax: number
  private readonly waiting = new Set<ConversationId>()
  private readonly fork: RunFork
  private isRunning = false
  private isOver = false

  private constructor(options: ThinningOptions, fork: RunFork) {
    this.options = options
    this.fork = fork
    this.waitingMax = options.waitingMax ?? limits.thinningMax
  }

  /** Works for as long as the scope is open: the one under way is finished, and no other begun. */
  static readonly make = (options: ThinningOptions): Effect.Effect<Thinning, never, Scope.Scope> =>
    Effect.gen(function* () {
      const thinning = new Thinning(options, yield* scopedFork(options.runFork))
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          thinning.isOver = true
        })
      )
      return thinning
    })

  /** The conversation is at rest; one that is over is thinned however little it holds. Tells whether it will be. */
  add(conversationId: ConversationId, { isOver }: { readonly isOver: boolean }): boolean {
    if (this.isOver) return false
    const bytesMin = isOver ? 1 : limits.thinBytesMin
    if (this.options.thinner.unsealedBytes(conversationId) < bytesMin) return false
    if (this.waiting.size >= this.waitingMax) return this.waiting.has(conversationId)
    this.waiting.add(conversationId)
    if (!this.isRunning) this.fork(this.run)
    return true
  }

  private get run(): Effect.Effect<void> {
    this.isRunning = true
    return Effect.gen({ self: this }, function* () {
      for (const conversationId of this.waiting) {
        this.waiting.delete(conversationId)
        yield* Effect.uninterruptible(this.pack(conversationId))
      }
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          this.isRunning = false
        })
      )
    )
  }

  private pack(conversationId: ConversationId): Effect.Effect<void> {
    const { onFailed, onThinned, thinner } = this.options
    return Effect.promise(() => thinner.pack(conversationId)).pipe(
      Effect.catchCause((cause) => Effect.sync(() => onFailed(conversationId, Cause.squash(cause)))),
      Effect.andThen(Effect.sync(() => onThinned(conversationId)))
    )
  }
}
