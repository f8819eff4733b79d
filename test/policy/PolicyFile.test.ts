// Goal: the rules of a server are those of its file, what people allowed for good is added and nothing else is touched, and
// a file that is broken allows nothing. Method: real files, changed behind the book's back.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { evaluate } from "#src/policy/Evaluate.ts"
import { type FileStamp, openPolicyFile, PolicyUnreadable, readPolicyFile } from "#src/policy/PolicyFile.ts"
import { policyLimits } from "#src/policy/PolicyLimits.ts"
import type { PolicyQuestion } from "#src/policy/PolicyPort.ts"
import { reportCount } from "../support/counts.ts"

let directory = ""
let path = ""
let heard: Array<string> = []

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "echs-policy-"))
  path = join(directory, "policy.json")
  heard = []
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const open = () => openPolicyFile({ path, nowMs: () => Date.now(), onUnreadable: (reason) => void heard.push(reason) })

const rule = (word: string) => ({ decision: "allow", tool: "bash", command: [word], workspace: "/srv/x" })

const question: PolicyQuestion = {
  tool_name: "bash",
  mutating: true,
  effect_class: "effect",
  provenance: "builtin",
  approval: "by_policy",
  contained: true,
  access: { command: "ls" },
  arguments_hash: "0".repeat(64),
  mode: "full_access",
  rules: [],
  grants: [],
  workspace: "/srv/x",
  now_ms: 0
}

describe("the rules of a server", () => {
  it("are none where there is no file, and what is learnt makes one for its owner alone", async () => {
    const book = open()
    expect(book.rules).toEqual([])
    await book.learn(rule("ls"))
    expect(book.rules).toEqual([rule("ls")])
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(readdirSync(directory)).toEqual(["policy.json"])
    expect(open().rules).toEqual([rule("ls")])
  })

  it("keep what people wrote, and learn the same thing once", async () => {
    const rules = [{ decision: "deny", tool: "x", reason: "no" }]
    writeFileSync(path, JSON.stringify({ mode: "auto", rules }))
    const book = open()
    await Promise.all([book.learn(rule("a")), book.learn(rule("b")), book.learn({ ...rule("a"), reason: "again" })])
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({ mode: "auto", rules, learnt: [rule("a"), rule("b")] })
    expect(book.rules).toEqual([...rules, rule("a"), rule("b")])
  })

  it("learn only what allows, is a rule, and is contained", async () => {
    const book = open()
    const wrong = [
      { decision: "deny", tool: "x" },
      { decision: "allow" },
      { ...rule("a"), uncontained: true },
      "allow",
      null
    ]
    for (const one of wrong) await expect(book.learn(one)).rejects.toBeInstanceOf(PolicyUnreadable)
    expect(existsSync(path)).toBe(false)
  })

  it("are bounded: the oldest of what was learnt gives way", async () => {
    const many = Array.from({ length: policyLimits.rulesMax }, (_, index) => rule(`p${index}`))
    writeFileSync(path, JSON.stringify({ learnt: many }))
    const book = open()
    await book.learn(rule("new"))
    expect(book.rules.length).toBeLessThanOrEqual(policyLimits.rulesMax)
    expect(book.rules.at(-1)).toEqual(rule("new"))
  })

  it.each([
    ["no JSON", "{"],
    ["no object", "[]"],
    ["an unknown field", '{"rule":[]}'],
    ["an unknown mode", '{"mode":"all"}'],
    ["rules that are no list", '{"rules":{}}'],
    ["a rule that is none", '{"rules":[{"decision":"permit"}]}'],
    ["something learnt that is none", '{"learnt":[{"decision":"allow"}]}']
  ])("that have %s allow nothing, are told once, and are not written over", async (_name, text) => {
    writeFileSync(path, text)
    const book = open()
    const verdict = evaluate({ ...question, rules: book.rules })
    expect(verdict.verdict).toBe("ask")
    for (let look = 0; look < 5; look += 1) expect(book.rules).toHaveLength(1)
    expect(heard).toHaveLength(1)
    await expect(book.learn(rule("ls"))).rejects.toBeInstanceOf(PolicyUnreadable)
    expect(readFileSync(path, "utf8")).toBe(text)
    expect(() => readPolicyFile(text)).toThrow(PolicyUnreadable)
  })

  it("are as the documentation shows them", () => {
    const text = readFileSync(new URL("../../docs/POLICY.md", import.meta.url), "utf8")
    const [, example = ""] = /```json\n([\s\S]*?)```/.exec(text) ?? []
    expect(readPolicyFile(example).rules.length).toBeGreaterThan(3)
  })

  it("follow the file as it changes", () => {
    const book = open()
    expect(evaluate({ ...question, rules: book.rules }).verdict).toBe("allow")
    writeFileSync(path, JSON.stringify({ rules: [{ decision: "deny", tool: "bash" }] }))
    expect(evaluate({ ...question, rules: book.rules }).verdict).toBe("deny")
    rmSync(path)
    expect(evaluate({ ...question, rules: book.rules }).verdict).toBe("allow")
  })

  it("follow changes that come as fast as files can be written, also to a file of the same size", () => {
    // As on a file system whose clock ticks slowly.
    const stampOf = (): FileStamp => ({ text: "the same", changedMs: 1_000 })
    const book = openPolicyFile({ path, nowMs: () => 1_500, stampOf })
    const changes = 500
    for (let change = 0; change < changes; change += 1) {
      const decision = change % 2 === 0 ? "deny" : "ask"
      const text = JSON.stringify({ rules: [{ decision, tool: "bash" }] })
      writeFileSync(path, text.padEnd(60))
      expect(evaluate({ ...question, rules: book.rules }).verdict).toBe(decision)
    }
    reportCount("changes of a policy file, each holding for the next call", changes)
  })

  it("are not read again when they have been as they are for a while", () => {
    writeFileSync(path, JSON.stringify({ rules: [{ decision: "deny", tool: "bash" }] }))
    const later = openPolicyFile({ path, nowMs: () => Date.now() + 60_000 })
    const rules = later.rules
    expect(later.rules).toBe(rules)
  })
})
