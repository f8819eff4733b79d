// The operation that is carried out, as its handler sees it: who asks, with which key, and what the server offers. A handler
// is a function from the input to an effect; its failures carry their code, everything else is a defect.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { WireFailure } from "../../contract/WireFailure.ts"
import type { Submitted } from "../../conversation/Actor.ts"
import { attempt } from "../../conversation/Attempt.ts"
import type { Conversations } from "../../conversation/Conversations.ts"
import { durableAnswer } from "../../conversation/DurableAnswer.ts"
import type { AnswerOf, ConnectionOperation, FieldsOf, OperationName } from "../../wire/Operations.ts"
import type { OperationContext } from "./Context.ts"

export class CurrentOperation extends Context.Service<CurrentOperation, OperationContext>()("echs/CurrentOperation") {}

export type Operating<A> = Effect.Effect<A, WireFailure, CurrentOperation>
export type Handler<Name extends OperationName> = (input: FieldsOf<Name>) => Operating<AnswerOf<Name>>

/** Every operation that the server answers; what belongs to a connection is answered there. */
export type HandlerTable = { readonly [Name in Exclude<OperationName, ConnectionOperation>]: Handler<Name> }

/** The handlers of all operations whose names begin with one of these words. */
export type HandlersOf<Word extends string> = Pick<HandlerTable, Extract<keyof HandlerTable, `${Word}.${string}`>>

export type Command = Parameters<Conversations["submit"]>[1]
export type State = Awaited<ReturnType<Conversations["state"]>>
type Changed = AnswerOf<"turn.retry">

/** A promise of the rooms behind the server. */
export const using = <A>(run: (context: OperationContext) => Promise<A>): Operating<A> =>
  CurrentOperation.use((context) => attempt(() => run(context)))

/** One command to one conversation; done when what it caused is durable. */
export const submit = (conversationId: string, command: Command): Operating<Submitted> =>
  using(({ conversations, idempotency }) => conversations.submit(conversationId, command, idempotency))

/** The same, answered with the last event it caused. */
export const change = (conversationId: string, command: Command): Operating<Changed> =>
  Effect.map(submit(conversationId, command), ({ event_id }) => ({ event_id }))

/** What is told of a conversation, once all of it is durable. */
export const tell = <A>(conversationId: string, of: (state: State) => A): Operating<A> =>
  using(({ conversations }) => durableAnswer(conversations, conversationId, of))

export const stateOf = (conversationId: string): Operating<State> =>
  using(({ conversations }) => conversations.state(conversationId))
