/** Goal: stored runes of an older version decode to the current shape, step by step. */
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { definitions, lookup } from "#src/rune/Kinds.ts"
import { decode, isKnown } from "#src/rune/Rune.ts"
import { steps, upcast } from "#src/rune/Upcaster.ts"
import { exampleRune, oldPayloadExamples } from "../support/runeExamples.ts"

const oldResult = (payload: unknown): string =>
  JSON.stringify({ ...exampleRune("tool.result"), schema_version: 1, payload })

describe("upcasting", () => {
  it("has a step for every version below the current one", () => {
    for (const { kind, version } of definitions) {
      for (let at = 1; at < version; at++) {
        expect(steps.filter((step) => step.kind === kind && step.fromVersion === at)).toHaveLength(1)
      }
    }
    for (const step of steps) expect(step.fromVersion).toBeLessThan(lookup(step.kind)?.version ?? 0)
  })

  it("gives a version 1 tool error its code", () => {
    const rune = Result.getOrThrow(decode(oldResult(oldPayloadExamples["tool.result@1"])))
    expect(isKnown(rune)).toBe(true)
    expect(rune.payload).toEqual({
      call_id: "call_7",
      status: "error",
      output: "partial log",
      error: { code: "tool_execution_failed", message: "exit code 2" },
      duration_ms: 830
    })
  })

  it.each([
    ["timeout", "tool_timeout"],
    ["cancelled", "tool_cancelled"],
    ["denied", "tool_denied"],
    ["unknown", "tool_outcome_unknown"],
    ["sandbox_violation", "sandbox_violation"]
  ])("maps status %s to code %s", (status, code) => {
    const rune = Result.getOrThrow(decode(oldResult({ call_id: "c", status, error: "why", duration_ms: 0 })))
    expect(rune.payload).toMatchObject({ error: { code, message: "why" } })
  })

  it("leaves a success without error as it was", () => {
    const payload = { call_id: "call_1", status: "success", output: "ok", duration_ms: 1 }
    expect(Result.getOrThrow(decode(oldResult(payload))).payload).toEqual(payload)
  })

  it("refuses a payload that was never version 1", () => {
    const outcome = decode(oldResult({ call_id: "call_1", status: "success", error: { code: "x" }, duration_ms: 1 }))
    expect(Result.isFailure(outcome) && outcome.failure.fault).toBe("bad_payload")
  })

  it("says where the path ends", () => {
    expect(upcast("tool.result", 0, {})).toEqual({ _tag: "Refused", version: 0 })
    expect(upcast("tool.result", 2, 5)).toEqual({ _tag: "Current", payload: 5 })
    expect(upcast("dream.started", 3, 5)).toEqual({ _tag: "Current", payload: 5 })
  })
})
