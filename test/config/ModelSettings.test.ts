// Goal: what the settings say of a model is what the server goes by, and what makes no sense is named. Method: a data
// directory with a config.json, read into settings, and the catalog made of them.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { serverSettings } from "#src/config/Settings.ts"
import { makeModelCatalog, unknownModel } from "#src/provider/ModelCatalog.ts"

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "echs-models-"))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const read = (models: unknown) => {
  writeFileSync(join(directory, "config.json"), JSON.stringify({ models }))
  return serverSettings({ variables: {} } as never, directory).models
}

describe("models in the settings", () => {
  it("set size, price and way of thinking; what is not said stays", () => {
    const models = read({
      "local/large": {
        context_tokens: 131_072,
        max_output_tokens: 4096,
        thinking: "none",
        price: { input: 0.5, output: 2 }
      },
      "local/other": { context_tokens: 65_536 }
    })
    const catalog = makeModelCatalog(models)
    const price = { input: 500_000, cachedInput: 500_000, cacheWrite: 500_000, output: 2_000_000 }
    expect(catalog.lookup("local/large")).toEqual({
      known: true,
      isSizeAssumed: false,
      contextTokens: 131_072,
      maxOutputTokens: 4096,
      thinking: "none",
      price
    })
    expect(catalog.lookup("local/other")).toEqual({
      ...unknownModel,
      known: true,
      contextTokens: 65_536,
      isSizeAssumed: false
    })
    expect(read(undefined)).toEqual({})
  })

  it.each([
    [[], /^models: it must be an object/],
    [{ large: {} }, /^models\.large: a model is named provider\/name/],
    [{ "a/b": 7 }, /^models\.a\/b: it must be an object/],
    [{ "a/b": { context: 7 } }, /^models\.a\/b: there is no setting "context"; there are context_tokens/],
    [{ "a/b": { context_tokens: 0 } }, /^models\.a\/b\.context_tokens: it must be a whole number/],
    [{ "a/b": { max_output_tokens: "9" } }, /^models\.a\/b\.max_output_tokens: it must be a whole number/],
    [{ "a/b": { thinking: "hard" } }, /^models\.a\/b\.thinking: it must be one of adaptive/],
    [{ "a/b": { price: { input: 1 } } }, /^models\.a\/b\.price\.output: it must be US dollars/],
    [{ "a/b": { price: { input: -1, output: 1 } } }, /^models\.a\/b\.price\.input: it must be US dollars/]
  ])("that make no sense are named: %j", (models, message) => {
    expect(() => read(models)).toThrow(message)
  })
})
