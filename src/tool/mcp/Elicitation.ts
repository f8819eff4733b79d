// A server that asks a person something in the middle of a call. The question goes to the same inbox as approvals: whoever
// approves it gives the answer as its arguments, whoever denies it declines, and nobody in time is a cancellation.
import { effectiveLimits } from "../../machine/Limits.ts"
import type { CallState } from "../../machine/State.ts"
import type { CallId } from "../../rune/Ids.ts"
import type { ToolContext } from "../Port.ts"
import { mcpLimits } from "./Limits.ts"
import { isObject, type Json } from "./Message.ts"

export interface Question {
  readonly server: string
  readonly params: Json
  /** The call in whose course it is asked. */
  readonly context: ToolContext
  /** How many were asked in that call before. */
  readonly ordinal: number
  readonly signal: AbortSignal
  readonly nowMs: () => number
}

const suffix = "__question"

export const questionName = (server: string): string => `${server}${suffix}`

/** What is sent when the person changes nothing: the defaults of the form. */
const defaultsOf = (schema: unknown): Json => {
  const properties = isObject(schema) && isObject(schema["properties"]) ? schema["properties"] : {}
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, field]) =>
      isObject(field) && field["default"] !== undefined ? [[name, field["default"]]] : []
    )
  )
}

const shown = ({ params, server }: Question) => {
  const { message, requestedSchema } = params
  const text = typeof message === "string" ? message : "it gives no reason"
  const form = JSON.stringify(isObject(requestedSchema) ? (requestedSchema["properties"] ?? {}) : {}, null, 2)
  return {
    title: `${server} asks: ${text}`.slice(0, 500).toWellFormed(),
    detail: `answer with arguments of these fields:\n${form}`.slice(0, mcpLimits.questionCharsMax).toWellFormed()
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

/** Asks, and answers in the words of the protocol. */
export const elicit = async (question: Question): Promise<Json> => {
  const { context, ordinal, params, server } = question
  if (params["mode"] !== undefined && params["mode"] !== "form") return { action: "decline" }
  const { agent_id, conversation } = context
  const callId = `${context.call_id}.question_${context.attempt}_${ordinal}` as CallId
  const id = { call_id: callId }
  const answers = defaultsOf(params["requestedSchema"])
  const tool = { effect_class: "pure", mutating: false, provenance: "mcp" } as const
  await conversation.submit({
    _tag: "OpenCall",
    agent_id,
    ...id,
    tool_name: questionName(server),
    arguments: answers,
    tool
  })
  const { approvalTimeoutMs } = effectiveLimits(conversation.state().session.config)
  const expiry = approvalTimeoutMs === 0 ? {} : { expires_ms: question.nowMs() + approvalTimeoutMs }
  const policy_reason = `the MCP server ${server} asks for information`
  await conversation.submit({
    _tag: "RequireApproval",
    ...id,
    policy_reason,
    shown_as: shown(question),
    choices: ["once"],
    ...expiry
  })
  const call = await untilAnswered(question, callId)
  if (call === undefined) {
    if (question.signal.aborted) await withdraw(question, callId)
    return { action: decisionOf(question, callId) === "denied" ? "decline" : "cancel" }
  }
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

/** Ends questions that were asked in a life of the server that is over: nobody waits for their answers. */
export const endOrphans = async (context: ToolContext, isOurs: (callId: string) => boolean): Promise<void> => {
  const { state, submit } = context.conversation
  const orphans = state().calls.filter(
    (call) =>
      call.turn_id === null && call.provenance === "mcp" && call.tool_name.endsWith(suffix) && !isOurs(call.call_id)
  )
  for (const { call_id } of orphans)
    await submit({ _tag: "FinishCall", call_id, status: "cancelled", duration_ms: 0 }).catch(() => undefined)
}
