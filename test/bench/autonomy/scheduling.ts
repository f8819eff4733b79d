// The scheduler and the machine alone: what it costs to find out which tasks of a large plan may run, and to take a whole
// plan through its steps, with no model, no disk and no program in between.
import { nextTasks } from "#src/machine/decide/TaskSchedule.ts"
import { PlanStory } from "../../support/planStory.ts"
import type { Row } from "../Bench.ts"
import { aimedRow } from "../runelog/rows.ts"
import { median } from "../runelog/sampling.ts"
import { makeTasks } from "./plans.ts"
import { parallel, type Settings } from "./settings.ts"

const planned = (tasks: number): PlanStory => new PlanStory().planned(makeTasks(tasks), { max_parallel: parallel })

const perCall = (story: PlanStory): number => {
  const calls = 500
  const startedMs = performance.now()
  for (let call = 0; call < calls; call++) nextTasks(story.plan)
  return ((performance.now() - startedMs) * 1_000) / calls
}

/** Begins and settles task after task; returns the microseconds for each. */
const perTask = (tasks: number): number => {
  const story = planned(tasks)
  const startedMs = performance.now()
  for (let done = 0; done < tasks; done++) story.worked()
  return ((performance.now() - startedMs) * 1_000) / tasks
}

const repeat = (rounds: number, sample: () => number): number =>
  median(Array.from({ length: rounds }, sample).sort((a, b) => a - b))

export const schedulingRows = ({ rounds, tasks }: Settings): ReadonlyArray<Row> => {
  const story = planned(tasks)
  const call = repeat(rounds, () => perCall(story))
  const whole = repeat(rounds, () => perTask(tasks))
  const small = repeat(rounds, () => perTask(Math.ceil(tasks / 10)))
  return [
    aimedRow({ name: `finding the next tasks among ${tasks}`, value: call, unit: "µs" }, { atMost: 1_000 }),
    aimedRow({ name: `machine, a plan of ${tasks}: each task`, value: whole, unit: "µs" }, { atMost: 20_000 }),
    { name: `machine, a plan of ${Math.ceil(tasks / 10)}: each task`, value: small, unit: "µs" }
  ]
}
