// What the scale benchmark measures with. A quick look is BENCH_CONVERSATIONS=10000 BENCH_ROUNDS=1.
import { positive } from "../runelog/settings.ts"

export interface Settings {
  /** Conversations in one directory, none of which is in a segment of its own when the process is killed. */
  readonly conversations: number
  /** Samples of each row. */
  readonly rounds: number
}

export const readSettings = (): Settings => ({
  conversations: Math.ceil(positive("BENCH_CONVERSATIONS", 100_000)),
  rounds: Math.ceil(positive("BENCH_ROUNDS", 5))
})

/** Conversations in one sample of creations. */
export const sampleConversations = 1000
/** Creations under way at once. */
export const lanes = 64
