// Checks the evidence of tasks: runs the commands, looks for the files, reads the reports. What it finds is what counts,
// whatever a model said before. A check that cannot be made has not passed.

import type { ConversationState } from "../machine/State.ts"
import { workspaceOf } from "../machine/view/Select.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { Evidence, EvidenceSpec } from "../rune/kinds/plan.ts"
import { refusalOf, type Tools, writableOf } from "./GoalContext.ts"
import { limits } from "./GoalLimits.ts"
import { judgeReport } from "./Report.ts"

export interface Place {
  readonly state: ConversationState
  /** Where the agent works whose task it is; the conversation's workspace when there is none. */
  readonly agentId: AgentId | null
  /** Reports that are older say nothing about this goal. */
  readonly sinceMs: number
  readonly signal: AbortSignal
}

const cut = (text: string, max: number = limits.evidenceDetailCharsMax): string =>
  text.length <= max ? text : `…${text.slice(text.length - max).toWellFormed()}`

/** The more checks there are, the less is kept of each. */
const fitted = (found: ReadonlyArray<Evidence>): ReadonlyArray<Evidence> => {
  const each = Math.floor(limits.evidenceDetailsCharsMax / Math.max(1, found.length))
  return found.map((one) => (one.detail === undefined ? one : { ...one, detail: cut(one.detail, each) }))
}

const failed = (spec: EvidenceSpec, detail: string): Evidence => ({ spec, passed: false, detail: cut(detail) })

/** Why the policy keeps a check from being made, if it does. */
export const denialOf = (
  { runner }: Pick<Tools, "runner">,
  spec: EvidenceSpec,
  { agentId, state }: Pick<Place, "agentId" | "state">
): string | undefined => {
  if (spec.type !== "command" || runner === undefined) return undefined
  return refusalOf(runner, state, agentId, spec.command)
}

type Spec<Type extends EvidenceSpec["type"]> = Extract<EvidenceSpec, { readonly type: Type }>

const checkCommand = async (
  tools: Tools,
  spec: Spec<"command">,
  directory: string,
  place: Place
): Promise<Evidence> => {
  const { runner } = tools
  if (runner === undefined) return failed(spec, "this server runs no commands")
  const denial = denialOf(tools, spec, place)
  if (denial !== undefined) return failed(spec, `it was not run, ${denial}`)
  const { signal, state } = place
  try {
    const ended = await runner.run({
      argv: spec.command,
      directory,
      writable: writableOf(state, directory),
      network: false,
      outputCharsMax: limits.evidenceOutputCharsMax,
      timeoutMs: limits.evidenceTimeoutMs,
      signal
    })
    if (ended.exit_code === null) return failed(spec, `it was ended (${ended.end})\n${ended.output}`)
    const passed = ended.exit_code === spec.expected_exit
    return { spec, passed, exit_code: ended.exit_code, detail: cut(ended.output.trim()) }
  } catch (error) {
    return failed(spec, `it could not be started: ${error instanceof Error ? error.message : String(error)}`)
  }
}

const checkFile = async ({ look }: Tools, spec: Spec<"file">, directory: string): Promise<Evidence> => {
  const found = await look.file(directory, spec.path)
  return found._tag === "Found"
    ? { spec, passed: true, detail: `${spec.path} is there, ${found.bytes} bytes` }
    : failed(spec, found.reason)
}

const checkReport = async (
  { look }: Tools,
  spec: Spec<"report">,
  directory: string,
  { sinceMs }: Place
): Promise<Evidence> => {
  const found = await look.file(directory, spec.path)
  if (found._tag === "Missing") return failed(spec, found.reason)
  if (found.changed_ms < sinceMs) return failed(spec, `${spec.path} is older than the goal: it says nothing about it`)
  const text = await look.text(directory, spec.path, limits.reportBytesMax)
  const { detail, passed } = judgeReport(text ?? "")
  return { spec, passed, detail: cut(`${spec.path}: ${detail}`) }
}

const check = (tools: Tools, spec: EvidenceSpec, directory: string, place: Place): Promise<Evidence> => {
  switch (spec.type) {
    case "command":
      return checkCommand(tools, spec, directory, place)
    case "file":
      return checkFile(tools, spec, directory)
    case "report":
      return checkReport(tools, spec, directory, place)
  }
}

/** Checks all of it, the same check once. The order is that of the list. */
export const checkEvidence = async (
  tools: Tools,
  specs: ReadonlyArray<EvidenceSpec>,
  place: Place
): Promise<ReadonlyArray<Evidence>> => {
  const directory = workspaceOf(place.state, place.agentId)
  const distinct = [...new Map(specs.map((spec) => [JSON.stringify(spec), spec])).values()]
  if (directory === undefined) return distinct.map((spec) => failed(spec, "the conversation has no workspace"))
  const found: Array<Evidence> = []
  // One after another: commands that test the same workspace may get in each other's way.
  for (const spec of distinct) {
    const isCut = place.signal.aborted
    found.push(isCut ? failed(spec, "the check was cut off") : await check(tools, spec, directory, place))
  }
  return fitted(found)
}

export const specText = (spec: EvidenceSpec): string => {
  switch (spec.type) {
    case "command":
      return `command \`${spec.command.join(" ")}\` exits with ${spec.expected_exit}`
    case "file":
      return `file ${spec.path} exists`
    case "report":
      return `report ${spec.path} shows no failure`
  }
}

export const evidenceText = ({ detail, exit_code: exitCode, passed, spec }: Evidence): string => {
  const exit = exitCode === undefined ? "" : ` (exit ${exitCode})`
  const why = passed || detail === undefined || detail === "" ? "" : `\n${detail}`
  return `${passed ? "passed" : "FAILED"}: ${specText(spec)}${exit}${why}`
}
