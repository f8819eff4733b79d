// `tool.register` and `tool.result`: tools that a client runs itself. Both belong to a connection, for it is the
// connection that answers for its tools. A result is answered for when it is durable, and from the log alone: what comes
// late or again, also in another life of the server, is told how the call ended first.
import * as Effect from "effect/Effect"
import type { RegistryAnswer, RemoteTools } from "../../contract/RemoteTools.ts"
import { attempt } from "../../conversation/Attempt.ts"
import type { EndedCall } from "../../conversation/EndedCall.ts"
import { openCallsOf } from "../../conversation/Summary.ts"
import type { AnswerOf } from "../../wire/Operations.ts"
import { limits } from "../../wire/WireLimits.ts"
import {
  CurrentOperation,
  change,
  type Handler,
  type HandlersOf,
  type Operating,
  stateOf,
  tell
} from "./CurrentOperation.ts"
import {
  AlreadyDecided,
  BadRequest,
  InvalidState,
  NotFound,
  RegistrationRefused,
  ServerBusy
} from "./OperationErrors.ts"

interface Registry {
  readonly tools: RemoteTools
  readonly owner: { readonly principal: string; readonly connection: object }
}

const registry: Operating<Registry> = Effect.gen(function* () {
  const { connection, principal, remoteTools } = yield* CurrentOperation
  if (remoteTools === undefined) return yield* new InvalidState("client-run tools are not available on this server")
  if (connection === undefined) return yield* new BadRequest("client-run tools need a WebSocket")
  return { tools: remoteTools, owner: { principal: principal.name, connection } }
})

const accepted = <Ok>(answer: RegistryAnswer<Ok>): Effect.Effect<Ok, RegistrationRefused> =>
  answer._tag === "Refused"
    ? Effect.fail(new RegistrationRefused({ code: answer.code, message: answer.message }))
    : Effect.succeed(answer)

const over: ReadonlySet<string> = new Set(["closing", "closed", "archived"])

const registerTools: Handler<"tool.register"> = ({ conversation_id: id, tools: wanted }) =>
  Effect.gen(function* () {
    const { owner, tools } = yield* registry
    const { head, open, status } = yield* tell(id, openCallsOf)
    if (over.has(status)) return yield* new InvalidState(`the conversation is ${status}`, { state: status })
    // After the look: whatever started since then waits, or follows from that event on.
    const { tools: names, waiting } = yield* accepted(tools.register(id, owner, wanted, open))
    return {
      event_id: head,
      tools: names,
      open: open.filter((call) => names.includes(call.tool_name)).map(({ origin: _, ...call }) => call),
      waiting
    }
  })

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

/** Done when the call is over and its end is on disk. */
const untilDurable = (id: string, callId: string): Operating<void> =>
  Effect.gen(function* () {
    const { conversations } = yield* CurrentOperation
    const resident = yield* attempt(() => conversations.load(id))
    const isOpen = (): boolean => resident.state.calls.some((call) => call.call_id === callId && call.result === null)
    const ended = Effect.whileLoop({
      while: isOpen,
      body: () => attempt((signal) => resident.changed(signal)),
      step: () => {}
    })
    yield* Effect.timeoutOrElse(ended, {
      duration: limits.resultDurableWithinMs,
      orElse: () =>
        Effect.fail(new ServerBusy("the result was accepted but is not durable yet", { retry_after_ms: 100 }))
    })
    yield* attempt(() => resident.actor.settled())
  })

type Answered = Effect.Effect<AnswerOf<"tool.result">, AlreadyDecided | InvalidState | NotFound>

/** How the call ended is what the log says, whoever asks and however often. */
const answerOf = (ended: EndedCall | undefined, callId: string, answer: RemoteAnswer): Answered => {
  const last = ended?.results.at(-1)
  if (ended?.provenance !== undefined && ended.provenance !== "remote")
    return Effect.fail(new InvalidState(`${callId} is not waiting for a result from a client`))
  if (last === undefined) return Effect.fail(new NotFound(`no call ${callId} waits for a result`))
  const mine = ended?.results.find((result) => isSame(result, answer))
  if (mine !== undefined) return Effect.succeed({ event_id: mine.event_id })
  const { answer_sha256: _, ...outcome } = last
  const message = `${callId} has ended before: ${last.error?.message ?? last.status}`
  return Effect.fail(new AlreadyDecided(message, { outcome }))
}

const takeResult: Handler<"tool.result"> = (fields) =>
  Effect.gen(function* () {
    const { call_id: callId, conversation_id: id, output = "", status = "success" } = fields
    const { owner, tools } = yield* registry
    const { conversationStore } = yield* CurrentOperation
    const call = (yield* stateOf(id)).calls.find((one) => one.call_id === callId)
    if (call?.result === null) {
      yield* accepted(tools.result(id, owner, call, { status, output }))
      yield* untilDurable(id, callId)
    }
    const ended = yield* attempt(() => conversationStore.endedCall(id, callId, call?.event_id ?? 1))
    return yield* answerOf(ended, callId, { status, output, hash: tools.answerHash({ status, output }) })
  })

export const toolHandlers: HandlersOf<"tool"> = {
  "tool.register": registerTools,
  "tool.result": takeResult,
  "tool.retry": ({ conversation_id: id, ...run }) =>
    CurrentOperation.use(({ principal }) => change(id, { _tag: "RetryCall", ...run, principal: principal.name }))
}
