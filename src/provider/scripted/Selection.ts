// Picks the reply for a request and fills in its text. A pure function of the request.
import type { Message, ModelRequest } from "../Canonical.ts"
import type { Reply, Scenario, When } from "./Scenario.ts"

/** What a condition or a placeholder can refer to. */
export interface Situation {
  readonly turn: number
  readonly step: number
  readonly input: string
  readonly lastTool: string
  readonly lastOutput: string
}

/** Patterns look at this much of a text, so that no pattern can take long. */
const patternCharsMax = 4096

const textOf = (message: Message | undefined): string =>
  message?.role === "user"
    ? message.content.map((part) => (part.type === "text" ? part.text : `[${part.type}]`)).join("\n")
    : ""

const toolNameOf = (messages: ReadonlyArray<Message>, callId: string): string => {
  for (const message of messages.toReversed()) {
    if (message.role !== "assistant") continue
    for (const part of message.content) if (part.type === "tool_call" && part.call_id === callId) return part.tool_name
  }
  return ""
}

export const situationOf = (request: ModelRequest): Situation => {
  const messages = request.messages.filter((message) => message.role !== "user" || message.note !== true)
  const lastInput = messages.findLastIndex((message) => message.role === "user")
  const result = messages.findLast((message) => message.role === "tool")?.content.at(-1)
  return {
    turn: messages.filter((message) => message.role === "user").length,
    step: messages.slice(lastInput + 1).filter((message) => message.role === "assistant").length + 1,
    input: textOf(messages[lastInput]),
    lastTool: result === undefined ? "" : toolNameOf(messages, result.call_id),
    lastOutput: result?.output ?? ""
  }
}

const matches = (pattern: string | undefined, value: string): boolean =>
  pattern === undefined || new RegExp(pattern, "i").test(value.slice(0, patternCharsMax))

const equals = <A>(wanted: A | undefined, value: A | undefined): boolean => wanted === undefined || wanted === value

const holds = (when: When, request: ModelRequest, situation: Situation): boolean =>
  equals(when.role, request.metadata?.role) &&
  equals(when.agent, request.metadata?.agentId) &&
  equals(when.turn, situation.turn) &&
  equals(when.step, situation.step) &&
  equals(when.attempt, request.metadata?.attempt ?? 1) &&
  equals(when.last_tool, situation.lastTool) &&
  matches(when.input, situation.input) &&
  matches(when.instructions, request.instructions ?? "") &&
  matches(when.last_output, situation.lastOutput) &&
  (when.tools ?? []).every((name) => (request.tools ?? []).some((tool) => tool.name === name))

export const selectReply = (scenario: Scenario, request: ModelRequest, situation: Situation): Reply | undefined =>
  scenario.replies.find((reply) => reply.when === undefined || holds(reply.when, request, situation))

const excerptChars = 400

const excerpt = (value: string): string =>
  value.length <= excerptChars ? value : `${value.slice(0, excerptChars).toWellFormed()} …`

/** Replaces `{{input}}`, `{{output}}`, `{{turn}}` and `{{step}}`. */
export const fill = (template: string, situation: Situation): string => {
  if (!template.includes("{{")) return template
  return template
    .replaceAll("{{turn}}", () => String(situation.turn))
    .replaceAll("{{step}}", () => String(situation.step))
    .replaceAll("{{input}}", () => situation.input)
    .replaceAll("{{output}}", () => excerpt(situation.lastOutput.trim()))
}

/** Fills every text inside an arguments object. */
export const fillDeep = (value: unknown, situation: Situation): unknown => {
  if (typeof value === "string") return fill(value, situation)
  if (Array.isArray(value)) return value.map((member) => fillDeep(member, situation))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, fillDeep(member, situation)]))
}
