/**
 * Goal: the committed JSON Schemas are what the code says, byte for byte, and an
 * independent validator accepts exactly what they describe.
 */

import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Ajv2020 } from "ajv/dist/2020.js"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { definitions } from "#src/rune/Kinds.ts"
import { decode, encode, isKnown } from "#src/rune/Rune.ts"
import { Changed } from "#src/wire/Answers.ts"
import { operationNames, operations } from "#src/wire/Operations.ts"
import { readingOperationsModule, withOperationTable } from "../support/operationPages.ts"
import { schemaFiles } from "../support/schemaFiles.ts"

const root = join(import.meta.dirname, "..", "..", "schemas")
const read = (path: string): string => readFileSync(join(root, path), "utf8")
const listed = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder)).map((name) => `${folder}/${name}`)
const files = schemaFiles()
const examples = [...files.keys()].filter((path) => path.startsWith("examples/"))
const schemaOf = (example: string): string => example.replace("examples/", "rune/")
const validator = () => new Ajv2020({ strict: true, allErrors: true })

describe("schemas", () => {
  it("are committed as the code generates them (node test/support/generateSchemas.ts rewrites them)", () => {
    const folders = ["rune", "wire", "answers", "examples"].flatMap(listed)
    expect([...folders, "openapi.json", "operations.json"].sort()).toEqual([...files.keys()].sort())
    for (const [path, text] of files) expect(read(path), path).toBe(text)
  })

  it("and the pages and modules beside them are committed as the list of operations says", () => {
    const top = join(root, "..")
    const protocol = readFileSync(join(top, "docs", "PROTOCOL.md"), "utf8")
    expect(protocol).toBe(withOperationTable(protocol))
    expect(readFileSync(join(top, "src", "client", "ReadingOperations.ts"), "utf8")).toBe(readingOperationsModule())
  })

  it("are generated the same way twice", () => {
    expect([...schemaFiles()]).toEqual([...files])
  })

  it("keep every released file as it was released", () => {
    const released = JSON.parse(read("released.json")) as Record<string, string>
    for (const [path, hash] of Object.entries(released)) {
      expect(createHash("sha256").update(read(path)).digest("hex"), path).toBe(hash)
    }
  })

  it.each(examples)("%s is valid for an independent validator and survives a round trip", (path) => {
    const accepts = validator().compile(JSON.parse(read(schemaOf(path))))
    const example = JSON.parse(read(path)) as Record<string, unknown>
    expect(accepts(example), JSON.stringify(accepts.errors)).toBe(true)
    const rune = Result.getOrThrow(decode(JSON.stringify(example)))
    expect(isKnown(rune)).toBe(true)
    expect(Result.getOrThrow(decode(encode(rune)))).toEqual(rune)
  })

  it("of requests accept what the server accepts, and nothing with a field it does not know", () => {
    const post = validator().compile(JSON.parse(read("wire/message.post.json")))
    const request = { id: "1", op: "message.post", conversation_id: "conv_00000000", content: "hi", mode: "steer" }
    expect(post(request), JSON.stringify(post.errors)).toBe(true)
    expect(post({ ...request, idempotency_key: "k" })).toBe(true)
    expect(post({ ...request, extra: 1 })).toBe(false)
    expect(post({ ...request, content: 5 })).toBe(false)
    expect(post({ ...request, op: "message.past" })).toBe(false)
  })

  it.each(operationNames)(
    "of the answer to %s are closed to what is no answer, and open to fields that come later",
    (name) => {
      const accepts = validator().compile(JSON.parse(read(`answers/${name}.json`)))
      expect(accepts("done")).toBe(false)
      expect(accepts([])).toBe(false)
      const { mutates } = operations[name]
      if (mutates) {
        expect(accepts({})).toBe(false)
        expect(accepts({ event_id: "1" })).toBe(false)
      }
      if (Object.is(operations[name].answer, Changed)) expect(accepts({ event_id: 1, more: true })).toBe(true)
    }
  )

  it("of pushed frames and answers accept what the server sends", () => {
    const pushed = validator().compile(JSON.parse(read("wire/pushed.json")))
    const rune = JSON.parse(read("examples/turn.completed.v1.json")) as unknown
    expect(pushed({ sub: "s1", rune }), JSON.stringify(pushed.errors)).toBe(true)
    expect(pushed({ sub: "s1", caught_up: { head: 4 } })).toBe(true)
    expect(pushed({ sub: "s1", gap: { from: 1, to: 4, reason: "thinned" } })).toBe(true)
    expect(pushed({ sub: 5, caught_up: { head: 4 } })).toBe(false)
    const answer = validator().compile(JSON.parse(read("wire/answer.json")))
    expect(answer({ id: "1", ok: {} })).toBe(true)
    expect(answer({ id: null, error: { code: "bad_request", message: "no" } })).toBe(true)
    expect(answer({ id: null, error: { code: "nonsense", message: "no" } })).toBe(false)
  })

  it.each(definitions.map(({ kind, version }) => [kind, version] as const))(
    "%s v%i refuses a foreign payload and a foreign envelope",
    (kind, version) => {
      const accepts = validator().compile(JSON.parse(read(`rune/${kind}.v${version}.json`)))
      const example = JSON.parse(read(`examples/${kind}.v${version}.json`)) as Record<string, unknown>
      expect(accepts({ ...example, payload: 5 })).toBe(false)
      expect(accepts({ ...example, kind: "other.kind" })).toBe(false)
      expect(accepts({ ...example, event_id: 0 })).toBe(false)
      expect(accepts({ ...example, conversation_id: "conv_../x" })).toBe(false)
      expect(accepts({ ...example, schema_version: version + 1 })).toBe(false)
    }
  )
})
