// `tool.register` and `tool.result`: tools that a client runs itself. Both belong to a connection, for it is the
// connection that answers for its tools. A result is answered for when it is durable.
import type { AnswerOf } from "../wire/Answers.ts"
import { limits } from "../wire/Limits.ts"
import type { FieldsOf } from "../wire/Operations.ts"
import { type OperationContext, OperationFailed } from "./Context.ts"
import type { DeskAnswer } from "./RemoteDesk.ts"

const deskOf = ({ connection, principal, remoteTools }: OperationContext) => {
  if (remoteTools === undefined)
    throw new OperationFailed("invalid_state", "running tools in a client is not available on this server")
  if (connection === undefined) throw new OperationFailed("bad_request", "tools of a client need a WebSocket")
  return { desk: remoteTools, owner: { principal: principal.name, connection } }
}

const accepted = <Ok>(answer: DeskAnswer<Ok>): Ok => {
  if (answer._tag === "Refused") throw new OperationFailed(answer.code, answer.message)
  return answer
}

const over: ReadonlySet<string> = new Set(["closing", "closed", "archived"])

export const registerTools = async (
  { conversation_id: id, tools }: FieldsOf<"tool.register">,
  context: OperationContext
): Promise<AnswerOf<"tool.register">> => {
  const { desk, owner } = deskOf(context)
  const { calls, head, session } = await context.conversations.state(id)
  if (over.has(session.status))
    throw new OperationFailed("invalid_state", `the conversation is ${session.status}`, { state: session.status })
  const { tools: names, waiting } = accepted(desk.register(id, owner, tools))
  const open = calls
    .filter((call) => call.result === null && names.includes(call.tool_name))
    .map((call) => ({ call_id: call.call_id, tool_name: call.tool_name, arguments: call.arguments }))
  return { event_id: head, tools: names, open, waiting }
}

/** Resolves when the result of the call is on disk. */
const untilDurable = async (context: OperationContext, id: string, callId: string): Promise<number> => {
  const signal = AbortSignal.timeout(limits.resultDurableWithinMs)
  const resident = await context.conversations.load(id)
  const isOpen = (): boolean => resident.state.calls.some((call) => call.call_id === callId && call.result === null)
  while (isOpen() && !signal.aborted) await resident.changed(signal)
  if (isOpen()) throw new OperationFailed("busy", "the result is taken and not yet on disk", { retry_after_ms: 100 })
  await resident.actor.settled()
  return resident.actor.durableHead
}

export const takeResult = async (
  { call_id: callId, conversation_id: id, output = "", status = "success" }: FieldsOf<"tool.result">,
  context: OperationContext
): Promise<AnswerOf<"tool.result">> => {
  const { desk, owner } = deskOf(context)
  accepted(desk.result(await context.conversations.state(id), owner, callId, { status, output }))
  return { event_id: await untilDurable(context, id, callId) }
}
