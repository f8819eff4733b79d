// Goal: a model name leads to the right adapter, address and key, or to an error that says what to do. Method: names
// and configurations by hand; one call through the local server to see where it really goes.
import { execFileSync } from "node:child_process"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeRegistry, type RegistryConfig } from "#src/provider/Registry.ts"
import { plainAnswer } from "../support/provider-server/Answer.ts"
import { collect, sampleRequest } from "../support/provider-server/Collect.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { type ProviderServer, serverKey, startProviderServer } from "../support/provider-server/Server.ts"

let server: ProviderServer

beforeAll(async () => {
  server = await startProviderServer()
})
afterAll(() => server.close())

const registry = (keys: { readonly [variable: string]: string } = {}, more: Partial<RegistryConfig> = {}) =>
  makeRegistry({
    key: (variable) => (keys[variable] === undefined ? undefined : Redacted.make(keys[variable])),
    ...more
  })

const errorOf = (found: Result.Result<unknown, { readonly _tag: string; readonly message: string }>) => {
  if (Result.isSuccess(found)) throw new Error("expected a failure")
  return found.failure
}

describe("resolve", () => {
  it("refuses what is no model name", () => {
    for (const name of ["", "gpt", "/x", "openai/", "OPENAI/x", "a b/c", "../x/y"]) {
      expect(errorOf(registry().resolve(name))._tag, name).toBe("ModelNameInvalid")
    }
  })

  it("names the providers it knows when asked for another", () => {
    const error = errorOf(registry().resolve("grok/4"))
    expect(error._tag).toBe("ProviderUnknown")
    expect(error.message).toBe('there is no provider "grok"; known: anthropic, openai, openai-chat, scripted')
    expect(errorOf(registry().resolve("constructor/x"))._tag).toBe("ProviderUnknown")
  })

  it("says which key is missing", () => {
    expect(errorOf(registry().resolve("openai/gpt-6-sol")).message).toBe(
      'provider "openai" needs a key: set OPENAI_API_KEY'
    )
    expect(errorOf(registry().resolve("anthropic/claude-opus-5-5")).message).toContain("ANTHROPIC_API_KEY")
  })

  it("says what is wrong with a configured provider", () => {
    const providers = {
      half: { baseUrl: "http://localhost:1/v1" },
      odd: { adapter: "openai-chat", baseUrl: "ftp://x" },
      none: { adapter: "openai-chat", baseUrl: "not a url" }
    } as const
    const own = registry({}, { providers })
    expect(errorOf(own.resolve("half/x")).message).toBe('provider "half" is configured wrongly: it names no adapter')
    expect(errorOf(own.resolve("odd/x")).message).toContain("http://")
    expect(errorOf(own.resolve("none/x")).message).toContain("is not a URL")
    const misspelt = registry({}, { providers: { wrong: JSON.parse('{"adapter":"openai"}') } })
    expect(errorOf(misspelt.resolve("wrong/x")).message).toContain("openai-responses, openai-chat, anthropic, scripted")
  })

  it("keeps slashes after the first in the model's name, and one provider per name", () => {
    const own = registry(
      { OR_KEY: "k" },
      {
        providers: { openrouter: { adapter: "openai-chat", baseUrl: "https://example.org/v1", keyVariable: "OR_KEY" } }
      }
    )
    const first = own.resolve("openrouter/anthropic/claude-opus-5-5")
    const second = own.resolve("openrouter/other")
    if (Result.isFailure(first) || Result.isFailure(second)) throw new Error("not resolved")
    expect(first.success.model).toBe("anthropic/claude-opus-5-5")
    expect(first.success.provider).toBe(second.success.provider)
  })

  it("needs no key for a server on this machine", () => {
    const own = registry(
      {},
      {
        providers: {
          ollama: { adapter: "openai-chat", baseUrl: "http://localhost:11434/v1" },
          openai: { baseUrl: "http://127.0.0.1:8080/v1" }
        }
      }
    )
    expect(Result.isSuccess(own.resolve("ollama/qwen"))).toBe(true)
    expect(Result.isSuccess(own.resolve("openai/local"))).toBe(true)
  })

  it.each([
    ["openai/test-model", "responses"],
    ["openai-chat/test-model", "chat"],
    ["anthropic/test-model", "messages"]
  ])("of %s leads to the %s API at the configured address, with its key", async (name, format) => {
    server.respond((request) => ({
      body: formats.find((candidate) => candidate.name === request.format)?.stream(plainAnswer) ?? ""
    }))
    const keys = { OPENAI_API_KEY: serverKey, ANTHROPIC_API_KEY: serverKey }
    const providers = {
      openai: { baseUrl: `${server.url}/v1` },
      "openai-chat": { baseUrl: `${server.url}/v1` },
      anthropic: { baseUrl: server.url }
    }
    const found = registry(keys, { providers }).resolve(name)
    if (Result.isFailure(found)) throw found.failure
    const got = await collect(found.success.provider, sampleRequest({ model: found.success.model }))
    expect(got.outcome._tag).toBe("Completed")
    expect(server.requests[0]).toMatchObject({ format, body: { model: "test-model" } })
  })
})

describe("the default model", () => {
  it("is the demo without a key, a real model with one, and what was configured before all", () => {
    expect(registry().defaultModel()).toBe("scripted/demo")
    expect(registry({ OPENAI_API_KEY: "k" }).defaultModel()).toMatch(/^openai\//)
    expect(registry({ ANTHROPIC_API_KEY: "k" }).defaultModel()).toMatch(/^anthropic\//)
    expect(registry({ OPENAI_API_KEY: "k" }, { model: "scripted/echo" }).defaultModel()).toBe("scripted/echo")
  })

  it("can always be resolved", () => {
    for (const own of [registry(), registry({ OPENAI_API_KEY: "k" }), registry({ ANTHROPIC_API_KEY: "k" })]) {
      expect(Result.isSuccess(own.resolve(own.defaultModel()))).toBe(true)
      expect(own.catalog.lookup(own.defaultModel()).known).toBe(true)
    }
  })
})

/** Which SDK was loaded after each step, seen from inside a fresh process. */
const loadingScript = (module: string) => `
  import { registerHooks } from "node:module"
  import { Effect, Stream } from "effect"
  const names = []
  registerHooks({ resolve: (name, context, next) => { names.push(name); return next(name, context) } })
  const { makeRegistry } = await import(${JSON.stringify(module)})
  const providers = { openai: { baseUrl: "http://127.0.0.1:9" }, anthropic: { baseUrl: "http://127.0.0.1:9" } }
  const registry = makeRegistry({ key: () => undefined, providers })
  const sdks = () => ["openai", "@anthropic-ai/sdk"].filter((name) => names.includes(name))
  const call = (name) => {
    const { provider, model } = registry.resolve(name).success
    return Effect.runPromiseExit(Stream.runDrain(provider.stream({ requestId: "r", model, messages: [] })))
  }
  const seen = [sdks()]
  for (const name of ["scripted/echo", "anthropic/x", "openai/x"]) { await call(name); seen.push(sdks()) }
  console.log(JSON.stringify(seen))`

describe("the SDKs", () => {
  it("are each loaded by the first call that needs them, and not before", () => {
    const module = new URL("../../src/provider/Registry.ts", import.meta.url).href
    const out = execFileSync(process.execPath, ["--input-type=module", "-e", loadingScript(module)], {
      encoding: "utf8"
    })
    expect(JSON.parse(out)).toEqual([[], [], ["@anthropic-ai/sdk"], ["openai", "@anthropic-ai/sdk"]])
  })
})
