// `echs repair`: makes the repairs that are documented, and no others: a damaged journal is put aside once its good
// batches are in their logs, a damaged log is cut back to its good prefix. What is taken away is kept as a copy. Without
// `--yes` it says what it would do. It works without a server, and reads everything again afterwards.

import { exitCode, type Verb } from "../Verb.ts"
import { makeVerb } from "../VerbSpec.ts"
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

/** Damage of archives, blobs and meta has no repair but a backup. */
const planOf = (directory: string, { problems }: VerifyReport): RepairPlan => {
  const inLogs = problems.filter(
    ({ file, log }) =>
      log !== undefined && !file.startsWith(`${directory}/archive/`) && !file.startsWith(`${directory}/blobs/`)
  )
  return {
    journal: problems.some(({ file }) => file === `${directory}/journal` || file.startsWith(`${directory}/journal/`)),
    manifest: problems.some(({ file }) => file.startsWith(`${directory}/manifest.`)),
    logs: [...new Set(inLogs.map(({ log }) => log!))].sort()
  }
}

export const makeRepair = (parts: RepairParts): Verb =>
  makeVerb({
    name: "repair",
    options: {
      data: {
        type: "string",
        value: "DIRECTORY",
        help: "the data to repair; else ECHS_DATA, else the state directory of the user"
      },
      yes: { type: "boolean", help: "do it; without it only what would be done is said" }
    },
    example: "echs repair --data ./data --yes",
    notes: [
      "what is taken away is kept in quarantine/; the server must be stopped",
      "exit code 0: sound, 1: damage is left, 5: no data there"
    ],
    run: async ({ answer, terminal, values }) => {
      const directory = parts.dataDirectory(values.data)
      const before = await parts.verify(directory)
      if (before === "missing") {
        terminal.complain(`echs repair: there is no data at ${directory}\n`)
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
  const lines = logs.map((log) => `would cut log ${log} back to what is good, and keep a copy of the rest\n`)
  if (journal) lines.unshift("would put the journal aside once its good batches are in their logs\n")
  if (manifest) lines.unshift("would make the manifest anew from the logs there are\n")
  if (lines.length === 0) lines.push("no repair is known for what is damaged; restore it from a backup\n")
  return `${lines.join("")}${problems.length} found damaged; nothing was changed: repeat with --yes\n`
}

const doneText = ({ journal, logs }: RepairDone, after: VerifyReport): string => {
  const lines = logs.map(({ copies, head, log }) => `cut log ${log} back to event ${head}${copiesText(copies)}\n`)
  if (journal !== undefined)
    lines.unshift(`put the journal aside after ${journal.batches} batches${copiesText(journal.copies)}\n`)
  const left = after.problems.map(({ file, offset, reason }) => `left ${file} at byte ${offset}: ${reason}\n`)
  const verdict = left.length === 0 ? "sound\n" : `${left.length} left damaged\n`
  return `${lines.join("")}${left.join("")}${verdict}`
}

const copiesText = (copies: ReadonlyArray<string>): string => (copies.length === 0 ? "" : `; kept ${copies.join(", ")}`)
