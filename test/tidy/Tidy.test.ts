// Goal: what was agreed about the shape of the code holds for every file, and each rule can fail. Method: every rule
// over the real tree, then over small trees that break it and small trees that only look as if they did.
import { describe, expect, it } from "vitest"
import { reportCount } from "../support/counts.ts"
import { filesOf, type Rule, showFinding } from "./Rule.ts"
import { behaviorRules } from "./rules/behavior.ts"
import { importRules } from "./rules/imports.ts"
import { type Measured, measureFile, measureFunctions, sizeRules } from "./rules/sizes.ts"
import { textRules } from "./rules/text.ts"
import { isProduct, readTree } from "./Source.ts"

const rules: ReadonlyArray<Rule> = [...importRules, ...sizeRules, ...behaviorRules, ...textRules]
const tree = readTree()

describe("the tree", () => {
  it.each(rules.map((rule) => [rule.name, rule] as const))("%s", (_, rule) => {
    expect(rule.check(tree).map(showFinding)).toEqual([])
  })

  it("is reported by size", () => {
    const product = tree.filter(isProduct)
    const report = [
      sizeReport("files", product.map(measureFile)),
      sizeReport("functions", product.flatMap(measureFunctions))
    ]
    process.stdout.write(`${report.join("\n")}\n`)
    reportCount("source files read by the tidy rules", product.length)
    expect(product.length).toBeGreaterThan(0)
  })
})

describe.each(rules.map((rule) => [rule.name, rule] as const))("the rule that %s", (_, rule) => {
  it.each(rule.broken.map(({ tree: broken, fact }) => [String(fact), broken, fact] as const))(
    "finds %s",
    (_name, broken, fact) => {
      const facts = rule.check(filesOf(broken)).map(showFinding)
      expect(facts.filter((text) => fact.test(text))).not.toEqual([])
    }
  )

  it("finds nothing in trees that keep it", () => {
    expect(rule.sound.flatMap((sound) => rule.check(filesOf(sound))).map(showFinding)).toEqual([])
  })
})

const sizeReport = (what: string, measured: ReadonlyArray<Measured>): string => {
  const sorted = measured.toSorted((a, b) => a.lines - b.lines)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]?.lines ?? 0
  const longest = sorted.at(-1)
  const where =
    longest === undefined ? "none" : `${longest.lines} (${longest.path}${what === "files" ? "" : ` ${longest.name}`})`
  return `size of ${what}: ${sorted.length}, lines median ${at(0.5)}, p90 ${at(0.9)}, longest ${where}`
}
