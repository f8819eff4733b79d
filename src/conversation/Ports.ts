// What a conversation needs from the rest of the system, as narrow as it can be.
import type { Rune } from "../rune/Rune.ts"

/** Where runes go. `append` starts at once and resolves when they are durable; `busy` says that it would be refused. */
export interface RuneSink {
  readonly append: (
    conversationId: string,
    runes: ReadonlyArray<Rune>,
    options: { readonly terminal: boolean }
  ) => Promise<void>
  readonly busy: () => boolean
  /** Resolves when `busy` is no longer so. */
  readonly ready: () => Promise<void>
}

/** Wall time for the record, in milliseconds. */
export interface WallClock {
  readonly nowMs: () => number
}
