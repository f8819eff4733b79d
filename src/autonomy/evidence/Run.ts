// Checks that run a program: in the sandbox of agents, without network, once the policy let it. What cannot be run, is
// ended or prints what nobody understands has not passed.
import type { EvidenceSpec } from "../../rune/kinds/evidence.ts"
import type { ProcessEnded } from "../../sandbox/process/ProcessPort.ts"
import { refusalOf, type Tools, writableOf } from "../GoalContext.ts"
import { limits } from "../GoalLimits.ts"
import { judgeOutput, judgeReport } from "../Report.ts"
import { valueAt } from "./JsonPointer.ts"
import { type Found, failed, type Place, passedIf } from "./Place.ts"
import { commandsOf } from "./Spec.ts"

type Spec<Type extends EvidenceSpec["type"]> = Extract<EvidenceSpec, { readonly type: Type }>

/** Why the policy keeps a check from being made, if it does. */
export const denialOf = (
  { runner }: Pick<Tools, "runner">,
  spec: EvidenceSpec,
  place: Pick<Place, "agentId" | "state" | "isPersons">
): string | undefined => {
  if (runner === undefined) return undefined
  const { agentId, isPersons = false, state } = place
  for (const argv of commandsOf(spec)) {
    const refusal = refusalOf(runner, state, agentId, argv, { isPersons })
    if (refusal !== undefined) return refusal
  }
  return undefined
}

type Ran = { readonly _tag: "Ran"; readonly ended: ProcessEnded } | { readonly _tag: "Not"; readonly why: string }

/** What git ignores and checks need is only in the workspace itself. */
const notCopied = "(?!/(?:node_modules|\\.venv|venv|vendor|\\.echs)(?:/|$))"

/** A check that names the workspace by its whole path means the files that are checked, which are a copy of it. */
const mapped = (argv: ReadonlyArray<string>, { directory, workspace }: Place): ReadonlyArray<string> => {
  if (directory === workspace) return argv
  const here = new RegExp(`${workspace.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, "\\$&")}(?![\\w.-])${notCopied}`, "gu")
  return argv.map((part) => part.replaceAll(here, () => directory))
}

const run = async (tools: Tools, argv: ReadonlyArray<string>, place: Place): Promise<Ran> => {
  const { runner } = tools
  if (runner === undefined) return { _tag: "Not", why: "this server runs no commands" }
  const { directory, signal, state, workspace } = place
  try {
    const ended = await runner.run({
      argv: mapped(argv, place),
      directory,
      writable: writableOf(state, directory),
      ...(directory === workspace ? {} : { readable: [workspace] }),
      network: false,
      outputCharsMax: limits.evidenceOutputCharsMax,
      timeoutMs: limits.evidenceTimeoutMs,
      signal
    })
    if (ended.exit_code === null) return { _tag: "Not", why: `it was ended (${ended.end})\n${ended.output}` }
    return { _tag: "Ran", ended }
  } catch (error) {
    return { _tag: "Not", why: `it could not be started: ${error instanceof Error ? error.message : String(error)}` }
  }
}

/** What a program printed and how it ended, or why that is not known. */
const ran = async (
  tools: Tools,
  spec: EvidenceSpec,
  argv: ReadonlyArray<string>,
  place: Place,
  judge: (ended: ProcessEnded) => Found | Promise<Found>
): Promise<Found> => {
  const denial = denialOf(tools, spec, place)
  if (denial !== undefined) return failed(`it was not run, ${denial}`)
  const outcome = await run(tools, argv, place)
  if (outcome._tag === "Not") return failed(outcome.why)
  const { exit_code: exit } = outcome.ended
  return { ...(await judge(outcome.ended)), ...(exit === null ? {} : { exit_code: exit }) }
}

export const checkCommand = (tools: Tools, spec: Spec<"command">, place: Place): Promise<Found> =>
  ran(tools, spec, spec.command, place, ({ exit_code: exit, output }) =>
    passedIf(exit === spec.expected_exit, output.trim())
  )

/**
 * Counted from a run of the server: what was in the report's place before is told from what the run wrote by its time and
 * content, so a file that somebody left there counts for nothing.
 */
export const checkTests = async (tools: Tools, spec: Spec<"tests">, place: Place): Promise<Found> => {
  const { report } = spec
  const before = report === undefined ? undefined : await tools.look.file(place.directory, report)
  return ran(tools, spec, spec.command, place, async ({ exit_code: exit, output }) => {
    if (exit !== 0) return failed(output.trim())
    const text = report === undefined ? output : await writtenBy(tools, report, place, before)
    if (text === undefined) return failed(`the command did not write ${report}`)
    const { detail, passed, tests } = report === undefined ? judgeOutput(text) : judgeReport(text)
    const least = spec.min_tests ?? 1
    return passedIf(passed && tests >= least, tests < least ? `${tests} tests ran, at least ${least} must` : detail)
  })
}

type Looked = Awaited<ReturnType<Tools["look"]["file"]>>

const writtenBy = async (
  { look }: Tools,
  report: string,
  { directory }: Place,
  before: Looked | undefined
): Promise<string | undefined> => {
  const after = await look.file(directory, report)
  if (after._tag === "Missing") return undefined
  if (before?._tag === "Found" && before.changed_ms === after.changed_ms) return undefined
  return look.text(directory, report, limits.reportBytesMax)
}

const parsed = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

const judgeJson = (spec: Spec<"json">, text: string | undefined): Found => {
  if (text === undefined) return failed(`there is no ${spec.path}`)
  const document = parsed(text)
  if (document === undefined) return failed("it is not JSON")
  const found = valueAt(document.value, spec.pointer)
  const shown = found === undefined ? "nothing there" : `it is ${JSON.stringify(found).slice(0, 500)}`
  return passedIf(found !== undefined && JSON.stringify(found) === JSON.stringify(spec.equals), shown)
}

export const checkJson = async (tools: Tools, spec: Spec<"json">, place: Place): Promise<Found> => {
  if (spec.command !== undefined) {
    return ran(tools, spec, spec.command, place, ({ exit_code: exit, output, stdout }) =>
      exit === 0 ? judgeJson(spec, stdout) : failed(output.trim())
    )
  }
  return judgeJson(spec, await tools.look.text(place.directory, spec.path ?? "", limits.reportBytesMax))
}

const numbers = /-?\d+(?:\.\d+)?/gu

/** The number that a program printed. */
export const numberIn = (output: string, after: string | undefined): number | undefined => {
  const from = after === undefined ? 0 : output.lastIndexOf(after)
  if (from < 0) return undefined
  const found = [...output.slice(from + (after?.length ?? 0)).matchAll(numbers)].map(([text]) => Number(text))
  return after === undefined ? found.at(-1) : found[0]
}

/** Linters and the like end with an error when they find something: only the number counts. */
export const checkDelta = (tools: Tools, spec: Spec<"delta">, place: Place): Promise<Found> =>
  ran(tools, spec, spec.command, place, ({ output }) => {
    const value = numberIn(output, spec.after)
    if (value === undefined) return failed(`it printed no number\n${output.trim()}`)
    const began = place.baseline(spec)?.value
    if (began === undefined)
      return { ...passedIf(place.isBaseline === true, `${value}, with nothing to compare`), value }
    const worse = spec.may === "fall" ? value - began : began - value
    return { ...passedIf(worse <= (spec.tolerance ?? 0), `${began} at the beginning, ${value} now`), value }
  })

/** Starts the server under test in the sandbox, asks it there, and ends it: all in one program, which the sandbox holds. */
const askScript = `
const { spawn } = require("node:child_process")
const { start, url, status, includes, waitMs } = JSON.parse(process.argv[1])
const child = spawn(start[0], start.slice(1), { stdio: ["ignore", "inherit", "inherit"], detached: true })
const end = (code, text) => {
  console.log(text)
  try { process.kill(-child.pid, "SIGKILL") } catch {}
  process.exit(code)
}
child.on("error", (error) => end(3, "it could not be started: " + error.message))
const since = Date.now()
const ask = async () => {
  try {
    const answer = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(5000) })
    const body = await answer.text()
    if (answer.status !== status) return end(1, url + " answered " + answer.status + ": " + body.slice(0, 500))
    if (includes !== undefined && !body.includes(includes)) return end(1, url + " answered without it: " + body.slice(0, 500))
    end(0, url + " answered " + answer.status)
  } catch (error) {
    if (Date.now() - since > waitMs) return end(1, url + " did not answer: " + (error.cause?.message ?? error.message))
    setTimeout(ask, 100)
  }
}
ask()
`

export const checkHttp = (tools: Tools, spec: Spec<"http">, place: Place): Promise<Found> => {
  const { includes, start, status = 200, url } = spec
  const asked = JSON.stringify({ start, url, status, includes, waitMs: limits.httpWaitMs })
  return ran(tools, spec, [tools.node, "-e", askScript, asked], place, ({ exit_code: exit, output }) =>
    passedIf(exit === 0, output.trim())
  )
}
