/** Goal: what only an odd log, an odd caller or another build can bring about is still answered soundly. */
import { describe, expect, it } from "vitest"
import { agentEvents } from "#src/machine/AgentEvents.ts"
import { mayRunNow, pendingEffects } from "#src/machine/Effects.ts"
import { evolve } from "#src/machine/Evolve.ts"
import { checkReplay } from "#src/machine/Replay.ts"
import { emptyConversation } from "#src/machine/State.ts"
import { stateEvents } from "#src/machine/StateEvents.ts"
import { attentionItems } from "#src/machine/Supervision.ts"
import type { AgentId, CallId, ConversationId } from "#src/rune/Ids.ts"
import type { Rune } from "#src/rune/Rune.ts"
import { exampleRune, payloadExamples as payloads } from "../support/runeExamples.ts"
import { callItem, readTool, Story, shellTool, writeTool } from "../support/story.ts"

const id = "conv_0123456789abcdef" as ConversationId

describe("runes without their usual company", () => {
  it("a call without an agent belongs to nobody, and ends all the same", () => {
    const story = new Story().ready()
    const { agent_id: _, turn_id: __, ...loose } = exampleRune("tool.call", 5)
    evolve(story.state, loose as Rune)
    expect(story.state.calls).toMatchObject([{ agent_id: null, turn_id: null }])
    story.start("call_7")
    story.finish("call_7")
    expect(story.runes.at(-1)).not.toHaveProperty("agent_id")
    expect(story.state.calls).toEqual([])
  })

  it("an approval without a hash keeps the one the call has", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    const { arguments_hash } = story.call("call_1")
    story.ask("call_1")
    story.tell("tool.approved", { call_id: "call_1" as CallId, approver: "a", channel: "c", scope: "once" })
    expect(story.call("call_1").arguments_hash).toBe(arguments_hash)
  })

  it("a message to an agent that is not there changes nothing", () => {
    const story = new Story().ready()
    story.tell("agent.message", { to_agent_id: "agt_9999" as AgentId, content: "x" })
    expect(story.agent.queue).toEqual([])
  })

  it("queued input keeps the agent it came from", () => {
    const story = new Story().ready()
    story.tell("turn.queued", { input: "x", mode: "queue", from_agent_id: story.root })
    expect(story.agent.queue).toMatchObject([{ from_agent_id: story.root }])
  })

  it("a call counted finished without a result is settled as unknown", () => {
    const story = new Story().inBatch(callItem("a", readTool))
    ;(story.call("call_1") as { status: string }).status = "completed"
    story.settle()
    expect(story.runes.at(-1)?.payload).toMatchObject({ summaries: [{ status: "unknown" }] })
  })

  it("a conversation without a root agent says so, and takes one that speaks", () => {
    const story = new Story().create()
    story.run({ _tag: "CompleteAgentInit", agent_id: story.root })
    const { session } = story.state as { session: { root_agent_id: AgentId | null; status: string } }
    session.root_agent_id = null
    session.status = "created"
    expect(story.refused({ _tag: "PostMessage", content: "x", mode: "queue" }).message).toBe("no agent at the root")
    story.run({ _tag: "PostMessage", agent_id: story.root, content: "x", mode: "queue" })
    expect(story.state.session.root_agent_id).toBe(story.root)
  })

  it("keys without hashes, on runes without places, are remembered too", () => {
    const state = emptyConversation(id)
    const keyed = (kind: "session.created" | "session.paused" | "turn.queued", eventId: number) =>
      ({ ...exampleRune(kind, eventId), idempotency_key: "k" }) as Rune
    evolve(state, keyed("session.created", 1))
    evolve(state, keyed("session.paused", 2))
    expect(state.outcomes).toMatchObject([
      { hash: "", first_event_id: 1, last_event_id: 2, turn_id: null, agent_id: null }
    ])
    evolve(state, keyed("turn.queued", 3))
    expect(state.outcomes[0]).toMatchObject({ turn_id: "turn_3", last_event_id: 3 })
  })

  it("a suspension without a reason is still shown", () => {
    const story = new Story().ready()
    ;(story.state.session as { status: string }).status = "suspended"
    expect(attentionItems(story.state)[0]).toMatchObject({ type: "suspended", title: "suspended" })
  })

  it("turns in states that ask for nothing have no effects", () => {
    const story = new Story().ready()
    story.post("go")
    const turn = story.turn as { status: string }
    turn.status = "completed"
    expect(pendingEffects(story.state)).toEqual([])
    turn.status = "retry_waiting"
    expect(pendingEffects(story.state)).toEqual([])
    turn.status = "hooks_running"
    expect(pendingEffects(story.state)).toEqual([])
  })

  it("views name no agent where the rune names none", () => {
    const story = new Story().ready()
    story.run({ _tag: "RecordSystemError", payload: payloads["system.error"] })
    expect(stateEvents(story.runes).at(-1)).not.toHaveProperty("agentId")
    const { agent_id: _, ...loose } = exampleRune("agent.state_changed")
    expect(agentEvents([loose as Rune])[0]).not.toHaveProperty("agent_id")
    const { agent_id: __, ...finished } = exampleRune("turn.hooks_finished")
    expect(stateEvents([finished as Rune])).toEqual([])
  })
})

describe("order inside a batch", () => {
  it("can be asked of one call", () => {
    const story = new Story().inBatch(
      callItem("read", readTool),
      callItem("write", writeTool),
      callItem("read", readTool)
    )
    const may = () => ["call_1", "call_2", "call_3", "call_9"].map((call) => mayRunNow(story.state, call as CallId))
    expect(may()).toEqual([true, false, false, true])
    story.start("call_1")
    story.finish("call_1")
    expect(may()).toEqual([true, true, false, true])
  })
})

describe("while suspended", () => {
  it("a request under way stays listed and says that it is held", () => {
    const story = new Story().ready()
    story.post("go")
    story.request()
    story.run({ _tag: "Suspend", reason: "s" })
    expect(story.effect("CallModel")).toMatchObject({ held: true })
    story.run({ _tag: "Unsuspend" })
    expect(story.effect("CallModel")).not.toHaveProperty("held")
  })
})

describe("a log that is not plain JSON", () => {
  it("is found out by its snapshots", () => {
    const story = new Story().inBatch(callItem("a", readTool))
    const odd = story.runes.map((rune) =>
      rune.kind === "tool.call"
        ? ({ ...rune, payload: { ...rune.payload, arguments: { at: new Date(0) } } } as Rune)
        : rune
    )
    const { violations } = checkReplay(odd, { conversation_id: story.conversationId, snapshotEvery: odd.length })
    expect(violations.map((violation) => violation.invariant)).toEqual([
      "INV-SNAPSHOT-INTEGRITY",
      "INV-REPLAY-IDEMPOTENT"
    ])
  })
})
