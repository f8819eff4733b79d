// The runtime beside its limits, all in one run: typed appends beside raw group commit, replay beside JSON.parse, streamed
// text beside the bare SDK; then turns, memory, start and recovery. docs/BENCHMARKS.md says how to read the rows.
import { join } from "node:path"
import type { Bench, Row } from "./Bench.ts"
import { startChild } from "./runelog/child.ts"
import { makeDirectory } from "./runelog/directory.ts"
import { measureInTurns, watchOthers } from "./runelog/sampling.ts"
import { measureCommands } from "./runtime/commands.ts"
import { measureRecovery } from "./runtime/recovering.ts"
import { makeReplaySubjects, replayRows, writeReplayLogs } from "./runtime/replaying.ts"
import { measureMemory, measureStarts } from "./runtime/residence.ts"
import { readSettings, type Settings } from "./runtime/settings.ts"
import { makeSpeaking, speakingRows } from "./runtime/speaking.ts"
import { openStreaming, streamingRows } from "./runtime/streaming.ts"
import { makeTypedSubjects, typedRows } from "./runtime/typedAppend.ts"

type Progress = (line: string) => void
type Part = (directory: string, settings: Settings, progress: Progress) => Promise<ReadonlyArray<Row>>

const measureAppends: Part = async (directory, settings, progress) =>
  typedRows(await measureInTurns(makeTypedSubjects(directory), { ...settings, progress }))

const measureReplay: Part = async (directory, settings, progress) => {
  progress(`writing ${settings.runes} runes`)
  const logs = await writeReplayLogs(directory, settings.runes)
  return replayRows(await measureInTurns(makeReplaySubjects(logs), { ...settings, progress }))
}

const measureStreams: Part = async (directory, settings, progress) => {
  const provider = await startChild("../runtime/providerChild.ts", [])
  try {
    const { close, subjects } = await openStreaming(directory, provider.line)
    try {
      return streamingRows(await measureInTurns(subjects, { ...settings, progress }))
    } finally {
      await close()
    }
  } finally {
    await provider.kill()
  }
}

const measureTurns: Part = async (directory, settings, progress) =>
  speakingRows(await measureInTurns([makeSpeaking(directory)], { ...settings, progress }))

const measureResidence: Part = async (directory, settings, progress) => {
  const full = join(directory, "full")
  progress("memory of conversations")
  const memory = await measureMemory(full, settings.conversations)
  progress("starts")
  return [...memory, ...(await measureStarts({ full, scratch: directory }, settings.rounds))]
}

const measureUnfinished: Part = async (directory, settings, progress) => {
  progress("recovery of unfinished turns")
  return measureRecovery(directory, settings.unfinished, settings.rounds)
}

const measureLooking: Part = async (directory, settings, progress) => {
  progress("commands that only look")
  return measureCommands(directory, settings.rounds)
}

/** By name, so that one can be looked at alone: BENCH_PARTS=replay,turns. */
const parts: Readonly<Record<string, Part>> = {
  append: measureAppends,
  replay: measureReplay,
  stream: measureStreams,
  turns: measureTurns,
  residence: measureResidence,
  recovery: measureUnfinished,
  commands: measureLooking
}

const chosenParts = (): ReadonlyArray<Part> => {
  const chosen = process.env["BENCH_PARTS"]
  const names = chosen === undefined || chosen === "" ? Object.keys(parts) : chosen.split(",")
  return names.map((name) => {
    const part = parts[name]
    if (part === undefined) throw new Error(`there is no part "${name}"; there are: ${Object.keys(parts).join(", ")}`)
    return part
  })
}

const withSeconds = (progress: Progress): Progress => {
  const startedMs = performance.now()
  return (line) => progress(`${String(Math.round((performance.now() - startedMs) / 1000)).padStart(4)} s  ${line}`)
}

export const run: Bench["run"] = async ({ directory: temporary, progress: say }) => {
  const settings = readSettings()
  const chosen = chosenParts()
  const progress = withSeconds(say)
  const directory = makeDirectory(temporary)
  const busyOthers = watchOthers()
  try {
    const rows: Array<Row> = []
    for (const part of chosen) rows.push(...(await part(directory.path, settings, progress)))
    const name = "cores that other processes kept busy, own children included"
    return [...rows, { name, value: busyOthers(), unit: "cores" }]
  } finally {
    directory.remove()
  }
}
