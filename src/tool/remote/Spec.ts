// A tool as a client registers it, checked: a name that the providers take, a schema whose root is an object, and what
// running it twice would mean. What a client does not say is taken for the worst.
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { EffectClass } from "../../rune/kinds/shared.ts"
import { EffectClass as EffectClassSchema, Ordinal } from "../../rune/kinds/shared.ts"
import { remoteLimits } from "./RemoteToolLimits.ts"

const optional = Schema.optionalKey

const SpecSchema = Schema.Struct({
  name: Schema.String.check(Schema.isPattern(/^[a-zA-Z0-9_-]{1,64}$/u)),
  description: optional(Schema.String.check(Schema.isMaxLength(remoteLimits.descriptionCharsMax))),
  parameters: optional(Schema.Record(Schema.String, Schema.Unknown)),
  mutating: optional(Schema.Boolean),
  effect_class: optional(EffectClassSchema),
  timeout_ms: optional(Ordinal.check(Schema.isLessThanOrEqualTo(remoteLimits.timeoutMsMax))),
  approval: optional(Schema.Literal("always"))
})

export interface RemoteSpec {
  readonly name: string
  readonly description: string
  readonly parameters: { readonly [key: string]: unknown }
  readonly mutating: boolean
  readonly effect_class: EffectClass
  readonly timeout_ms?: number
  readonly approval?: "always"
}

const decode = Schema.decodeUnknownResult(SpecSchema, { onExcessProperty: "error" })

const specOf = (value: unknown): RemoteSpec | string => {
  const decoded = decode(value)
  if (Result.isFailure(decoded)) return String(decoded.failure.message ?? decoded.failure).replaceAll(/\s*\n\s*/gu, " ")
  const { parameters = {}, ...spec } = decoded.success
  const schema = { properties: {}, ...parameters, type: parameters["type"] ?? "object" }
  if (schema.type !== "object") return `${spec.name}: the root of its parameters must be an object`
  if (JSON.stringify(schema).length > remoteLimits.schemaCharsMax)
    return `${spec.name}: its parameters are longer than ${remoteLimits.schemaCharsMax} characters`
  return {
    ...spec,
    description: spec.description ?? "",
    parameters: schema,
    mutating: spec.mutating ?? true,
    effect_class: spec.effect_class ?? "effect"
  }
}

/** The tools, or what is wrong with the first that is not one. */
export const specsOf = (values: ReadonlyArray<unknown>): ReadonlyArray<RemoteSpec> | string => {
  if (values.length > remoteLimits.toolsPerConversationMax)
    return `more than ${remoteLimits.toolsPerConversationMax} tools`
  const specs: Array<RemoteSpec> = []
  for (const value of values) {
    const spec = specOf(value)
    if (typeof spec === "string") return spec.slice(0, 500).toWellFormed()
    if (specs.some(({ name }) => name === spec.name)) return `two tools are called ${spec.name}`
    specs.push(spec)
  }
  return specs
}
