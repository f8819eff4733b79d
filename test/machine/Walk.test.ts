/**
 * Goal: no sequence of commands, crashes included, breaks an invariant, throws, or
 * leaves work that cannot go on; and every log folds to the same state in every
 * way of folding. Verifies: G8 and all INV-* of runes, among them INV-TURN-ORDER,
 * INV-READY-NO-PENDING-TOOLS, INV-ONE-MODEL-CALL-PER-AGENT, INV-TOOL-CALL-BEFORE-RESULT,
 * INV-HOOKS-NEVER-OVERLAP, INV-REPLAY-DETERMINISTIC, INV-REPLAY-IDEMPOTENT.
 */
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { canonicalHash } from "#src/machine/Canonical.ts"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { checkReplay } from "#src/machine/invariants/Replay.ts"
import { agentEvents } from "#src/machine/view/AgentEvents.ts"
import { assembleRequest } from "#src/machine/view/Request.ts"
import { stateEvents } from "#src/machine/view/StateEvents.ts"
import { attentionItems, attentionOf } from "#src/machine/view/Supervision.ts"
import { decode, encode } from "#src/rune/Rune.ts"
import { count, reportCount } from "../support/counts.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { Story } from "../support/story.ts"
import { type Draw, drain, takeStep } from "../support/walk.ts"
import { expectWellFormed } from "../support/wellFormed.ts"

const drawFrom = (seed: number): Draw => {
  const random = randomFrom(seed)
  return (below) => Math.floor(random() * below)
}

const walk = (seed: number, steps: number): Story => {
  const draw = drawFrom(seed)
  const story = new Story().create()
  for (let step = 0; step < steps; step++) {
    takeStep(story, draw)
    if (step % 10 === 0) for (const agent of story.state.agents) expectWellFormed(assembleRequest(story.state, agent))
  }
  drain(story, draw, 5000)
  return story
}

/** Every state change starts where the one before it ended, agent by agent. */
const expectConnected = (story: Story): void => {
  const last = new Map<string, string>()
  for (const event of stateEvents(story.runes)) {
    if (event.type !== "state_changed") continue
    const id = event.eventId.split(".")[0]!
    const agent = event.agentId ?? `all at ${id}`
    const before = last.get(agent)
    if (before !== undefined && before !== event.from && event.agentId !== undefined && event.from !== "Stopping") {
      throw new Error(`${agent} was ${before}, then changes from ${event.from} at ${event.eventId}`)
    }
    last.set(agent, event.to)
  }
}

const check = (story: Story, seed: number): void => {
  const label = `walk ${seed}`
  expect(checkInvariants(story.runes), label).toEqual([])
  const replay = checkReplay(story.runes, { conversation_id: story.conversationId, snapshotEvery: 1 + (seed % 7) })
  expect(replay.violations, label).toEqual([])
  expect(replay.hash, label).toBe(canonicalHash(story.state))
  for (const rune of story.runes) expect(Result.getOrThrow(decode(encode(rune))), label).toEqual(rune)
  for (const agent of story.state.agents) {
    expectWellFormed(assembleRequest(story.state, agent))
    expect(agent.turn, label).toBeNull()
  }
  expect(attentionOf(story.state)).toBeDefined()
  expect(attentionItems(story.state).length).toBeGreaterThanOrEqual(0)
  expect(agentEvents(story.runes).length).toBeGreaterThan(0)
  expectConnected(story)
}

describe("random walks", () => {
  it("never break an invariant, replay to the same hash, and always come to rest", () => {
    const walks = count("machine walks", { fast: 150, soak: 20_000 })
    const seed = seedFor("machine walks")
    const kinds = new Set<string>()
    let runes = 0
    for (let index = 0; index < walks; index++) {
      const story = walk(seed + index, 250)
      check(story, seed + index)
      runes += story.runes.length
      for (const rune of story.runes) kinds.add(rune.kind)
    }
    reportCount("machine walks, no invariant broken", walks)
    reportCount("machine walks, runes folded and checked", runes)
    expect(kinds.size).toBeGreaterThan(40)
  }, 600_000)

  it("are the same walk for the same seed", () => {
    const runes = (seed: number) => walk(seed, 60).runes.map(encode)
    expect(runes(42)).toEqual(runes(42))
    expect(runes(42)).not.toEqual(runes(43))
  })
})
