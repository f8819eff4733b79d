// `echs verify`: reads a whole data directory, changes nothing, and prints the location of every fault. Needs no server.

import { exitCode, type Terminal, type Verb } from "../Verb.ts"
import { dataOption, makeVerb } from "../VerbSpec.ts"

export interface VerifyReport {
  readonly logs: number
  readonly segments: number
  readonly sealed: number
  /** Entries in segments. */
  readonly entries: number
  /** Batches that only the journal holds so far; the next start copies them into segments. */
  readonly batches: number
  readonly bytes: number
  readonly archives: number
  readonly blobs: number
  readonly problems: ReadonlyArray<{
    readonly file: string
    readonly offset: number
    readonly reason: string
    readonly log?: string
  }>
  /** Remarks that are not faults. */
  readonly notes: ReadonlyArray<{ readonly file: string; readonly text: string }>
}

export interface VerifyParts {
  /** The flag's value, or the default directory. */
  readonly dataDirectory: (flag: string | undefined) => string
  /** Answers "missing" when there is no data at this place. */
  readonly verify: (dataDirectory: string) => Promise<VerifyReport | "missing">
}

export const make = (parts: VerifyParts): Verb =>
  makeVerb({
    name: "verify",
    options: { data: dataOption },
    example: "echs verify --data ./data",
    notes: ["Exit code 0: sound. 1: damaged. 5: no data there."],
    run: async ({ answer, terminal, values }) => {
      const directory = parts.dataDirectory(values.data)
      const report = await parts.verify(directory)
      if (report === "missing") {
        terminal.complain(`echs verify: no data at ${directory}\n`)
        return exitCode.notFound
      }
      answer({ directory, ...report }, () => render(terminal, directory, report))
      return report.problems.length === 0 ? exitCode.done : exitCode.failed
    }
  })

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
  const archives = report.archives === 0 ? "" : `, ${amount(report.archives, { one: "archive", many: "archives" })}`
  const blobs = report.blobs === 0 ? "" : `, ${amount(report.blobs, { one: "blob", many: "blobs" })}`
  return `${problems.join("")}${notes.join("")}${verdict}: ${read}${waiting}${archives}${blobs}, at ${directory}\n`
}

const amount = (value: number, word: { readonly one: string; readonly many: string }): string =>
  `${value.toLocaleString("en-US")} ${value === 1 ? word.one : word.many}`
