// `echs repair`: makes the documented repairs and no others. A damaged journal is set aside once its good batches are in
// their logs; a damaged log is truncated to its good prefix. A copy of everything removed is kept. Without `--yes` it
// only prints its plan. Needs no server, and verifies everything again afterwards.

import { exitCode, type Verb } from "../Verb.ts"
import { dataOption, makeVerb } from "../VerbSpec.ts"
import type { VerifyReport } from "./verify.ts"

export interface RepairPlan {
  readonly journal: boolean
  readonly manifest: boolean
  readonly logs: ReadonlyArray<string>
}

export interface RepairDone {
  readonly journal?: { readonly batches: number; readonly copies: ReadonlyArray<string> }
  readonly logs: ReadonlyArray<{ readonly log: string; readonly head: number; readonly copies: ReadonlyArray<string> }>
}

export interface RepairParts {
  readonly dataDirectory: (flag: string | undefined) => string
  readonly verify: (dataDirectory: string) => Promise<VerifyReport | "missing">
  readonly repair: (dataDirectory: string, plan: RepairPlan) => Promise<RepairDone>
}

/** Damaged archives, blobs and meta can only be restored from a backup. */
const planOf = (directory: string, { problems }: VerifyReport): RepairPlan => {
  const inLogs = problems.filter(
    ({ file, log }) =>
      log !== undefined && !file.startsWith(`${directory}/archive/`) && !file.startsWith(`${directory}/blobs/`)
  )
  return {
    journal: problems.some(({ file }) => file === `${directory}/journal` || file.startsWith(`${directory}/journal/`)),
    manifest: problems.some(({ file }) => file.startsWith(`${directory}/manifest.`)),
    logs: [...new Set(inLogs.flatMap(({ log }) => log ?? []))].sort()
  }
}

export const make = (parts: RepairParts): Verb =>
  makeVerb({
    name: "repair",
    options: {
      data: dataOption,
      yes: { type: "boolean", help: "make the repairs; without it, only print them" }
    },
    example: "echs repair --data ./data --yes",
    notes: [
      "Stop the server first. A copy of all removed data is kept in quarantine/.",
      "Exit code 0: sound. 1: damage is left. 5: no data there."
    ],
    run: async ({ answer, terminal, values }) => {
      const directory = parts.dataDirectory(values.data)
      const before = await parts.verify(directory)
      if (before === "missing") {
        terminal.complain(`echs repair: no data at ${directory}\n`)
        return exitCode.notFound
      }
      const plan = planOf(directory, before)
      if (values.yes !== true) {
        answer({ directory, plan, problems: before.problems }, () => planText(plan, before))
        return before.problems.length === 0 ? exitCode.done : exitCode.failed
      }
      const done = await parts.repair(directory, plan)
      const after = (await parts.verify(directory)) as VerifyReport
      answer({ directory, plan, done, left: after.problems }, () => doneText(done, after))
      return after.problems.length === 0 ? exitCode.done : exitCode.failed
    }
  })

const planText = ({ journal, logs, manifest }: RepairPlan, { problems }: VerifyReport): string => {
  if (problems.length === 0) return "nothing to repair\n"
  const lines = logs.map((log) => `would truncate log ${log} to its good prefix and keep a copy of the rest\n`)
  if (journal) lines.unshift("would copy the good batches of the journal into their logs and set the journal aside\n")
  if (manifest) lines.unshift("would rebuild the manifest from the logs\n")
  if (lines.length === 0) lines.push("no repair is known for this damage; restore from a backup\n")
  return `${lines.join("")}${problems.length} damaged; nothing was changed. Run again with --yes to repair.\n`
}

const doneText = ({ journal, logs }: RepairDone, after: VerifyReport): string => {
  const lines = logs.map(({ copies, head, log }) => `truncated log ${log} after event ${head}${copiesText(copies)}\n`)
  if (journal !== undefined)
    lines.unshift(`set the journal aside after copying ${journal.batches} batches${copiesText(journal.copies)}\n`)
  const left = after.problems.map(({ file, offset, reason }) => `damaged ${file} at byte ${offset}: ${reason}\n`)
  const verdict = left.length === 0 ? "sound\n" : `${left.length} still damaged\n`
  return `${lines.join("")}${left.join("")}${verdict}`
}

const copiesText = (copies: ReadonlyArray<string>): string =>
  copies.length === 0 ? "" : `; copies: ${copies.join(", ")}`
