// `tool.register` and `tool.result`: tools that a client runs itself. Both belong to a connection, for it is the
// connection that answers for its tools. A result is answered for when it is durable, and from the log alone: what comes
// late or again, also in another life of the server, is told how the call ended first.

import type { RegistryAnswer } from "../../contract/RemoteTools.ts"
import { durableAnswer } from "../../conversation/DurableAnswer.ts"
import type { EndedCall } from "../../conversation/EndedCall.ts"
import { openCallsOf } from "../../conversation/Summary.ts"
import type { AnswerOf, FieldsOf } from "../../wire/Operations.ts"
import { limits } from "../../wire/WireLimits.ts"
import type { OperationContext } from "./Context.ts"
import {
  AlreadyDecided,
  BadRequest,
  InvalidState,
  NotFound,
  RegistrationRefused,
  ServerBusy
} from "./OperationErrors.ts"

const registryOf = ({ connection, principal, remoteTools }: OperationContext) => {
  if (remoteTools === undefined) throw new InvalidState("running tools in a client is not available on this server")
  if (connection === undefined) throw new BadRequest("tools of a client need a WebSocket")
  return { desk: remoteTools, owner: { principal: principal.name, connection } }
}

const accepted = <Ok>(answer: RegistryAnswer<Ok>): Ok => {
  if (answer._tag === "Refused") throw new RegistrationRefused({ code: answer.code, message: answer.message })
  return answer
}

const over: ReadonlySet<string> = new Set(["closing", "closed", "archived"])

export const registerTools = async (
  { conversation_id: id, tools }: FieldsOf<"tool.register">,
  context: OperationContext
): Promise<AnswerOf<"tool.register">> => {
  const { desk, owner } = registryOf(context)
  const { head, open, status } = await durableAnswer(context.conversations, id, openCallsOf)
  if (over.has(status)) throw new InvalidState(`the conversation is ${status}`, { state: status })
  // After the look: whatever started since then waits, or follows from that event on.
  const { tools: names, waiting } = accepted(desk.register(id, owner, tools))
  return { event_id: head, tools: names, open: open.filter((call) => names.includes(call.tool_name)), waiting }
}

interface RemoteAnswer {
  readonly status: "success" | "error"
  readonly output: string
  readonly hash: string
}

/** A result from before answers were hashed is known by what it says. */
const isSame = (result: EndedCall["results"][number], { hash, output, status }: RemoteAnswer): boolean =>
  result.answer_sha256 === undefined
    ? result.status === status && result.output === output && result.error?.code !== "client_gone"
    : result.answer_sha256 === hash

/** Resolves when the call is over and its end is on disk. */
const untilDurable = async (context: OperationContext, id: string, callId: string): Promise<void> => {
  const signal = AbortSignal.timeout(limits.resultDurableWithinMs)
  const resident = await context.conversations.load(id)
  const isOpen = (): boolean => resident.state.calls.some((call) => call.call_id === callId && call.result === null)
  while (isOpen() && !signal.aborted) await resident.changed(signal)
  if (isOpen()) throw new ServerBusy("the result is taken and not yet on disk", { retry_after_ms: 100 })
  await resident.actor.settled()
}

/** How the call ended is what the log says, whoever asks and however often. */
const answerOf = (ended: EndedCall | undefined, callId: string, answer: RemoteAnswer): AnswerOf<"tool.result"> => {
  const last = ended?.results.at(-1)
  if (ended?.provenance !== undefined && ended.provenance !== "remote")
    throw new InvalidState(`${callId} waits for no result of a client`)
  if (last === undefined) throw new NotFound(`no call ${callId} waits for a result`)
  const mine = ended?.results.find((result) => isSame(result, answer))
  if (mine !== undefined) return { event_id: mine.event_id }
  const { answer_sha256: _, ...outcome } = last
  const message = `${callId} has ended before: ${last.error?.message ?? last.status}`
  throw new AlreadyDecided(message, { outcome })
}

export const takeResult = async (
  { call_id: callId, conversation_id: id, output = "", status = "success" }: FieldsOf<"tool.result">,
  context: OperationContext
): Promise<AnswerOf<"tool.result">> => {
  const { desk, owner } = registryOf(context)
  const { calls } = await context.conversations.state(id)
  const call = calls.find((one) => one.call_id === callId)
  if (call?.result === null) {
    accepted(desk.result(id, owner, call, { status, output }))
    await untilDurable(context, id, callId)
  }
  const ended = await context.conversationStore.endedCall(id, callId, call?.event_id ?? 1)
  return answerOf(ended, callId, { status, output, hash: desk.answerHash({ status, output }) })
}
