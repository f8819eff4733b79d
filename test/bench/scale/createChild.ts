// Creates conversations in a process of its own and says how fast: the first thousand of several directories, and the
// last thousands of one with very many. It then goes on creating until it is killed. Arguments: scratch directory, the
// directory with many, how many, samples.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { BenchRuntime } from "../runtime/openRuntime.ts"
import { lanes, sampleConversations } from "./settings.ts"

const [, , scratch = "", many = "", count = "", samples = ""] = process.argv
const model = "scripted/echo"

export interface CreationSample {
  readonly perSecond: number
  readonly cpuMicroseconds: number
}

const create = async (runtime: BenchRuntime, conversations: number): Promise<ReadonlyArray<string>> => {
  const ids: Array<string> = []
  let begun = 0
  const lane = async (): Promise<void> => {
    while (begun++ < conversations) ids.push(await runtime.create(model))
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return ids
}

const sample = async (runtime: BenchRuntime, ids: Array<string>): Promise<CreationSample> => {
  const cpuBefore = process.cpuUsage()
  const startedMs = performance.now()
  for (const id of await create(runtime, sampleConversations)) ids.push(id)
  const seconds = (performance.now() - startedMs) / 1000
  const { system, user } = process.cpuUsage(cpuBefore)
  return { perSecond: sampleConversations / seconds, cpuMicroseconds: (user + system) / sampleConversations }
}

/** Code is compiled and pools are full before the first sample. */
const warmUp = async (): Promise<void> => {
  const runtime = await BenchRuntime.open(join(scratch, "warm"))
  await create(runtime, 5 * sampleConversations)
  await runtime.close()
}

await warmUp()
const first: Array<CreationSample> = []
for (let round = 0; round < Number(samples); round++) {
  const runtime = await BenchRuntime.open(join(scratch, `first-${round}`))
  first.push(await sample(runtime, []))
  await runtime.close()
}
const runtime = await BenchRuntime.open(many)
const ids: Array<string> = []
const last: Array<CreationSample> = []
while (ids.length < Number(count)) {
  last.push(await sample(runtime, ids))
  if (last.length > Number(samples)) last.shift()
}
writeFileSync(join(scratch, "ids.json"), JSON.stringify(ids))
const report = { first, last, head: await runtime.store.runelog.head(ids[0]!) }
export type CreationReport = typeof report
process.stdout.write(`${JSON.stringify(report)}\n`)
for (;;) await create(runtime, lanes)
