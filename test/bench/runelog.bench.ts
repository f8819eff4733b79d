// The runelog beside its limit and beside what one would otherwise use, all in one run and taking turns: durable appends,
// reads, reopening, memory. docs/BENCHMARKS.md says how to read the rows.
import { join } from "node:path"
import type { Bench, Row } from "./Bench.ts"
import { appendRows, makeAppendSubjects } from "./runelog/appendRows.ts"
import { makeDirectory } from "./runelog/directory.ts"
import { fileBytes, writeLargeLog } from "./runelog/largeLog.ts"
import { makeReads } from "./runelog/reading.ts"
import { memoryRow, readRows, reopenRows, sizeRows } from "./runelog/readRows.ts"
import { measureReopening } from "./runelog/reopening.ts"
import { measureInTurns, watchOthers } from "./runelog/sampling.ts"
import { readSettings, type Settings } from "./runelog/settings.ts"

type Progress = (line: string) => void

const measureLargeLog = async (
  scratch: string,
  settings: Settings,
  progress: Progress
): Promise<ReadonlyArray<Row>> => {
  const { runes } = settings
  const directory = join(scratch, "large")
  progress(`writing a log of ${runes} runes`)
  await writeLargeLog(directory, runes)
  const sizes = sizeRows(directory, runes)
  const frameBytes = Math.floor(fileBytes(directory, ".seg") / runes)
  const reads = makeReads({ directory, runes, frameBytes, scratch })
  const results = await measureInTurns(reads, { ...settings, progress })
  progress("reopening")
  const reopened = await measureReopening(directory, runes, settings.rounds)
  progress("memory of a reader")
  const memory = await memoryRow(directory, settings.memoryLogBytes, frameBytes, settings.rounds)
  return [...sizes, ...readRows(results, frameBytes), ...reopenRows(reopened, runes), memory]
}

/** Progress with the seconds since the start in front. */
const withSeconds = (progress: Progress): Progress => {
  const startedMs = performance.now()
  return (line) => progress(`${String(Math.round((performance.now() - startedMs) / 1000)).padStart(4)} s  ${line}`)
}

export const run: Bench["run"] = async ({ directory: temporary, progress: say }) => {
  const settings = readSettings()
  const progress = withSeconds(say)
  const directory = makeDirectory(temporary)
  const busyOthers = watchOthers()
  try {
    const results = await measureInTurns(makeAppendSubjects(directory.path), { ...settings, progress })
    const others: Row = {
      name: "cores that other processes kept busy during the appends; above 0.2 the run is noisy",
      value: busyOthers(),
      unit: "cores"
    }
    const large = await measureLargeLog(directory.path, settings, progress)
    return [...appendRows(results), ...large, others]
  } finally {
    directory.remove()
  }
}
