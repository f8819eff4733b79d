// Goal: one schema of the arguments gives their types and what models see, and arguments that do not fit reach no tool.
// Method: definitions as tools have them, looked at and run directly.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { describe, expect, it } from "vitest"
import { boundedText, flag, optional, text, whole } from "#src/tool/builtin/ToolSchema.ts"
import { defineTool, parametersOf } from "#src/tool/DefineTool.ts"
import { runTool } from "../support/tool/runTool.ts"

const input = Schema.Struct({
  name: boundedText("a name", { maxLength: 3 }),
  count: optional(whole("how many", { minimum: 1 })),
  level: optional(whole("how deep", { minimum: 0, maximum: 9 })),
  loud: optional(flag("in capital letters"))
})

let ran = 0
const tool = defineTool({
  name: "greet",
  description: "Greets somebody.",
  effect_class: "pure",
  mutating: false,
  input,
  access: ({ name }) => ({ reads: [name] }),
  preview: ({ name }) => Effect.succeed({ title: `greet ${name}` }),
  run: ({ count = 1, loud = false, name }) =>
    Effect.sync(() => {
      ran += 1
      return { status: "success", output: (loud ? name.toUpperCase() : name).repeat(count) }
    })
})

describe("the JSON Schema of the arguments", () => {
  it("has the type first, then the description, then the bounds, and refuses unknown arguments", () => {
    expect(JSON.stringify(tool.parameters)).toBe(
      JSON.stringify({
        type: "object",
        properties: {
          name: { type: "string", description: "a name", minLength: 1, maxLength: 3 },
          count: { type: "integer", description: "how many", minimum: 1 },
          level: { type: "integer", description: "how deep", minimum: 0, maximum: 9 },
          loud: { type: "boolean", description: "in capital letters" }
        },
        required: ["name"],
        additionalProperties: false
      })
    )
  })

  it("of no arguments is an object without any", () => {
    const nothing = { type: "object", properties: {}, required: [], additionalProperties: false }
    expect(parametersOf(Schema.Struct({}))).toEqual(nothing)
    expect(parametersOf(Schema.Struct({ note: optional(text("a note")) }))).toMatchObject({ required: [] })
  })
})

describe("a tool", () => {
  it("gets its arguments with their types", async () => {
    expect(tool.access({ name: "a" })).toEqual({ reads: ["a"] })
    expect(await runTool(tool, { name: "a", count: 2, loud: true }, {} as never)).toEqual({
      status: "success",
      output: "AA"
    })
  })

  it("is not run with arguments of another type; the result says where", async () => {
    const before = ran
    const outcome = await runTool(tool, { name: "a", count: "2" }, {} as never)
    expect(outcome).toMatchObject({ status: "error", error: { code: "invalid_arguments" } })
    expect(outcome.error?.message).toBe('greet: Expected number at ["count"]')
    expect(ran).toBe(before)
    expect(() => tool.access({})).toThrow()
  })
})
