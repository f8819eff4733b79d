// Goals beside what they are made of: finding the next tasks of a large plan, taking it through the machine, and pursuing it
// in the runtime beside the same number of agents without a plan. docs/AUTONOMY.md says how to read the rows.
import { pursuingRows } from "./autonomy/pursuing.ts"
import { schedulingRows } from "./autonomy/scheduling.ts"
import { readSettings } from "./autonomy/settings.ts"
import type { Bench } from "./Bench.ts"

export const run: Bench["run"] = async ({ directory, progress }) => {
  const settings = readSettings()
  progress(`the machine with a plan of ${settings.tasks} tasks`)
  const scheduling = schedulingRows(settings)
  progress("the runtime with the same plan, and with bare agents")
  return [...scheduling, ...(await pursuingRows(directory, settings))]
}
