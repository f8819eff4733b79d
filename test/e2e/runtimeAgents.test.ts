// Goal: an agent that breaks touches nobody else, is restarted as often as configured and no more, and ends in a state a
// person can read and lift. Budgets stop an agent before it spends what it does not have. Method: the real runtime;
// a thousand conversations at once with one that never stops crashing.
// Verifies: G9, INV-AGENT-SUPERVISED, INV-AGENT-BUDGET, INV-TURN-TERMINAL
import { describe, expect, it } from "vitest"
import type { AgentId } from "#src/rune/Ids.ts"
import type { ToolPort } from "#src/tool/ToolPort.ts"
import { count, reportCount } from "../support/counts.ts"
import { always, say, scenarios, stall, step, use } from "../support/runtime/scenarios.ts"
import { nextTurn } from "../support/runtime/sink.ts"
import { Gate, tool } from "../support/runtime/tools.ts"
import { type Talk, useWorlds } from "../support/runtime/World.ts"
import { functionTools } from "../support/tool/FunctionTools.ts"

const worlds = useWorlds()

const kindsOf = (talk: Talk, pattern: RegExp) => talk.kinds.filter((kind) => pattern.test(kind))

/** Tools whose description, asked for before every model call, breaks for some agents. */
const breaksFor = (isBroken: (agentId: AgentId) => boolean): ToolPort => {
  const sound = functionTools([tool("look", async () => "seen")])
  return {
    ...sound,
    describe: (state, agentId) => {
      if (isBroken(agentId)) throw new Error("the agent's machinery broke")
      return sound.describe(state, agentId)
    }
  }
}

const work = scenarios({ work: [step(1, say("look. "), use("look")), step(2, say("done"))] })

describe("an agent whose machinery throws", () => {
  it("is restarted three times, its turn ends once, and the conversation says why it stands still", async () => {
    let attempts = 0
    const tools = breaksFor(() => {
      attempts += 1
      return true
    })
    const world = await worlds.open({ tools, scenarios: work })
    const talk = await world.create({ model: "scripted/work" })
    await talk.post("go")
    const { payload } = await talk.until("session.suspended")
    expect(payload.reason).toBe(
      `calling model scripted/work for turn_1 of agent ${talk.root} failed 4 times within 5 s: the agent's machinery broke`
    )
    expect(attempts).toBe(4)
    expect(world.crashes.length).toBe(4)
    expect(kindsOf(talk, /^turn\.(completed|interrupted|error)$/)).toEqual(["turn.error"])
    expect(talk.of("turn.error")[0]?.payload).toMatchObject({ error_type: "agent_crashed", source: "orchestrator" })
    await talk.post("more")
    for (let turn = 0; turn < 10; turn++) await nextTurn()
    expect(attempts).toBe(4)
  })

  it("works again when it is mended and a person lets it go on", async () => {
    let isBroken = true
    const world = await worlds.open({ tools: breaksFor(() => isBroken), scenarios: work })
    const talk = await world.create({ model: "scripted/work" })
    await talk.post("go")
    await talk.until("session.suspended")
    isBroken = false
    await talk.submit({ _tag: "Unsuspend" })
    await talk.submit({ _tag: "RetryTurn" })
    expect(await talk.turns(2)).toMatchObject({ kind: "turn.completed", payload: { final_output: "done" } })
  })

  it("that breaks now and then is not noticed by anybody", async () => {
    let calls = 0
    const world = await worlds.open({ tools: breaksFor(() => ++calls % 3 !== 0), scenarios: work })
    const talk = await world.create({ model: "scripted/work" })
    await talk.post("go")
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(world.crashes.length).toBeGreaterThan(0)
    expect(talk.of("session.suspended")).toEqual([])
  })

  it("does not stop what its siblings in the same conversation have under way", async () => {
    const gate = new Gate()
    const child = "agt_00000000000000c1" as AgentId
    const sound = functionTools([tool("slow", gate.run)])
    const tools: ToolPort = {
      ...sound,
      describe: (state, agentId) => {
        if (agentId === child) throw new Error("broken child")
        return sound.describe(state, agentId)
      }
    }
    const world = await worlds.open({
      tools,
      scenarios: scenarios({ slow: [step(1, use("slow")), step(2, say("done"))] })
    })
    const talk = await world.create({ model: "scripted/slow" })
    await talk.submit({
      _tag: "SpawnAgent",
      spec: { agent_id: child, role: "worker", model: "scripted/slow", parent_id: talk.root }
    })
    await talk.until("agent.ready", 2)
    await talk.post("go")
    await gate.started
    await talk.post("go", "queue", child)
    await talk.until("session.suspended")
    expect(gate.aborted).toBe(false)
    gate.end("finished all the same")
    expect((await talk.until("tool.result")).payload).toMatchObject({ status: "success" })
    await talk.submit({ _tag: "Unsuspend" })
    await talk.until("turn.completed")
    expect(kindsOf(talk, /^turn\.(completed|interrupted|error)$/)).toEqual(["turn.error", "turn.completed"])
  })
})

describe("a thousand agents", () => {
  const agents = count("runtime agents at once", { fast: 1000, soak: 1000 })
  const rounds = count("runtime restart storms", { fast: 1, soak: 20 })

  it("in a thousand conversations all finish beside one that crashes for ever", async () => {
    for (let round = 0; round < rounds; round++) {
      let attempts = 0
      let broken: AgentId | undefined
      const tools = breaksFor((agentId) => {
        if (agentId !== broken) return false
        attempts += 1
        return true
      })
      const world = await worlds.open({ tools, scenarios: work })
      const talks: Array<Talk> = []
      for (let index = 0; index < agents; index++) talks.push(await world.create({ model: "scripted/work" }))
      const bad = talks[Math.floor(agents / 2)]!
      broken = bad.root
      await Promise.all(talks.map((talk) => talk.post("go")))
      await Promise.all(talks.filter((talk) => talk !== bad).map((talk) => talk.turns()))
      await bad.until("session.suspended")
      const finished = talks.filter((talk) => talk.of("turn.completed").length === 1)
      expect(finished.length).toBe(agents - 1)
      expect(attempts).toBe(4)
      expect(bad.of("session.suspended").length).toBe(1)
      reportCount("agents that finished beside one that crashed for ever", finished.length)
      await world.close()
    }
  })

  it("that are 200 in one conversation all finish, each with its own turn", async () => {
    const world = await worlds.open({ tools: breaksFor(() => false), scenarios: work })
    const talk = await world.create({ model: "scripted/work" })
    const ids = Array.from({ length: 200 }, (_, index) => `agt_${String(index).padStart(16, "0")}` as AgentId)
    await Promise.all(
      ids.map((agent_id) =>
        talk.submit({
          _tag: "SpawnAgent",
          spec: { agent_id, role: "worker", model: "scripted/work", parent_id: talk.root }
        })
      )
    )
    await talk.until("agent.ready", 201)
    await Promise.all(ids.map((agentId) => talk.post("go", "queue", agentId)))
    await talk.turns(200)
    expect(talk.of("turn.completed").length).toBe(200)
    expect(new Set(talk.of("turn.completed").map(({ agent_id }) => agent_id)).size).toBe(200)
    expect(world.crashes).toEqual([])
  })
})

describe("a budget", () => {
  const priced = { "scripted/work": { price: { input: 1_000_000, cachedInput: 0, cacheWrite: 0, output: 1_000_000 } } }

  it("that is used up stops before the next call, says so, and goes on when there is more", async () => {
    const world = await worlds.open({ tools: breaksFor(() => false), scenarios: work })
    const talk = await world.create({ model: "scripted/work", budget: { tokens: 5 } })
    await talk.post("go")
    const { payload } = await talk.until("session.suspended")
    expect(payload).toMatchObject({ reason: "budget_exhausted", budget_info: { which: "tokens", limit: 5 } })
    expect(talk.of("agent.budget_exhausted").length).toBe(1)
    expect(talk.of("turn.model_requested").length).toBe(1)
    expect((await talk.agent()).turn?.status).toBe("streaming")
    await talk.submit({ _tag: "UpdateConfig", changes: {}, budget: { tokens: 1_000_000 } })
    expect(await talk.turns()).toMatchObject({ kind: "turn.completed", payload: { final_output: "done" } })
  })

  it("that nobody has raised stops again when it is let go on", async () => {
    const world = await worlds.open({ tools: breaksFor(() => false), scenarios: work })
    const talk = await world.create({ model: "scripted/work", budget: { tokens: 5 } })
    await talk.post("go")
    await talk.until("session.suspended")
    await talk.submit({ _tag: "Unsuspend" })
    await talk.until("session.suspended", 2)
    expect(talk.of("turn.model_requested").length).toBe(1)
    await talk.interrupt()
    expect(kindsOf(talk, /^turn\.(completed|interrupted|error)$/)).toEqual(["turn.interrupted"])
  })

  it("of a spawned agent ends that agent, and the conversation goes on", async () => {
    const world = await worlds.open({ tools: breaksFor(() => false), scenarios: work })
    const talk = await world.create({ model: "scripted/work" })
    await talk.until("session.activated")
    const child = "agt_00000000000000c1" as AgentId
    const spec = {
      agent_id: child,
      role: "worker",
      model: "scripted/work",
      parent_id: talk.root,
      budget: { tokens: 5 }
    }
    await talk.submit({ _tag: "SpawnAgent", spec })
    await talk.post("go", "queue", child)
    expect((await talk.until("agent.terminated")).payload).toMatchObject({
      agent_id: child,
      reason: "budget_exhausted"
    })
    expect(talk.of("turn.error")[0]?.payload).toMatchObject({ error_type: "budget_exhausted" })
    expect(talk.of("agent.budget_exhausted")[0]?.payload).toMatchObject({ agent_id: child, which: "tokens", limit: 5 })
    expect(talk.of("session.suspended")).toEqual([])
    await talk.post("go")
    expect(await talk.until("turn.completed")).toMatchObject({ agent_id: talk.root })
    expect((await talk.state()).session.status).toBe("active")
    expect(world.crashes).toEqual([])
  })

  it("of tool calls lets exactly so many run", async () => {
    let runs = 0
    const world = await worlds.open({
      scenarios: scenarios({ work: [step(1, ...Array.from({ length: 5 }, () => use("look"))), step(2, say("done"))] }),
      tools: [
        tool("look", async () => {
          runs += 1
          return "seen"
        })
      ]
    })
    const talk = await world.create({ model: "scripted/work", budget: { tool_calls: 3 } })
    await talk.post("go")
    await talk.until("session.suspended")
    await talk.until("tool.result", 3)
    for (let turn = 0; turn < 10; turn++) await nextTurn()
    expect(runs).toBe(3)
    expect(talk.of("agent.budget_exhausted")[0]?.payload).toMatchObject({ which: "tool_calls", used: 3, limit: 3 })
    await talk.submit({ _tag: "UpdateConfig", changes: {}, budget: { tool_calls: 5 } })
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(runs).toBe(5)
  })

  it("of money counts what the catalog says a call costs", async () => {
    const world = await worlds.open({ tools: breaksFor(() => false), scenarios: work, models: priced })
    const talk = await world.create({ model: "scripted/work", budget: { usd: 0.000_001 } })
    await talk.post("go")
    const { payload } = await talk.until("agent.budget_exhausted")
    expect(payload.which).toBe("usd")
    expect(payload.used).toBeGreaterThan(0)
    expect((await talk.state()).usage.usd).toBe(payload.used)
  })

  it("that agents share is not overshot by more than one call, however many ask at once", async () => {
    const world = await worlds.open({
      scenarios: scenarios({ work: [always(say("twelve chars"), { usage: { input_tokens: 5, output_tokens: 50 } })] }),
      models: { "scripted/work": { maxOutputTokens: 60 } }
    })
    const talk = await world.create({ model: "scripted/work", budget: { tokens: 1000 } })
    const ids = Array.from({ length: 30 }, (_, index) => `agt_${String(index).padStart(16, "0")}` as AgentId)
    for (const agent_id of ids) {
      await talk.submit({
        _tag: "SpawnAgent",
        spec: { agent_id, role: "worker", model: "scripted/work", parent_id: talk.root }
      })
    }
    await talk.until("agent.ready", 31)
    await Promise.all(ids.map((agentId) => talk.post("go", "queue", agentId)))
    await talk.until("session.suspended")
    for (let turn = 0; turn < 20; turn++) await nextTurn()
    const { usage } = await talk.state()
    const used = usage.input_tokens + usage.output_tokens
    expect(used).toBeGreaterThanOrEqual(1000)
    expect(used).toBeLessThanOrEqual(1055)
    await talk.submit({ _tag: "UpdateConfig", changes: {}, budget: { tokens: 100_000 } })
    await talk.turns(30)
    expect(talk.of("turn.completed").length).toBe(30)
  })

  it("of time stops an agent that has used it, and not one that only waited for a person", async () => {
    const clock = { ms: 1_763_251_200_000 }
    const world = await worlds.open({
      tools: breaksFor(() => false),
      scenarios: work,
      clock: { nowMs: () => clock.ms }
    })
    const talk = await world.create({ model: "scripted/work", budget: { wall_ms: 1000 } })
    await talk.until("session.activated")
    clock.ms += 3_600_000
    await talk.post("go")
    expect((await talk.turns()).kind).toBe("turn.completed")
    const slow = await world.create({ model: "scripted/work", budget: { wall_ms: 1000 } })
    await slow.until("session.activated")
    await slow.post("go")
    clock.ms += 1500
    await Promise.race([slow.until("session.suspended"), slow.turns()])
    expect(slow.of("agent.budget_exhausted").map(({ payload }) => payload.which)).toEqual(["wall_ms"])
  })

  it("of one agent does not stop another's call that is under way", async () => {
    const world = await worlds.open({
      tools: breaksFor(() => false),
      scenarios: scenarios({
        work: [{ when: { role: "worker" }, play: [say("words ")] }, always(say("long "), stall)]
      })
    })
    const talk = await world.create({ model: "scripted/work" })
    const child = "agt_00000000000000c1" as AgentId
    await talk.submit({
      _tag: "SpawnAgent",
      spec: { agent_id: child, role: "worker", model: "scripted/work", parent_id: talk.root, budget: { tokens: 1 } }
    })
    await talk.until("agent.ready", 2)
    await talk.post("go")
    await talk.until("turn.assistant_delta")
    await talk.post("go", "queue", child)
    await talk.post("go", "queue", child)
    await talk.until("agent.terminated")
    for (let turn = 0; turn < 5; turn++) await nextTurn()
    expect((await talk.agent()).turn?.partial).toBe("long ")
    const ends = talk.runes.filter(({ kind }) => /^turn\.(interrupted|error)$/.test(kind))
    expect(ends).toMatchObject([{ kind: "turn.error", agent_id: child }])
    await talk.interrupt()
  })
})
