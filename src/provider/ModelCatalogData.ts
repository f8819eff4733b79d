// Built-in facts about models: list prices in USD per million tokens and sizes in tokens, as their makers published
// them in November 2026. Prices change: everything here can be overridden in the configuration.
import type { ModelInfo, Price, Thinking } from "./ModelInfo.ts"

interface Row {
  readonly names: ReadonlyArray<string>
  readonly context: number
  readonly output: number
  readonly thinking: Thinking
  /** USD per million tokens: input, cached input, cache write, output. */
  readonly usd: readonly [number, number, number, number]
  /** From this many input tokens on, other prices hold. */
  readonly longInput?: { readonly above: number; readonly usd: readonly [number, number, number, number] }
}

const million = 1_000_000

/** USD to integer micro-USD, both per million tokens. */
const price = ([input, cachedInput, cacheWrite, output]: Row["usd"]): Price => ({
  input: Math.round(input * million),
  cachedInput: Math.round(cachedInput * million),
  cacheWrite: Math.round(cacheWrite * million),
  output: Math.round(output * million)
})

const openaiLong = (usd: Row["usd"]): NonNullable<Row["longInput"]> => ({
  above: 272_000,
  usd: [usd[0] * 2, usd[1] * 2, usd[2] * 2, usd[3] * 1.5]
})

const gpt6 = (names: ReadonlyArray<string>, usd: Row["usd"]): Row => ({
  names,
  context: 1_050_000,
  output: 128_000,
  thinking: "adaptive",
  usd,
  longInput: openaiLong(usd)
})

const gpt5 = (names: ReadonlyArray<string>, usd: Row["usd"]): Row => ({
  names,
  context: 400_000,
  output: 128_000,
  thinking: "adaptive",
  usd
})

const openai: ReadonlyArray<Row> = [
  gpt6(["gpt-6-astra"], [10, 1, 10, 50]),
  gpt6(["gpt-6.1-sol"], [2, 0.1, 2, 10]),
  gpt6(["gpt-6.1-terra"], [1, 0.1, 1, 5]),
  gpt6(["gpt-6-sol"], [2, 0.2, 2, 10]),
  gpt6(["gpt-6-luna"], [0.1, 0.01, 0.1, 0.5]),
  gpt6(["gpt-5.6-sol", "gpt-5.6"], [4, 0.4, 4, 20]),
  gpt6(["gpt-5.6-terra"], [2, 0.2, 2, 12]),
  gpt6(["gpt-5.6-luna"], [0.2, 0.02, 0.2, 1.2]),
  gpt5(["gpt-5.4"], [2.5, 0.25, 2.5, 15]),
  gpt5(["gpt-5.4-mini"], [0.75, 0.075, 0.75, 4.5]),
  gpt5(["gpt-5.2"], [1.75, 0.175, 1.75, 14]),
  gpt5(["gpt-5.1", "gpt-5.1-codex", "gpt-5"], [1.25, 0.125, 1.25, 10]),
  gpt5(["gpt-5-mini"], [0.25, 0.025, 0.25, 2]),
  gpt5(["gpt-5-nano"], [0.05, 0.005, 0.05, 0.4]),
  { names: ["gpt-4.1"], context: 1_047_576, output: 32_768, thinking: "none", usd: [2, 0.5, 2, 8] },
  { names: ["gpt-4.1-mini"], context: 1_047_576, output: 32_768, thinking: "none", usd: [0.4, 0.1, 0.4, 1.6] },
  { names: ["gpt-4.1-nano"], context: 1_047_576, output: 32_768, thinking: "none", usd: [0.1, 0.025, 0.1, 0.4] },
  { names: ["gpt-4o"], context: 128_000, output: 16_384, thinking: "none", usd: [2.5, 1.25, 2.5, 10] },
  { names: ["gpt-4o-mini"], context: 128_000, output: 16_384, thinking: "none", usd: [0.15, 0.075, 0.15, 0.6] }
]

const claude = (names: ReadonlyArray<string>, usd: Row["usd"]): Row => ({
  names,
  context: 1_000_000,
  output: 128_000,
  thinking: "adaptive",
  usd
})

const anthropic: ReadonlyArray<Row> = [
  claude(["claude-fable-5-1", "claude-mythos-5-1"], [10, 0.25, 12.5, 50]),
  claude(["claude-fable-5", "claude-mythos-5"], [10, 1, 12.5, 50]),
  claude(["claude-opus-5-5"], [4, 0.2, 5, 20]),
  claude(["claude-opus-5"], [5, 0.5, 6.25, 25]),
  claude(["claude-sonnet-5-5"], [2, 0.1, 2.5, 10]),
  claude(["claude-sonnet-5"], [2, 0.2, 2.5, 10]),
  {
    ...claude(["claude-haiku-5-5"], [0.1, 0.01, 0.125, 0.5]),
    longInput: { above: 100_000, usd: [0.5, 0.05, 0.625, 2.5] }
  },
  { ...claude(["claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6"], [5, 0.5, 6.25, 25]), context: 200_000 },
  { names: ["claude-opus-4-5"], context: 200_000, output: 64_000, thinking: "budget", usd: [5, 0.5, 6.25, 25] },
  { ...claude(["claude-sonnet-4-6"], [3, 0.3, 3.75, 15]), context: 200_000, output: 64_000 },
  { names: ["claude-sonnet-4-5"], context: 200_000, output: 64_000, thinking: "budget", usd: [3, 0.3, 3.75, 15] },
  { names: ["claude-haiku-4-5"], context: 200_000, output: 64_000, thinking: "budget", usd: [1, 0.1, 1.25, 5] }
]

const info = (row: Row): ModelInfo => ({
  contextTokens: row.context,
  maxOutputTokens: row.output,
  thinking: row.thinking,
  // All of them take images and documents.
  images: true,
  files: true,
  price: price(row.usd),
  ...(row.longInput === undefined
    ? {}
    : { longInput: { aboveTokens: row.longInput.above, price: price(row.longInput.usd) } })
})

const named = (provider: string, rows: ReadonlyArray<Row>): ReadonlyArray<readonly [string, ModelInfo]> =>
  rows.flatMap((row) => row.names.map((name) => [`${provider}/${name}`, info(row)] as const))

export const builtinModels: { readonly [model: string]: ModelInfo } = Object.fromEntries([
  ...named("openai", openai),
  ...named("anthropic", anthropic)
])
