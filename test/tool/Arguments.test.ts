// Goal: arguments that do not fit are told by place and problem; a schema from outside can be broken, endless or malicious
// and does no harm. Method: the real checker, schemas of every bad kind.
import { describe, expect, it } from "vitest"
import type { Provenance } from "#src/contract/ToolAccess.ts"
import { makeArgumentCheck } from "#src/tool/Arguments.ts"
import { limits } from "#src/tool/ToolLimits.ts"

type Schema = { readonly [key: string]: unknown }
const { check } = makeArgumentCheck()
const messageOf = async (parameters: Schema, value: unknown, provenance: Provenance = "builtin") => {
  const checked = await check({ name: "t", parameters, provenance }, value)
  return checked._tag === "Valid" ? undefined : checked.message
}

const schema = {
  type: "object",
  properties: {
    path: { type: "string", minLength: 1 },
    count: { type: ["integer", "null"], minimum: 1 },
    mode: { enum: ["a", "b"] },
    list: { type: "array", items: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } }
  },
  required: ["path"],
  additionalProperties: false
}

describe("arguments", () => {
  it.each([
    [{ path: "x" }, undefined],
    [{ path: "x", count: null, list: [{ n: 1 }] }, undefined],
    [{}, "t: the arguments: path is missing"],
    [{ path: 7 }, "t: path must be string"],
    [{ path: "" }, "t: path must NOT have fewer than 1 characters"],
    [{ path: "x", count: "1" }, "t: count must be integer or null"],
    [{ path: "x", mode: "c" }, 't: mode must be one of "a", "b"'],
    [{ path: "x", list: [{ n: 1 }, {}] }, "t: list.1: n is missing"],
    [{ path: "x", other: 1 }, "t: the arguments: there is no other"],
    [{ count: 0, mode: "c" }, 't: the arguments: path is missing; count must be >= 1; mode must be one of "a", "b"'],
    [[], "t: the arguments must be an object"],
    ["text", "t: the arguments must be an object"]
  ])("%j", async (value, message) => {
    expect(await messageOf(schema, value)).toBe(message)
  })

  it("with many problems are told the first ones", async () => {
    const many = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`k${index}`, 1]))
    expect(await messageOf(schema, { path: "x", ...many })).toMatch(/there is no k4; and 4 more$/)
  })
})

describe("a schema from outside", () => {
  let deep: Schema = {}
  for (let index = 0; index < 20_000; index += 1) deep = { properties: { a: deep } }

  it.each<readonly [string, Schema]>([
    ["of no known type", { type: "objekt" }],
    ["that refers elsewhere", { $ref: "https://example.org/schema.json" }],
    ["that refers to itself", { $ref: "#" }],
    ["that is asynchronous", { $async: true, type: "object" }],
    ["that is deeper than the stack", deep],
    ["with a broken pattern", { properties: { a: { pattern: "(" } } }],
    ["with wrong keywords", { properties: 7, required: "path" }],
    ["of an older draft", { $schema: "http://json-schema.org/draft-07/schema#", type: "object" }],
    ["that is larger than any", { type: "object", description: "x".repeat(limits.schemaCharsMax) }]
  ])("%s lets objects through, and nothing else", async (_name, parameters) => {
    expect(await messageOf(parameters, { a: "x" }, "mcp")).toBeUndefined()
    expect(await messageOf(parameters, "text", "mcp")).toBe("t: the arguments must be an object")
  })

  it("cannot make a pattern take for ever", async () => {
    const parameters = {
      type: "object",
      properties: { a: { type: "string", pattern: "^(a+)+$" } },
      patternProperties: { "^(b+)+$": { type: "string" } }
    }
    // One that was tried would take until the end of the test, and longer.
    const evil = { a: `${"a".repeat(50)}!`, [`${"b".repeat(50)}!`]: 1 }
    expect(await messageOf(parameters, evil, "remote")).toBeUndefined()
    expect(await messageOf(parameters, { a: 7 }, "remote")).toBe("t: a must be string")
    const closed = { ...parameters, additionalProperties: false, $defs: { x: { pattern: "(" } } }
    expect(await messageOf(closed, evil, "mcp")).toBeUndefined()
    const names = { type: "object", properties: { pattern: { type: "string" } }, additionalProperties: false }
    expect(await messageOf(names, { pattern: 7 }, "mcp")).toBe("t: pattern must be string")
    // Our own patterns are checked.
    expect(await messageOf({ properties: { a: { pattern: "^b$" } } }, { a: "c" })).toContain("must match pattern")
  })

  it("cannot make references to itself take for ever", async () => {
    const chain = Object.fromEntries(
      Array.from({ length: 60 }, (_, index) => {
        const next = { $ref: `#/$defs/s${index + 1}` }
        return [`s${index}`, { anyOf: [{ allOf: [next, false] }, { allOf: [next, false] }] }]
      })
    )
    const defs = { ...chain, s60: { type: "object" } }
    expect(await messageOf({ $ref: "#/$defs/s0", $defs: defs }, { a: 1 }, "mcp")).toBeUndefined()
    const hidden = { properties: { a: { $ref: "#/default" } }, default: { type: "string", pattern: "^(a+)+$" } }
    expect(await messageOf(hidden, { a: `${"a".repeat(50)}!` }, "remote")).toBeUndefined()
  })

  it("is checked as deep as the limit, and set aside below it", async () => {
    const nested = (levels: number): Schema => {
      let inner: Schema = { type: "string" }
      for (let level = 0; level < levels; level += 1) inner = { allOf: [inner] }
      return { properties: { a: inner } }
    }
    expect(await messageOf(nested(limits.schemaLevelsMax / 2 - 2), { a: 1 }, "mcp")).toContain("a must be string")
    expect(await messageOf(nested(limits.schemaLevelsMax), { a: 1 }, "mcp")).toBeUndefined()
  })

  it("of the same name as another does not stand in for it", async () => {
    const first = { $id: "same", type: "object", required: ["a"] }
    const second = { $id: "same", type: "object", required: ["b"] }
    expect(await messageOf(first, { a: 1 }, "mcp")).toBeUndefined()
    expect(await messageOf(second, { a: 1 }, "mcp")).toBe("t: the arguments: b is missing")
  })

  it("is compiled once, and forgotten when there are many others", async () => {
    const fresh = makeArgumentCheck()
    const checkWith = (parameters: Schema) => fresh.check({ name: "t", parameters, provenance: "mcp" }, { a: 1 })
    let reads = 0
    const watched: Schema = {
      type: "object",
      get properties() {
        reads += 1
        return {}
      }
    }
    await checkWith(watched)
    const readOnce = reads
    await checkWith(watched)
    expect(reads).toBe(readOnce)
    const before = process.memoryUsage().heapUsed
    for (let index = 0; index < 3 * limits.schemasMax; index += 1)
      await checkWith({ type: "object", properties: { [`p${index}`]: { type: "string", minLength: index } } })
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(200 * 1_024 ** 2)
    await checkWith(watched)
    expect(reads).toBeGreaterThan(readOnce)
  })
})
