// The standing campaign of goals: models with habits, real repositories, a judge that no model sees. The rows say how many
// goals were called met and were not, whether each ended for the reason that its cast must lead to, and what it cost.
// docs/AUTONOMY.md says how to read them.
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { fileTools } from "../support/autonomy/fileTools.ts"
import { TestRunner } from "../support/autonomy/TestRunner.ts"
import { randomFrom } from "../support/seed.ts"
import { functionTools } from "../support/tool/FunctionTools.ts"
import type { Bench, Row } from "./Bench.ts"
import { personalities } from "./goals/personalities.ts"
import { castOf, type Notes, type Outcome, pursue, scenariosOf } from "./goals/pursuit.ts"
import { repositoriesHere } from "./goals/repositories.ts"
import { aimedRow } from "./runelog/rows.ts"
import { BenchRuntime } from "./runtime/openRuntime.ts"

const wholeNumber = (name: string, usual: number): number => {
  const value = Number(process.env[name] ?? usual)
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`${name} must be a whole number, 1 or more`)
  return value
}

/** Planner, worker with its work and its word, critic: what a goal of one task needs at least. */
const fewestCalls = 4

const quantile = (values: ReadonlyArray<number>, at: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(at * sorted.length))] ?? 0
}

const runAll = async (directory: string, goals: number, seed: number, progress: (line: string) => void) => {
  const notes: Notes = new Map()
  const runtime = await BenchRuntime.open(join(directory, "data"), {
    scenarios: scenariosOf(),
    tools: functionTools(fileTools),
    runner: new TestRunner(),
    onRunes: (runes) => {
      const [first] = runes
      if (first !== undefined) notes.get(first.conversation_id)?.(runes)
    }
  })
  const outcomes: Array<Outcome> = []
  const random = randomFrom(seed)
  const casts = Array.from({ length: goals }, (_, nth) => castOf(nth, random)).entries()
  const lane = async (): Promise<void> => {
    for (const [nth, cast] of casts) {
      const workspace = join(directory, `goal-${nth}`)
      mkdirSync(workspace, { recursive: true })
      const outcome = await pursue(runtime, notes, cast, workspace)
      outcomes.push(outcome)
      const { critic, planner, repository, worker } = cast
      if (!outcome.isExpected || outcome.isKnowable)
        progress(
          `goal ${nth} ended as "${outcome.end}": ${[repository.name, cast.asked, planner.name, worker.name, critic.name].join(" / ")}`
        )
    }
  }
  try {
    await Promise.all(Array.from({ length: 4 }, lane))
  } finally {
    await runtime.close()
  }
  return outcomes
}

const rowsOf = (outcomes: ReadonlyArray<Outcome>): ReadonlyArray<Row> => {
  const count = (is: (one: Outcome) => boolean): number => outcomes.filter(is).length
  const met = outcomes.filter(({ end }) => end === "met")
  const ratios = met.map(({ calls }) => calls / fewestCalls)
  const goals = (name: string, value: number): Row => ({ name, value, unit: "goals" })
  const names = new Set(Object.values(personalities).flat())
  return [
    { name: "personalities", value: names.size, unit: "models" },
    { name: "repositories", value: repositoriesHere().length, unit: "kinds" },
    goals("goals", outcomes.length),
    goals("called met", met.length),
    goals(
      "called met, and wrong, without hidden checks",
      count(({ cast, isFalse }) => isFalse && cast.asked !== "hidden")
    ),
    aimedRow(
      goals(
        "called met, and wrong, with hidden checks",
        count(({ cast, isFalse }) => isFalse && cast.asked === "hidden")
      ),
      { atMost: 0 }
    ),
    aimedRow(
      goals(
        "called met, wrong, and the server could have told",
        count(({ isKnowable }) => isKnowable)
      ),
      { atMost: 0 }
    ),
    aimedRow(
      goals(
        "ended for another reason than its cast must lead to",
        count(({ isExpected }) => !isExpected)
      ),
      { atMost: 0 }
    ),
    aimedRow(
      { name: "model calls of a goal that was met ÷ fewest, median", value: quantile(ratios, 0.5), unit: "×" },
      { atMost: 1.5 }
    ),
    aimedRow(
      { name: "model calls of a goal that was met ÷ fewest, 90 %", value: quantile(ratios, 0.9), unit: "×" },
      { atMost: 3 }
    )
  ]
}

export const run: Bench["run"] = async ({ directory, progress }) => {
  const goals = wholeNumber("BENCH_GOALS", 63)
  const seed = wholeNumber("BENCH_SEED", 1)
  progress(`${goals} goals from seed ${seed}`)
  return rowsOf(await runAll(directory, goals, seed, progress))
}
