// Goal: no tool can make a provider refuse the request of a turn. Method: tools whose schemas have unions, references and
// other things at their root, sent through the three real SDKs to a server that keeps the bodies; what the model writes
// for them comes back as the tool knows it, and goes into the next request as the model wrote it.
import { Ajv2020 } from "ajv/dist/2020.js"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { assistant, type JsonObject, toolResults, user } from "#src/provider/Canonical.ts"
import { shapeRequest } from "#src/provider/ToolSchema.ts"
import { toolAnswer } from "../support/provider-server/Answer.ts"
import { collect, sampleRequest } from "../support/provider-server/Collect.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { type ProviderServer, startProviderServer, type WireRequest } from "../support/provider-server/Server.ts"

let server: ProviderServer
beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const text = { type: "string" }
const pay = { type: "object", properties: { pay: text, next: { $ref: "#/$defs/next" } }, required: ["pay"] }
const ask = { type: "object", properties: { ask: text }, required: ["ask"] }
const $defs = { next: { anyOf: [{ type: "null" }, { $ref: "#" }] } }

/** Schema of a tool, arguments that it takes, arguments that it refuses. */
const roots: ReadonlyArray<readonly [name: string, schema: JsonObject, good: JsonObject, bad: JsonObject]> = [
  ["anyOf", { type: "object", anyOf: [pay, ask], $defs }, { ask: "why" }, { tell: "x" }],
  ["oneOf", { oneOf: [pay, ask], $defs }, { pay: "INV-7", next: { ask: "then" } }, { pay: "x", ask: "y" }],
  ["allOf", { type: "object", properties: { a: text }, allOf: [pay, ask], $defs }, { pay: "x", ask: "y" }, { a: "z" }],
  ["not", { type: "object", not: { required: ["secret"] } }, { a: 1 }, { secret: 1 }],
  ["$ref", { $ref: "#/definitions/ask", definitions: { ask } }, { ask: "a" }, {}],
  ["a reference to a part", { anyOf: [ask, { $ref: "#/anyOf/0" }] }, { ask: "1" }, {}],
  ["a property called input", { anyOf: [{ required: ["input"] }] }, { input: { input: 1 } }, {}]
]

const refused = ["anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref"]

const schemasIn = ({ body, format }: WireRequest): ReadonlyArray<JsonObject> =>
  ((body as { tools: ReadonlyArray<JsonObject> }).tools ?? []).map((tool) => {
    if (format === "messages") return tool["input_schema"] as JsonObject
    return (format === "chat" ? (tool["function"] as JsonObject) : tool)["parameters"] as JsonObject
  })

const definition = (parameters: JsonObject) => ({ name: "act", description: "acts", parameters })

describe.each(formats)("over $name", (format) => {
  it.each(roots)(
    "a root with %s is sent as a plain object, and calls of it come back as they are",
    async (_, schema, good, bad) => {
      const tools = [definition(schema)]
      const [sent] = shapeRequest(sampleRequest({ tools })).request.tools!
      const accepts = new Ajv2020({ strict: false }).compile(sent!.parameters)
      expect(accepts({ input: good })).toBe(true)
      expect(accepts({ input: bad })).toBe(false)
      const written = JSON.stringify({ input: good })
      const call = { id: "call_1", name: "act", arguments: written }
      server.respond(() => ({ body: format.stream({ ...toolAnswer, calls: [call] }) }))
      const got = await collect(format.provider(server.url), sampleRequest({ tools }))
      const [root] = schemasIn(server.requests[0]!)
      expect(root).toMatchObject({ type: "object", properties: { input: {} }, required: ["input"] })
      expect(Object.keys(root!).filter((key) => refused.includes(key))).toEqual([])
      expect(got.calls[0]?.parsed).toEqual({ _tag: "Parsed", value: good })
      const results = toolResults([{ type: "tool_result", call_id: "call_1", output: "done" }])
      const messages = [user("go"), assistant(got.final!.items), results]
      await collect(format.provider(server.url), sampleRequest({ tools, messages }))
      const body = JSON.stringify(server.requests[1]!.body)
      expect(body.includes(written) || body.includes(JSON.stringify(written).slice(1, -1))).toBe(true)
    }
  )

  it.each([
    ["without the wrapping", { ask: "why" }],
    ["with the inside as text", { input: JSON.stringify({ ask: "why" }) }]
  ])("arguments %s are understood", async (_, written) => {
    const tools = [definition({ type: "object", anyOf: [pay, ask], $defs })]
    const call = { id: "call_1", name: "act", arguments: JSON.stringify(written) }
    server.respond(() => ({ body: format.stream({ ...toolAnswer, calls: [call] }) }))
    const got = await collect(format.provider(server.url), sampleRequest({ tools }))
    expect(got.calls[0]?.parsed).toEqual({ _tag: "Parsed", value: { ask: "why" } })
  })

  it("a plain root keeps its calls as they are, has properties, and lists have items", async () => {
    const lists = { type: "object", properties: { list: { type: "array" }, type: { enum: [{ type: "array" }] } } }
    const tools = [definition({ type: "object" }), { ...definition(lists), name: "lists" }]
    const call = { id: "call_1", name: "act", arguments: '{"input":{"a":1}}' }
    server.respond(() => ({ body: format.stream({ ...toolAnswer, calls: [call] }) }))
    const got = await collect(format.provider(server.url), sampleRequest({ tools }))
    expect(got.calls[0]?.parsed).toEqual({ _tag: "Parsed", value: { input: { a: 1 } } })
    expect(schemasIn(server.requests[0]!)).toEqual([
      { type: "object", properties: {} },
      { type: "object", properties: { list: { type: "array", items: {} }, type: { enum: [{ type: "array" }] } } }
    ])
  })
})
