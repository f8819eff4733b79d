// Checks the arguments of a call against the JSON Schema of its tool. Schemas come from anywhere: one that cannot be
// compiled, is too large or wants to do more than describe is set aside, and only the outer shape is checked then.

import type { Ajv2020, ErrorObject, ValidateFunction } from "ajv/dist/2020.js"
import { dropOldest } from "../rune/Elements.ts"
import type { Input, Tool } from "./Tool.ts"
import { limits } from "./ToolLimits.ts"

export type CheckedArguments =
  | { readonly _tag: "Valid"; readonly input: Input }
  | { readonly _tag: "Invalid"; readonly message: string }

type Schema = Tool["parameters"]
type Check = (value: unknown) => ReadonlyArray<ErrorObject>

export interface ArgumentCheck {
  readonly check: (tool: Pick<Tool, "name" | "parameters" | "provenance">, value: unknown) => Promise<CheckedArguments>
}

const anyObject: Check = () => []

const makeCompilers = async (): Promise<{ readonly own: Ajv2020; readonly foreign: Ajv2020 }> => {
  const { Ajv2020: Compiler } = await import("ajv/dist/2020.js")
  const common = { strict: false, validateSchema: false, validateFormats: false, logger: false } as const
  return { own: new Compiler({ ...common, allErrors: true }), foreign: new Compiler(common) }
}

/** Keywords whose value names things that are schemas in turn, and keywords whose value is plain data. */
const named: ReadonlySet<string> = new Set(["properties", "$defs", "definitions", "dependentSchemas"])
const plain: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "required"])
const byPattern: ReadonlySet<string> = new Set(["pattern", "patternProperties"])
/** These go by what the patterns left over. */
const afterPattern: ReadonlySet<string> = new Set(["additionalProperties", "unevaluatedProperties"])

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const references: ReadonlySet<string> = new Set(["$ref", "$dynamicRef", "$recursiveRef"])

/**
 * A schema that refers to parts of itself can make a check of a few characters take for ever, and can make a part that
 * is plain data into one that is not; so can one that is nested without end.
 */
const isBounded = (schema: unknown, levels: number = limits.schemaLevelsMax): boolean => {
  if (typeof schema !== "object" || schema === null) return true
  if (levels === 0 || Object.keys(schema).some((key) => references.has(key))) return false
  return Object.values(schema).every((part) => isBounded(part, levels - 1))
}

/**
 * A schema without its patterns: it lets through more, and never less. Patterns of others are theirs to check, for one
 * can be made to take for ever.
 */
const withoutPatterns = (schema: unknown): unknown => {
  if (Array.isArray(schema)) return schema.map(withoutPatterns)
  if (!isMap(schema)) return schema
  const isOpen = "patternProperties" in schema
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key]) => !byPattern.has(key) && !(isOpen && afterPattern.has(key)))
      .map(([key, value]) => {
        if (plain.has(key)) return [key, value]
        if (!named.has(key) || !isMap(value)) return [key, withoutPatterns(value)]
        return [key, Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutPatterns(one)]))]
      })
  )
}

/** Names of a schema would be remembered by the compiler and could clash with those of another. */
const anonymous = ({ $id: _id, $schema: _schema, ...schema }: Schema): Schema => schema

const compile = (compiler: Ajv2020, schema: Schema, options: { readonly isForeign: boolean }): Check => {
  try {
    if (options.isForeign && !isBounded(schema)) return anyObject
    if (JSON.stringify(schema).length > limits.schemaCharsMax) return anyObject
    const described = anonymous(options.isForeign ? (withoutPatterns(schema) as Schema) : schema)
    const validate: ValidateFunction = compiler.compile(described)
    // The compiler would keep it for ever; what is kept, and for how long, is decided here.
    compiler.removeSchema(described)
    if ("$async" in validate) return anyObject
    return (value) => (validate(value) ? [] : (validate.errors ?? []))
  } catch {
    return anyObject
  }
}

const contained =
  (check: Check): Check =>
  (value) => {
    try {
      return check(value)
    } catch {
      return []
    }
  }

const place = (path: string): string => (path === "" ? "the arguments" : path.slice(1).replaceAll("/", "."))

const problemOf = ({ instancePath, keyword, message, params }: ErrorObject): string => {
  const at = place(instancePath)
  switch (keyword) {
    case "required":
      return `${at}: ${String(params["missingProperty"])} is missing`
    case "additionalProperties":
    case "unevaluatedProperties":
      return `${at}: there is no ${String(params["additionalProperty"] ?? params["unevaluatedProperty"])}`
    case "type":
      return `${at} must be ${[params["type"]].flat().join(" or ")}`
    case "enum":
      return `${at} must be one of ${(params["allowedValues"] as ReadonlyArray<unknown>).map((one) => JSON.stringify(one)).join(", ")}`
    default:
      return `${at} ${message ?? `breaks ${keyword}`}`
  }
}

const told = (name: string, errors: ReadonlyArray<ErrorObject>): string => {
  const problems = [...new Set(errors.map(problemOf))]
  const rest = problems.length - limits.problemsMax
  return `${name}: ${problems.slice(0, limits.problemsMax).join("; ")}${rest > 0 ? `; and ${rest} more` : ""}`
}

const isObject = (value: unknown): value is Input =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const makeArgumentCheck = (): ArgumentCheck => {
  let compilers: ReturnType<typeof makeCompilers> | undefined
  const checks = new Map<Schema, Check>()

  const checkOf = async ({ parameters, provenance }: Pick<Tool, "parameters" | "provenance">): Promise<Check> => {
    compilers ??= makeCompilers()
    const { foreign, own } = await compilers
    const isForeign = provenance !== "builtin" && provenance !== "custom"
    const check = checks.get(parameters) ?? contained(compile(isForeign ? foreign : own, parameters, { isForeign }))
    checks.delete(parameters)
    checks.set(parameters, check)
    if (checks.size > limits.schemasMax) dropOldest(checks)
    return check
  }

  return {
    check: async (tool, value) => {
      if (!isObject(value)) return { _tag: "Invalid", message: `${tool.name}: the arguments must be an object` }
      const errors = (await checkOf(tool))(value)
      return errors.length === 0
        ? { _tag: "Valid", input: value }
        : { _tag: "Invalid", message: told(tool.name, errors) }
    }
  }
}
