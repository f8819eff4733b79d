// What a committer works with and whom it tells.

import type { Journal } from "../journal/Journal.ts"
import type { WriterPoisoned } from "../RunelogErrors.ts"
import type { Limits } from "../RunelogLimits.ts"
import type { Group } from "./Batch.ts"
import type { Slabs } from "./Slabs.ts"
import type { SyncPolicy } from "./SyncPolicy.ts"

export interface CommitterOptions {
  readonly path: string
  readonly journal: Journal
  readonly slabs: Slabs
  readonly limits: Limits
  readonly policy: SyncPolicy
  readonly nonce: bigint
  readonly firstSequence: number
  /** Of the batch that the first one continues; 0 when it continues none. */
  readonly previousHeaderCrc: number
  readonly nowMs: () => number
  /** Called after the groups of a batch became durable, before its appenders are told. */
  readonly onDurable: (groups: ReadonlyArray<Group>, sequence: number) => void
  /** Called when a batch finds no room in the journal; that may be inside an append. */
  readonly onNoRoom: () => void
  /** Called when the writer stops for good; that may be inside an append. */
  readonly onPoison: (error: WriterPoisoned) => void
}

export interface AppendMode {
  /** The append may use the room that is kept for last words, and is never answered Busy. */
  readonly terminal: boolean
}
