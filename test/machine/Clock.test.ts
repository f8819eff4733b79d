/**
 * Goal: wall time is the time in which turns run: an agent's while it is in one, the
 * conversation's while any agent is, counted once, and neither while it is suspended.
 * Method: stories whose moments are moved by hand.
 */
import { describe, expect, it } from "vitest"
import type { AgentId } from "#src/rune/Ids.ts"
import { Story, textItem } from "../support/story.ts"

const child = "agt_0001" as AgentId

const withChild = (): Story => {
  const story = new Story().ready()
  story.run({ _tag: "SpawnAgent", spec: { agent_id: child, role: "worker", model: "m", parent_id: story.root } })
  story.run({ _tag: "CompleteAgentInit", agent_id: child })
  return story
}

const begin = (story: Story, agentId: AgentId): number => {
  story.run({ _tag: "PostMessage", agent_id: agentId, content: "go", mode: "queue" })
  return story.runes.at(-1)!.ts_ms
}

const end = (story: Story, agentId: AgentId): number => {
  story.request(agentId)
  story.respond([textItem("done")], agentId)
  return story.runes.at(-1)!.ts_ms
}

const wallOf = (story: Story, agentId: AgentId): number | undefined =>
  story.state.agents.find((agent) => agent.agent_id === agentId)?.wall_ms

describe("the clock of an agent", () => {
  it("runs from the start of a turn to its end, and stands in between", () => {
    const story = new Story().ready()
    const spans: Array<number> = []
    for (const lengthMs of [500, 70]) {
      story.nowMs += 10_000
      const before = story.agent.wall_ms
      const begun = begin(story, story.root)
      expect(story.agent.turn?.clock_ms).toBe(begun)
      story.nowMs += lengthMs
      expect(story.agent.wall_ms).toBe(before)
      spans.push(end(story, story.root) - begun)
      expect(spans.at(-1)).toBeGreaterThanOrEqual(lengthMs)
    }
    const total = spans[0]! + spans[1]!
    expect(story.agent.wall_ms).toBe(total)
    expect(story.state).toMatchObject({ wall_ms: total, clock_ms: null })
  })

  it("stands while the conversation is suspended, and goes on from there", () => {
    const story = new Story().ready()
    const begun = begin(story, story.root)
    story.nowMs += 300
    story.run({ _tag: "Suspend", reason: "wait" })
    const before = story.runes.at(-1)!.ts_ms - begun
    expect(story.agent).toMatchObject({ wall_ms: before, turn: { clock_ms: null } })
    expect(story.state).toMatchObject({ wall_ms: before, clock_ms: null })
    story.nowMs += 3_600_000
    story.run({ _tag: "Unsuspend" })
    const again = story.runes.at(-1)!.ts_ms
    expect(story.agent.turn?.clock_ms).toBe(again)
    story.nowMs += 40
    const after = end(story, story.root) - again
    expect(story.agent.wall_ms).toBe(before + after)
  })

  it("of a turn that ends while it stands counts nothing more", () => {
    const story = new Story().ready()
    const begun = begin(story, story.root)
    story.nowMs += 300
    story.run({ _tag: "Suspend", reason: "wait" })
    const before = story.runes.at(-1)!.ts_ms - begun
    story.nowMs += 3_600_000
    story.run({ _tag: "InterruptTurn", reason: "enough" })
    expect(story.agent).toMatchObject({ wall_ms: before, turn: null })
    expect(story.state).toMatchObject({ wall_ms: before, clock_ms: null })
    story.run({ _tag: "Unsuspend" })
    expect(story.state.clock_ms).toBeNull()
  })
})

describe("the clock of a conversation", () => {
  it("runs while any of its agents does, and counts what they share once", () => {
    const story = withChild()
    const begun = begin(story, story.root)
    story.nowMs += 100
    const joined = begin(story, child)
    expect(story.state.clock_ms).toBe(begun)
    story.nowMs += 100
    const left = end(story, story.root)
    // One still runs: the time of the conversation is not over.
    expect(story.state).toMatchObject({ wall_ms: 0, clock_ms: begun })
    expect(wallOf(story, story.root)).toBe(left - begun)
    story.nowMs += 100
    const over = end(story, child)
    expect(wallOf(story, child)).toBe(over - joined)
    expect(story.state).toMatchObject({ wall_ms: over - begun, clock_ms: null })
  })

  it("stops and starts with all agents that are in a turn, and with no other", () => {
    const story = withChild()
    const begun = begin(story, story.root)
    story.nowMs += 100
    story.run({ _tag: "Suspend", reason: "wait" })
    story.nowMs += 1000
    story.run({ _tag: "Unsuspend" })
    const again = story.runes.at(-1)!.ts_ms
    expect(story.state.clock_ms).toBe(again)
    expect(wallOf(story, child)).toBe(0)
    const over = end(story, story.root)
    expect(story.state.wall_ms).toBe(over - begun - 1001)
  })
})
