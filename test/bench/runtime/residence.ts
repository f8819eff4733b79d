// What conversations cost that do nothing: memory while resident and after leaving, and time at the start of a process
// that has many of them on disk. All in processes of their own.
import { join } from "node:path"
import type { Row } from "../Bench.ts"
import { startChild } from "../runelog/child.ts"
import { aimedRow, comparedRow } from "../runelog/rows.ts"
import { median } from "../runelog/sampling.ts"
import type { MemoryReport } from "./memoryChild.ts"
import { KIB, thousands } from "./settings.ts"
import type { StartReport } from "./startChild.ts"

const runChild = async <Report>(module: string, args: ReadonlyArray<string>): Promise<Report> => {
  const child = await startChild(`../runtime/${module}`, args)
  await child.kill()
  return JSON.parse(child.line)
}

/** Fills the directory with the conversations that it measures. */
export const measureMemory = async (directory: string, conversations: number): Promise<ReadonlyArray<Row>> => {
  const report = await runChild<MemoryReport>("memoryChild.ts", [directory, String(conversations)])
  const of = `of ${thousands(conversations)} with one short turn`
  const row = (name: string, bytes: number): Row => ({ name, value: bytes / KIB, unit: "KiB" })
  return [
    aimedRow(row(`heap per idle resident conversation, ${of}`, report.residentBytes), { atMost: 12 }),
    aimedRow(row(`heap per evicted conversation, ${of}`, report.evictedBytes), { atMost: 1 }),
    row(`resident set per idle resident conversation, ${of}`, report.residentRssBytes),
    row(`resident set per evicted conversation, ${of}`, report.evictedRssBytes)
  ]
}

export interface StartDirectories {
  /** Holds conversations and was closed in good order. */
  readonly full: string
  readonly scratch: string
}

const parts = [
  ["process start to ready", "readyMs"],
  ["of this opening and recovery", "openMs"],
  ["opening until the catalog was held against the logs", "caughtUpMs"]
] as const

const heapOf = (reports: ReadonlyArray<StartReport>): number => median(reports.map(({ heapBytes }) => heapBytes))

export const measureStarts = async (directories: StartDirectories, rounds: number): Promise<ReadonlyArray<Row>> => {
  const empty = join(directories.scratch, "empty")
  const start = (directory: string): Promise<StartReport> => runChild("startChild.ts", [directory])
  await start(empty)
  await start(directories.full)
  const without: Array<StartReport> = []
  const withMany: Array<StartReport> = []
  for (let round = 0; round < rounds; round++) {
    without.push(await start(empty))
    withMany.push(await start(directories.full))
  }
  const many = withMany[0]!.conversations
  if (without[0]!.conversations !== 0 || many === 0) throw new Error("the directories do not hold what they should")
  const grownBytes = heapOf(withMany) - heapOf(without)
  const heap: Row = {
    name: `heap per conversation on disk after a start, of ${thousands(many)}`,
    value: grownBytes / many / KIB,
    unit: "KiB"
  }
  const times = parts.flatMap(([what, field]) => {
    const middle = (reports: ReadonlyArray<StartReport>): number => median(reports.map((report) => report[field]))
    const none: Row = { name: `start with no conversation: ${what}`, value: middle(without), unit: "ms" }
    const full: Row = {
      name: `start with ${thousands(many)} conversations on disk: ${what}`,
      value: middle(withMany),
      unit: "ms"
    }
    return [none, comparedRow(full, none, field === "caughtUpMs" ? undefined : { atMost: 2 })]
  })
  return [...times, heap]
}
