// What is written from the list of operations beside their schemas: the table in docs/PROTOCOL.md, and the module with
// which the client, which loads no schemas, knows the operations that change nothing.
import * as Schema from "effect/Schema"
import { operationNames, operations } from "#src/wire/Operations.ts"

type JsonObject = Readonly<Record<string, unknown>>

/** The names of the fields; those that may be left out have a question mark. */
const fieldsOf = (schema: Schema.ConstraintCodec<unknown, unknown>): string => {
  const { schema: json } = Schema.toJsonSchemaDocument(schema)
  const { properties, required = [] } = json as {
    readonly properties?: JsonObject
    readonly required?: ReadonlyArray<string>
  }
  return Object.keys(properties ?? {})
    .map((name) => (required.includes(name) ? name : `${name}?`))
    .join(", ")
}

const rowOf = (name: (typeof operationNames)[number]): string => {
  const { about, answer, input, role } = operations[name]
  const asked: { readonly [key: string]: Schema.ConstraintCodec<unknown, unknown> } = input
  return `| \`${name}\` | ${role} | ${fieldsOf(Schema.Struct(asked))} | ${fieldsOf(answer)} | ${about} |`
}

const beginning = "| op | role | fields | ok | about |\n|---|---|---|---|---|\n"

/** The page with its table of operations written anew. */
export const withOperationTable = (page: string): string => {
  const from = page.indexOf(beginning)
  if (from < 0) throw new Error("docs/PROTOCOL.md has no table of operations")
  const to = page.indexOf("\n\n", from)
  return `${page.slice(0, from)}${beginning}${operationNames.map(rowOf).join("\n")}${page.slice(to)}`
}

export const readingOperationsModule = (): string => {
  const names = operationNames.filter((name) => !operations[name].mutates)
  return `// Operations that change nothing and take no idempotency key. Written by \`npm run schemas\` from the list of operations:
// the client loads no schemas, so it cannot read the list itself.
export const readingOperations: ReadonlySet<string> = new Set([
${names.map((name) => `  "${name}"`).join(",\n")}
])
`
}
