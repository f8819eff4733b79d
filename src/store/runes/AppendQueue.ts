// Appends that cannot start at once, because the engine is busy or has to open the log first. They wait in order,
// whatever comes meanwhile for the same conversation waits behind them, and each starts as soon as it can. Bounded
// per conversation.
import { dropOldest } from "../../rune/Elements.ts"
import { AppendsWaiting } from "../StoreErrors.ts"
import { limits } from "../StoreLimits.ts"

export interface Append {
  readonly start: () => Promise<void>
  /** The engine takes it even when it is busy. */
  readonly terminal: boolean
}

/** Below the number of logs that the engine keeps open. */
const OPENED_MAX = 10_000

interface Waiting extends Append {
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

export interface AppendQueueOptions {
  /** Resolves when the engine has the log open, so that an append is taken or refused at once. */
  readonly open: (conversationId: string) => Promise<unknown>
  readonly isBusy: () => boolean
  /** Resolves when it is not. */
  readonly ready: () => Promise<void>
  readonly waitingMax?: number
}

export class AppendQueue {
  private readonly options: AppendQueueOptions
  private readonly waitingMax: number
  private readonly queues = new Map<string, Array<Waiting>>()
  /** Conversations whose logs were opened, the longest ago first. */
  private readonly opened = new Set<string>()

  constructor(options: AppendQueueOptions) {
    this.options = options
    this.waitingMax = options.waitingMax ?? limits.waitingAppendsMax
  }

  /** Nothing stands before an append that comes now: whoever has one may start it without asking further. */
  isFree(conversationId: string, { terminal }: { readonly terminal: boolean }): boolean {
    if (!this.opened.has(conversationId) || (this.options.isBusy() && !terminal)) return false
    return this.queues.size === 0 || !this.queues.has(conversationId)
  }

  /** Resolves when the append is durable, however long it has to wait for its turn. */
  run(conversationId: string, append: Append): Promise<void> {
    if (this.isFree(conversationId, append)) return append.start()
    return new Promise((resolve, reject) => this.enter(conversationId, { ...append, resolve, reject }))
  }

  private enter(conversationId: string, item: Waiting): void {
    const queue = this.queues.get(conversationId)
    if (queue === undefined) {
      const fresh = [item]
      this.queues.set(conversationId, fresh)
      void this.drain(conversationId, fresh)
    } else if (queue.length < this.waitingMax) {
      queue.push(item)
    } else {
      item.reject(new AppendsWaiting({ conversationId, waitingMax: this.waitingMax }))
    }
  }

  private async drain(conversationId: string, queue: Array<Waiting>): Promise<void> {
    // What keeps a log from being opened is told to every append by the engine itself.
    await this.options.open(conversationId).catch(() => undefined)
    this.opened.add(conversationId)
    if (this.opened.size > OPENED_MAX) dropOldest(this.opened)
    for (let item = queue[0]; item !== undefined; item = queue[0]) {
      if (!item.terminal && this.options.isBusy()) {
        await this.options.ready()
        continue
      }
      const { reject, resolve } = item
      queue.shift()
      item.start().then(resolve, reject)
    }
    this.queues.delete(conversationId)
  }
}
