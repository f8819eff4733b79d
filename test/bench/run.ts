// `npm run bench -- NAME [--json] [--gate]`: runs one benchmark and shows its rows. With --json standard output holds
// one JSON object and nothing else. Exit codes: 0 ran, 1 it failed (with --gate: or missed a target), 2 no such name.
import { execFileSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { parseArgs } from "node:util"
import type { Bench, Report, Row } from "./Bench.ts"
import { renderTable } from "./table.ts"

const suffix = ".bench.ts"

export interface Options {
  readonly name: string | undefined
  readonly json: boolean
  readonly gate: boolean
}

/** The benchmarks that exist, by name. */
export const listBenches = (directory: string): ReadonlyArray<string> =>
  readdirSync(directory)
    .filter((file) => file.endsWith(suffix))
    .map((file) => file.slice(0, -suffix.length))
    .sort()

/** Refuses rows that could not be compared later: a bench that measured nothing must not look like one that did. */
export const checkRows = (rows: ReadonlyArray<Row>): void => {
  if (rows.length === 0) throw new Error("the benchmark gave no row")
  for (const row of rows) {
    const numbers = [row.value, row.ratio, row.target].filter((number) => number !== undefined)
    if (!numbers.every(Number.isFinite)) throw new Error(`row "${row.name}" has a number that is not finite`)
    if (row.baseline !== undefined && !rows.some((other) => other.name === row.baseline)) {
      throw new Error(`row "${row.name}" is compared with "${row.baseline}", which this run did not measure`)
    }
  }
}

export const runBench = async (directory: string, options: Options): Promise<number> => {
  const names = listBenches(directory)
  if (options.name === undefined) {
    process.stdout.write(names.map((name) => `${name}\n`).join(""))
    return 0
  }
  if (!names.includes(options.name)) {
    process.stderr.write(`there is no benchmark "${options.name}"; there are: ${names.join(", ") || "none"}\n`)
    return 2
  }
  const rows = await measure(join(directory, `${options.name}${suffix}`))
  const report: Report = { bench: options.name, commit: currentCommit(directory), node: process.versions.node, rows }
  process.stdout.write(options.json ? `${JSON.stringify(report)}\n` : renderReport(report))
  return options.gate && rows.some((row) => row.met === false) ? 1 : 0
}

const measure = async (file: string): Promise<ReadonlyArray<Row>> => {
  // What a dependency prints must not end up between the figures.
  console.log = console.error
  console.info = console.error
  const bench: Bench = await import(pathToFileURL(file).href)
  const directory = mkdtempSync(join(tmpdir(), "echs-bench-"))
  try {
    const rows = await bench.run({ directory, progress: (line) => void process.stderr.write(`${line}\n`) })
    checkRows(rows)
    return rows
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const renderReport = (report: Report): string => {
  const judged = report.rows.filter((row) => row.met !== undefined)
  const met = judged.filter((row) => row.met).length
  const verdict = judged.length === 0 ? "" : `\n${met} of ${judged.length} targets met\n`
  return `${report.bench} · commit ${report.commit} · Node ${report.node}\n\n${renderTable(report.rows)}\n${verdict}`
}

const currentCommit = (directory: string): string => {
  try {
    const git = (...args: ReadonlyArray<string>) =>
      execFileSync("git", ["-C", directory, ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()
    const changed = git("status", "--porcelain", "--untracked-files=no") !== ""
    return git("rev-parse", "--short", "HEAD") + (changed ? "+changes" : "")
  } catch {
    return "unknown"
  }
}

const readOptions = (args: ReadonlyArray<string>): Options => {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { json: { type: "boolean", default: false }, gate: { type: "boolean", default: false } }
  })
  if (positionals.length > 1) throw new Error("one benchmark at a time")
  return { name: positionals[0], json: values.json, gate: values.gate }
}

const main = async (): Promise<number> => {
  try {
    return await runBench(fileURLToPath(new URL(".", import.meta.url)), readOptions(process.argv.slice(2)))
  } catch (error) {
    process.stderr.write(`bench: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`)
    return isUsageError(error) ? 2 : 1
  }
}

const isUsageError = (error: unknown): boolean =>
  error instanceof Error && "code" in error && String(error.code).startsWith("ERR_PARSE_ARGS")

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main()
