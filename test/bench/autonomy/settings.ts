// What the autonomy benchmark measures with. A quick look is BENCH_TASKS=200 BENCH_ROUNDS=1.
import { positive } from "../runelog/settings.ts"

export interface Settings {
  /** Tasks of the plan. */
  readonly tasks: number
  /** How often each figure is taken; the median counts. */
  readonly rounds: number
}

export const readSettings = (): Settings => ({
  tasks: Math.ceil(positive("BENCH_TASKS", 1_000)),
  rounds: Math.ceil(positive("BENCH_ROUNDS", 3))
})

/** Tasks, or bare agents, that run side by side. */
export const parallel = 8
