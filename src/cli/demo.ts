// `echs demo`: kills a real writer in the middle of its work, three times, and shows that nothing it acknowledged is
// lost. Works in a directory of its own and removes it. Exit code 1 if anything is missing, altered or damaged.
import { randomInt } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { demoLogs, type OpenDemoLog } from "./demo/DemoLog.ts"
import { runTrial, type TrialReport, WriterFailed } from "./demo/Trial.ts"
import { writeUntilKilled } from "./demo/Writer.ts"
import { exitCode, type Terminal, type Verb } from "./Verb.ts"
import type { VerifyReport } from "./verify.ts"

const rounds = 3
const killAfter = { min: 300, max: 1_500 }
const timeoutMs = 18_000

export interface DemoParts {
  readonly openLog: OpenDemoLog
  readonly verify: (directory: string) => Promise<VerifyReport | "missing">
  /** Program and arguments that start this CLI again. */
  readonly command: ReadonlyArray<string>
}

interface DemoReport {
  readonly rounds: ReadonlyArray<TrialReport>
  readonly verified: VerifyReport
  readonly survived: boolean
}

export const makeDemo = (parts: DemoParts): Verb => ({
  usage: ["usage: echs demo [--json]", "", "  --json  one JSON object on standard output"].join("\n"),
  run: async (args, terminal) => {
    const options = readOptions(args)
    if (typeof options === "string") {
      terminal.complain(`echs demo: ${options}\n`)
      return exitCode.usage
    }
    if (options.writer !== undefined) return writeUntilKilled(await parts.openLog(options.writer), terminal)
    const interruption = terminal.interruption()
    try {
      const report = await demonstrate(parts, options.json ? silent(terminal) : terminal, interruption)
      if (options.json) terminal.write(`${JSON.stringify(report)}\n`)
      return report.survived ? exitCode.done : exitCode.failed
    } catch (error) {
      if (interruption.aborted) return exitCode.interrupted
      const reason = expectedFailure(error)
      if (reason === undefined) throw error
      terminal.complain(`echs demo: ${reason}\n`)
      return exitCode.failed
    }
  }
})

const demonstrate = async (parts: DemoParts, terminal: Terminal, interruption: AbortSignal): Promise<DemoReport> => {
  const directory = await mkdtemp(join(tmpdir(), "echs-demo-"))
  try {
    terminal.write(`${terminal.paint("strong", "A log that survives its own kill")}\n\n`)
    terminal.write(
      `  A process appends to ${demoLogs.length} conversations as fast as it can and says of every entry when it is\n`
    )
    terminal.write("  on disk. We kill it (SIGKILL), open what it left, and compare every byte.\n\n")
    const signal = AbortSignal.any([interruption, AbortSignal.timeout(timeoutMs)])
    const reports = await runRounds({ parts, terminal, directory, signal })
    const verified = await parts.verify(directory)
    if (verified === "missing") throw new WriterFailed("the writer left no data")
    const survived = verified.problems.length === 0 && reports.every(isWhole)
    terminal.write(renderVerdict(terminal, reports, verified, survived))
    return { rounds: reports, verified, survived }
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const runRounds = async (run: {
  readonly parts: DemoParts
  readonly terminal: Terminal
  readonly directory: string
  readonly signal: AbortSignal
}): Promise<ReadonlyArray<TrialReport>> => {
  const reports: Array<TrialReport> = []
  let receipts: ReadonlyMap<string, number> = new Map()
  for (let round = 1; round <= rounds; round += 1) {
    const trial = await runTrial(
      {
        directory: run.directory,
        openLog: run.parts.openLog,
        writer: [...run.parts.command, "demo", "--writer"],
        killAfter: randomInt(killAfter.min, killAfter.max),
        signal: run.signal
      },
      receipts
    )
    receipts = trial.receipts
    reports.push(trial.report)
    run.terminal.write(renderRound(run.terminal, round, trial.report))
  }
  return reports
}

const isWhole = (report: TrialReport): boolean => report.missing === 0 && report.altered === 0

const number = (value: number): string => value.toLocaleString("en-US")

const renderRound = (terminal: Terminal, round: number, report: TrialReport): string => {
  const mark = isWhole(report) ? terminal.paint("good", "✓") : terminal.paint("bad", "✗")
  const outcome = isWhole(report) ? "all there" : `${number(report.missing)} missing, ${number(report.altered)} altered`
  const facts = `${number(report.acknowledged).padStart(6)} acknowledged  ${number(report.found).padStart(6)} on disk  ${outcome}`
  return `  ${mark} kill ${round}  ${facts}  ${terminal.paint("quiet", `reopened in ${report.reopenMs.toFixed(0)} ms`)}\n`
}

const renderVerdict = (
  terminal: Terminal,
  reports: ReadonlyArray<TrialReport>,
  verified: VerifyReport,
  survived: boolean
): string => {
  const last = reports.at(-1)
  const mark = verified.problems.length === 0 ? terminal.paint("good", "✓") : terminal.paint("bad", "✗")
  const problems = verified.problems.map(
    ({ file, offset, reason }) => `           ${file} at byte ${offset}: ${reason}\n`
  )
  const checked = `  ${mark} verify  ${number(verified.entries).padStart(6)} entries read back, ${verified.problems.length} problems\n`
  const verdict = survived
    ? terminal.paint(
        "good",
        `Nothing that was acknowledged is lost: ${number(last?.acknowledged ?? 0)} of ${number(last?.acknowledged ?? 0)}.`
      )
    : terminal.paint("bad", "Something that was acknowledged is lost.")
  return `${checked}${problems.join("")}\n  ${verdict}\n`
}

const silent = (terminal: Terminal): Terminal => ({ ...terminal, write: () => {} })

/** What a person is told instead of a stack trace; undefined for a defect. */
const expectedFailure = (error: unknown): string | undefined => {
  if (error instanceof WriterFailed) return error.message
  const isTimeout = error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError")
  return isTimeout ? `not done after ${timeoutMs / 1000} s` : undefined
}

const readOptions = (args: ReadonlyArray<string>): { json: boolean; writer: string | undefined } | string => {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { json: { type: "boolean", default: false }, writer: { type: "string" } }
    })
    return { json: values.json, writer: values.writer }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
