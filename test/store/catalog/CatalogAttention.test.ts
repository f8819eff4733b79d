// Goal: a list, the state and the inbox never contradict each other about who is waited for. Method: random lives of
// conversations, crashes, goals and outside agents included; after every single rune the row of the list is held against
// the state folded from the same runes, and the inbox against both.
import { describe, expect, it } from "vitest"
import { evolve } from "#src/machine/evolve/Evolve.ts"
import { emptyConversation } from "#src/machine/State.ts"
import { attentionView } from "#src/machine/view/AttentionView.ts"
import { attentionItems, attentionOf } from "#src/machine/view/Supervision.ts"
import type { CallId } from "#src/rune/Ids.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import { shownUsage } from "#src/rune/UsageTotals.ts"
import { CatalogDatabase, MEMORY } from "#src/store/catalog/CatalogDatabase.ts"
import { foldRow } from "#src/store/catalog/CatalogFold.ts"
import { emptyRow, rowOf } from "#src/store/catalog/CatalogRow.ts"
import { count, reportCount } from "../../support/counts.ts"
import { randomFrom, seedFor } from "../../support/seed.ts"
import { Story } from "../../support/story.ts"
import { type Draw, drain, takeStep } from "../../support/walk.ts"

const drawFrom = (seed: number): Draw => {
  const random = randomFrom(seed)
  return (below) => Math.floor(random() * below)
}

/** Holds every prefix of a log; returns how often each attention was seen. */
const holdPrefixes = (runes: ReadonlyArray<AnyRune>, label: string, seen: Map<string, number>): void => {
  const id = runes[0]!.conversation_id
  const state = emptyConversation(id)
  const row = emptyRow(id)
  for (const rune of runes) {
    evolve(state, rune)
    foldRow(row, rune)
    const at = `${label}, event ${rune.event_id} ${rune.kind}`
    // Written as JSON in between, like in the database.
    expect(JSON.parse(JSON.stringify(row.view)), at).toEqual(attentionView(state))
    const shown = rowOf(row)
    expect(shown.attention, at).toBe(attentionOf(state))
    expect(shown.state, at).toBe(state.session.status)
    expect(shown.turns, at).toBe(state.turns)
    expect({ ...shown.usage, usd: 0 }, at).toEqual({ ...shownUsage(state.usage), usd: 0 })
    const types = new Set(attentionItems(state).map(({ type }) => type))
    const isOver = shown.state === "closed" || shown.state === "archived"
    if (!isOver && shown.state !== "suspended") {
      expect(shown.attention === "awaiting_approval", at).toBe(
        types.has("approval") || types.has("plan") || asksOutside(state)
      )
    }
    if (shown.state === "suspended") expect([shown.attention, types.has("suspended")], at).toEqual(["error", true])
    seen.set(shown.attention, (seen.get(shown.attention) ?? 0) + 1)
  }
}

/** An agent of another program that waits for its own person. */
const asksOutside = (state: ReturnType<typeof emptyConversation>): boolean =>
  state.agents.some(
    ({ harness, status }) =>
      harness?.attention === "awaiting_approval" && status !== "terminated" && status !== "failed"
  )

describe("a row of the list", () => {
  it("says what the state and the inbox say after every rune of random lives", () => {
    const walks = count("attention walks", { fast: 60, soak: 5_000 })
    const seed = seedFor("attention of rows")
    const seen = new Map<string, number>()
    for (let index = 0; index < walks; index += 1) {
      const draw = drawFrom(seed + index)
      const story = new Story().create()
      for (let step = 0; step < 250; step += 1) takeStep(story, draw)
      drain(story, draw, 5000)
      holdPrefixes(story.runes, `walk ${seed + index}`, seen)
    }
    const prefixes = [...seen.values()].reduce((sum, one) => sum + one, 0)
    reportCount("prefixes of random logs, list, state and inbox of one mind", prefixes)
    for (const status of ["starting", "running", "idle", "awaiting_approval", "error", "closed"]) {
      expect(seen.get(status) ?? 0, status).toBeGreaterThan(0)
    }
  }, 600_000)

  it("follows a question that belongs to no turn", () => {
    const story = new Story().ready()
    const call_id = "toolu_1" as CallId
    const tool = { effect_class: "effect", mutating: true } as const
    story.run({ _tag: "OpenCall", agent_id: story.root, call_id, tool_name: "Bash", arguments: {}, tool })
    story.run({ _tag: "RequireApproval", call_id, policy_reason: "a server asks", shown_as: { title: "which one?" } })
    expect(attentionOf(story.state)).toBe("awaiting_approval")
    holdPrefixes(story.runes, "a question", new Map())
  })

  it("follows an agent that waits for somebody to mend a key", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    story.run({
      _tag: "FailModelCall",
      agent_id: story.root,
      error: { error_type: "auth", message: "wrong key", retryable: true, source: "harness" },
      waits_for: "person"
    })
    expect(attentionOf(story.state)).toBe("awaiting_input")
    holdPrefixes(story.runes, "a wrong key", new Map())
  })

  it("follows the end of a conversation's last agent", () => {
    const story = new Story().ready()
    story.run({ _tag: "KillAgent", agent_id: story.root, reason: "x", force: true })
    expect(attentionOf(story.state)).toBe("error")
    holdPrefixes(story.runes, "no agent", new Map())
  })
})

describe("the inbox", () => {
  it("looks into every conversation that a list shows to need a person, and into no other", () => {
    const { catalog } = CatalogDatabase.open(MEMORY, "here")
    const statuses = ["starting", "running", "idle", "awaiting_input", "awaiting_approval", "error", "closed"] as const
    for (const [at, attention] of statuses.entries()) {
      const row = emptyRow(`conv_${attention}`)
      const view = { ...row.view, session: "active", attention } as const
      catalog.transaction(() => catalog.save({ row: { ...row, view, updated_ms: at }, damaged: undefined }))
    }
    expect(catalog.needing()).toEqual(["conv_error", "conv_awaiting_approval", "conv_awaiting_input"])
    catalog.close({ clean: true })
  })
})
