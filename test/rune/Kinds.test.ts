/** Goal: the registry names every kind of the architecture, with its storage class. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { definitionOf, definitions, isKind, kinds, lookup } from "#src/rune/Kinds.ts"
import { stamp } from "#src/rune/Rune.ts"
import { deltaKey, supersededDeltas, supersededKey } from "#src/rune/Supersession.ts"
import { exampleRune } from "../support/runeExamples.ts"
import { runesPage } from "../support/runesPage.ts"

const families: Readonly<Record<string, string>> = {
  session: "created activated paused resumed suspended unsuspended closing closed archived restored forked",
  agent: "spawning ready failed terminated message budget_exhausted state_changed",
  turn:
    "queued started assistant_delta reasoning_delta assistant_final tool_calls_received tools_finished hooks_finished " +
    "completed interrupted error retry_scheduled model_requested compacted",
  tool: "call approval_requested approved denied started progress result",
  hook: "started completed",
  plan:
    "goal_received created updated approved rejected task_assigned task_started task_completed task_failed critique " +
    "blocked goal_met stopped",
  harness: "attached event input_sent detached recovered",
  config: "updated",
  system: "error invariant_violation recovered thinned"
}

describe("the registry", () => {
  it.each(Object.entries(families))("has every kind of %s", (family, names) => {
    for (const name of names.split(" ")) {
      expect(isKind(`${family}.${name}`)).toBe(true)
      expect(lookup(`${family}.${name}`)?.family).toBe(family)
    }
  })

  it("names no kind twice and nothing from Object.prototype", () => {
    expect(new Set(kinds).size).toBe(kinds.length)
    expect(isKind("constructor")).toBe(false)
    expect(lookup("__proto__")).toBeUndefined()
  })

  it("calls exactly three kinds deltas", () => {
    const deltas = definitions.filter((definition) => definition.runeClass === "delta").map(({ kind }) => kind)
    expect(deltas.sort()).toEqual(["tool.progress", "turn.assistant_delta", "turn.reasoning_delta"])
  })

  it("has something that supersedes each delta in its own scope", () => {
    for (const delta of definitions.filter(({ runeClass }) => runeClass === "delta")) {
      const later = definitions.filter((one) => one.supersedes?.includes(delta.kind) && one.scope === delta.scope)
      expect(later.length).toBeGreaterThan(0)
    }
  })

  it("keeps what the machinery says to itself internal", () => {
    const internal = kinds.filter((kind) => definitionOf(kind).visibility === "internal").sort()
    expect(internal).toEqual([
      "agent.instructed",
      "agent.message",
      "plan.critique",
      "system.invariant_violation",
      "system.recovered",
      "system.thinned",
      "turn.model_requested"
    ])
  })
})

describe("supersession", () => {
  const at = (kind: Parameters<typeof exampleRune>[0], eventId: number) => exampleRune(kind, eventId)

  it("drops text deltas once the final text of their turn is there", () => {
    const runes = [
      at("turn.assistant_delta", 1),
      at("tool.progress", 2),
      at("turn.reasoning_delta", 3),
      at("turn.assistant_final", 4),
      at("turn.assistant_delta", 5)
    ]
    expect(supersededDeltas(runes)).toEqual([1, 3])
  })

  it("drops progress once its own call has a result", () => {
    const other = stamp(
      { kind: "tool.progress", payload: { call_id: "call_8" as never, stream: "stdout", chunk: "x" } },
      at("tool.progress", 2)
    )
    expect(supersededDeltas([at("tool.progress", 1), other, at("tool.result", 3)])).toEqual([1])
  })

  it("keeps a partial answer that nothing repeats", () => {
    expect(supersededDeltas([at("turn.assistant_delta", 1), at("turn.completed", 2)])).toEqual([])
  })

  it("gives no key to runes without a scope", () => {
    expect(deltaKey(at("turn.started", 1))).toBeUndefined()
    expect(supersededKey(at("turn.started", 1))).toBeUndefined()
    expect(deltaKey({ ...at("turn.assistant_delta", 1), kind: "dream.delta" } as never)).toBeUndefined()
    const { turn_id: _, ...loose } = at("turn.assistant_delta", 1)
    expect(deltaKey(loose as never)).toBeUndefined()
    expect(deltaKey({ ...at("tool.progress", 1), payload: {} } as never)).toBeUndefined()
  })
})

describe("the page of kinds", () => {
  it("is what the kinds say about themselves (npm run schemas rewrites it)", () => {
    const page = join(import.meta.dirname, "..", "..", "docs", "RUNES.md")
    expect(readFileSync(page, "utf8")).toBe(runesPage())
  })

  it("gives every kind a sentence", () => {
    for (const { kind, meaning } of definitions) expect(meaning, kind).toMatch(/^[A-Z].{10,}\.$/)
  })
})
