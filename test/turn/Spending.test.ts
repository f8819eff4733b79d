// Goal: budgets hold: what is used up stops, what others hold is waited for, what is given back is free again. Method: a
// conversation told in runes, and the reservations of one process on top of it.
// Verifies: INV-AGENT-BUDGET
import { beforeEach, describe, expect, it } from "vitest"
import type { AgentId } from "#src/rune/Ids.ts"
import type { Budget } from "#src/rune/kinds/shared.ts"
import { type Estimate, microUsd, Spending } from "#src/turn/Spending.ts"
import { callItem, readTool, Story, textItem } from "../support/story.ts"

const child = "agt_00000000000000c1" as AgentId
const grandchild = "agt_00000000000000c2" as AgentId

const tokens = (count: number): Estimate => ({ tokens: count, micro_usd: 0, tool_calls: 0 })
const oneCall: Estimate = { tokens: 0, micro_usd: 0, tool_calls: 1 }

let spending: Spending
beforeEach(() => {
  spending = new Spending()
})

const storyWith = (budget: Budget): Story => new Story().ready({ budget })

const spawn = (story: Story, agentId: AgentId, parent: AgentId, budget?: Budget): void => {
  const spec = { agent_id: agentId, role: "worker", model: "scripted/echo", parent_id: parent }
  story.run({ _tag: "SpawnAgent", spec: budget === undefined ? spec : { ...spec, budget } })
  story.run({ _tag: "CompleteAgentInit", agent_id: agentId })
}

/** One turn of an agent: 15 tokens and a quarter of a dollar. */
const turn = (story: Story, agentId: AgentId = story.root): void => {
  story.run({ _tag: "PostMessage", agent_id: agentId, content: "go", mode: "queue" })
  story.request(agentId)
  story.respond([textItem("done")], agentId)
}

describe("a reservation", () => {
  it("is always given where there is no budget", () => {
    const story = new Story().ready()
    turn(story)
    expect(spending.reserve(story.state, story.root, tokens(1e9), story.nowMs)._tag).toBe("Reserved")
  })

  it("is given while it fits, and refused when the limit is used up", () => {
    const story = storyWith({ tokens: 30 })
    expect(spending.reserve(story.state, story.root, tokens(30), story.nowMs)._tag).toBe("Reserved")
    spending = new Spending()
    turn(story)
    turn(story)
    expect(spending.reserve(story.state, story.root, tokens(1), story.nowMs)).toEqual({
      _tag: "Exhausted",
      which: "tokens",
      used: 30,
      limit: 30,
      node: story.conversationId
    })
  })

  it("is given once for more than is left, so that the rest can be used", () => {
    const story = storyWith({ tokens: 20 })
    turn(story)
    const last = spending.reserve(story.state, story.root, tokens(100), story.nowMs)
    expect(last._tag).toBe("Reserved")
    expect(spending.reserve(story.state, story.root, tokens(1), story.nowMs)._tag).toBe("Contended")
  })

  it("that others stand in the way of is given when they are done", async () => {
    const story = storyWith({ tokens: 100 })
    spawn(story, child, story.root)
    const first = spending.reserve(story.state, story.root, tokens(80), story.nowMs)
    const second = spending.reserve(story.state, child, tokens(80), story.nowMs)
    if (first._tag !== "Reserved" || second._tag !== "Contended") throw new Error("unexpected")
    let isFreed = false
    const freed = spending.freed(second.since, new AbortController().signal).then(() => {
      isFreed = true
    })
    await Promise.resolve()
    expect(isFreed).toBe(false)
    first.release()
    await freed
    expect(spending.reserve(story.state, child, tokens(80), story.nowMs)._tag).toBe("Reserved")
  })

  it("is given back once", () => {
    const story = storyWith({ tokens: 100 })
    spawn(story, child, story.root)
    const first = spending.reserve(story.state, story.root, tokens(60), story.nowMs)
    if (first._tag !== "Reserved") throw new Error("unexpected")
    first.release()
    first.release()
    const other = spending.reserve(story.state, child, tokens(60), story.nowMs)
    expect(other._tag).toBe("Reserved")
    expect(spending.reserve(story.state, story.root, tokens(60), story.nowMs)._tag).toBe("Contended")
  })

  it("is not waited for by whom is stopped, nor when one came free before the wait began", async () => {
    const story = storyWith({ tokens: 100 })
    const first = spending.reserve(story.state, story.root, tokens(80), story.nowMs)
    const second = spending.reserve(story.state, story.root, tokens(80), story.nowMs)
    if (first._tag !== "Reserved" || second._tag !== "Contended") throw new Error("unexpected")
    await spending.freed(second.since, AbortSignal.abort())
    first.release()
    await spending.freed(second.since, new AbortController().signal)
  })
})

describe("what counts", () => {
  it("is money too, without losing cents", () => {
    expect(microUsd(0.1 + 0.2)).toBe(300_000)
    const story = storyWith({ usd: 0.5 })
    turn(story)
    expect(spending.reserve(story.state, story.root, { ...tokens(0), micro_usd: 250_000 }, story.nowMs)._tag).toBe(
      "Reserved"
    )
    turn(story)
    spending = new Spending()
    expect(spending.reserve(story.state, story.root, { ...tokens(0), micro_usd: 1 }, story.nowMs)).toEqual({
      _tag: "Exhausted",
      which: "usd",
      used: 0.5,
      limit: 0.5,
      node: story.conversationId
    })
  })

  it("is every call that has started, and none that has not", () => {
    const story = storyWith({ tool_calls: 2 })
    story.inBatch(callItem("a", readTool), callItem("b", readTool), callItem("c", readTool))
    const first = spending.reserve(story.state, story.root, oneCall, story.nowMs)
    const second = spending.reserve(story.state, story.root, oneCall, story.nowMs)
    expect([first._tag, second._tag]).toEqual(["Reserved", "Reserved"])
    expect(spending.reserve(story.state, story.root, oneCall, story.nowMs)._tag).toBe("Contended")
    story.start("call_1")
    story.start("call_2")
    for (const one of [first, second]) if (one._tag === "Reserved") one.release()
    expect(spending.reserve(story.state, story.root, oneCall, story.nowMs)).toMatchObject({
      _tag: "Exhausted",
      which: "tool_calls",
      used: 2,
      limit: 2
    })
  })

  it("is what the agent's children use, against its own budget and against the conversation's", () => {
    const story = new Story().ready()
    spawn(story, child, story.root, { tokens: 30 })
    spawn(story, grandchild, child)
    turn(story, grandchild)
    expect(spending.reserve(story.state, child, tokens(15), story.nowMs)._tag).toBe("Reserved")
    expect(spending.reserve(story.state, grandchild, tokens(15), story.nowMs)._tag).toBe("Contended")
    spending = new Spending()
    turn(story, grandchild)
    expect(spending.reserve(story.state, grandchild, tokens(1), story.nowMs)).toMatchObject({
      _tag: "Exhausted",
      limit: 30
    })
    expect(spending.reserve(story.state, story.root, tokens(1), story.nowMs)._tag).toBe("Reserved")
  })

  it("is time in which turns run, and not time in between or while suspended", () => {
    const story = storyWith({ wall_ms: 1000 })
    story.nowMs += 3_600_000
    turn(story)
    story.nowMs += 3_600_000
    expect(spending.reserve(story.state, story.root, tokens(1), story.nowMs)._tag).toBe("Reserved")
    story.post("again")
    story.nowMs += 500
    expect(spending.reserve(story.state, story.root, tokens(1), story.nowMs)._tag).toBe("Reserved")
    story.run({ _tag: "Suspend", reason: "wait" })
    story.nowMs += 3_600_000
    story.run({ _tag: "Unsuspend" })
    expect(spending.reserve(story.state, story.root, tokens(1), story.nowMs)._tag).toBe("Reserved")
    story.nowMs += 600
    const refused = spending.reserve(story.state, story.root, tokens(1), story.nowMs)
    expect(refused).toMatchObject({ _tag: "Exhausted", which: "wall_ms", limit: 1000 })
  })

  it("is the conversation's time while any of its agents runs, counted once", () => {
    const story = storyWith({ wall_ms: 1000 })
    spawn(story, child, story.root)
    story.post("one")
    story.run({ _tag: "PostMessage", agent_id: child, content: "two", mode: "queue" })
    story.nowMs += 800
    expect(spending.reserve(story.state, child, tokens(1), story.nowMs)._tag).toBe("Reserved")
    story.run({ _tag: "InterruptTurn", agent_id: child, reason: "x" })
    story.nowMs += 300
    expect(spending.reserve(story.state, story.root, tokens(1), story.nowMs)._tag).toBe("Exhausted")
    expect(story.agent.wall_ms).toBe(0)
    expect(story.state.agents[1]?.wall_ms).toBeGreaterThanOrEqual(800)
  })

  it("is less after more was given", () => {
    const story = storyWith({ tokens: 15 })
    turn(story)
    expect(spending.reserve(story.state, story.root, tokens(1), story.nowMs)._tag).toBe("Exhausted")
    story.run({ _tag: "UpdateConfig", changes: {}, budget: { tokens: 100 } })
    expect(spending.reserve(story.state, story.root, tokens(1), story.nowMs)._tag).toBe("Reserved")
  })
})
