// Goal: whatever a model or a tool says, a line stays one line of the width there is, and nothing in it reaches the
// terminal as a command. Method: examples, and random text through the real renderer.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { RuneLines } from "#src/cli/render/RuneLine.ts"
import { argumentsText, contentText, isDelta, runeText } from "#src/cli/render/RuneText.ts"
import { duration, fitEnd, fitStart, money, oneLine, pad, safeText, table, widthOf } from "#src/cli/render/Text.ts"
import type { AnyRune } from "#src/client/Client.ts"
import { kinds } from "#src/rune/Kinds.ts"
import { recordingTerminal } from "../support/terminal.ts"

const rune = (kind: string, payload: unknown, more: object = {}): AnyRune =>
  ({
    event_id: 7,
    conversation_id: "conv_00000000",
    kind,
    visibility: "public",
    ts_ms: 0,
    schema_version: 1,
    payload,
    ...more
  }) as unknown as AnyRune

describe("text of others", () => {
  it.each([
    ["a\u001b[31mred\u001b[0m", "ared"],
    ["title\u001b]0;owned\u0007!", "title!"],
    ["bell\u0007 back\b\b", "bell back"],
    ["line\r\nnext\tcell", "line\nnext\tcell"],
    ["right\u202eto left", "rightto left"],
    ["c1\u009b31mred", "c1red"]
  ])("%j is shown as %j", (text, shown) => {
    expect(safeText(text)).toBe(shown)
  })

  it("never keeps a control character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        expect(oneLine(text)).not.toMatch(/\p{Cc}/u)
      })
    )
  })

  it.each([
    ["abc", 3],
    ["漢字", 4],
    ["é", 1],
    ["e\u0301", 1],
    ["👩‍💻", 2],
    ["✓ →", 3],
    ["", 0]
  ])("%j takes %i columns", (text, width) => {
    expect(widthOf(text)).toBe(width)
  })

  it("fits what it is fitted to, from either end", () => {
    expect(fitStart("hello world", 6)).toBe("hello…")
    expect(fitStart("hello", 5)).toBe("hello")
    expect(fitStart("漢字漢字", 5)).toBe("漢字…")
    expect(fitStart("x", 0)).toBe("")
    expect(fitEnd("hello world", 6)).toBe("…world")
    expect(pad("漢", 4)).toBe("漢  ")
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 40 }), (text, columns) => {
        const shown = oneLine(text)
        expect(widthOf(fitStart(shown, columns))).toBeLessThanOrEqual(columns)
        expect(widthOf(fitEnd(shown, columns))).toBeLessThanOrEqual(columns)
      })
    )
  })

  it("has durations and amounts people read", () => {
    expect([12, 1_500, 61_000, 3_700_000].map(duration)).toEqual(["12 ms", "1.5 s", "1 min 1 s", "1 h 1 min"])
    expect([null, 0, 0.0123, 1.5].map(money)).toEqual(["cost unknown", "", "$0.0123", "$1.50"])
  })

  it("is laid out in columns, cut only where somebody looks", () => {
    const rows = [
      ["a", "long text"],
      ["bcd", "x"]
    ]
    expect(table(rows, { columns: () => 13, isWatched: true })).toEqual([
      ["a  ", "long te…"],
      ["bcd", "x"]
    ])
    expect(table(rows, { columns: () => 13, isWatched: false })[0]).toEqual(["a  ", "long text"])
  })
})

describe("a rune", () => {
  it.each([
    ["turn.started", { input: "do\nthis" }, "do this"],
    [
      "turn.started",
      {
        input: [
          { type: "text", text: "see" },
          { type: "file", name: "a.txt" }
        ]
      },
      "see [file a.txt]"
    ],
    ["turn.queued", { input: "x", mode: "steer" }, "(steer) x"],
    ["tool.call", { call_id: "call_1", tool_name: "bash", arguments: { command: "ls -l" } }, "call_1 · bash ls -l"],
    ["tool.call", { call_id: "call_1", tool_name: "f", arguments: { a: 1, b: "x y" } }, "call_1 · f a=1 b=x y"],
    [
      "tool.result",
      { call_id: "call_1", status: "error", duration_ms: 5, exit_code: 2, output: "no" },
      "call_1 error · 5 ms · exit 2 · no"
    ],
    ["tool.denied", { call_id: "call_1", approver: "ada", reason: "no" }, "call_1 · by ada · no"],
    ["turn.completed", { usage: { input_tokens: 1200, output_tokens: 5, usd: 0.5 } }, "1,200 → 5 tokens $0.50"],
    ["turn.error", { error_type: "overloaded", message: "later" }, "overloaded: later"],
    ["session.paused", { reason: "lunch" }, "lunch"],
    ["hook.started", { hook_run_id: "hookrun_1", hook_name: "lint", call_ids: [], attempt: 1 }, "lint"],
    ["hook.completed", { hook_run_id: "hookrun_1", status: "failed", duration_ms: 5 }, "hookrun_1 failed"],
    ["turn.started", { input: "", target: { type: "tool", call_id: "call_1" } }, "call_1 runs again"],
    ["turn.started", { input: "", target: { type: "hook", hook_run_id: "hookrun_1" } }, "hookrun_1 runs again"],
    ["future.kind", { a: 1, b: [2] }, "a=1 b=[2]"]
  ])("%s says so", (kind, payload, text) => {
    expect(runeText(rune(kind, payload)).text).toBe(text)
  })

  it("of every kind, with any payload whatever, is one line", () => {
    const terminal = recordingTerminal({ columns: 80 })
    const names = [...kinds, "constructor", "toString", "future.kind"]
    const payloads = [
      null,
      undefined,
      7,
      "text",
      [],
      {},
      { content: 7, items: {}, usage: null, error: "x", arguments: "{" }
    ]
    for (const name of names) {
      for (const payload of payloads) {
        const line = new RuneLines(terminal).line(rune(name, payload))
        expect(widthOf(line), `${name} ${JSON.stringify(payload)}`).toBeLessThanOrEqual(80)
        expect(line).not.toContain("\n")
      }
    }
  })

  it("is never wider than the terminal, whatever it says", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 300 }),
        fc.integer({ min: 60, max: 220 }),
        (text, columns) => {
          const lines = new RuneLines(recordingTerminal({ columns }))
          expect(widthOf(lines.line(rune("turn.assistant_final", { content: text, items: [] })))).toBeLessThanOrEqual(
            columns
          )
          const progress = lines.progress(rune("turn.assistant_delta", { content: text })) ?? ""
          expect(widthOf(progress)).toBeLessThan(columns)
        }
      )
    )
  })

  it("names its agent once there is more than one", () => {
    const lines = new RuneLines(recordingTerminal({ columns: 80 }))
    const of = (agent: string) => lines.line(rune("turn.started", { input: "x" }, { agent_id: agent }))
    expect(of("agt_aaaa1111")).not.toContain("aaaa")
    expect(of("agt_bbbb1111")).toContain("bbbb x")
    expect(of("agt_aaaa1111")).toContain("aaaa x")
  })

  it("names what an agent was told about its place", () => {
    const parts = [{ name: "environment" }, { name: "AGENTS.md" }]
    const lines = new RuneLines(recordingTerminal({ columns: 80 }))
    const shown = lines.line(rune("agent.instructed", { agent_id: "agt_aaaa1111", text: "…", parts }))
    expect(shown).toContain("environment, AGENTS.md")
  })

  it("that is a piece of text shows as progress until something else comes", () => {
    const lines = new RuneLines(recordingTerminal({ columns: 80 }))
    expect(lines.progress(rune("turn.assistant_delta", { content: "Hello " }))).toMatch(/^. Hello$/)
    expect(lines.progress(rune("turn.assistant_delta", { content: "world" }))).toMatch(/^. Hello world$/)
    expect(lines.progress(rune("turn.assistant_final", { content: "Hello world", items: [] }))).toBeUndefined()
    expect(isDelta(rune("tool.progress", {}))).toBe(true)
  })

  it("has arguments and content in words", () => {
    expect(argumentsText({ path: "a b" })).toBe("a b")
    expect(argumentsText(undefined)).toBe("")
    expect(contentText("x")).toBe("x")
  })
})
