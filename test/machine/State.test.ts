/**
 * Goal: the state is plain JSON, equal by hash however it came about, small when
 * idle, never thrown off by a rune it does not understand.
 */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { describe, expect, it } from "vitest"
import { canonicalHash, canonicalJson, isDeeperThan } from "#src/machine/Canonical.ts"
import { stampAll } from "#src/machine/Conversation.ts"
import { evolve, fold } from "#src/machine/evolve/Evolve.ts"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { restoreSnapshot, snapshotOf } from "#src/machine/invariants/Replay.ts"
import { limits } from "#src/machine/MachineLimits.ts"
import { type ConversationState, emptyConversation } from "#src/machine/State.ts"
import { agentOf, familyOf, hookOf, pathOf } from "#src/machine/view/Select.ts"
import { attentionItems, attentionOf, attentionOfAgent, monitorOf } from "#src/machine/view/Supervision.ts"
import type { AgentId, CallId, ConversationId } from "#src/rune/Ids.ts"
import { kinds } from "#src/rune/Kinds.ts"
import type { Rune } from "#src/rune/Rune.ts"
import { exampleRune, payloadExamples as payloads } from "../support/runeExamples.ts"
import { callItem, readTool, Story, shellTool, textItem, writeTool } from "../support/story.ts"

const id = "conv_0123456789abcdef" as ConversationId

describe("canonical JSON", () => {
  it("does not depend on the order of keys, nor on absent ones", () => {
    expect(canonicalJson({ b: 1, a: [true, null, "x"], c: undefined })).toBe('{"a":[true,null,"x"],"b":1}')
    expect(canonicalHash({ a: 1, b: 2 })).toBe(canonicalHash({ b: 2, a: 1 }))
    expect(canonicalHash({ a: 1 })).not.toBe(canonicalHash({ a: 2 }))
    expect(canonicalJson(undefined)).toBe("null")
    expect(canonicalJson(JSON.parse('{"__proto__":1,"a":2}'))).toBe('{"__proto__":1,"a":2}')
    expect(canonicalJson({ a: 1, A: 2 })).toBe('{"A":2,"a":1}')
  })

  it("can be asked how deep a value is", () => {
    expect(isDeeperThan(1, 0)).toBe(false)
    expect(isDeeperThan({ a: 1 }, 0)).toBe(true)
    expect(isDeeperThan({ a: [1] }, 2)).toBe(false)
    expect(isDeeperThan({ a: [[1]] }, 2)).toBe(true)
  })
})

describe("the fold", () => {
  it("takes every kind of rune in every order without a fault", () => {
    for (const from of [
      emptyConversation(id),
      new Story().ready().state,
      new Story().inBatch(callItem("a", readTool)).state
    ]) {
      const state = restoreSnapshot(snapshotOf(from))
      for (const first of kinds)
        for (const second of kinds) {
          evolve(state, exampleRune(first))
          evolve(state, exampleRune(second))
        }
      expect(snapshotOf(state).length).toBeGreaterThan(0)
    }
  })

  it("is unmoved by runes about agents, turns and calls that are not there", () => {
    const story = new Story().ready()
    story.post("go")
    const before = canonicalHash({
      ...story.state,
      head: 0,
      last_ms: 0,
      decisions: [],
      tool_calls: 0,
      calls: [],
      next_call: 0
    })
    const strangers = kinds.filter((kind) => /^(turn|tool|hook|harness)\./u.test(kind) || kind === "agent.ready")
    for (const kind of strangers) {
      const rune = exampleRune(kind, story.state.head + 1)
      evolve(story.state, { ...rune, agent_id: "agt_stranger" as AgentId } as Rune)
    }
    const { calls: _, ...after } = story.state
    expect(
      canonicalHash({ ...after, head: 0, last_ms: 0, decisions: [], tool_calls: 0, calls: [], next_call: 0 })
    ).toBe(before)
  })

  it("ignores a turn that is not the running one", () => {
    const story = new Story().ready()
    story.post("go")
    const { turn_id: _, ...loose } = exampleRune("turn.assistant_delta")
    evolve(story.state, { ...loose, agent_id: story.root } as Rune)
    evolve(story.state, { ...exampleRune("turn.assistant_delta"), agent_id: story.root } as Rune)
    expect(story.turn.partial).toBe("")
  })

  it("counts what it does not know and goes on", () => {
    const story = new Story().ready()
    evolve(story.state, { ...exampleRune("agent.ready", 99), kind: "dream.started" } as never)
    expect(story.state).toMatchObject({ head: 99, unknown_runes: 1 })
  })

  it("is the same from zero, from a snapshot, and live", () => {
    const story = new Story().inBatch(callItem("write", writeTool, '{"b":1,"a":2}'))
    story.start("call_1")
    story.finish("call_1")
    const live = canonicalHash(story.state)
    expect(canonicalHash(fold(story.runes, story.conversationId))).toBe(live)
    const half = fold(story.runes.slice(0, 5), story.conversationId)
    expect(canonicalHash(fold(story.runes.slice(5), restoreSnapshot(snapshotOf(half))))).toBe(live)
  })

  it("never lets time run backwards", () => {
    const story = new Story().ready()
    story.nowMs = 5
    story.post("go")
    expect(story.runes.at(-1)!.ts_ms).toBe(story.runes.at(-2)!.ts_ms)
    expect(stampAll(story.state, [], { at_ms: 0, runeId: () => "run_0000000000000000" as never })).toEqual([])
  })

  it("drops the newest words of a rune told twice", () => {
    const story = new Story().inBatch(callItem("a", readTool))
    story.start("call_1")
    story.finish("call_1", "first")
    story.tell("tool.result", { call_id: "call_1" as CallId, status: "error", duration_ms: 1 })
    expect(story.call("call_1").result).toEqual({ status: "success", output: "first" })
  })

  it("keeps lists bounded", () => {
    const story = new Story().ready()
    for (let index = 0; index < limits.noticesMax + 5; index++) {
      story.run({ _tag: "RecordSystemError", payload: { ...payloads["system.error"], message: "x".repeat(9999) } })
    }
    expect(story.state.notices).toHaveLength(limits.noticesMax)
    expect(story.state.notices[0]!.message.length).toBe(limits.noticeCharsMax)
  })
})

describe("memory", () => {
  it("an idle conversation takes at most 12 KiB", () => {
    setFlagsFromString("--expose-gc")
    const collect = runInNewContext("gc") as () => void
    const make = (): ConversationState => {
      const story = new Story().ready({ title: "t", model: "scripted/demo", labels: { team: "x" } })
      for (const text of ["hello", "and again"]) {
        story.post(text)
        story.request()
        story.respond([
          textItem("A short answer of some sixty characters, as people get them."),
          callItem("read", readTool)
        ])
        const callId = story.state.calls[0]!.call_id
        story.start(callId)
        story.finish(callId, "a line of output\n".repeat(4))
        story.settle()
        story.request()
        story.respond([textItem("Done.")])
      }
      return story.state
    }
    make()
    collect()
    const before = process.memoryUsage().heapUsed
    const states = Array.from({ length: 500 }, make)
    collect()
    const each = (process.memoryUsage().heapUsed - before) / states.length
    expect(states).toHaveLength(500)
    expect(each).toBeLessThan(12 * 1024)
  })
})

describe("selecting", () => {
  it("finds agents, families, paths and hooks, or nothing", () => {
    const story = new Story().ready()
    expect(agentOf(story.state, null)).toBeUndefined()
    expect(pathOf(story.state, "agt_9999" as AgentId)).toEqual([])
    expect(familyOf(story.state, "agt_9999" as AgentId)).toEqual([])
    expect(hookOf(story.state, "hookrun_9" as never)).toBeUndefined()
  })

  it("is not fooled by agents that are each other's parents", () => {
    const story = new Story().ready()
    const left = "agt_left" as AgentId
    const right = "agt_right" as AgentId
    story.tell("agent.spawning", { agent_id: left, role: "w", model: "m", parent_id: right })
    story.tell("agent.spawning", { agent_id: right, role: "w", model: "m", parent_id: left })
    expect(pathOf(story.state, left)).toEqual([right, left])
    expect(familyOf(story.state, left).map((agent) => agent.agent_id)).toEqual([right, left])
    expect(checkInvariants(story.runes).length).toBeGreaterThan(0)
  })
})

describe("supervision", () => {
  it("says what an agent does and whether it needs a person", () => {
    const story = new Story().create()
    const seen = () => [
      monitorOf(story.state, story.agent),
      attentionOfAgent(story.state, story.agent),
      attentionOf(story.state)
    ]
    expect(seen()).toEqual(["initialized", "starting", "starting"])
    story.run({ _tag: "CompleteAgentInit", agent_id: story.root })
    expect(seen()).toEqual(["idle", "idle", "idle"])
    story.post("go")
    expect(seen()).toEqual(["thinking", "running", "running"])
    story.request()
    story.respond([callItem("bash", shellTool), callItem("ask_user", readTool)])
    expect(seen()).toEqual(["tool_use", "running", "running"])
    story.ask("call_1", 5)
    expect(seen()).toEqual(["waiting_for_permission", "awaiting_approval", "awaiting_approval"])
    expect(attentionItems(story.state)).toMatchObject([
      { type: "approval", call_id: "call_1", title: "run call_1", expires_ms: 5, agent_path: [story.root] }
    ])
    story.run({ _tag: "ExpireApproval", call_id: "call_1" as CallId })
    story.start("call_2")
    expect(seen()).toEqual(["tool_use", "awaiting_input", "awaiting_input"])
    expect(attentionItems(story.state)).toMatchObject([
      { type: "question", call_id: "call_2", title: "ask_user", expires_ms: null }
    ])
    story.finish("call_2")
    story.settle()
    story.tell("turn.error", payloads["turn.error"])
    expect(seen()).toEqual(["idle", "error", "error"])
    expect(attentionItems(story.state)).toMatchObject([{ type: "notice", agent_id: story.root }])
    story.run({ _tag: "Suspend", reason: "errors" })
    expect(attentionOf(story.state)).toBe("error")
    expect(attentionItems(story.state)[0]).toMatchObject({ type: "suspended", title: "errors", agent_id: null })
    story.run({ _tag: "Close", reason: "x" })
    expect(monitorOf(story.state, story.agent)).toBe("exited")
    expect([attentionOfAgent(story.state, story.agent), attentionOf(story.state)]).toEqual(["closed", "error"])
    story.run({ _tag: "FinishClosing" })
    expect(attentionOf(story.state)).toBe("closed")
  })

  it("names the agent whose budget ran out", () => {
    const story = new Story().ready()
    story.run({ _tag: "ExhaustBudget", agent_id: story.root, which: "usd", used: 2, limit: 1, consequence: "suspend" })
    expect(attentionItems(story.state)[0]).toMatchObject({
      type: "suspended",
      agent_id: story.root,
      agent_path: [story.root]
    })
  })

  it("believes an outside agent about itself", () => {
    const story = new Story().ready()
    expect(attentionOf(emptyConversation(id))).toBe("starting")
    story.run({ _tag: "AttachHarness", agent_id: story.root, payload: { harness: "claude" } })
    story.run({
      _tag: "RecordHarnessEvents",
      agent_id: story.root,
      events: [{ type: "tool_started", tool_name: "ExitPlanMode" }]
    })
    expect(monitorOf(story.state, story.agent)).toBe("tool_use")
    expect(attentionOfAgent(story.state, story.agent)).toBe("awaiting_approval")
  })

  it("shows an approval nobody described by its tool", () => {
    const story = new Story().ready()
    story.run({
      _tag: "OpenCall",
      agent_id: story.root,
      call_id: "toolu_1" as CallId,
      tool_name: "Bash",
      arguments: {},
      tool: shellTool
    })
    const call = story.state.calls[0] as { status: string; agent_id: null }
    call.status = "awaiting_approval"
    call.agent_id = null
    expect(attentionItems(story.state)).toMatchObject([{ title: "Bash", agent_path: [], since_ms: null }])
  })
})
