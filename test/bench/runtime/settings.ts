// What the runtime benchmark measures with. The defaults fit five minutes on a quiet machine; a quick look is
// BENCH_SECONDS=0.2 BENCH_ROUNDS=1 BENCH_RUNES=20000 BENCH_CONVERSATIONS=1000.
import { positive } from "../runelog/settings.ts"

export interface Settings {
  /** Length of one sample. */
  readonly seconds: number
  /** Samples of each row, taken in turns with the rows it is compared with. */
  readonly rounds: number
  /** Runes in the logs that are replayed. */
  readonly runes: number
  /** Conversations in memory, and on disk at a start. */
  readonly conversations: number
  /** Turns that a kill leaves unfinished. */
  readonly unfinished: number
}

export const readSettings = (): Settings => ({
  seconds: positive("BENCH_SECONDS", 1),
  rounds: Math.ceil(positive("BENCH_ROUNDS", 5)),
  runes: Math.ceil(positive("BENCH_RUNES", 200_000)),
  conversations: Math.ceil(positive("BENCH_CONVERSATIONS", 10_000)),
  unfinished: Math.ceil(positive("BENCH_UNFINISHED", 100))
})

/** Conversations that speak with the fake provider at once. */
export const streams = 50
/** Conversations that take turns with the scripted provider at once. */
export const speakers = 200

export const KIB = 1024
export const thousands = (value: number): string => value.toLocaleString("en-US")
