// The body of a Claude Code hook, read with distrust: every field may be missing, of another type or enormous.
import { createHash } from "node:crypto"
import { harnessLimits } from "../HarnessLimits.ts"

export interface ClaudeBody {
  readonly sessionId: string | undefined
  readonly transcript: string | undefined
  readonly promptId: string | undefined
  /** Set inside a sub-agent. */
  readonly subAgent: string | undefined
  readonly toolName: string
  readonly toolUseId: string | undefined
  readonly toolInput: Readonly<Record<string, unknown>>
  readonly fields: Readonly<Record<string, unknown>>
}

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const textOf = (value: unknown, charsMax: number = harnessLimits.nameCharsMax): string | undefined =>
  typeof value === "string" ? value.slice(0, charsMax) : undefined

export const countOf = (value: unknown): number =>
  typeof value === "number" && Number.isFinite(value) && value > 0 ? Math.min(Math.round(value), 2 ** 50) : 0

export const readBody = (body: unknown): ClaudeBody => {
  const fields = isObject(body) ? body : {}
  return {
    sessionId: textOf(fields["session_id"]),
    transcript: textOf(fields["transcript_path"], 4_096),
    promptId: textOf(fields["prompt_id"]),
    subAgent: textOf(fields["agent_id"]),
    toolName: textOf(fields["tool_name"]) ?? "unknown",
    toolUseId: textOf(fields["tool_use_id"]),
    toolInput: isObject(fields["tool_input"]) ? fields["tool_input"] : {},
    fields
  }
}

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])])
  )
}

/** A permission request names no call: it is known by who asks for which tool with which input. */
export const callKey = ({ subAgent, toolInput, toolName }: ClaudeBody): string =>
  createHash("sha256")
    .update(JSON.stringify([subAgent ?? "", toolName, sorted(toolInput)]))
    .digest("hex")
    .slice(0, 32)

const titleFields = ["command", "file_path", "path", "url", "pattern", "query", "description", "plan"] as const

/** What a person reads first: the tool and the field that says most. */
export const titleOf = (toolName: string, input: Fields): string => {
  const field = titleFields.find((name) => typeof input[name] === "string")
  const said = field === undefined ? "" : `: ${String(input[field])}`
  return `${toolName}${said}`.slice(0, harnessLimits.nameCharsMax)
}

export const listOf = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value.slice(0, harnessLimits.rememberedMax) : []

/** A set that forgets its oldest member when it is full. */
export class Remembered<Value> {
  private readonly values = new Set<Value>()

  add(value: Value): void {
    this.values.add(value)
    if (this.values.size <= harnessLimits.rememberedMax) return
    const [oldest] = this.values
    if (oldest !== undefined) this.values.delete(oldest)
  }

  has(value: Value): boolean {
    return this.values.has(value)
  }
}
