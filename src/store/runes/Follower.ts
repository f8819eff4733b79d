// A reader that goes on: pages from a cursor, then whatever becomes durable. It holds a cursor and one dirty flag,
// never a queue, so a slow reader costs nothing and misses nothing.
import type { Page } from "#runelog/segment/Reader.ts"

export interface FollowerOptions {
  readonly after: number
  readonly read: (after: number) => Promise<Page>
  /** Calls the listener when there may be more; returns how to stop. */
  readonly watch: (listener: () => void) => () => void
}

export class Follower {
  private readonly options: FollowerOptions
  private readonly unwatch: () => void
  private cursor: number
  /** Something became durable since the last read. */
  private dirty = true
  private wake: (() => void) | undefined
  private closed = false

  constructor(options: FollowerOptions) {
    this.options = options
    this.cursor = options.after
    this.unwatch = options.watch(() => this.note())
  }

  /** The last event the reader was given. */
  get after(): number {
    return this.cursor
  }

  /** The next page, once there is one; nothing after `close`. */
  async next(): Promise<Page | undefined> {
    while (!this.closed) {
      if (!this.dirty) await new Promise<void>((resolve) => (this.wake = resolve))
      if (this.closed) break
      this.dirty = false
      const page = await this.options.read(this.cursor)
      if (page.next === this.cursor) continue
      this.cursor = page.next
      // What lies behind this page is read without waiting to be told.
      if (page.next < page.head) this.dirty = true
      return page
    }
    return undefined
  }

  close(): void {
    this.closed = true
    this.unwatch()
    this.note()
  }

  private note(): void {
    this.dirty = true
    const { wake } = this
    this.wake = undefined
    wake?.()
  }
}
