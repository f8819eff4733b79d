// The definition of a built-in tool. One schema of the arguments gives their types and the JSON Schema that models see;
// what a tool is called with has passed that JSON Schema, and is decoded here once more where types are needed.
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Access } from "../contract/ToolAccess.ts"
import type { ToolFacts } from "../machine/Command.ts"
import { errorInfo } from "../machine/ErrorTable.ts"
import type { ShownAs } from "../rune/kinds/tool.ts"
import type { WorkspaceChoice } from "../sandbox/WorkspaceCheck.ts"
import type { Tool } from "./Tool.ts"
import type { ToolContext, ToolOutcome } from "./ToolPort.ts"

/** Arguments of a tool: an object of plain JSON. */
export type InputSchema = Schema.Struct<Schema.Struct.Fields> & { readonly DecodingServices: never }

type Parameters = Tool["parameters"]

export interface ToolDefinition<S extends InputSchema> extends ToolFacts, Pick<Tool, "approval" | "sandboxed"> {
  readonly name: string
  readonly description: string
  readonly input: S
  /** The last word on the derived JSON Schema, for a tool that models have always seen written differently. */
  readonly describe?: (derived: Parameters) => Parameters
  /** What a call would touch, for the policy. */
  readonly access: (input: S["Type"]) => Access
  /** What a person is shown before deciding. */
  readonly preview: (input: S["Type"], place: WorkspaceChoice) => Effect.Effect<ShownAs>
  readonly run: (input: S["Type"], context: ToolContext) => Effect.Effect<ToolOutcome>
}

/** The type comes first; bounds that say no more than "a whole number" are left out. */
const describedArgument = ({ type, ...rest }: Parameters): Parameters => ({
  type,
  ...Object.fromEntries(
    Object.entries(rest).filter(([, value]) => value !== Number.MAX_SAFE_INTEGER && value !== Number.MIN_SAFE_INTEGER)
  )
})

/** The JSON Schema of arguments, its keys in the order in which they are sent. Unknown arguments are refused. */
export const parametersOf = (input: InputSchema): Parameters => {
  const { properties = {}, required = [] } = Schema.toJsonSchemaDocument(input).schema
  const described = Object.entries(properties as Record<string, Parameters>).map(([name, one]) => [
    name,
    describedArgument(one)
  ])
  return { type: "object", properties: Object.fromEntries(described), required, additionalProperties: false }
}

export const defineTool = <S extends InputSchema>(definition: ToolDefinition<S>): Tool => {
  const { access, describe = (derived) => derived, input: schema, preview, run, ...facts } = definition
  // The router has checked lengths and ranges already, by the JSON Schema; two counts of characters could disagree.
  const decode = Schema.decodeUnknownResult(schema, { disableChecks: true })
  const decodeOrThrow = (given: unknown): S["Type"] => Result.getOrThrow(decode(given))
  return {
    ...facts,
    provenance: "builtin",
    parameters: describe(parametersOf(schema)),
    access: (given) => access(decodeOrThrow(given)),
    preview: (given, place) => Effect.suspend(() => preview(decodeOrThrow(given), place)),
    run: (given, context) =>
      Result.match(decode(given), {
        onFailure: ({ message }) => Effect.succeed(invalidArguments(definition.name, message)),
        onSuccess: (input) => run(input, context)
      })
  }
}

const invalidArguments = (name: string, problem: string): ToolOutcome => ({
  status: "error",
  error: errorInfo("invalid_arguments", `${name}: ${problem.replaceAll(/\s*\n\s*/g, " ")}`)
})
