// A server that asks a person something in the middle of a call. The question goes to the same inbox as approvals: whoever
// approves it gives the answer as its arguments, whoever denies it declines, and nobody in time is a cancellation.
import { effectiveLimits } from "../../machine/MachineLimits.ts"
import type { CallState } from "../../machine/State.ts"
import { questionId } from "../../machine/view/Questions.ts"
import type { CallId } from "../../rune/Ids.ts"
import type { SignalContext } from "../ToolPort.ts"
import { McpError } from "./McpErrors.ts"
import { mcpLimits } from "./McpLimits.ts"
import { isObject, type Json } from "./Message.ts"

export interface Question {
  readonly server: string
  readonly params: Json
  /** The call in whose course it is asked. */
  readonly context: SignalContext
  /** How many were asked in that call before. */
  readonly ordinal: number
  readonly signal: AbortSignal
  readonly nowMs: () => number
}

export const questionName = (server: string): string => `${server}__question`

/** What is sent when the person changes nothing: the defaults of the form. */
const defaultsOf = (schema: unknown): Json => {
  const properties = isObject(schema) && isObject(schema["properties"]) ? schema["properties"] : {}
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, field]) =>
      isObject(field) && field["default"] !== undefined ? [[name, field["default"]]] : []
    )
  )
}

const fieldsOf = ({ params }: Question): Json => {
  const { requestedSchema } = params
  return isObject(requestedSchema) ? requestedSchema : {}
}

const requiredText = (schema: Json): string => {
  const { required } = schema
  const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : []
  return names.length === 0 ? "" : `\nrequired: ${names.join(", ")}`
}

const shown = (question: Question) => {
  const { params, server } = question
  const { message } = params
  const schema = fieldsOf(question)
  const text = typeof message === "string" ? message : "it gives no reason"
  const form = JSON.stringify(schema["properties"] ?? {}, null, 2)
  const detail = `answer with arguments of these fields:\n${form}`
  const required = requiredText(schema).slice(0, mcpLimits.questionCharsMax / 4)
  return {
    title: `${server} asks: ${text}`.slice(0, 500).toWellFormed(),
    detail: `${detail.slice(0, mcpLimits.questionCharsMax - required.length)}${required}`.toWellFormed()
  }
}

/** Resolves when the question is no longer open; with the call when it was approved. */
const untilAnswered = async ({ context, signal }: Question, callId: CallId): Promise<CallState | undefined> => {
  const { changed, state } = context.conversation
  const find = (): CallState | undefined => state().calls.find((call) => call.call_id === callId)
  for (let call = find(); call !== undefined; call = find()) {
    if (call.status === "executing") return call
    if (signal.aborted) return undefined
    await changed(signal)
  }
  return undefined
}

const decisionOf = ({ context }: Question, callId: CallId): string | undefined =>
  context.conversation.state().decisions.findLast((one) => one.call_id === callId)?.decision

const withdraw = (question: Question, callId: CallId): Promise<unknown> =>
  question.context.conversation
    .submit({ _tag: "FinishCall", call_id: callId, status: "cancelled", duration_ms: 0 })
    .catch(() => undefined)

/** Puts the question on record; false when the call that asks is over. */
const ask = async (question: Question, callId: CallId): Promise<boolean> => {
  const { context, nowMs, params, server } = question
  const { agent_id, conversation } = context
  const id = { call_id: callId }
  const tool = { effect_class: "pure", mutating: false, provenance: "mcp" } as const
  const answers = defaultsOf(params["requestedSchema"])
  const { approvalTimeoutMs } = effectiveLimits(conversation.state().session.config)
  const expiry = approvalTimeoutMs === 0 ? {} : { expires_ms: nowMs() + approvalTimeoutMs }
  const tool_name = questionName(server)
  try {
    await conversation.submit({ _tag: "OpenCall", agent_id, ...id, tool_name, arguments: answers, tool })
    await conversation.submit({
      _tag: "RequireApproval",
      ...id,
      policy_reason: `the MCP server ${server} asks for information`,
      shown_as: shown(question),
      choices: ["once"],
      answer_schema: fieldsOf(question),
      ...expiry
    })
    return true
  } catch {
    return false
  }
}

/** Asks, and answers in the words of the protocol. Rejects with McpError what cannot be checked later. */
export const elicit = async (question: Question): Promise<Json> => {
  const { context, ordinal, params } = question
  if (params["mode"] !== undefined && params["mode"] !== "form") return { action: "decline" }
  if (JSON.stringify(fieldsOf(question)).length > mcpLimits.schemaCharsMax)
    throw new McpError(
      "mcp_error",
      `a form of more than ${mcpLimits.schemaCharsMax} characters is not shown to anybody`
    )
  const { conversation } = context
  const callId = questionId({ ...context, ordinal })
  const isAsked = await ask(question, callId)
  const call = isAsked ? await untilAnswered(question, callId) : undefined
  if (call === undefined) {
    if (question.signal.aborted || !isAsked) await withdraw(question, callId)
    return { action: decisionOf(question, callId) === "denied" ? "decline" : "cancel" }
  }
  const id = { call_id: callId }
  const content = isObject(call.arguments) ? call.arguments : {}
  await conversation.submit({ _tag: "StartCall", ...id, sandbox: { level: "in_process" } })
  await conversation.submit({
    _tag: "FinishCall",
    ...id,
    status: "success",
    output: JSON.stringify(content),
    duration_ms: 0
  })
  return { action: "accept", content }
}
