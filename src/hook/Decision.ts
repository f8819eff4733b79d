// What the end of an event's command means: the exit code first, then what it printed if that was a JSON object. Exit
// code 2 blocks and says why on standard error; any other failure is a mistake of the hook and blocks nothing.
import { hookLimits } from "./HookLimits.ts"
import type { ProgramEnded } from "./Program.ts"

export interface Decision {
  /** The call, the prompt or the end of the turn is not to be. */
  readonly block?: string
  /** A person has to be asked about the call. */
  readonly ask?: string
  /** Everything has to stop. */
  readonly stop?: string
  /** For the model to read. */
  readonly context?: string
  /** What it printed that was no decision. */
  readonly printed?: string
  /** The hook itself went wrong; nothing follows from it. */
  readonly mistake?: string
}

type Json = Readonly<Record<string, unknown>>

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== ""
    ? value.trim().slice(0, hookLimits.contextCharsMax).toWellFormed()
    : undefined

const objectOf = (text: string): Json | undefined => {
  if (!text.trimStart().startsWith("{")) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? (value as Json) : undefined
  } catch {
    return undefined
  }
}

const permissionOf = (output: Json, reason: string | undefined): Decision => {
  switch (output["permissionDecision"]) {
    case "deny":
      return { block: textOf(output["permissionDecisionReason"]) ?? reason ?? "no reason was given" }
    case "ask":
      return { ask: textOf(output["permissionDecisionReason"]) ?? reason ?? "no reason was given" }
    default:
      return {}
  }
}

/** Running something else than what was decided about needs a decision of its own. */
const editOf = (output: Json): Decision => {
  const { updatedInput } = output
  if (updatedInput === undefined || updatedInput === null) return {}
  const wanted = JSON.stringify(updatedInput).slice(0, hookLimits.contextCharsMax)
  return { block: `call it again with these arguments: ${wanted}` }
}

const ofObject = (value: Json): Decision => {
  const specific = value["hookSpecificOutput"]
  const output = (typeof specific === "object" && specific !== null ? specific : {}) as Json
  const reason = textOf(value["reason"])
  const context = textOf(output["additionalContext"])
  const blocks = value["decision"] === "block" || value["decision"] === "deny"
  return {
    ...(value["continue"] === false ? { stop: textOf(value["stopReason"]) ?? reason ?? "a hook stopped it" } : {}),
    ...(blocks ? { block: reason ?? "no reason was given" } : {}),
    ...editOf(output),
    ...permissionOf(output, reason),
    ...(context === undefined ? {} : { context })
  }
}

export const decisionOf = (ended: ProgramEnded): Decision => {
  if (ended.exit_code === 2) return { block: textOf(ended.stderr) ?? textOf(ended.stdout) ?? "no reason was given" }
  if (ended.exit_code !== 0) {
    const how = ended.exit_code === null ? `was ended by ${ended.signal}` : `ended with exit code ${ended.exit_code}`
    return { mistake: `${how}: ${textOf(ended.stderr) ?? "it said nothing"}` }
  }
  const value = objectOf(ended.stdout)
  if (value !== undefined) return ofObject(value)
  const printed = textOf(ended.stdout)
  return printed === undefined ? {} : { printed }
}
