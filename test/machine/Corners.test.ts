/** Goal: what only an odd log, an odd caller or another build can bring about is still answered soundly. */
import { describe, expect, it } from "vitest"
import { evolve } from "#src/machine/evolve/Evolve.ts"
import { checkReplay } from "#src/machine/invariants/Replay.ts"
import { emptyConversation } from "#src/machine/State.ts"
import { agentEvents } from "#src/machine/view/AgentEvents.ts"
import { stateEvents } from "#src/machine/view/StateEvents.ts"
import { attentionItems } from "#src/machine/view/Supervision.ts"
import { mayRunNow, pendingWork } from "#src/machine/work/PendingWork.ts"
import type { AgentId, CallId, ConversationId, PlanId, RequestId } from "#src/rune/Ids.ts"
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

  it("a question that says nothing of itself offers to allow one call, and no more", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    story.ask("call_1")
    ;(story.call("call_1") as { approval: null }).approval = null
    const answer = { _tag: "ApproveCall", call_id: "call_1" as CallId, approver: "a", channel: "c" } as const
    expect(story.refused({ ...answer, scope: "session" })).toMatchObject({
      code: "bad_request",
      data: { choices: ["once"] }
    })
    expect(story.run({ ...answer, scope: "once" })).toEqual(["tool.approved"])
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
    expect(pendingWork(story.state)).toEqual([])
    turn.status = "retry_waiting"
    expect(pendingWork(story.state)).toEqual([])
    turn.status = "hooks_running"
    expect(pendingWork(story.state)).toEqual([])
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

describe("commands about nothing", () => {
  it("to an agent that runs no turn are refused", () => {
    const story = new Story().ready()
    const at = { agent_id: story.root }
    const error = { error_type: "x", message: "y", retryable: true } as const
    for (const command of [
      { _tag: "RequestModel", ...at, request_id: "req_0000000000000001" as RequestId, provider: "p", model: "m" },
      { _tag: "AppendText", ...at, content: "x" },
      { _tag: "AppendReasoning", ...at, content: "x" },
      { _tag: "ReceiveResponse", ...at, items: [] },
      { _tag: "FinaliseResponse", ...at },
      { _tag: "FailModelCall", ...at, error },
      { _tag: "FailTurn", ...at, error },
      { _tag: "RetryDue", ...at },
      { _tag: "SettleTools", ...at, hooks: [] }
    ] as const) {
      expect(story.refused(command)).toMatchObject({ code: "invalid_state", data: { state: "idle" } })
    }
  })

  it("a call that was approved and never started can tell nothing of itself", () => {
    const story = new Story().inBatch(callItem("bash", shellTool))
    const call_id = "call_1" as CallId
    const violation = { _tag: "FinishCall", call_id, status: "sandbox_violation", duration_ms: 0 } as const
    expect(story.refused(violation).code).toBe("invalid_state")
    story.ask("call_1")
    story.run({ _tag: "ApproveCall", call_id, approver: "a", channel: "c", scope: "once" })
    expect(story.refused({ _tag: "AppendProgress", call_id, stream: "stdout", chunk: "x" }).code).toBe("invalid_state")
    for (const status of ["success", "timeout", "unknown", "sandbox_violation"] as const) {
      expect(story.refused({ _tag: "FinishCall", call_id, status, duration_ms: 0 }).code).toBe("invalid_state")
    }
    story.run({ _tag: "FinishCall", call_id, status: "error", duration_ms: 0 })
  })

  it("runes of a plan that is not pursued change nothing", () => {
    const story = new Story().ready()
    story.tell("plan.approved", payloads["plan.approved"])
    expect(story.state.plan).toBeNull()
    story.tell("plan.goal_received", { ...payloads["plan.goal_received"], plan_id: "plan_1" as PlanId })
    story.tell("plan.approved", payloads["plan.approved"])
    story.tell("plan.task_completed", { ...payloads["plan.task_completed"], plan_id: "plan_1" as PlanId })
    expect(story.state.plan).toMatchObject({ plan_id: "plan_1", status: "goal_received", tasks: [] })
  })

  it("hooks of agents that are not there are not shown", () => {
    expect(stateEvents([exampleRune("hook.started"), exampleRune("hook.completed")])).toEqual([])
    const story = new Story().ready()
    story.tell("hook.started", payloads["hook.started"])
    expect(stateEvents(story.runes.slice(-1))).toEqual([])
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
