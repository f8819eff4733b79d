// Goal: what was agreed about the shape of the code holds for every file, and each rule can fail. Method: every rule
// over the real tree, then over small trees that break it and small trees that only look as if they did.
import { describe, expect, it } from "vitest"
import { reportCount } from "../support/counts.ts"
import { report } from "./Report.ts"
import { filesOf, type Rule, showFinding } from "./Rule.ts"
import { behaviorRules } from "./rules/behavior.ts"
import { importRules } from "./rules/imports.ts"
import { sizeRules } from "./rules/sizes.ts"
import { textRules } from "./rules/text.ts"
import { isProduct, readTree } from "./Source.ts"

const rules: ReadonlyArray<Rule> = [...importRules, ...sizeRules, ...behaviorRules, ...textRules]
const tree = readTree()

describe("the tree", () => {
  it.each(rules.map((rule) => [rule.name, rule] as const))("%s", (_, rule) => {
    expect(rule.check(tree).map(showFinding)).toEqual([])
  })

  it("is reported in figures", () => {
    const lines = report(tree)
    process.stdout.write(`${lines.join("\n")}\n`)
    reportCount("source files read by the tidy rules", tree.filter(isProduct).length)
    expect(lines.length).toBeGreaterThan(3)
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

describe("the figures of a tree", () => {
  it("count what each area does with Effect and by hand", () => {
    const lines = report(
      filesOf({
        "src/main.ts": 'import "./turn/A.ts"',
        "src/turn/A.ts":
          'import * as Effect from "effect/Effect"\nclass A extends Context.Service<A>()("a") {}\nconst l = Layer.effect(A, x)\n' +
          "const f = async () => setTimeout(g, 1)\nconst h = a!.b",
        "src/rune/B.ts": "export const b = 1"
      })
    )
    const cells = (name: string) =>
      lines
        .find((line) => line.startsWith(name))
        ?.trim()
        .split(/\s+/)
    expect(cells("turn")).toEqual(["turn", "1", "5", "1", "1", "1", "1", "1", "1", "100", "%"])
    expect(lines).toContain("unreachable files: 1")
  })
})
