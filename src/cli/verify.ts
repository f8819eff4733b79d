// `echs verify`: reads a whole data directory, changes nothing, and says of every fault where it is. It works without a
// server; what reads the log is handed in.
import { parseArgs } from "node:util"
import { type ExitCode, exitCode, type Terminal, type Verb } from "./Verb.ts"

export interface VerifyReport {
  readonly logs: number
  readonly segments: number
  readonly sealed: number
  /** Entries in segments. */
  readonly entries: number
  /** Batches that so far only the journal holds; the next start brings them into the segments. */
  readonly batches: number
  readonly bytes: number
  readonly problems: ReadonlyArray<{ readonly file: string; readonly offset: number; readonly reason: string }>
  /** What is no fault, but good to know. */
  readonly notes: ReadonlyArray<{ readonly file: string; readonly text: string }>
}

export interface VerifyParts {
  /** The flag's value, or where the data lies when there is no flag. */
  readonly dataDirectory: (flag: string | undefined) => string
  /** Answers "missing" when there is no data at this place. */
  readonly verify: (dataDirectory: string) => Promise<VerifyReport | "missing">
}

interface Options {
  readonly data: string | undefined
  readonly json: boolean
}

export const makeVerify = (parts: VerifyParts): Verb => ({
  usage: [
    "usage: echs verify [--data DIRECTORY] [--json]",
    "",
    "  --data DIRECTORY  the data to read; else ECHS_DATA, else the state directory of the user",
    "  --json            one JSON object on standard output",
    "",
    "exit code 0: sound, 1: damaged, 5: no data there"
  ].join("\n"),
  run: async (args, terminal) => {
    const options = readOptions(args)
    if (typeof options === "string") return refuse(terminal, exitCode.usage, options)
    const directory = parts.dataDirectory(options.data)
    const report = await parts.verify(directory)
    if (report === "missing") return refuse(terminal, exitCode.notFound, `there is no data at ${directory}`)
    terminal.write(options.json ? `${JSON.stringify({ directory, ...report })}\n` : render(terminal, directory, report))
    return report.problems.length === 0 ? exitCode.done : exitCode.failed
  }
})

const refuse = (terminal: Terminal, code: ExitCode, message: string): ExitCode => {
  terminal.complain(`echs verify: ${message}\n`)
  return code
}

const readOptions = (args: ReadonlyArray<string>): Options | string => {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { data: { type: "string" }, json: { type: "boolean", default: false } }
    })
    return { data: values.data, json: values.json }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const render = (terminal: Terminal, directory: string, report: VerifyReport): string => {
  const problems = report.problems.map(
    ({ file, offset, reason }) => `${terminal.paint("bad", "damaged")} ${file} at byte ${offset}: ${reason}\n`
  )
  const notes = report.notes.map(({ file, text }) => `${terminal.paint("quiet", "note")} ${file}: ${text}\n`)
  const verdict =
    problems.length === 0
      ? terminal.paint("good", "sound")
      : terminal.paint("bad", amount(problems.length, { one: "problem", many: "problems" }))
  const waiting =
    report.batches === 0 ? "" : `, ${amount(report.batches, { one: "batch", many: "batches" })} in the journal`
  const read = `${amount(report.entries, { one: "entry", many: "entries" })} in ${amount(report.logs, { one: "log", many: "logs" })}`
  return `${problems.join("")}${notes.join("")}${verdict}: ${read}${waiting}, at ${directory}\n`
}

const amount = (value: number, word: { readonly one: string; readonly many: string }): string =>
  `${value.toLocaleString("en-US")} ${value === 1 ? word.one : word.many}`
