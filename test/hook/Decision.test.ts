// Goal: what a hook's end means is what its writer was told it means. Method: ends, and the decisions they come to.
import { describe, expect, it } from "vitest"
import { decisionOf } from "#src/hook/Decision.ts"
import { hookLimits } from "#src/hook/HookLimits.ts"

const ended = (exit_code: number | null, stdout = "", stderr = "") => ({
  exit_code,
  signal: exit_code === null ? "SIGKILL" : null,
  aborted: false,
  stdout,
  stderr,
  output: stdout + stderr
})
const json = (value: object) => decisionOf(ended(0, JSON.stringify(value)))
const specific = (value: object) => json({ hookSpecificOutput: { hookEventName: "PreToolUse", ...value } })

describe("a decision", () => {
  it("is a no with exit code 2, with the reason from standard error, else from standard output", () => {
    expect(decisionOf(ended(2, "out", " why \n"))).toEqual({ block: "why" })
    expect(decisionOf(ended(2, "out"))).toEqual({ block: "out" })
    expect(decisionOf(ended(2))).toEqual({ block: "no reason was given" })
    expect(decisionOf(ended(2, '{"decision":"approve"}', "no"))).toEqual({ block: "no" })
  })

  it("is none with any other failure", () => {
    expect(decisionOf(ended(1, "", "oops"))).toEqual({ mistake: "ended with exit code 1: oops" })
    expect(decisionOf(ended(null))).toEqual({ mistake: "was ended by SIGKILL: it said nothing" })
  })

  it("is what a JSON object says", () => {
    expect(json({ decision: "block", reason: "tests" })).toEqual({ block: "tests" })
    expect(json({ decision: "approve" })).toEqual({})
    expect(json({ continue: false, stopReason: "enough" })).toEqual({ stop: "enough" })
    expect(specific({ permissionDecision: "deny", permissionDecisionReason: "no" })).toEqual({ block: "no" })
    expect(specific({ permissionDecision: "ask" })).toEqual({ ask: "no reason was given" })
    expect(specific({ permissionDecision: "allow" })).toEqual({})
    expect(specific({ additionalContext: "mind the gap" })).toEqual({ context: "mind the gap" })
    expect(specific({ permissionDecision: "allow", updatedInput: { a: 1 } }).block).toContain('{"a":1}')
  })

  it("is none where the output is no object, however it looks", () => {
    expect(decisionOf(ended(0, "hello"))).toEqual({ printed: "hello" })
    expect(decisionOf(ended(0, "{ not json"))).toEqual({ printed: "{ not json" })
    expect(decisionOf(ended(0, "[1]"))).toEqual({ printed: "[1]" })
    expect(decisionOf(ended(0, "  \n"))).toEqual({})
    expect(json({ decision: 7, reason: {}, hookSpecificOutput: [] })).toEqual({})
  })

  it("says no more than a model can be expected to read", () => {
    expect(decisionOf(ended(2, "", "x".repeat(100_000))).block).toHaveLength(hookLimits.contextCharsMax)
  })
})
