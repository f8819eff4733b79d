// Lets the log drop what it no longer needs of conversations at rest: deltas whose text a later rune holds in full. One
// conversation at a time and behind all other work; one that is missed, because too many wait or the process ends, is
// thinned when it is next at rest.
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
}

export class Thinning {
  private readonly options: ThinningOptions
  private readonly waitingMax: number
  private readonly waiting = new Set<ConversationId>()
  private running: Promise<void> | undefined
  private closed = false

  constructor(options: ThinningOptions) {
    this.options = options
    this.waitingMax = options.waitingMax ?? limits.thinningMax
  }

  /** The conversation is at rest; one that is over is thinned however little it holds. Tells whether it will be. */
  add(conversationId: ConversationId, { isOver }: { readonly isOver: boolean }): boolean {
    if (this.closed) return false
    const bytesMin = isOver ? 1 : limits.thinBytesMin
    if (this.options.thinner.unsealedBytes(conversationId) < bytesMin) return false
    if (this.waiting.size >= this.waitingMax) return this.waiting.has(conversationId)
    this.waiting.add(conversationId)
    this.running ??= this.run().finally(() => {
      this.running = undefined
    })
    return true
  }

  private async run(): Promise<void> {
    const { onFailed, onThinned, thinner } = this.options
    for (const conversationId of this.waiting) {
      this.waiting.delete(conversationId)
      try {
        await thinner.pack(conversationId)
      } catch (cause) {
        onFailed(conversationId, cause)
      }
      onThinned(conversationId)
    }
  }

  /** Finishes the one under way and begins no other. */
  async close(): Promise<void> {
    this.closed = true
    this.waiting.clear()
    await this.running
  }
}
