// `echs verify`: reads a whole data directory, changes nothing, and prints the location of every fault. Needs no server.
// With `--goal`: runs every check of a met goal again, on the tree that its proof names.

import { resolve } from "node:path"
import { findConversation, type RemoteParts, withServer } from "../Remote.ts"
import { oneLine } from "../render/Text.ts"
import { readRunes } from "../shared/ReadRunes.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "../Verb.ts"
import { dataOption, makeVerb, UsageError, type VerbInput } from "../VerbSpec.ts"

export interface GoalProofRequest {
  /** Those of the conversation, from the first one on. */
  readonly runes: ReadonlyArray<unknown>
  readonly planId?: string
  /** Where the repository is by now. */
  readonly workspace?: string
  /** Commands run although nothing holds them. */
  readonly isUnheld: boolean
  readonly signal: AbortSignal
}

export interface GoalProof {
  readonly plan_id: string
  readonly goal: string
  readonly workspace: string | null
  readonly tree: string | null
  readonly checks: ReadonlyArray<{
    readonly check: string
    readonly outcome: "passed" | "failed" | "not_repeated"
    readonly detail: string
    readonly origin?: string | undefined
  }>
}

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

export interface VerifyParts extends RemoteParts {
  /** Runs the checks of a met goal again; nothing when none of the runes says that one was met. */
  readonly repeatProof: (request: GoalProofRequest) => Promise<GoalProof | undefined>
  /** The flag's value, or the default directory. */
  readonly dataDirectory: (flag: string | undefined) => string
  /** Answers "missing" when there is no data at this place. */
  readonly verify: (dataDirectory: string) => Promise<VerifyReport | "missing">
}

export const make = (parts: VerifyParts): Verb =>
  makeVerb({
    name: "verify",
    options,
    example: "echs verify --data ./data",
    notes: [
      "Exit code 0: sound. 1: damaged. 5: no data there.",
      "With --goal: 0: every check passed again. 1: one failed. 5: no met goal there. 6: none failed, but some cannot be repeated."
    ],
    run: async (input) => {
      const { answer, terminal, values } = input
      if (values.goal !== undefined || values.from !== undefined) return verifyProof(parts, input)
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

const options = {
  data: dataOption,
  goal: { type: "string", value: "CONVERSATION", help: "repeat the proof of the goal that was met there last" },
  plan: { type: "string", value: "PLAN", help: "with --goal: this goal of the conversation" },
  from: { type: "string", value: "FILE", help: "instead of --goal: runes that echs export printed; needs no server" },
  workspace: { type: "string", value: "DIRECTORY", help: "the repository (default: where the goal was pursued)" },
  "without-sandbox": { type: "boolean", help: "run commands of the proof where no sandbox holds them" },
  url: { type: "string", value: "URL", help: "with --goal: address of another server" }
} as const

type Input = VerbInput<typeof options>

const linesOf = (text: string, path: string): ReadonlyArray<unknown> =>
  text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line, at) => {
      try {
        return JSON.parse(line) as unknown
      } catch {
        throw new UsageError(`--from: line ${at + 1} of ${path} is not JSON`)
      }
    })

const verifyProof = async (parts: VerifyParts, input: Input): Promise<ExitCode> => {
  const { from, goal = "last" } = input.values
  if (from === undefined) {
    return withServer(parts, { name: "verify" }, input, async (client) => {
      const id = await findConversation(client, goal, parts.workingDirectory())
      return repeated(parts, input, await readRunes(client, id, undefined))
    })
  }
  const bytes = await parts.readFile(resolve(parts.workingDirectory(), from)).catch((cause: unknown) => {
    throw new UsageError(`--from: ${cause instanceof Error ? cause.message : String(cause)}`)
  })
  return repeated(parts, input, linesOf(Buffer.from(bytes).toString("utf8"), from))
}

const repeated = async (
  parts: VerifyParts,
  { answer, terminal, values }: Input,
  runes: ReadonlyArray<unknown>
): Promise<ExitCode> => {
  const { plan, workspace } = values
  const proof = await parts.repeatProof({
    runes,
    ...(plan === undefined ? {} : { planId: plan }),
    ...(workspace === undefined ? {} : { workspace: resolve(parts.workingDirectory(), workspace) }),
    isUnheld: values["without-sandbox"] === true,
    signal: terminal.interruption()
  })
  if (proof === undefined) {
    terminal.complain("echs verify: no goal was met there\n")
    return exitCode.notFound
  }
  const count = (outcome: string): number => proof.checks.filter((one) => one.outcome === outcome).length
  answer({ ...proof, passed: count("passed"), failed: count("failed"), not_repeated: count("not_repeated") }, () =>
    proofText(proof, terminal)
  )
  if (count("failed") > 0) return exitCode.failed
  return count("not_repeated") > 0 || proof.checks.length === 0 ? exitCode.refusedByState : exitCode.done
}

const marks = {
  passed: ["good", "✓"],
  failed: ["bad", "✗"],
  not_repeated: ["notice", "?"]
} as const

const proofText = ({ checks, goal, plan_id: planId, tree, workspace }: GoalProof, terminal: Terminal): string => {
  const rows = checks.map(({ check, detail, outcome }) => {
    const [tone, mark] = marks[outcome]
    const why = outcome === "passed" ? "" : `: ${oneLine(detail)}`
    return `${terminal.paint(tone, mark)} ${oneLine(check)}${why}\n`
  })
  const passed = checks.filter(({ outcome }) => outcome === "passed").length
  const on = tree === null ? "" : ` on ${tree}`
  return `${planId}: ${oneLine(goal)}\n${rows.join("")}${passed} of ${checks.length} checks passed again${on}, in ${workspace ?? "no workspace"}\n`
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
  const archives = report.archives === 0 ? "" : `, ${amount(report.archives, { one: "archive", many: "archives" })}`
  const blobs = report.blobs === 0 ? "" : `, ${amount(report.blobs, { one: "blob", many: "blobs" })}`
  return `${problems.join("")}${notes.join("")}${verdict}: ${read}${waiting}${archives}${blobs}, at ${directory}\n`
}

const amount = (value: number, word: { readonly one: string; readonly many: string }): string =>
  `${value.toLocaleString("en-US")} ${value === 1 ? word.one : word.many}`
