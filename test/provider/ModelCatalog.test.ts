// Goal: cost is exact integer money, unknown models are treated with care, users can override everything. Method:
// known usages by hand, properties over random ones.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { estimateInputTokens, worstCaseUsage } from "#src/provider/Estimate.ts"
import { costOf, makeModelCatalog, unknownModel } from "#src/provider/ModelCatalog.ts"
import type { Usage } from "#src/provider/Provider.ts"
import { sampleRequest } from "../support/provider-server/Collect.ts"
import { seedFor } from "../support/seed.ts"

const usage = (more: Partial<Usage>): Usage => ({
  input_tokens: 0,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
  ...more
})

const tokens = fc.nat(2_000_000)
const usages = fc
  .record({ fresh: tokens, cached: tokens, written: tokens, output: tokens })
  .map(({ fresh, cached, written, output }) =>
    usage({
      input_tokens: fresh + cached + written,
      cached_input_tokens: cached,
      cache_write_tokens: written,
      output_tokens: output
    })
  )

describe("the catalog", () => {
  const catalog = makeModelCatalog()

  it("computes cost in whole micro-USD, each kind of token at its price", () => {
    const all = usage({
      input_tokens: 1_000_000,
      cached_input_tokens: 400_000,
      cache_write_tokens: 100_000,
      output_tokens: 200_000
    })
    // 0.5 M fresh at $2, 0.4 M cached at $0.10, 0.1 M written at $2.50, 0.2 M out at $10
    expect(catalog.cost("anthropic/claude-sonnet-5-5", all)).toEqual({
      _tag: "Known",
      microUsd: 1_000_000 + 40_000 + 250_000 + 2_000_000
    })
  })

  it("rounds up, so that use is never free", () => {
    expect(catalog.cost("openai/gpt-6-luna", usage({ input_tokens: 1 }))).toEqual({ _tag: "Known", microUsd: 1 })
    expect(catalog.cost("openai/gpt-6-luna", usage({}))).toEqual({ _tag: "Known", microUsd: 0 })
  })

  it("takes the other price for long inputs", () => {
    const short = catalog.cost("openai/gpt-6-sol", usage({ input_tokens: 272_000 }))
    const long = catalog.cost("openai/gpt-6-sol", usage({ input_tokens: 272_001 }))
    expect(short).toEqual({ _tag: "Known", microUsd: 544_000 })
    expect(long).toEqual({ _tag: "Known", microUsd: 1_088_004 })
  })

  it("does not know what an unknown model costs, and assumes little of it", () => {
    expect(catalog.lookup("openai/next-year")).toEqual(unknownModel)
    expect(catalog.cost("openai/next-year", usage({ input_tokens: 5 }))).toEqual({ _tag: "Unknown" })
    expect(catalog.lookup("openai/__proto__")).toEqual(unknownModel)
    expect(catalog.lookup("constructor")).toEqual(unknownModel)
  })

  it("finds dated snapshots and the same models through Chat Completions", () => {
    expect(catalog.lookup("openai/gpt-5.4-mini-2026-03-17")).toEqual(catalog.lookup("openai/gpt-5.4-mini"))
    expect(catalog.lookup("anthropic/claude-haiku-4-5-20251001").known).toBe(true)
    expect(catalog.lookup("openai-chat/gpt-4.1")).toEqual(catalog.lookup("openai/gpt-4.1"))
  })

  it("costs nothing to play scenarios", () => {
    expect(catalog.cost("scripted/demo", usage({ input_tokens: 1000, output_tokens: 1000 }))).toEqual({
      _tag: "Known",
      microUsd: 0
    })
  })

  it("is overridden field by field, and extended", () => {
    const own = makeModelCatalog({
      "openai/gpt-4.1": { contextTokens: 5000 },
      "ollama/qwen": { contextTokens: 40_000, price: { input: 0, cachedInput: 0, cacheWrite: 0, output: 0 } }
    })
    expect(own.lookup("openai/gpt-4.1")).toMatchObject({ contextTokens: 5000, maxOutputTokens: 32_768 })
    expect(own.cost("ollama/qwen", usage({ input_tokens: 9 }))).toEqual({ _tag: "Known", microUsd: 0 })
    expect(own.models()).toContain("ollama/qwen")
  })

  it("is sound: every built-in model has a price, sizes that make sense and a cost that is a safe integer", () => {
    for (const model of catalog.models()) {
      const info = catalog.lookup(model)
      expect(info.known, model).toBe(true)
      expect(info.maxOutputTokens, model).toBeLessThan(info.contextTokens)
      expect(info.price?.cachedInput, model).toBeLessThanOrEqual(info.price?.input ?? 0)
      expect(info.price?.output, model).toBeGreaterThan(info.price?.input ?? 0)
    }
    fc.assert(
      fc.property(fc.constantFrom(...catalog.models()), usages, (model, used) => {
        const cost = catalog.cost(model, used)
        expect(cost._tag === "Known" && Number.isSafeInteger(cost.microUsd) && cost.microUsd >= 0).toBe(true)
      }),
      { seed: seedFor("costs") }
    )
  })

  it("never charges less for more", () => {
    const info = {
      contextTokens: 1,
      maxOutputTokens: 1,
      price: { input: 3_000_000, cachedInput: 300_000, cacheWrite: 3_750_000, output: 15_000_000 }
    }
    fc.assert(
      fc.property(usages, fc.nat(1000), (used, more) => {
        const before = costOf(info, used)
        const after = costOf(info, { ...used, output_tokens: used.output_tokens + more })
        if (before._tag === "Unknown" || after._tag === "Unknown") throw new Error("no price")
        expect(after.microUsd).toBeGreaterThanOrEqual(before.microUsd)
      }),
      { seed: seedFor("monotone costs") }
    )
  })
})

describe("the estimate of a request", () => {
  const tool = { name: "bash", description: "Runs a command.", parameters: { type: "object" } }

  it("grows with everything the model reads", () => {
    const small = estimateInputTokens(sampleRequest())
    expect(small).toBeGreaterThan(0)
    expect(estimateInputTokens(sampleRequest({ instructions: "Be brief." }))).toBeGreaterThan(small)
    expect(estimateInputTokens(sampleRequest({ tools: [tool] }))).toBeGreaterThan(small)
    const sealed = { type: "opaque", format: "f", origin: "o", json: "x".repeat(300) } as const
    const messages = [...sampleRequest().messages, { role: "assistant" as const, content: [sealed] }]
    expect(estimateInputTokens(sampleRequest({ messages }))).toBe(small + 100 + 8)
  })

  it("reserves the whole output limit at the full price", () => {
    const catalog = makeModelCatalog()
    const info = catalog.lookup("anthropic/claude-sonnet-5-5")
    const bounded = worstCaseUsage(sampleRequest({ maxOutputTokens: 1000 }), info)
    expect(bounded).toMatchObject({ cached_input_tokens: 0, output_tokens: 1000 })
    expect(worstCaseUsage(sampleRequest(), info).output_tokens).toBe(32_000)
    expect(worstCaseUsage(sampleRequest(), unknownModel).output_tokens).toBe(unknownModel.maxOutputTokens)
    expect(costOf(info, bounded)).toMatchObject({ _tag: "Known" })
  })
})
