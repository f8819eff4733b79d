/**
 * Computes every file under schemas/rune and schemas/examples from the kinds and
 * their examples. Same input, same bytes: keys keep the order of the schema.
 */
import * as Schema from "effect/Schema"
import { envelopeFields } from "#src/rune/Envelope.ts"
import type { PayloadSchema } from "#src/rune/KindDefinition.ts"
import { definitions, type Kind } from "#src/rune/Kinds.ts"
import { steps } from "#src/rune/Upcaster.ts"
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
  return new Map([...files].sort(([left], [right]) => (left < right ? -1 : 1)))
}
