// Goal: a row says what the machine's state says, never throws, and is the same however the runes arrive. Method: scripted
// lives of conversations held against the fold of the machine, every kind's example alone and in random order.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { fold } from "#src/machine/evolve/Evolve.ts"
import { type AttentionStatus, attentionStep } from "#src/machine/table/Attention.ts"
import { attentionSignals } from "#src/machine/view/AttentionSignals.ts"
import type { AgentId, CallId, TaskId, TurnId } from "#src/rune/Ids.ts"
import { kinds } from "#src/rune/Kinds.ts"
import type { AnyRune, Rune } from "#src/rune/Rune.ts"
import { shownUsage } from "#src/rune/UsageTotals.ts"
import { foldRow, isFragment, moveHead } from "#src/store/catalog/CatalogFold.ts"
import { type CatalogRow, emptyRow, rowOf } from "#src/store/catalog/CatalogRow.ts"
import { limits } from "#src/store/StoreLimits.ts"
import { exampleRune } from "../../support/runeExamples.ts"
import { seedFor } from "../../support/seed.ts"
import { agent, conversationIdOf, Scribe } from "../support.ts"

const rowFrom = (runes: ReadonlyArray<AnyRune>): CatalogRow => {
  const row = emptyRow(conversationIdOf(1))
  for (const rune of runes) foldRow(row, rune)
  return rowOf(row)
}

const usage = { input_tokens: 10, output_tokens: 5, cached_tokens: 3, reasoning_tokens: 2, usd: 0.5 }

/** A life with everything that a row shows: retries, errors, an interrupt, approvals, a child, a plan. */
const life = (): Scribe => {
  const scribe = new Scribe().begin({ title: "Tidy the build", labels: { team: "build", tier: "1" } }).turn()
  const child = "agt_0000000000000002" as AgentId
  const failing = scribe.startTurn("try again")
  const failure = { error_type: "overloaded", message: "busy" }
  const retry = { attempt: 1, delay_ms: 250, target: { type: "llm" }, ...failure, usage } as const
  scribe.add(
    "turn.model_requested",
    { request_id: "req_00112233445566ff" as never, provider: "p", model: "m", attempt: 1 },
    failing
  )
  scribe.add("turn.retry_scheduled", retry, failing)
  scribe.add("turn.retry_started", { attempt: 1, target: { type: "llm" } }, failing)
  scribe.answer(failing, "no", 2)
  scribe.add("turn.error", { ...failure, retryable: true, usage: { input_tokens: 500, output_tokens: 40 } }, failing)
  const cut = scribe.startTurn("more")
  scribe.add("turn.assistant_delta", { content: "par" }, cut)
  scribe.add(
    "turn.interrupted",
    { reason: "user", partial_output: "par", usage: { input_tokens: 7, output_tokens: 1 } },
    cut
  )
  scribe.add("agent.spawning", { agent_id: child, role: "worker", model: "m", parent_id: agent }, { agent_id: child })
  scribe.add("agent.ready", { agent_id: child }, { agent_id: child })
  scribe.add(
    "agent.terminated",
    { agent_id: child, reason: "done", stats: { turns: 0, tool_calls: 0, usage } },
    { agent_id: child }
  )
  return scribe.turn("last one")
}

describe("the row of a conversation", () => {
  it("agrees with the state of the machine, rune by rune", () => {
    const { conversationId, runes } = life().close()
    for (let end = 1; end <= runes.length; end++) {
      const part = runes.slice(0, end)
      const state = fold(part, conversationId)
      const row = rowFrom(part)
      expect(row.last_event_id).toBe(state.head)
      expect(row.updated_ms).toBe(state.last_ms)
      expect(row.state, part.at(-1)?.kind).toBe(state.session.status)
      expect(row.turns).toBe(state.turns)
      const shown = shownUsage(state.usage)
      if (shown.usd === null) expect(row.usage.usd).toBeNull()
      else expect(row.usage.usd).toBeCloseTo(shown.usd)
      expect({ ...row.usage, usd: 0 }, part.at(-1)?.kind).toEqual({ ...shown, usd: 0 })
      const root = state.agents.find(({ agent_id }) => agent_id === state.session.root_agent_id)
      expect(row.workspace).toBe(state.session.config.workspace ?? null)
      if (root !== undefined) expect(row.model).toBe(root.model)
      const isWorking = state.agents.some(({ status, turn }) => turn !== null || status === "spawning")
      if (row.state === "active") expect(row.unfinished, part.at(-1)?.kind).toBe(isWorking)
    }
    expect(rowFrom(runes)).toMatchObject({
      title: "Tidy the build",
      labels: { team: "build", tier: "1" },
      unfinished: false
    })
  })

  it("says whether somebody is needed", () => {
    const scribe = new Scribe()
    const seen = () => rowFrom(scribe.runes).attention
    scribe.add("session.created", { config: {} })
    expect(seen()).toBe("starting")
    scribe.runes.length = 0
    scribe.begin()
    expect(seen()).toBe("idle")
    const turn = scribe.startTurn("go")
    expect(seen()).toBe("running")
    const call = (callId: string) =>
      scribe.add(
        "tool.call",
        {
          call_id: callId as CallId,
          tool_name: "bash",
          arguments: {},
          arguments_hash: "a".repeat(64),
          mutating: true,
          effect_class: "effect"
        },
        turn
      )
    const ask = (callId: string) => {
      call(callId)
      return scribe.add(
        "tool.approval_requested",
        { call_id: callId as CallId, policy_reason: "r", shown_as: { title: "t" } },
        turn
      )
    }
    ask("call_1")
    ask("call_2")
    expect(seen()).toBe("awaiting_approval")
    scribe.add("tool.approved", { call_id: "call_1" as CallId, approver: "a", channel: "c", scope: "once" }, turn)
    expect(seen()).toBe("awaiting_approval")
    scribe.add("tool.denied", { call_id: "call_2" as CallId, approver: "a", reason: "no" }, turn)
    scribe.add("tool.result", { call_id: "call_2" as CallId, status: "denied", duration_ms: 0 }, turn)
    expect(seen()).toBe("running")
    ask("call_3")
    scribe.add("turn.error", { error_type: "e", message: "m", retryable: false }, turn)
    expect(seen()).toBe("error")
    scribe.turn()
    expect(seen()).toBe("idle")
    scribe.add("agent.failed", { agent_id: agent, error: { code: "c", message: "m" } }, { agent_id: agent })
    expect(seen()).toBe("error")
    scribe.close()
    expect(seen()).toBe("closed")
  })

  it("follows an outside agent as the attention machine does", () => {
    const events = [
      { type: "session_started" },
      { type: "tool_started", tool_name: "Bash" },
      { type: "tool_completed", tool_name: "Bash", duration_ms: 1, success: true },
      { type: "tool_started", tool_name: "AskUserQuestion" },
      { type: "tool_started", tool_name: "ask_user" },
      { type: "user_prompt", text: "yes" },
      { type: "tool_started", tool_name: "ExitPlanMode" },
      { type: "approval_requested", tool_name: "Bash" },
      { type: "agent_message", content: "hm" },
      { type: "state_change", state: "active", sub_state: "waiting_for_permission" },
      { type: "state_change", state: "active", sub_state: "thinking" },
      { type: "state_change", state: "initialized" },
      { type: "state_change", state: "idle" },
      { type: "turn_started" },
      { type: "turn_completed", input_tokens: 1, output_tokens: 1, cached_tokens: 0, cost_usd: 0 },
      { type: "state_change", state: "exited" },
      { type: "turn_started" },
      { type: "session_started" },
      { type: "session_ended" }
    ] as const
    const scribe = new Scribe().begin()
    const place = { agent_id: agent }
    scribe.add("harness.attached", { harness: "claude" }, place)
    expect(rowFrom(scribe.runes).unfinished).toBe(true)
    let expected: AttentionStatus = "idle"
    for (const event of events) {
      const rune = scribe.add("harness.event", { event }, place)
      for (const signal of attentionSignals(rune)) expected = attentionStep(expected, signal)
      expect(rowFrom(scribe.runes).attention, JSON.stringify(event)).toBe(expected)
    }
    scribe.add("harness.event", { event: { type: "session_started" } }, place)
    scribe.add("harness.event", { event: { type: "approval_requested", tool_name: "Bash" } }, place)
    scribe.add("harness.recovered", { reason: "stale" }, place)
    expect(rowFrom(scribe.runes).attention).toBe("idle")
    scribe.add("harness.event", { event: { type: "turn_started" } }, place)
    scribe.add("harness.recovered", { reason: "stale" }, place)
    expect(rowFrom(scribe.runes).attention).toBe("running")
    scribe.add("harness.detached", { reason: "gone" }, place)
    expect(rowFrom(scribe.runes)).toMatchObject({ attention: "closed", unfinished: false })
  })

  it("knows what a restart has to go on with", () => {
    const scribe = new Scribe()
    const unfinished = () => rowFrom(scribe.runes).unfinished
    scribe.add("session.created", { config: {} })
    expect(unfinished()).toBe(true)
    scribe.runes.length = 0
    scribe.begin()
    expect(unfinished()).toBe(false)
    const queued = scribe.add("turn.queued", { input: "later", mode: "queue" }, { agent_id: agent })
    expect(unfinished()).toBe(true)
    const place = { turn_id: "turn_9" as TurnId, agent_id: agent }
    scribe.add("turn.started", { ...place, input: "later", queued_event_ids: [queued.event_id] }, place)
    scribe.endTurn(place, "done")
    expect(unfinished()).toBe(false)
    scribe.add("agent.message", { to_agent_id: agent, content: "psst" })
    expect(unfinished()).toBe(true)
    scribe.add(
      "agent.terminated",
      { agent_id: agent, reason: "r", stats: { turns: 1, tool_calls: 0, usage } },
      { agent_id: agent }
    )
    expect(unfinished()).toBe(false)
    const plan = { plan_id: "plan_1" as never }
    scribe.add("plan.goal_received", { ...plan, goal: "win", auto_start: true })
    expect(unfinished()).toBe(true)
    scribe.add("plan.blocked", { ...plan, task_ids: ["t" as TaskId], reason: "r" })
    expect(unfinished()).toBe(true)
    scribe.add("plan.stopped", { ...plan, reason: "user" })
    expect(unfinished()).toBe(false)
    scribe.add("session.closing", { reason: "r" })
    expect(unfinished()).toBe(true)
  })

  it("is named after what somebody said when nobody named it", () => {
    const titled = (change: (scribe: Scribe) => void): string => {
      const scribe = new Scribe().begin()
      change(scribe)
      return rowFrom(scribe.runes).title
    }
    expect(titled((scribe) => void scribe.startTurn("  \nfix the parser\nplease"))).toBe("fix the parser")
    const parts = [
      { type: "image", media_type: "image/png", url: "u" },
      { type: "text", text: "see this" }
    ] as const
    const place = { agent_id: agent }
    expect(titled((scribe) => void scribe.add("turn.queued", { input: parts, mode: "queue" }, place))).toBe("see this")
    expect(titled((scribe) => void scribe.add("turn.queued", { input: [], mode: "queue" }, place))).toBe("")
    expect(
      titled(
        (scribe) => void scribe.add("plan.goal_received", { plan_id: "plan_1" as never, goal: "win", auto_start: true })
      )
    ).toBe("win")
    const renamed = titled((scribe) => {
      scribe.startTurn("first")
      scribe.add("config.updated", { changes: { title: "named", labels: { a: "b" } } })
      scribe.startTurn("second")
    })
    expect(renamed).toBe("named")
    expect(titled((scribe) => void scribe.startTurn(`${"x".repeat(limits.titleCharsMax - 1)}😀`))).toHaveLength(
      limits.titleCharsMax
    )
  })

  it("knows a fork by its origin, and the time of its making by its first rune", () => {
    const scribe = new Scribe(3)
    const { ts_ms: forkedMs } = scribe.add("session.forked", { from: conversationIdOf(2), at_event_id: 9 })
    expect(rowFrom(scribe.runes)).toMatchObject({ forked_from: conversationIdOf(2), created_ms: forkedMs })
    const { ts_ms: createdMs } = scribe.add("session.created", { config: {} })
    scribe.add("session.forked", { from: conversationIdOf(2), at_event_id: 9 })
    expect(rowFrom(scribe.runes).created_ms).toBe(createdMs)
  })

  it("stays small whatever happens", () => {
    const scribe = new Scribe().begin({
      labels: Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`k${at}`, "v".repeat(999)]))
    })
    for (let number = 0; number < limits.rowItemsMax + 100; number++) {
      scribe.add("agent.message", { to_agent_id: agent, content: "x" })
    }
    const row = emptyRow(scribe.conversationId)
    for (const rune of scribe.runes) foldRow(row, rune)
    expect(JSON.stringify(row).length).toBeLessThan(40_000)
    expect(Object.keys(row.labels)).toHaveLength(limits.labelsMax)
  })

  it("survives any runes in any order, and JSON in between changes nothing", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...kinds), { maxLength: 60 }), (order) => {
        const whole = emptyRow(conversationIdOf(1))
        let stepwise = emptyRow(conversationIdOf(1))
        order.forEach((kind, index) => {
          const rune = exampleRune(kind, index + 1)
          foldRow(whole, rune)
          stepwise = JSON.parse(JSON.stringify(stepwise))
          foldRow(stepwise, rune)
        })
        expect(stepwise).toEqual(whole)
        expect(whole.last_event_id).toBe(order.length)
        expect(rowOf(whole).conversation_id).toBe(conversationIdOf(1))
      }),
      { seed: seedFor("row fold") }
    )
  })

  it("counts runes of a newer build and fragments without looking into them", () => {
    const row = emptyRow(conversationIdOf(1))
    foldRow(row, { ...exampleRune("session.paused", 1), schema_version: 99 } as unknown as AnyRune)
    expect(row).toMatchObject({ last_event_id: 1, view: { session: "created" } })
    const fragments = kinds.filter((kind) => isFragment(exampleRune(kind) as Rune))
    expect(fragments).toEqual(["turn.assistant_delta", "turn.reasoning_delta", "tool.progress"])
    moveHead(row, { event_id: 5, ts_ms: 1 })
    expect(row.last_event_id).toBe(5)
    expect(rowOf(row, "torn").damaged).toBe("torn")
  })
})
