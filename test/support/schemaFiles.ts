/**
 * Computes every file under schemas/rune, schemas/wire, schemas/answers and schemas/examples,
 * schemas/operations.json and schemas/openapi.json, from the kinds, the operations, their
 * answers, the HTTP endpoints and the examples.
 * Same input, same bytes: keys keep the order of the schema.
 */
import * as Schema from "effect/Schema"
import { envelopeFields } from "#src/rune/Envelope.ts"
import type { PayloadSchema } from "#src/rune/KindDefinition.ts"
import { definitions, type Kind } from "#src/rune/Kinds.ts"
import { steps } from "#src/rune/Upcaster.ts"
import { openApiDocument } from "#src/server/http/OpenApiDocument.ts"
import { Answer, ErrorBody, Hello, Pushed, Ticket, Welcome } from "#src/wire/Frames.ts"
import { type OperationName, operationNames, operations, requestSchema } from "#src/wire/Operations.ts"
import { exampleRune, oldPayloadExamples } from "./runeExamples.ts"

const idOf = (kind: string, version: number): string => `urn:echs:rune:${kind}:v${version}`

const schemaDocument = (kind: string, version: number, payload: PayloadSchema): unknown => {
  const rune = Schema.Struct({
    ...envelopeFields,
    kind: Schema.Literal(kind),
    schema_version: Schema.Literal(version),
    payload
  })
  const document = Schema.toJsonSchemaDocument(rune)
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: idOf(kind, version),
    title: kind,
    ...document.schema,
    ...(Object.keys(document.definitions).length === 0 ? {} : { $defs: document.definitions })
  }
}

const frames = { answer: Answer, error: ErrorBody, hello: Hello, pushed: Pushed, ticket: Ticket, welcome: Welcome }

const wireDocument = (name: string, schema: Schema.ConstraintCodec<unknown, unknown>) => {
  const document = Schema.toJsonSchemaDocument(schema)
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: `urn:echs:wire:${name}:v1`,
    title: name,
    ...document.schema,
    ...(Object.keys(document.definitions).length === 0 ? {} : { $defs: document.definitions })
  }
}

/** The `ok` of the answer to an operation. */
const answerDocument = (name: OperationName) => ({
  ...wireDocument(name, operations[name].answer),
  $id: `urn:echs:answer:${name}:v1`,
  title: `answer to ${name}`
})

/** Where a generator of clients begins: every operation, who may ask for it, and the files that describe it. */
const operationTable = () =>
  Object.fromEntries(
    operationNames.map((name) => {
      const { mutates, role } = operations[name]
      return [name, { mutates, role, request: `wire/${name}.json`, answer: `answers/${name}.json` }]
    })
  )

/** The same schema where no object of named fields takes others: requests are refused, everything else may grow. */
const closed = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).map(([key, one]) => [key, closed(one)])
  return { ...Object.fromEntries(entries), ...("properties" in value ? { additionalProperties: false } : {}) }
}

const render = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`

const oldExample = (kind: string, version: number): unknown => ({
  ...exampleRune(kind as Kind),
  schema_version: version,
  payload: oldPayloadExamples[`${kind}@${version}`]
})

/** Path below schemas/ to contents, sorted by path. */
export const schemaFiles = (): ReadonlyMap<string, string> => {
  const files = new Map<string, string>()
  for (const { kind, version, payload } of definitions) {
    files.set(`rune/${kind}.v${version}.json`, render(schemaDocument(kind, version, payload)))
    files.set(`examples/${kind}.v${version}.json`, render(exampleRune(kind)))
  }
  for (const { kind, fromVersion, payload } of steps) {
    files.set(`rune/${kind}.v${fromVersion}.json`, render(schemaDocument(kind, fromVersion, payload)))
    files.set(`examples/${kind}.v${fromVersion}.json`, render(oldExample(kind, fromVersion)))
  }
  for (const name of operationNames) {
    files.set(`wire/${name}.json`, render(closed(wireDocument(name, requestSchema(name)))))
    files.set(`answers/${name}.json`, render(answerDocument(name)))
  }
  files.set("operations.json", render(operationTable()))
  files.set("openapi.json", render(openApiDocument()))
  for (const [name, schema] of Object.entries(frames)) {
    files.set(`wire/${name}.json`, render(wireDocument(name, schema)))
  }
  return new Map([...files].sort(([left], [right]) => (left < right ? -1 : 1)))
}
