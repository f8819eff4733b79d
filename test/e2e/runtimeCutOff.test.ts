// Goal: a model call that is cut off is paid for, however it ended: with what the provider had told by then, else with an
// estimate that is marked as one; budgets see it. Method: the real runtime, over the real SDKs where the wire matters, ended in
// every way a call can end early, and stopped and opened again on the same disk.
// Verifies: INV-AGENT-BUDGET
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import { plainAnswer } from "../support/provider-server/Answer.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { type ProviderServer, startProviderServer } from "../support/provider-server/Server.ts"
import { fastRunFork } from "../support/runtime/clocks.ts"
import { always, attempt, cut, fail, type Play, say, scenarios, stall } from "../support/runtime/scenarios.ts"
import { type Talk, useWorlds, type World, type WorldOptions } from "../support/runtime/World.ts"

const worlds = useWorlds()

const price = { input: 3_000_000, cachedInput: 300_000, cacheWrite: 3_750_000, output: 15_000_000 }
const models = { "scripted/play": { contextTokens: 200_000, maxOutputTokens: 1000, price } }
const question = "a question of some length, which has to be read before it can be answered"
const said = "half of an answer "
/** Three characters a token, and eight tokens around a message. */
const inputTokens = Math.ceil(question.length / 3) + 8
const outputTokens = Math.ceil(said.length / 3)
const estimated = { input_tokens: inputTokens, output_tokens: outputTokens, estimated: true }

const worldOf = (play: ReadonlyArray<Play>, more: WorldOptions = {}): Promise<World> =>
  worlds.open({
    models,
    scenarios: scenarios({
      play: [{ when: { input: "later" }, play: [say("ok")] }, attempt(1, ...play), always(say("at last"))]
    }),
    ...more
  })

/** A turn in the middle of its answer. */
const speaking = async (world: World, config = {}): Promise<Talk> => {
  const talk = await world.create({ model: "scripted/play", ...config })
  await talk.post(question)
  await talk.until("turn.assistant_delta")
  return talk
}

const usageOf = async (talk: Talk) => (await talk.state()).usage

const ends: ReadonlyArray<readonly [string, (talk: Talk) => Promise<unknown>]> = [
  ["an interrupt", (talk) => talk.interrupt()],
  ["new input that takes over", (talk) => talk.post("later", "steer")],
  [
    "the end of its agent",
    (talk) => talk.submit({ _tag: "KillAgent", agent_id: talk.root, reason: "user", force: true })
  ],
  ["the end of its conversation", (talk) => talk.submit({ _tag: "Close", reason: "done" })]
]

describe("an answer that is cut off", () => {
  it.each(ends)("by %s costs what it is estimated at", async (_, end) => {
    const talk = await speaking(await worldOf([say(said), stall]))
    await end(talk)
    const { payload } = await talk.until("turn.interrupted")
    expect(payload.usage).toMatchObject(estimated)
    expect(payload.usage?.usd).toBeCloseTo((inputTokens * 3 + outputTokens * 15) / 1e6, 9)
    const { input_tokens, estimated: isEstimate } = await usageOf(talk)
    expect(input_tokens).toBeGreaterThanOrEqual(inputTokens)
    expect(isEstimate).toBe(true)
  })

  it.each(ends)("by %s costs what the provider had told", async (_, end) => {
    const usage = { input_tokens: 123, output_tokens: 45 }
    const talk = await speaking(await worldOf([{ usage }, say(said), stall]))
    await end(talk)
    const { payload } = await talk.until("turn.interrupted")
    expect(payload.usage).toMatchObject(usage)
    expect(payload.usage).not.toHaveProperty("estimated")
    expect(payload.usage?.usd).toBeCloseTo((123 * 3 + 45 * 15) / 1e6, 9)
  })

  it("before a word came costs what the provider had told", async () => {
    const usage = { input_tokens: 123, output_tokens: 1 }
    const world = await worldOf([{ usage }, stall])
    const talk = await world.create({ model: "scripted/play" })
    await talk.post(question)
    await talk.until("turn.model_requested")
    await new Promise((resolve) => setImmediate(resolve))
    await talk.interrupt()
    expect(talk.of("turn.interrupted")[0]?.payload.usage).toMatchObject(usage)
  })

  it.each<readonly [string, ReadonlyArray<Play>, object]>([
    ["a stream that breaks off", [say(said), cut], estimated],
    ["an error in the middle", [say(said), fail("server_error")], estimated],
    [
      "a time-out before anything came",
      [fail("timeout")],
      { input_tokens: inputTokens, output_tokens: 0, estimated: true }
    ]
  ])("by %s is paid for, and so is the one that replaces it", async (_, play, expected) => {
    const talk = await (await worldOf(play, { runFork: fastRunFork(1000) })).create({ model: "scripted/play" })
    await talk.post(question)
    await talk.until("turn.completed")
    const [retry] = talk.of("turn.retry_scheduled")
    expect(retry?.payload.usage).toMatchObject(expected)
    const final = talk.of("turn.assistant_final")[0]?.payload.usage
    expect((await usageOf(talk)).input_tokens).toBe(retry!.payload.usage!.input_tokens + final!.input_tokens)
  })

  it.each(["rate_limited", "connection", "overloaded", "server_error"])(
    "is none where the provider turned it away: %s",
    async (kind) => {
      const talk = await (await worldOf([fail(kind)], { runFork: fastRunFork(1000) })).create({
        model: "scripted/play"
      })
      await talk.post(question)
      await talk.until("turn.completed")
      expect(talk.of("turn.retry_scheduled")[0]?.payload).not.toHaveProperty("usage")
      expect(await usageOf(talk)).toMatchObject({ estimated: false })
    }
  )

  it("by the end of the process is paid for when it comes back, once", async () => {
    const disk = makeDiskMemory()
    const world = await worldOf([say(said), stall], { disk })
    const talk = await speaking(world)
    expect((await usageOf(talk)).input_tokens).toBe(0)
    await world.close()
    const again = await worldOf([say(said), stall], { disk, idSeed: 8 })
    const there = again.talk(talk)
    await there.world.conversations.recover([there.id])
    const { payload } = await there.until("system.recovered")
    expect(payload.cut_off).toMatchObject([{ agent_id: talk.root, usage: estimated }])
    await there.until("turn.assistant_delta")
    expect(await usageOf(there)).toMatchObject(estimated)
    await there.interrupt()
    expect((await usageOf(there)).input_tokens).toBe(2 * inputTokens)
    expect(there.of("turn.model_requested")[0]?.payload.replaces).toBe(payload.cut_off?.[0]?.request_id)
  })
})

describe("a budget", () => {
  it("of 100 tokens suspends a conversation whose calls are interrupted", async () => {
    const world = await worldOf([say(said), stall])
    const talk = await speaking(world, { budget: { tokens: 100 } })
    let interrupts = 0
    for (; (await talk.state()).session.status === "active" && interrupts < 10; interrupts++) {
      await talk.interrupt()
      await talk.post(question)
      await talk.world.until(
        () => talk.of("turn.assistant_delta").length > interrupts + 1 || talk.of("session.suspended").length > 0,
        talk.id
      )
    }
    expect(talk.of("session.suspended")[0]?.payload).toMatchObject({
      reason: "budget_exhausted",
      budget_info: { which: "tokens", limit: 100 }
    })
    // The second request repeats the first.
    expect(interrupts).toBe(2)
  })

  it("in dollars does too, also where the process ends every time", async () => {
    const disk = makeDiskMemory()
    const callUsd = (inputTokens * 3 + outputTokens * 15) / 1e6
    const config = { budget: { usd: callUsd * 1.5 } }
    let world = await worldOf([say(said), stall], { disk })
    const talk = await speaking(world, config)
    let restarts = 0
    for (let there = talk; there.of("session.suspended").length === 0 && restarts < 10; restarts++) {
      await world.close()
      world = await worldOf([say(said), stall], { disk, idSeed: 8 + restarts })
      there = world.talk(talk)
      await there.world.conversations.recover([there.id])
      await world.until(
        () => there.of("turn.assistant_delta").length > 0 || there.of("session.suspended").length > 0,
        there.id
      )
    }
    expect(restarts).toBe(2)
    const { session, usage } = await world.talk(talk).state()
    expect(session).toMatchObject({ status: "suspended", budget_info: { which: "usd" } })
    expect(usage.usd).toBeCloseTo(2 * callUsd, 9)
  })
})

describe("a summary that is cut off", () => {
  const small = { "scripted/play": { contextTokens: 1000, maxOutputTokens: 100, price } }
  const long = "a long story that fills the context of a small model, word by word. ".repeat(36)

  const summing = async (play: ReadonlyArray<Play>, more: WorldOptions = {}) => {
    const world = await worlds.open({
      models: small,
      scenarios: scenarios({
        play: [
          { when: { role: "compaction" }, play },
          { when: { input: "story" }, play: [say(long)] },
          always(say("ok"))
        ]
      }),
      ...more
    })
    const talk = await world.create({ model: "scripted/play" })
    await talk.post("tell a story")
    await talk.turns(1)
    return { world, talk, before: await usageOf(talk).then(({ input_tokens }) => input_tokens) }
  }

  it("by an interrupt is paid for, with the text that came", async () => {
    const { before, talk } = await summing([say(said), stall])
    await talk.post("go on")
    await talk.world.until(() => talk.of("turn.model_requested").some(({ payload }) => payload.purpose === "summary"))
    await new Promise((resolve) => setImmediate(resolve))
    await talk.interrupt()
    const { payload } = await talk.until("turn.interrupted")
    expect(payload.usage).toMatchObject({ output_tokens: outputTokens, estimated: true })
    expect((await usageOf(talk)).input_tokens).toBe(before + payload.usage!.input_tokens)
    expect(payload.usage!.input_tokens).toBeGreaterThan(100)
  })

  it("by the end of the process is paid for, and one that was made is paid for with it", async () => {
    const disk = makeDiskMemory()
    const { before, talk, world } = await summing([say(said), stall], { disk })
    await talk.post("go on")
    const { payload } = await talk.until("turn.model_requested", 2)
    expect(payload.purpose).toBe("summary")
    await world.close()
    const again = await worlds.open({
      models: small,
      scenarios: scenarios({ play: [{ when: { role: "compaction" }, play: [say("short")] }, always(say("ok"))] }),
      disk,
      idSeed: 8
    })
    const there = again.talk(talk)
    await there.world.conversations.recover([there.id])
    await there.until("turn.completed")
    const [compacted] = there.of("turn.compacted")
    expect(compacted?.payload.usage).toMatchObject({ output_tokens: Math.ceil("short".length / 4) })
    const cutOff = there.of("system.recovered")[0]!.payload.cut_off![0]!.usage
    const final = there.of("turn.assistant_final")[0]!.payload.usage!
    // The summary is made in pieces; what a piece used is told with the next one.
    const pieces = there.of("turn.model_requested").map((rune) => rune.payload.usage)
    const parts = [cutOff, compacted!.payload.usage, final, ...pieces]
    const sum = parts.reduce((total, usage) => total + (usage?.input_tokens ?? 0), before)
    expect(pieces.some((usage) => usage !== undefined)).toBe(true)
    expect((await usageOf(there)).input_tokens).toBe(sum)
  })
})

describe("over the wire", () => {
  let server: ProviderServer
  beforeAll(async () => {
    server = await startProviderServer()
  })
  afterAll(() => server.close())

  it.each(formats)("$name: an interrupted answer costs what is known of it", async (format) => {
    const text = "0123456789".repeat(40)
    const body = format.stream({ ...plainAnswer, text })
    server.respond(() => ({ body, cutAfter: body.indexOf("0123") + 2000, ending: "stall" }))
    const world = await worlds.open({ serverUrl: server.url })
    const talk = await world.create({ model: `${format.name}/test-model` })
    await talk.post(question)
    await talk.until("turn.assistant_delta", 2)
    await talk.interrupt()
    const { partial_output: partial, usage } = talk.of("turn.interrupted")[0]!.payload
    const input = format.name === "messages" ? plainAnswer.inputTokens : inputTokens
    expect(usage).toMatchObject({ input_tokens: input, estimated: true })
    expect(usage?.output_tokens).toBe(Math.ceil(partial.length / 3))
    // No price is known for this model.
    expect(usage).not.toHaveProperty("usd")
  })
})
