/**
 * Every operation a client can ask for, by name: the one list that the dispatcher, the schemas, the client and the
 * documents are derived from. Names are fixed. Commands refuse fields they do not know; answers may grow.
 */
import * as Schema from "effect/Schema"
import { IdempotencyKey } from "../rune/Ids.ts"
import type { AnyCodec } from "./OperationDefinition.ts"
import { administrationOperations } from "./operations/administration.ts"
import { agentOperations } from "./operations/agents.ts"
import { checkpointOperations } from "./operations/checkpoints.ts"
import { conversationOperations } from "./operations/conversations.ts"
import { decisionOperations } from "./operations/decisions.ts"
import { feedOperations } from "./operations/feeds.ts"
import { outsideOperations } from "./operations/outside.ts"
import { policyOperations } from "./operations/policy.ts"
import { taskOperations } from "./operations/tasks.ts"
import { workOperations } from "./operations/work.ts"

export { type Role, roles } from "./OperationDefinition.ts"
export type { View } from "./operations/feeds.ts"

const all = [
  ...conversationOperations,
  ...workOperations,
  ...taskOperations,
  ...decisionOperations,
  ...checkpointOperations,
  ...agentOperations,
  ...feedOperations,
  ...outsideOperations,
  ...policyOperations,
  ...administrationOperations
] as const

type Definition = (typeof all)[number]
type Definitions = { readonly [One in Definition as One["name"]]: One }

export type OperationName = Definition["name"]
export type FieldsOf<Name extends OperationName> = Schema.Struct.Type<Definitions[Name]["input"]>
/** As it comes over the wire: ids are plain text. */
export type AnswerOf<Name extends OperationName> = Definitions[Name]["answer"]["Encoded"]

/** Operations that belong to a connection and are answered where the connection is. */
export type ConnectionOperation = Extract<Definition, { readonly answeredBy: "connection" }>["name"]

// The one widening: an object built from the list has the names of the list as its keys.
export const operations: Definitions = Object.fromEntries(all.map((one) => [one.name, one])) as unknown as Definitions

export const operationNames: ReadonlyArray<OperationName> = all.map(({ name }) => name)
export const isOperation = (name: string): name is OperationName => Object.hasOwn(operations, name)

/** The schema of a whole request. */
export const requestSchema = (name: OperationName): Schema.Struct<{ readonly [key: string]: AnyCodec }> => {
  const { input, mutates } = operations[name]
  const fields: { readonly [key: string]: AnyCodec } = {
    id: Schema.String,
    op: Schema.Literal(name),
    ...(mutates ? { idempotency_key: Schema.optionalKey(IdempotencyKey) } : {}),
    ...input
  }
  return Schema.Struct(fields)
}
