// Very many conversations in one directory: creating one more beside creating the first, and the start of a server after
// kill −9 while the journal holds all of them. docs/BENCHMARKS.md says how to read the rows.
import { join } from "node:path"
import type { Bench, Row } from "./Bench.ts"
import { startChild } from "./runelog/child.ts"
import { makeDirectory } from "./runelog/directory.ts"
import { aimedRow, comparedRow } from "./runelog/rows.ts"
import { median, watchOthers } from "./runelog/sampling.ts"
import { thousands } from "./runtime/settings.ts"
import type { CreationReport, CreationSample } from "./scale/createChild.ts"
import { readSettings, type Settings } from "./scale/settings.ts"
import { countKept, type Kept, measureStarts, type Start, type Starts } from "./scale/starting.ts"

export const creationRows = ({ first, last }: CreationReport, conversations: number): ReadonlyArray<Row> => {
  const rate = (name: string, samples: ReadonlyArray<CreationSample>): Row => ({
    name,
    value: median(samples.map(({ perSecond }) => perSecond)),
    unit: "creations/s"
  })
  const cost = (name: string, samples: ReadonlyArray<CreationSample>): Row => ({
    name: `${name}: processor time`,
    value: median(samples.map(({ cpuMicroseconds }) => cpuMicroseconds)),
    unit: "µs/creation"
  })
  const few = "the first 1,000 conversations of a directory"
  const many = `1,000 conversations more, beside ${thousands(conversations)}`
  const fewRate = rate(few, first)
  const fewCost = cost(few, first)
  return [
    fewRate,
    fewCost,
    comparedRow(rate(many, last), fewRate, { atLeast: 0.8 }),
    comparedRow(cost(many, last), fewCost)
  ]
}

const startRow = (name: string, starts: ReadonlyArray<Start>): Row => ({
  name: `${name}, to listening`,
  value: median(starts.map(({ wallMs }) => wallMs)),
  unit: "ms"
})

const startCostRow = (name: string, starts: ReadonlyArray<Start>): ReadonlyArray<Row> => {
  const costs = starts.flatMap(({ cpuMs }) => (cpuMs === undefined ? [] : [cpuMs]))
  return costs.length === 0 ? [] : [{ name: `${name}, to listening: processor time`, value: median(costs), unit: "ms" }]
}

export const startRows = ({ dirty, empty }: Starts, kept: Kept): ReadonlyArray<Row> => {
  const none = "start on an empty directory"
  const of = `after kill −9 with ${thousands(kept.dirty)} dirty logs`
  const many = `start ${of}`
  return [
    startRow(none, empty),
    ...startCostRow(none, empty),
    aimedRow(startRow(many, dirty), { atMost: 3000 }),
    ...startCostRow(many, dirty),
    { name: `${many}, until the catalog was held against the logs`, value: kept.caughtUpMs, unit: "ms" },
    aimedRow(
      { name: `acknowledged conversations missing ${of}`, value: kept.missing, unit: "conversations" },
      { atMost: 0 }
    )
  ]
}

const measure = async (
  directory: string,
  { conversations, rounds }: Settings,
  progress: (line: string) => void
): Promise<ReadonlyArray<Row>> => {
  const many = join(directory, "many")
  progress(`creating ${thousands(conversations)} conversations`)
  const child = await startChild("../scale/createChild.ts", [directory, many, String(conversations), String(rounds)])
  await child.kill()
  const report: CreationReport = JSON.parse(child.line)
  progress("starts")
  const starts = await measureStarts(directory, many, rounds)
  progress("counting what is left")
  return [...creationRows(report, conversations), ...startRows(starts, await countKept(directory, many, report.head))]
}

export const run: Bench["run"] = async ({ directory: temporary, progress }) => {
  const settings = readSettings()
  const directory = makeDirectory(temporary)
  const busyOthers = watchOthers()
  try {
    const rows = await measure(directory.path, settings, progress)
    return [
      ...rows,
      { name: "cores that other processes kept busy, own children included", value: busyOthers(), unit: "cores" }
    ]
  } finally {
    directory.remove()
  }
}
