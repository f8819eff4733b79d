/**
 * Goal: whatever a conversation had under way, a copy of it has nothing to do, its log says what
 * was ended, keeps every invariant, and takes a message. Method: random walks cut at
 * every rune, and one story for each thing that can be alive.
 */
import { describe, expect, it } from "vitest"
import { beginCopy } from "#src/machine/decide/Copying.ts"
import { fold } from "#src/machine/evolve/Evolve.ts"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { restoreSnapshot, snapshotOf } from "#src/machine/invariants/Replay.ts"
import { type ConversationState, emptyConversation } from "#src/machine/State.ts"
import { agentOf } from "#src/machine/view/Select.ts"
import { pendingWork } from "#src/machine/work/PendingWork.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import { type AgentId, type CallId, makeRuneId } from "#src/rune/Ids.ts"
import { type Rune, type RuneDraft, stamp } from "#src/rune/Rune.ts"
import { reportCount } from "../../support/counts.ts"
import { payloadExamples } from "../../support/runeExamples.ts"
import { randomFrom, seedFor } from "../../support/seed.ts"
import { callItem, Story, shellTool, textItem } from "../../support/story.ts"
import { takeStep } from "../../support/walk.ts"

const successor = "agt_0000000000000099" as AgentId

/** Makes the story a copy of itself, as it stands. */
const copy = (story: Story, work: "ended" | "continued" = "ended"): ReadonlyArray<RuneDraft> => {
  const around = { at_ms: story.nowMs, runeId: () => makeRuneId(story.ids) }
  return beginCopy(story.state, { ...around, reason: "forked", work, root_agent_id: successor })
}

const kinds = (drafts: ReadonlyArray<RuneDraft>) => drafts.map(({ kind }) => kind)

/** The story up to a rune, in a state of its own. */
const cutAt = (story: Story, length: number): Story => {
  const part = new Story()
  part.runes.push(...story.runes.slice(0, length))
  part.state = restoreSnapshot(snapshotOf(fold(part.runes, emptyConversation(story.conversationId))))
  part.nowMs = story.nowMs
  return part
}

const stamped = (drafts: ReadonlyArray<RuneDraft>, { conversation_id, head }: ConversationState): Array<Rune> => {
  const ids = seededIdSource(99)
  const first = head - drafts.length + 1
  return drafts.map(
    (draft, index) =>
      stamp(draft, { event_id: first + index, rune_id: makeRuneId(ids), conversation_id, ts_ms: 2e12 }) as Rune
  )
}

describe("a copy", () => {
  it("has nothing to do wherever a conversation is cut", () => {
    const seed = seedFor("copies of random walks")
    let copies = 0
    let ended = 0
    for (let at = 0; at < 40; at++) {
      const random = randomFrom(seed + at)
      const story = new Story().create()
      for (let step = 0; step < 60; step++) takeStep(story, (below) => Math.floor(random() * below))
      for (let length = 2; length <= story.runes.length; length += 3) {
        const part = cutAt(story, length)
        const drafts = copy(part)
        const label = `walk ${seed + at} cut at ${length}`
        expect(pendingWork(part.state), label).toEqual([])
        expect(
          part.state.agents.every(({ queue, turn }) => turn === null && queue.length === 0),
          label
        ).toBe(true)
        expect(["created", "active", "paused", "suspended"], label).toContain(part.state.session.status)
        const whole = [...part.runes, ...stamped(drafts, part.state)]
        expect(checkInvariants(whole), label).toEqual(checkInvariants(part.runes))
        expect(copy(part), label).toEqual([])
        copies += 1
        if (drafts.length > 0) ended += 1
      }
    }
    reportCount("copies of random conversations without work", copies)
    reportCount("copies in which something had to be ended", ended)
    expect(ended).toBeGreaterThan(copies / 10)
  })

  it("ends a call that ran as unknown, a question as cancelled, and drops what was queued", () => {
    const story = new Story().inBatch(callItem("a", shellTool), callItem("b", shellTool))
    story.start("call_1")
    story.ask("call_2")
    story.post("next")
    const drafts = copy(story)
    expect(kinds(drafts)).toEqual(["tool.result", "tool.result", "turn.interrupted", "turn.dequeued"])
    expect(drafts.map(({ payload }) => (payload as { status?: string }).status)).toEqual([
      "unknown",
      "cancelled",
      undefined,
      undefined
    ])
    expect(drafts[0]?.payload).toMatchObject({ error: { message: expect.stringContaining("was forked") } })
  })

  it("ends a question outside any turn, lets go of an outside agent, and completes what was being spawned", () => {
    const story = new Story().ready()
    const child = "agt_00000000000000c1" as AgentId
    story.run({ _tag: "AttachHarness", agent_id: story.root, payload: payloadExamples["harness.attached"] })
    story.run({
      _tag: "OpenCall",
      agent_id: story.root,
      call_id: "call_1" as CallId,
      tool_name: "bash",
      arguments: {},
      tool: shellTool
    })
    story.ask("call_1")
    story.run({ _tag: "SpawnAgent", spec: { agent_id: child, role: "w", model: "m", parent_id: story.root } })
    expect(kinds(copy(story))).toEqual(["harness.detached", "agent.ready", "tool.result"])
    expect(agentOf(story.state, story.root)?.harness?.attached).toBe(false)
  })

  it("that continues goes on with all but what may have happened, also in a client", () => {
    const remote = { ...shellTool, provenance: "remote" }
    const story = new Story().inBatch(callItem("a", remote))
    story.start("call_1")
    story.post("next")
    expect(kinds(copy(story, "continued"))).toEqual(["tool.result", "system.recovered"])
    expect(story.effects).toEqual(["SettleTools"])
    expect(agentOf(story.state, story.root)?.queue).toHaveLength(1)
  })

  it("of a closed conversation has a root that knows what was said", () => {
    const story = new Story().ready()
    story.post("remember")
    story.request()
    story.respond([textItem("yes")])
    const said = agentOf(story.state, story.root)?.transcript
    story.run({ _tag: "Close", reason: "c" })
    story.run({ _tag: "FinishClosing" })
    expect(kinds(copy(story))).toEqual(["agent.spawning", "agent.ready", "session.activated"])
    expect(story.state.session).toMatchObject({ status: "active", root_agent_id: successor })
    expect(agentOf(story.state, successor)?.transcript).toEqual(said)
    expect(agentOf(story.state, story.root)?.transcript).toEqual([])
    expect(story.post("go on")).toEqual(["turn.started"])
  })
})

describe("a copy of a conversation that was being closed", () => {
  it("is spoken to wherever its end was cut, and those spawned last end first", () => {
    const story = new Story().ready()
    const child = "agt_00000000000000c1" as AgentId
    story.run({ _tag: "SpawnAgent", spec: { agent_id: child, role: "w", model: "m", parent_id: story.root } })
    story.run({ _tag: "CompleteAgentInit", agent_id: child })
    const closing = story.runes.length + 1
    story.run({ _tag: "Close", reason: "c" })
    story.run({ _tag: "FinishClosing" })
    story.run({ _tag: "Archive", location: "a", hash: "0".repeat(64) })
    expect(story.runes[closing - 1]?.kind).toBe("session.closing")
    for (let length = closing; length <= story.runes.length; length++) {
      const part = cutAt(story, length)
      const drafts = copy(part)
      expect(kinds(drafts).slice(-3)).toEqual(["agent.spawning", "agent.ready", "session.activated"])
      expect(checkInvariants([...part.runes, ...stamped(drafts, part.state)])).toEqual([])
      const ended = drafts.filter(({ kind }) => kind === "agent.terminated").map(({ agent_id }) => agent_id)
      if (length === closing) expect(ended).toEqual([child, story.root])
      expect(part.state.session).toMatchObject({ status: "active", root_agent_id: successor })
    }
  })

  it("is not made when it could not be made sound", () => {
    const story = new Story().ready()
    const child = "agt_00000000000000c1" as AgentId
    story.run({ _tag: "SpawnAgent", spec: { agent_id: child, role: "w", model: "m", parent_id: story.root } })
    story.run({ _tag: "CompleteAgentInit", agent_id: child })
    story.tell("session.closing", { reason: "c" })
    // A child that is older than its parent: no log says so.
    const state = restoreSnapshot(snapshotOf(story.state))
    story.state = { ...state, agents: state.agents.toReversed() }
    expect(() => copy(story)).toThrow("the copy could not start: KillAgent gave")
  })
})

describe("an archived conversation", () => {
  it("that never had an agent stays closed when it is restored", () => {
    const story = new Story()
    story.tell("session.created", { config: {} })
    story.tell("session.closed", payloadExamples["session.closed"])
    story.run({ _tag: "Archive", location: "a", hash: "0".repeat(64) })
    expect(story.run({ _tag: "Restore", root_agent_id: successor })).toEqual(["session.restored"])
    expect(story.state.session.status).toBe("closed")
  })

  it("is restored with a root like the one it had", () => {
    const story = new Story()
    const root = { agent_id: story.root, role: "r", model: "m", name: "n", instructions: "i", workspace: "/w" }
    story.run({ _tag: "CreateConversation", conversation_id: story.conversationId, config: {}, root })
    story.run({ _tag: "CompleteAgentInit", agent_id: story.root })
    story.run({ _tag: "Close", reason: "c" })
    story.run({ _tag: "FinishClosing" })
    story.run({ _tag: "Archive", location: "a", hash: "0".repeat(64) })
    story.run({ _tag: "Restore", root_agent_id: successor })
    expect(agentOf(story.state, successor)).toMatchObject({ ...root, agent_id: successor, status: "idle" })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("leaves queues alone that belong to nobody", () => {
    const story = new Story().ready()
    story.tell("turn.dequeued", { event_ids: [], reason: "x" }, { agent_id: "agt_nobody" as AgentId })
    expect(story.effects).toEqual([])
  })
})
