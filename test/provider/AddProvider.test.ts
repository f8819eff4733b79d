// Goal: a new wire format is one file and three lines of the registry, as CONTRIBUTING says. Method: a copy of the source
// tree gets the adapter shown there, and its answers, errors and cut streams come from a local server.
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { complainedAbout, recipe, ToyTree } from "../support/ToyTree.ts"

const [adapterFile, importLine, entry] = recipe("How to add a provider")
const registry = "src/provider/Registry.ts"

let tree: ToyTree
beforeAll(() => {
  tree = new ToyTree()
  mkdirSync(join(tree.path, "src/provider/ndjson"))
  tree.write("src/provider/ndjson/Ndjson.ts", adapterFile)
  tree.replace(registry, '"anthropic", "scripted"] as const', '"anthropic", "ndjson", "scripted"] as const')
})
afterAll(() => tree.remove())

const script = `
import { createServer } from "node:http"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { makeRegistry } from "./src/provider/Registry.ts"

const lines = (...values) => values.map((value) => JSON.stringify(value) + "\\n").join("")
const seen = []
const server = createServer(async (request, response) => {
  const { model } = JSON.parse(Buffer.concat(await Array.fromAsync(request)).toString())
  seen.push(request.headers.authorization + " " + model)
  if (model === "busy") return response.writeHead(503).end("come back later")
  const text = lines({ text: "hello, " }, { text: "Ada" })
  response.end(model === "cut" ? text : text + lines({ done: true }))
})
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
const { resolve } = makeRegistry({
  key: () => Redacted.make("key-1"),
  providers: { toy: { adapter: "ndjson", baseUrl: "http://127.0.0.1:" + server.address().port, keyVariable: "TOY_KEY" } }
})
const ask = (model) => {
  const { provider } = Result.getOrThrow(resolve("toy/" + model))
  const messages = [{ role: "user", content: [{ type: "text", text: "who?" }] }]
  const request = { requestId: "req_1", model, messages, tools: [] }
  return Effect.runPromise(Effect.result(Stream.runCollect(provider.stream(request))))
}
const full = Result.getOrThrow(await ask("small"))
const failures = [await ask("cut"), await ask("busy")].map((result) => Result.isFailure(result) && result.failure.kind)
server.close()
server.closeAllConnections()
console.log(JSON.stringify({ types: full.map(({ type }) => type), text: full.at(-2).content, failures, seen: seen[0] }))
`

describe("a provider that CONTRIBUTING shows", { timeout: 240_000 }, () => {
  it("makes the compiler ask for its entry in the registry", () => {
    const output = tree.typecheck(registry)
    expect(complainedAbout(output)).toEqual([registry])
    expect(output).toContain("ndjson")
  })

  it("answers, and tells a cut stream and a refused request from an answer", () => {
    tree.insertAfter(
      registry,
      'import { type ModelCatalog, type ModelCatalogOverrides, makeModelCatalog } from "./ModelCatalog.ts"',
      importLine
    )
    tree.insertAfter(
      registry,
      "const httpProviders: { readonly [A in HttpAdapter]: (settings: HttpSettings) => ModelProvider } = {",
      entry
    )
    expect(tree.typecheck(registry)).toBe("")
    expect(tree.run(script)).toEqual({
      types: ["assistant_delta", "assistant_delta", "assistant_final", "done"],
      text: "hello, Ada",
      failures: ["truncated", "overloaded"],
      seen: "Bearer key-1 small"
    })
  })
})
