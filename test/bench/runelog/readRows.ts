// The rows of the large log: its size on disk, reads, reopening, and the memory of a reader.
import type { Row } from "../Bench.ts"
import { startChild } from "./child.ts"
import { fileBytes, writeLargeLog } from "./largeLog.ts"
import { readNames } from "./reading.ts"
import type { Reopened } from "./reopening.ts"
import { aimedRow, comparedRow, found, rateRow } from "./rows.ts"
import { median, type Results } from "./sampling.ts"
import { bodyBytes } from "./settings.ts"

const MIB = 1024 * 1024
const thousands = (value: number): string => value.toLocaleString("en-US")

export const sizeRows = (directory: string, runes: number): ReadonlyArray<Row> => {
  const segments = fileBytes(directory, ".seg") / runes
  const index = fileBytes(directory, ".idx") / runes
  return [
    { name: "runelog, bytes per rune of 256 in its segment", value: segments, unit: "bytes" },
    { name: "runelog, of these not the rune's own", value: segments - bodyBytes, unit: "bytes" },
    { name: "runelog, bytes per rune in the index beside it", value: index, unit: "bytes" }
  ]
}

export const readRows = (results: Results, frameBytes: number): ReadonlyArray<Row> => {
  const scan = rateRow(results, readNames.scan, "runes/s")
  const point = rateRow(results, readNames.point, "reads/s")
  const asMegabytes = (name: string): Row => ({
    name: `${name}: bytes`,
    value: (found(results, name).perSecond * frameBytes) / 1e6,
    unit: "MB/s"
  })
  const iterate = rateRow(results, readNames.sqliteScan, "runes/s")
  const pages = rateRow(results, readNames.sqlitePages, "runes/s")
  const select = rateRow(results, readNames.sqlitePoint, "reads/s")
  const file = asMegabytes(readNames.fileScan)
  return [
    comparedRow(scan, iterate),
    comparedRow(asMegabytes(readNames.scan), file),
    file,
    iterate,
    pages,
    comparedRow(point, select),
    rateRow(results, readNames.filePoint, "reads/s"),
    select
  ]
}

export const reopenRows = (reopened: Reopened, runes: number): ReadonlyArray<Row> => {
  const log = `a log of ${thousands(runes)} runes`
  const scan: Row = { name: `runelog, full scan of ${log}`, value: reopened.scanMs, unit: "ms" }
  const row = (how: string, ms: number): Row =>
    comparedRow({ name: `runelog, reopening ${log}${how}`, value: ms, unit: "ms" }, scan, { atMost: 0.2 })
  const afterKill = (runesRecovered: number, groups: string): string =>
    ` after kill −9, ${thousands(runesRecovered)} runes recovered from ${groups}`
  return [
    scan,
    row(" after a clean close", reopened.cleanMs),
    row(afterKill(reopened.groupedRecovered, "commits of 256"), reopened.groupedMs),
    row(afterKill(reopened.singleRecovered, "commits of one"), reopened.singleMs)
  ]
}

const FLAT_MIB = 64

interface ReaderReport {
  readonly runes: number
  readonly growthBytes: number
}

const readInChild = async (directory: string, runes: number): Promise<ReaderReport> => {
  const reader = await startChild("memoryReader.ts", [directory])
  await reader.kill()
  const report: ReaderReport = JSON.parse(reader.line)
  if (report.runes < runes) throw new Error(`${runes} runes were written, ${report.runes} were read`)
  return report
}

/** Reads the log, made longer if it is too short, in processes of its own: the peak depends on when garbage is collected. */
export const memoryRow = async (
  directory: string,
  logBytes: number,
  frameBytes: number,
  rounds: number
): Promise<Row> => {
  const runes = Math.ceil(logBytes / frameBytes)
  await writeLargeLog(directory, runes)
  const growthBytes: Array<number> = []
  for (let round = 0; round < rounds; round++) growthBytes.push((await readInChild(directory, runes)).growthBytes)
  const readMib = Math.round(fileBytes(directory, ".seg") / MIB)
  return aimedRow(
    {
      name: `runelog, growth of memory while reading ${thousands(readMib)} MiB`,
      value: median(growthBytes) / MIB,
      unit: "MiB"
    },
    { atMost: FLAT_MIB }
  )
}
