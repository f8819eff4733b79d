// Goal: a budget in dollars is never given where it could not be held: whoever asks for one for a model without a price, in
// whatever way, is told so and where to set it. Method: the real runtime with one model that has a price and one that has none.
// Verifies: INV-AGENT-BUDGET
import { describe, expect, it } from "vitest"
import type { AgentId, PlanId } from "#src/rune/Ids.ts"
import { always, say, scenarios } from "../support/runtime/scenarios.ts"
import { type Talk, useWorlds, type World } from "../support/runtime/World.ts"

const worlds = useWorlds()

const size = { contextTokens: 10_000, maxOutputTokens: 100 }
const price = { input: 1_000_000, cachedInput: 0, cacheWrite: 0, output: 1_000_000 }
const dear = "scripted/dear"
const unknown = "scripted/unknown"
const child = "agt_00000000000000c1" as AgentId
const budget = { usd: 5 }

const open = (): Promise<World> =>
  worlds.open({
    models: { [dear]: { ...size, price }, [unknown]: size },
    scenarios: scenarios({ dear: [always(say("ok"))], unknown: [always(say("ok"))] })
  })

const refused = {
  _tag: "CommandRefused",
  refusal: { code: "bad_request", data: { reason: "price_unknown", setting: "models" } },
  message: expect.stringMatching(/scripted\/unknown, because its price is unknown: set its price under models/)
}

const spawn = (talk: Talk, model: string, more = {}) =>
  talk.submit({
    _tag: "SpawnAgent",
    spec: { agent_id: child, role: "worker", model, parent_id: talk.root, ...more }
  })

const goal = (talk: Talk, more: object) =>
  talk.submit({
    _tag: "SubmitGoal",
    payload: { plan_id: "plan_1" as PlanId, goal: "g", auto_start: false, ...more }
  })

describe("a budget in dollars", () => {
  it("is refused with a conversation whose model has no price, and given with one that has", async () => {
    const world = await open()
    await expect(world.create({ model: unknown, budget })).rejects.toMatchObject(refused)
    await expect(world.create({ model: unknown }, { budget })).rejects.toMatchObject(refused)
    const talk = await world.create({ model: dear, budget })
    await talk.post("go")
    expect((await talk.turns(1)).kind).toBe("turn.completed")
    await world.create({ model: unknown, budget: { tokens: 5 } })
  })

  it("is refused later as well, for the conversation or for one agent, and so is another model under it", async () => {
    const world = await open()
    const talk = await world.create({ model: unknown })
    await talk.until("session.activated")
    await expect(talk.submit({ _tag: "UpdateConfig", changes: { budget } })).rejects.toMatchObject(refused)
    const ofRoot = { _tag: "UpdateConfig", changes: {}, agent_id: talk.root, budget } as const
    await expect(talk.submit(ofRoot)).rejects.toMatchObject(refused)
    await talk.submit({ _tag: "UpdateConfig", changes: { model: dear, budget } })
    await expect(talk.submit({ _tag: "UpdateConfig", changes: { model: unknown } })).rejects.toMatchObject(refused)
    await talk.submit({ _tag: "UpdateConfig", changes: { title: "any" } })
  })

  it("is refused for an agent that is spawned, its own or one above it", async () => {
    const world = await open()
    const talk = await world.create({ model: dear, budget })
    await talk.until("session.activated")
    await expect(spawn(talk, unknown)).rejects.toMatchObject(refused)
    const free = await world.create({ model: dear })
    await free.until("session.activated")
    await expect(spawn(free, unknown, { budget })).rejects.toMatchObject(refused)
    await spawn(free, unknown)
    await free.until("agent.ready", 2)
    await expect(free.submit({ _tag: "UpdateConfig", changes: { budget } })).rejects.toMatchObject(refused)
  })

  it("is refused for a goal, the whole of it or each task", async () => {
    const talk = await (await open()).create({ model: unknown })
    await talk.until("session.activated")
    await expect(goal(talk, { budget })).rejects.toMatchObject(refused)
    await expect(goal(talk, { options: { task_budget: budget } })).rejects.toMatchObject(refused)
  })

  it("that is there already, from before, spends nothing of a model without a price", async () => {
    const world = await open()
    const talk = await world.create({ model: dear, budget })
    await talk.until("session.activated")
    // Past the check, as a log of an older build has it.
    const { actor } = await world.conversations.load(talk.id)
    await actor.submit({ _tag: "UpdateConfig", changes: { model: unknown } })
    await talk.post("go")
    expect(await talk.turns(1)).toMatchObject({
      kind: "turn.error",
      payload: { error_type: "invalid_request", message: expect.stringContaining("price is unknown") }
    })
    expect(talk.of("turn.model_requested")).toEqual([])
  })
})

describe("a cost that is not known", () => {
  it("is null wherever a sum is shown, and tokens are counted all the same", async () => {
    const talk = await (await open()).create({ model: unknown })
    await talk.post("go")
    await talk.turns(1)
    const { usage } = await talk.state()
    expect(usage).toMatchObject({ unpriced: true, usd: 0 })
    expect(usage.input_tokens).toBeGreaterThan(0)
    expect(talk.of("turn.completed")[0]?.payload.usage).not.toHaveProperty("usd")
  })
})
