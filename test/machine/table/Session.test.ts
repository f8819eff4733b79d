/**
 * Goal: the life of a conversation and of its agents: creation, pause, suspension,
 * budgets, kills, closing, archive; and a command that comes twice happens once.
 */
import { describe, expect, it } from "vitest"
import { decide, outcomeOf } from "#src/machine/decide/Decide.ts"
import { evolve, fold } from "#src/machine/evolve/Evolve.ts"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { limits } from "#src/machine/MachineLimits.ts"
import type { MutableConversation } from "#src/machine/State.ts"
import { emptyConversation } from "#src/machine/State.ts"
import { agentOf, familyOf, pathOf } from "#src/machine/view/Select.ts"
import { pendingWork } from "#src/machine/work/PendingWork.ts"
import type { AgentId, ConversationId, PlanId } from "#src/rune/Ids.ts"
import { autonomySamples } from "../../support/machineSamples.ts"
import { payloadExamples as payloads } from "../../support/runeExamples.ts"
import { callItem, readTool, Story, shellTool, textItem } from "../../support/story.ts"

const child = (number: number) => `agt_${number.toString().padStart(4, "0")}` as AgentId
const spawn = (story: Story, number: number, parent: AgentId = story.root) =>
  story.run({ _tag: "SpawnAgent", spec: { agent_id: child(number), role: "worker", model: "m", parent_id: parent } })

describe("a conversation", () => {
  it("is created once, with its root agent", () => {
    const story = new Story().create({ title: "t", instructions: "be brief" })
    expect(story.kinds).toEqual(["session.created", "agent.spawning"])
    expect(story.state.session).toMatchObject({ status: "created", root_agent_id: story.root, config: { title: "t" } })
    const again = {
      _tag: "CreateConversation",
      conversation_id: story.conversationId,
      config: {},
      root: { agent_id: child(1), role: "r", model: "m" },
      principal: "ada"
    } as const
    expect(story.refused(again).code).toBe("invalid_state")
    expect(pendingWork(emptyConversation(story.conversationId))).toEqual([])
    const verdict = decide(emptyConversation(story.conversationId), again, { at_ms: 1 })
    expect(verdict).toMatchObject({ _tag: "Accepted", drafts: [{ payload: { principal: "ada" } }, {}] })
  })

  it("pauses and resumes; what runs goes on, nothing new starts", () => {
    const story = new Story().ready()
    story.post("go")
    story.post("next")
    story.run({ _tag: "Pause", reason: "lunch" })
    expect(story.state.session.reason).toBe("lunch")
    expect(story.effects).toEqual(["CallModel"])
    story.request()
    story.respond([textItem("ok")])
    expect(story.effects).toEqual([])
    expect(story.refused({ _tag: "Pause", reason: "again" }).data).toEqual({ state: "paused" })
    story.run({ _tag: "Resume", reason: "back" })
    expect(story.state.session.reason).toBeNull()
    expect(story.effects).toEqual(["StartQueued"])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("that is paused still takes runes of the system, settings and messages, and starts no turn for them", () => {
    const story = new Story().ready()
    story.run({ _tag: "Pause", reason: "lunch" })
    const before = story.runes.length
    story.run({ _tag: "RecordSystemError", payload: payloads["system.error"] })
    story.run({ _tag: "UpdateConfig", changes: { title: "t" } })
    story.post("later")
    expect(story.kinds.slice(before)).toEqual(["system.error", "config.updated", "turn.queued"])
    expect(story.state.session.status).toBe("paused")
    expect(story.effects).toEqual([])
    expect(story.refused({ _tag: "RetryTurn" }).code).toBe("invalid_state")
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("suspends: nothing starts, what runs may finish, and it goes on after", () => {
    const story = new Story().inBatch(callItem("a", readTool), callItem("b", readTool), callItem("c", readTool))
    story.start("call_1")
    story.ask("call_2")
    story.run({ _tag: "ApproveCall", call_id: "call_2" as never, approver: "ada", channel: "cli", scope: "once" })
    story.run({ _tag: "Suspend", reason: "error_threshold" })
    expect(story.effects).toEqual(["RunTool"])
    expect(story.refused({ _tag: "StartCall", call_id: "call_2" as never, sandbox: { level: "x" } }).data).toEqual({
      state: "suspended"
    })
    story.finish("call_1")
    story.run({ _tag: "Unsuspend", reason: "fixed" })
    expect(story.effects).toEqual(["RunTool", "RouteTool"])
    story.start("call_2")
    story.finish("call_2")
    story.start("call_3")
    story.finish("call_3")
    story.settle()
    story.run({ _tag: "Suspend", reason: "again", budget_info: { which: "usd", used: 2, limit: 1 } })
    expect(story.effects).toEqual([])
    expect(story.state.session.budget_info).toMatchObject({ which: "usd" })
    const request = {
      _tag: "RequestModel",
      agent_id: story.root,
      request_id: "req_0000000000000001" as never,
      provider: "p",
      model: "m"
    } as const
    expect(story.refused(request).data).toEqual({ state: "suspended" })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("closes: everything open ends, then it is over", () => {
    const story = new Story().inBatch(callItem("a", shellTool))
    story.start("call_1")
    spawn(story, 1)
    expect(story.run({ _tag: "Close", reason: "done" })).toEqual([
      "session.closing",
      "agent.terminated",
      "tool.result",
      "turn.interrupted",
      "agent.terminated"
    ])
    expect(story.effects).toEqual(["FinishClosing"])
    expect(story.run({ _tag: "FinishClosing" })).toEqual(["session.closed"])
    expect(story.runes.at(-1)?.payload).toMatchObject({
      final_stats: { turns: 1, tool_calls: 1, agents: 2, runes: story.runes.length }
    })
    expect(story.effects).toEqual([])
    expect(checkInvariants(story.runes)).toEqual([])
    for (const command of [
      { _tag: "Pause", reason: "x" },
      { _tag: "Close", reason: "x" },
      { _tag: "UpdateConfig", changes: {} },
      { _tag: "SpawnAgent", spec: { agent_id: child(9), role: "r", model: "m" } },
      { _tag: "SubmitGoal", payload: payloads["plan.goal_received"] }
    ] as const) {
      expect(story.refused(command).code).toBe("invalid_state")
    }
    story.run({ _tag: "Archive", location: "a", hash: "0".repeat(64) })
    expect(story.state.session.status).toBe("archived")
    story.run({ _tag: "Restore", location: "a" })
    expect(story.state.session.status).toBe("closed")
  })

  it("does not finish closing while an agent is alive", () => {
    const story = new Story().ready()
    expect(story.refused({ _tag: "FinishClosing" }).code).toBe("invalid_state")
    story.tell("session.closing", { reason: "x" })
    expect(story.effects).toEqual([])
  })

  it("remembers where it was forked from, and what goes wrong", () => {
    const story = new Story().ready()
    story.run({ _tag: "RecordFork", from: "conv_aaaaaaaa" as ConversationId, at_event_id: 4 })
    expect(story.state.session.forked_from).toBe("conv_aaaaaaaa")
    story.run({ _tag: "RecordSystemError", payload: payloads["system.error"] })
    story.run({ _tag: "RecordSystemError", payload: payloads["system.error"], agent_id: story.root })
    expect(story.state.notices.map((notice) => notice.agent_id)).toEqual([null, story.root])
    const hidden = story.runes.map((rune) => ({ ...rune, visibility: "secret" as const }))
    const said = fold(hidden, story.conversationId).notices.map(({ message }) => message)
    expect(new Set(said)).toEqual(new Set(["what happened is not for everybody to read"]))
  })

  it("takes new settings and budgets", () => {
    const story = new Story().ready({ budget: { tokens: 5 } })
    spawn(story, 1)
    story.run({ _tag: "UpdateConfig", changes: { model: "openai/x" } })
    expect(story.agent.model).toBe("openai/x")
    story.run({ _tag: "UpdateConfig", changes: {}, budget: { tokens: 9 }, principal: "ada" })
    expect(story.state.session.config).toMatchObject({ model: "openai/x", budget: { tokens: 9 } })
    story.run({ _tag: "UpdateConfig", changes: { model: "m2" }, agent_id: child(1), budget: { usd: 1 } })
    expect(agentOf(story.state, child(1))).toMatchObject({ model: "m2", budget: { usd: 1 } })
    expect(story.state.session.config.budget).toEqual({ tokens: 9 })
    expect(story.refused({ _tag: "UpdateConfig", changes: {}, agent_id: child(7) }).code).toBe("not_found")
  })

  it("keeps the budget that came beside its config", () => {
    const story = new Story()
    story.tell("session.created", { config: { title: "t" }, budget: { usd: 3 } })
    expect(story.state.session.config).toEqual({ title: "t", budget: { usd: 3 } })
    story.tell("config.updated", { changes: { model: "m" } })
    expect(story.state.session.config.model).toBe("m")
  })
})

describe("agents", () => {
  it("are spawned under a parent that lives", () => {
    const story = new Story().ready()
    spawn(story, 1)
    expect(story.effects).toEqual(["StartAgent"])
    spawn(story, 2, child(1))
    expect(pathOf(story.state, child(2))).toEqual([story.root, child(1), child(2)])
    expect(familyOf(story.state, story.root).map((one) => one.agent_id)).toEqual([child(2), child(1), story.root])
    const spec = { agent_id: child(1), role: "r", model: "m" }
    expect(story.refused({ _tag: "SpawnAgent", spec }).code).toBe("invalid_state")
    expect(story.refused({ _tag: "SpawnAgent", spec: { ...spec, agent_id: child(3), parent_id: child(9) } }).code).toBe(
      "not_found"
    )
    story.run({ _tag: "FailAgentInit", agent_id: child(2), error: { code: "x", message: "y" } })
    expect(
      story.refused({ _tag: "SpawnAgent", spec: { ...spec, agent_id: child(3), parent_id: child(2) } }).data
    ).toEqual({ state: "failed" })
    expect(story.refused({ _tag: "CompleteAgentInit", agent_id: child(9) }).code).toBe("not_found")
    expect(story.refused({ _tag: "FailAgentInit", agent_id: child(9), error: { code: "x", message: "y" } }).code).toBe(
      "not_found"
    )
    expect(story.refused({ _tag: "CompleteAgentInit", agent_id: child(2) }).code).toBe("invalid_state")
  })

  it("are limited in number", () => {
    const story = new Story().ready()
    for (let number = 1; number < limits.agentsAliveMax; number++) spawn(story, number)
    const spec = { agent_id: child(9999), role: "r", model: "m" }
    expect(story.refused({ _tag: "SpawnAgent", spec }).code).toBe("limit_exceeded")
  })

  it("that are over are remembered up to a limit, without their words", () => {
    const story = new Story().ready()
    for (let number = 1; number <= limits.endedAgentsMax + 3; number++) {
      spawn(story, number)
      story.run({ _tag: "KillAgent", agent_id: child(number), reason: "x", force: true })
    }
    expect(story.state.agents).toHaveLength(limits.endedAgentsMax + 1)
    expect(agentOf(story.state, child(1))).toBeUndefined()
  })

  it("send each other messages, which become input", () => {
    const story = new Story().ready()
    spawn(story, 1)
    story.run({ _tag: "SendAgentMessage", to_agent_id: child(1), from_agent_id: story.root, content: "work" })
    story.run({ _tag: "SendAgentMessage", to_agent_id: child(1), content: "more" })
    story.run({ _tag: "CompleteAgentInit", agent_id: child(1) })
    expect(story.effects).toEqual(["StartQueued"])
    story.run({ _tag: "StartQueued", agent_id: child(1) })
    const worker = agentOf(story.state, child(1))!
    expect(worker.transcript[0]).toMatchObject({ content: "work", from_agent_id: story.root })
    expect(worker.queue).toHaveLength(1)
    expect(story.refused({ _tag: "SendAgentMessage", to_agent_id: child(9), content: "x" }).code).toBe("not_found")
    story.run({ _tag: "KillAgent", agent_id: child(1), reason: "x", force: true })
    expect(story.refused({ _tag: "SendAgentMessage", to_agent_id: child(1), content: "x" }).code).toBe("invalid_state")
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("are killed with all they spawned; in a turn only by force", () => {
    const story = new Story().inBatch(callItem("a", readTool))
    spawn(story, 1)
    spawn(story, 2, child(1))
    const kill = { _tag: "KillAgent", agent_id: story.root, reason: "enough" } as const
    expect(story.refused({ ...kill, force: false }).data).toEqual({ state: "running_turn" })
    expect(story.run({ ...kill, force: true })).toEqual([
      "agent.terminated",
      "agent.terminated",
      "tool.result",
      "turn.interrupted",
      "agent.terminated"
    ])
    expect(story.refused({ ...kill, force: true }).data).toEqual({ state: "terminated" })
    expect(story.refused({ ...kill, agent_id: child(9), force: true }).code).toBe("not_found")
    expect(checkInvariants(story.runes)).toEqual([])
    const idle = new Story().ready()
    expect(idle.run({ ...kill, agent_id: idle.root, force: false })).toEqual(["agent.terminated"])
  })

  it("wait for nothing: an agent with an empty queue starts no turn", () => {
    const story = new Story().ready()
    expect(story.refused({ _tag: "StartQueued", agent_id: story.root }).code).toBe("invalid_state")
    expect(story.refused({ _tag: "StartQueued", agent_id: child(9) }).code).toBe("not_found")
  })
})

describe("budgets", () => {
  const exhaust = { _tag: "ExhaustBudget", which: "tokens", used: 11, limit: 10 } as const

  it("that run out suspend the conversation until there is more", () => {
    const story = new Story().ready()
    story.post("go")
    expect(story.run({ ...exhaust, agent_id: story.root, consequence: "suspend" })).toEqual([
      "agent.budget_exhausted",
      "session.suspended"
    ])
    expect(story.agent.exhausted).toBe(true)
    expect(story.effects).toEqual([])
    expect(story.run({ ...exhaust, agent_id: story.root, consequence: "suspend" })).toEqual(["agent.budget_exhausted"])
    expect(story.run({ _tag: "UpdateConfig", changes: { budget: { tokens: 100 } } })).toEqual([
      "config.updated",
      "session.unsuspended"
    ])
    expect(story.agent.exhausted).toBe(false)
    expect(story.effects).toEqual(["CallModel"])
    story.request()
    story.respond([textItem("ok")])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("of an agent in the middle of a turn end the turn, then the agent with all it spawned, and nobody else", () => {
    const story = new Story().ready()
    spawn(story, 1)
    story.run({ _tag: "CompleteAgentInit", agent_id: child(1) })
    const spec = { agent_id: child(2), role: "worker", model: "m", parent_id: child(1) }
    story.run({ _tag: "SpawnAgent", spec })
    story.run({ _tag: "PostMessage", agent_id: child(1), content: "go", mode: "queue" })
    story.request(child(1))
    story.respond([callItem("a", readTool)], child(1))
    expect(story.run({ ...exhaust, agent_id: child(1), consequence: "terminate" })).toEqual([
      "agent.terminated",
      "tool.result",
      "turn.error",
      "agent.budget_exhausted",
      "agent.terminated"
    ])
    const ended = agentOf(story.state, child(1))
    expect(ended).toMatchObject({ status: "terminated", last_error: { code: "budget_exhausted" }, turn: null })
    expect(story.state.session.status).toBe("active")
    expect(story.agent.status).toBe("idle")
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("of a worker may be its end", () => {
    const story = new Story().ready()
    spawn(story, 1)
    story.run({ _tag: "CompleteAgentInit", agent_id: child(1) })
    expect(story.run({ ...exhaust, agent_id: child(1), consequence: "terminate" })).toEqual([
      "agent.budget_exhausted",
      "agent.terminated"
    ])
    expect(story.refused({ ...exhaust, agent_id: child(1), consequence: "terminate" }).code).toBe("invalid_state")
    expect(story.refused({ ...exhaust, agent_id: child(9), consequence: "suspend" }).code).toBe("not_found")
  })
})

describe("turns that fail one after the other", () => {
  const error = { error_type: "broken", message: "it broke", retryable: true, source: "orchestrator" } as const
  const failing = (story: Story): ReadonlyArray<string> => {
    story.post("go")
    return story.run({ _tag: "FailTurn", agent_id: story.root, error })
  }

  it("suspend the conversation at the threshold, until a person lets it go on", () => {
    const story = new Story().ready({ limits: { error_threshold: 2 } })
    expect(failing(story)).toEqual(["turn.error"])
    expect(failing(story)).toEqual(["turn.error", "session.suspended"])
    expect(story.state.session).toMatchObject({ status: "suspended", reason: "error_threshold", budget_info: null })
    story.run({ _tag: "Unsuspend" })
    expect(failing(story)).toEqual(["turn.error"])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("start over with one that goes well", () => {
    const story = new Story().ready({ limits: { error_threshold: 2 } })
    failing(story)
    story.post("go")
    story.request()
    story.respond([textItem("ok")])
    expect(story.state.errors_in_row).toBe(0)
    expect(failing(story)).toEqual(["turn.error"])
  })

  it("suspend after ten unless told otherwise, or never", () => {
    const [usual, never] = [new Story().ready(), new Story().ready({ limits: { error_threshold: 0 } })]
    for (let turn = 1; turn < 10; turn++) failing(usual)
    expect(usual.state.session.status).toBe("active")
    failing(usual)
    expect(usual.state.session.status).toBe("suspended")
    for (let turn = 1; turn <= 20; turn++) failing(never)
    expect(never.state.session.status).toBe("active")
  })

  it("change nothing about a conversation that is paused", () => {
    const story = new Story().ready({ limits: { error_threshold: 1 } })
    story.post("go")
    story.run({ _tag: "Pause", reason: "user" })
    expect(story.run({ _tag: "FailTurn", agent_id: story.root, error })).toEqual(["turn.error"])
    expect(story.state.session.status).toBe("paused")
  })
})

describe("a command with a key", () => {
  const key = { key: "k1", hash: "1".repeat(64) }
  const post = { _tag: "PostMessage", content: "hello", mode: "queue" } as const

  it("happens once, and is answered the same the second time", () => {
    const story = new Story().ready()
    story.run(post, key)
    expect(story.runes.at(-1)).toMatchObject({ idempotency_key: "k1", idempotency_hash: key.hash })
    const head = story.state.head
    const verdict = story.send(post, key)
    expect(verdict).toMatchObject({
      _tag: "Repeated",
      outcome: { last_event_id: head, turn_id: "turn_1", kind: "turn.started", agent_id: story.root }
    })
    expect(story.state.head).toBe(head)
  })

  it("with another body is a conflict", () => {
    const story = new Story().ready()
    story.run(post, key)
    expect(story.refused(post, { ...key, hash: "2".repeat(64) })).toMatchObject({
      code: "idempotency_conflict",
      data: { event_id: 5 }
    })
  })

  it("is remembered through all its runes", () => {
    const story = new Story().ready()
    story.run({ _tag: "Close", reason: "x" }, key)
    expect(outcomeOf(story.state, "k1", story.nowMs)).toMatchObject({
      first_event_id: 5,
      last_event_id: 6,
      kind: "session.closing",
      agent_id: story.root,
      turn_id: null
    })
  })

  it("is forgotten after a day, and remembered until then however many came after it", () => {
    const story = new Story().ready()
    story.run(post, key)
    story.nowMs += limits.idempotencyTtlMs
    expect(outcomeOf(story.state, "k1", story.nowMs)).toBeUndefined()
    story.run({ ...post, content: "later" }, { ...key, key: "k2" })
    expect(story.state.outcomes.map((outcome) => outcome.key)).toEqual(["k2"])
    for (let index = 0; index < 3_000; index++) {
      story.run({ _tag: "UpdateConfig", changes: {} }, { ...key, key: `n${index}` })
    }
    expect(story.state.outcomes).toHaveLength(3_001)
    expect(outcomeOf(story.state, "k2", story.nowMs)).toMatchObject({ key: "k2" })
    // The same key after its day is a new command, and its repetition one again.
    story.nowMs += limits.idempotencyTtlMs
    story.run({ _tag: "UpdateConfig", changes: {} }, { ...key, key: "n2999" })
    expect(story.send({ _tag: "UpdateConfig", changes: {} }, { ...key, key: "n2999" })._tag).toBe("Repeated")
  })

  it("is refused when a day's keys fill what can be remembered, with the time when there is room again", () => {
    const story = new Story().ready()
    story.run({ _tag: "UpdateConfig", changes: {} }, { ...key, key: "first" })
    const { outcomes } = story.state as MutableConversation
    const one = outcomes[0]!
    const long = "x".repeat(250)
    const count = limits.idempotencyBytesMax / (256 + 2 * 256)
    for (let index = 0; index < count; index += 1) {
      outcomes.push({ ...one, key: `${index}`.padStart(6, "0") + long, ts_ms: one.ts_ms + 1 })
    }
    const refusal = story.refused({ _tag: "UpdateConfig", changes: {} }, key)
    expect(refusal).toMatchObject({
      code: "limit_exceeded",
      data: { retry_after_ms: one.ts_ms + limits.idempotencyTtlMs - (story.nowMs - 1) }
    })
    expect(refusal.message).toMatch(/send the command without a key, or in \d+ s$/)
    expect(story.send({ _tag: "UpdateConfig", changes: {} }, { ...key, key: "first" })._tag).toBe("Repeated")
    story.run({ _tag: "UpdateConfig", changes: {} })
    story.nowMs = one.ts_ms + limits.idempotencyTtlMs + 1
    story.run({ _tag: "UpdateConfig", changes: {} }, key)
  })

  it("in a log with more than can be remembered is the oldest that is forgotten", () => {
    const story = new Story().ready()
    story.run({ _tag: "UpdateConfig", changes: {} }, { ...key, key: "first" })
    const { outcomes } = story.state as MutableConversation
    const one = outcomes[0]!
    const count = limits.idempotencyBytesMax / (256 + 2 * 256)
    for (let index = 0; index < count; index += 1) outcomes.push({ ...one, key: `${index}`.padStart(256, "0") })
    const rune = { ...story.runes.at(-1)!, event_id: story.state.head + 1, idempotency_key: "next" }
    evolve(story.state, rune)
    expect(outcomes.at(-1)?.key).toBe("next")
    expect(outcomes[0]?.key).not.toBe("first")
  })

  it("that was refused left nothing to remember", () => {
    const story = new Story().ready()
    expect(story.refused({ _tag: "Resume" }, key).code).toBe("invalid_state")
    story.run({ _tag: "Pause", reason: "x" }, key)
  })
})

describe("outside agents", () => {
  const attach = { _tag: "AttachHarness", payload: payloads["harness.attached"] } as const

  it("are attached, heard, spoken to, and let go", () => {
    const story = new Story().ready()
    const at = { agent_id: story.root }
    expect(story.refused({ _tag: "RecoverHarness", ...at, reason: "x" }).data).toEqual({ state: "not attached" })
    story.run({ ...attach, ...at })
    expect(story.agent.harness).toMatchObject({
      harness: "claude",
      pid: 4711,
      monitor: "initialized",
      attention: "starting"
    })
    expect(story.refused({ ...attach, ...at }).data).toEqual({ state: "attached" })
    story.run({ _tag: "RecordHarnessEvents", ...at, events: [{ type: "session_started" }] })
    story.run({ _tag: "RecordHarnessEvents", ...at, events: [{ type: "tool_started", tool_name: "AskUserQuestion" }] })
    expect(story.agent.harness).toMatchObject({ monitor: "tool_use", attention: "awaiting_input" })
    story.run({ _tag: "RecordHarnessInput", ...at, text: "yes", principal: "ada" })
    story.tell("agent.state_changed", { state: "active", sub_state: "compacting" })
    expect(story.agent.harness?.monitor).toBe("compacting")
    story.run({ _tag: "RecoverHarness", ...at, reason: "stale" })
    expect(story.agent.harness?.attention).toBe("idle")
    story.run({ _tag: "DetachHarness", ...at, payload: { reason: "exited", exit_code: 0 } })
    expect(story.agent.harness).toMatchObject({ attached: false, monitor: "exited", attention: "closed" })
    story.run({ _tag: "AttachHarness", ...at, payload: { harness: "codex" } })
    expect(story.agent.harness).toMatchObject({ harness: "codex", pid: null, session_ref: null, attached: true })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("must be agents that live", () => {
    const story = new Story().ready()
    expect(story.refused({ ...attach, agent_id: child(9) }).code).toBe("not_found")
    story.run({ _tag: "KillAgent", agent_id: story.root, reason: "x", force: false })
    expect(story.refused({ ...attach, agent_id: story.root }).code).toBe("invalid_state")
  })
})

describe("plans", () => {
  const plan_id = payloads["plan.goal_received"].plan_id
  const advance = (story: Story, tag: keyof typeof autonomySamples) =>
    story.run({ _tag: "AdvancePlan", plan_id, step: autonomySamples[tag] })

  it("go from a goal to its proof", () => {
    const story = new Story().ready()
    story.run({ _tag: "SubmitGoal", payload: payloads["plan.goal_received"] })
    expect(story.refused({ _tag: "SubmitGoal", payload: payloads["plan.goal_received"] }).data).toEqual({
      state: "goal_received"
    })
    advance(story, "DecomposeGoal")
    advance(story, "CreatePlan")
    expect(story.state.plan).toMatchObject({ status: "planning", revision: 1, tasks: [{ status: "pending" }] })
    advance(story, "RejectPlan")
    expect(story.state.plan?.reason).toBe("too many tasks")
    advance(story, "DecomposeGoal")
    const { revision: _, ...unnumbered } = payloads["plan.created"]
    story.run({ _tag: "AdvancePlan", plan_id, step: { _tag: "CreatePlan", payload: unnumbered } })
    expect(story.state.plan?.revision).toBe(2)
    advance(story, "ApprovePlan")
    advance(story, "AssignTask")
    expect(story.state.plan?.tasks[0]).toMatchObject({
      status: "assigned",
      agent_id: payloads["plan.task_assigned"].agent_id
    })
    advance(story, "StartTask")
    expect(story.state.plan?.tasks[0]).toMatchObject({ status: "running", attempts: 1 })
    advance(story, "FailTask")
    expect(story.state.plan?.tasks[0]?.status).toBe("failed")
    advance(story, "Block")
    expect(story.state.plan).toMatchObject({ status: "blocked", blocked_task_ids: ["task_1"] })
    advance(story, "ResolveDependency")
    expect(story.state.plan).toMatchObject({ status: "executing", blocked_task_ids: [], reason: null })
    advance(story, "UpdatePlan")
    expect(story.state.plan?.tasks[0]?.status).toBe("pending")
    advance(story, "AssignTask")
    advance(story, "StartTask")
    advance(story, "CompleteTask")
    advance(story, "BeginReview")
    advance(story, "NeedReplan")
    expect(story.state.plan).toMatchObject({ status: "planning", replans: 1, iterations: 1, last_verdict: "replan" })
    advance(story, "CreatePlan")
    advance(story, "ApprovePlan")
    advance(story, "BeginReview")
    advance(story, "FindIssues")
    expect(story.state.plan?.status).toBe("executing")
    advance(story, "BeginReview")
    advance(story, "PassCritique")
    expect(story.state.plan).toMatchObject({ status: "goal_met", last_verdict: "pass" })
    expect(story.refused({ _tag: "AdvancePlan", plan_id, step: autonomySamples.Cancel }).code).toBe("invalid_state")
    story.run({ _tag: "SubmitGoal", payload: { ...payloads["plan.goal_received"], plan_id: "plan_2" as PlanId } })
    expect(story.refused({ _tag: "AdvancePlan", plan_id, step: autonomySamples.Cancel }).code).toBe("not_found")
    expect(story.state.plan).toMatchObject({ plan_id: "plan_2", tasks: [] })
  })

  it("change task by task and stop with a reason", () => {
    const story = new Story().ready()
    const task = payloads["plan.created"].tasks[0]!
    story.run({ _tag: "SubmitGoal", payload: { plan_id, goal: "g", auto_start: false, budget: { usd: 1 } } })
    advance(story, "DecomposeGoal")
    story.run({ _tag: "AdvancePlan", plan_id, step: { _tag: "CreatePlan", payload: { plan_id, tasks: [] } } })
    advance(story, "ApprovePlan")
    const update = (change: (typeof payloads)["plan.updated"]["changes"][number]) =>
      story.run({ _tag: "AdvancePlan", plan_id, step: { _tag: "UpdatePlan", payload: { plan_id, changes: [change] } } })
    update({ type: "task_added", task })
    update({ type: "task_cancelled", task_id: task.task_id, reason: "no" })
    update({ type: "task_cancelled", task_id: "missing" as never, reason: "no" })
    expect(story.state.plan?.tasks).toMatchObject([{ status: "cancelled" }])
    advance(story, "Cancel")
    expect(story.state.plan).toMatchObject({ status: "stopped", reason: "user_cancel" })
  })
})
