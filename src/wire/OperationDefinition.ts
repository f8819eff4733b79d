// The definition of one wire operation: who may ask for it, what it takes and what it answers with. The dispatcher, the
// JSON Schemas, the client's types and the table in docs/PROTOCOL.md are derived from it.
import type * as Schema from "effect/Schema"

export const roles = ["viewer", "operator", "admin"] as const
export type Role = (typeof roles)[number]

export type AnyCodec = Schema.ConstraintCodec<unknown, unknown>

export interface OperationDefinition<
  Name extends string,
  Mutates extends boolean,
  Input extends Schema.Struct.Fields,
  Answer extends AnyCodec,
  AnsweredBy extends "server" | "connection"
> {
  readonly name: Name
  /** The least role that may ask for it. */
  readonly role: Role
  /** Changes something: takes an idempotency key and answers with an event id. */
  readonly mutates: Mutates
  /** Fields beside `id`, `op` and the idempotency key. */
  readonly input: Input
  /** The `ok` of the answer frame. */
  readonly answer: Answer
  /** `connection`: it changes what a WebSocket is sent, and only a WebSocket can ask for it. */
  readonly answeredBy: AnsweredBy
  /** What the fields do not say by themselves, for docs/PROTOCOL.md and the JSON Schemas. */
  readonly about: string
}

export const defineOperation = <
  const Name extends string,
  const Mutates extends boolean,
  Input extends Schema.Struct.Fields,
  Answer extends AnyCodec,
  const AnsweredBy extends "server" | "connection" = "server"
>(
  definition: Omit<OperationDefinition<Name, Mutates, Input, Answer, AnsweredBy>, "answeredBy"> & {
    readonly answeredBy?: AnsweredBy
  }
): OperationDefinition<Name, Mutates, Input, Answer, AnsweredBy> => ({
  ...definition,
  answeredBy: definition.answeredBy ?? ("server" as AnsweredBy)
})
