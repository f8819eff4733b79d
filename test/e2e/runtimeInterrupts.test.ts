// Goal: a person can take over at any moment: what was said is kept, nothing counts as failed, the turn has exactly one
// end and the next one begins. Method: the real runtime, stopped at every kind of moment a turn has.
// Verifies: INV-TURN-TERMINAL, INV-TURN-SEQUENTIAL, INV-TOOL-TERMINAL

import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { LiveText } from "#src/contract/LiveText.ts"
import { limits as providerLimits } from "#src/provider/ProviderLimits.ts"
import { plainAnswer } from "../support/provider-server/Answer.ts"
import { formats } from "../support/provider-server/Formats.ts"
import { type ProviderServer, startProviderServer } from "../support/provider-server/Server.ts"
import { channelTo } from "../support/runtime/channelTo.ts"
import { fastRunFork } from "../support/runtime/clocks.ts"
import { always, fail, type ReplySpec, say, scenarios, stall, step, think, use } from "../support/runtime/scenarios.ts"
import { nextTurn } from "../support/runtime/sink.ts"
import { effectTool, Gate, tool } from "../support/runtime/tools.ts"
import { type Talk, useWorlds, type WorldOptions } from "../support/runtime/World.ts"
import { expectWellFormed } from "../support/runtime/wellFormed.ts"

const worlds = useWorlds()

const endsOf = (talk: Talk) => talk.runes.filter(({ kind }) => /^turn\.(completed|interrupted|error)$/.test(kind))

/** The first turn plays the given replies, every later one says back what it hears. */
const open = async (replies: ReadonlyArray<ReplySpec>, more: WorldOptions = {}, config = {}): Promise<Talk> => {
  const later = { when: { input: "later" }, play: [say("re: {{input}}")] }
  const world = await worlds.open({ scenarios: scenarios({ play: [later, ...replies] }), ...more })
  return world.create({ model: "scripted/play", ...config })
}

/** The turn is over once, as interrupted, nothing has crashed, and the next turn is answered. */
const isOverAndGoesOn = async (talk: Talk, reason = "user"): Promise<void> => {
  expect(endsOf(talk)).toMatchObject([{ kind: "turn.interrupted", payload: { reason } }])
  const agent = await talk.agent()
  expect(agent).toMatchObject({ status: "idle", turn: null, last_error: null })
  await talk.post("later")
  expect(await talk.turns(2)).toMatchObject({ kind: "turn.completed", payload: { final_output: "re: later" } })
  expect(talk.world.crashes).toEqual([])
  expect((await talk.state()).session.status).toBe("active")
}

describe("an interrupt", () => {
  it("while the model speaks keeps every character that was heard", async () => {
    let heard = ""
    let wake: () => void = () => undefined
    const enough = new Promise<void>((resolve) => {
      wake = resolve
    })
    const talk = await open(
      [
        always(
          think("hmm"),
          say("a long answer that takes its time, ".repeat(50), { chunk_chars: 3, delay_ms: 1 }),
          stall
        )
      ],
      {
        // So long that nothing becomes a rune by itself.
        deltaEveryMs: 60_000,
        liveTexts: channelTo<readonly [LiveText]>(({ text }) => {
          heard += text
          if (heard.length > 200) wake()
        })
      }
    )
    await talk.post("go")
    await enough
    const before = heard
    await talk.interrupt()
    const { payload } = talk.of("turn.interrupted")[0]!
    expect(payload.partial_output.startsWith(before)).toBe(true)
    expect(payload.partial_output).toBe(heard)
    expect((await talk.agent()).transcript.at(-1)).toMatchObject({ type: "assistant", content: heard, partial: true })
    await isOverAndGoesOn(talk)
  })

  it("before the model was even asked asks nobody", async () => {
    const talk = await open([always(say("never heard"))])
    await talk.until("agent.ready")
    const posted = talk.post("go")
    const interrupted = talk.interrupt()
    await Promise.all([posted, interrupted])
    expect(talk.of("turn.assistant_final")).toEqual([])
    await isOverAndGoesOn(talk)
  })

  it("while a tool runs stops the tool, and keeps what it had printed", async () => {
    const gate = new Gate()
    const talk = await open([step(1, use("slow"), use("other"))], {
      tools: [effectTool("slow", gate.run), tool("other", async () => "other")]
    })
    await talk.post("go")
    const context = await gate.started
    context.progress("stdout", "half of it")
    await talk.interrupt()
    await nextTurn()
    expect(gate.aborted).toBe(true)
    expect(talk.of("tool.result").map(({ payload }) => [payload.call_id, payload.status, payload.output])).toEqual([
      ["call_1", "cancelled", "half of it"],
      ["call_2", "cancelled", undefined]
    ])
    await isOverAndGoesOn(talk)
  })

  it("while a person is asked takes the question back", async () => {
    const talk = await open([step(1, use("risky"))], {
      tools: [effectTool("risky", async () => "ran", { approval: "ask" })]
    })
    await talk.post("go")
    await talk.until("tool.approval_requested")
    await talk.interrupt()
    await expect(talk.approve("call_1")).rejects.toMatchObject({
      refusal: { code: "already_decided", data: { decision: { decision: "cancelled" } } }
    })
    await isOverAndGoesOn(talk)
  })

  it("while a retry waits does not wait for it", async () => {
    const talk = await open([always(say("so far "), fail("rate_limited", { retry_after_ms: 100_000 }))])
    await talk.post("go")
    await talk.until("turn.retry_scheduled")
    await talk.interrupt()
    expect(talk.of("turn.interrupted")[0]?.payload.partial_output).toBe("so far ")
    await isOverAndGoesOn(talk)
  })

  it("while a tool's retry waits ends the tool too", async () => {
    const talk = await open([step(1, use("frail"))], {
      tools: [tool("frail", () => Promise.reject(new Error("broke")))]
    })
    await talk.post("go")
    await talk.until("turn.retry_scheduled")
    await talk.interrupt()
    expect(talk.of("tool.result").map(({ payload }) => payload.status)).toEqual(["cancelled"])
    await isOverAndGoesOn(talk)
  })

  it("while the call stands in line for its provider leaves the line", async () => {
    const world = await worlds.open({
      scenarios: scenarios({ play: [{ when: { input: "later" }, play: [say("re: later")] }, always(say("…"), stall)] })
    })
    const inside = await Promise.all(
      Array.from({ length: providerLimits.concurrentCalls }, () => world.create({ model: "scripted/play" }))
    )
    for (const talk of inside) await talk.post("go")
    await Promise.all(inside.map((talk) => talk.until("turn.assistant_delta")))
    const talk = await world.create({ model: "scripted/play" })
    await talk.post("go")
    for (let turn = 0; turn < 5; turn++) await nextTurn()
    expect(talk.of("turn.model_requested")).toEqual([])
    await talk.interrupt()
    expect(endsOf(talk).map(({ kind }) => kind)).toEqual(["turn.interrupted"])
    await inside[0]!.interrupt()
    await isOverAndGoesOn(talk)
    await Promise.all(inside.slice(1).map((other) => other.interrupt()))
    expect(world.crashes).toEqual([])
  })

  it("while the conversation is being summed up stops that", async () => {
    const long = "x".repeat(700)
    const talk = await open([{ when: { role: "compaction" }, play: [stall] }, always(say(long))], {
      models: { "scripted/play": { contextTokens: 600, maxOutputTokens: 50 } }
    })
    for (let turn = 1; turn <= 2; turn++) {
      await talk.post(`m${turn}`)
      await talk.turns(turn)
    }
    await talk.post("m3")
    await talk.until("turn.started", 3)
    for (let turn = 0; turn < 5; turn++) await nextTurn()
    expect(talk.of("turn.model_requested").map(({ payload }) => payload.purpose)).toEqual([
      undefined,
      undefined,
      "summary"
    ])
    await talk.interrupt()
    expect((await talk.turns(3)).kind).toBe("turn.interrupted")
    expect(talk.of("turn.compacted")).toEqual([])
    expect(talk.world.crashes).toEqual([])
  })

  it("of a turn that is over, or of none, is refused and changes nothing", async () => {
    const talk = await open([always(say("hi"))])
    await talk.until("agent.ready")
    await expect(talk.interrupt()).rejects.toMatchObject({ refusal: { code: "invalid_state" } })
    await talk.post("go")
    await talk.turns()
    await expect(talk.interrupt()).rejects.toMatchObject({ refusal: { code: "invalid_state" } })
  })

  it("at any moment at all leaves exactly one end and a conversation that goes on", async () => {
    const delays = Array.from({ length: 24 }, (_, index) => index)
    for (const turns of delays) {
      const talk = await open(
        [step(1, say("one ", { chunk_chars: 1 }), use("look"), use("write")), step(2, say("two", { chunk_chars: 1 }))],
        { tools: [tool("look", async () => "seen"), effectTool("write", async () => "written")] }
      )
      await talk.post("go")
      for (let turn = 0; turn < turns; turn++) await nextTurn()
      await talk.interrupt().catch(() => undefined)
      await talk.turns()
      expect(endsOf(talk).length).toBe(1)
      await talk.post("later")
      expect(await talk.turns(2)).toMatchObject({ kind: "turn.completed", payload: { final_output: "re: later" } })
      expect(talk.world.crashes).toEqual([])
    }
  })
})

describe("messages that come while a turn runs", () => {
  it("wait their turn, in order, when they are queued", async () => {
    const gate = new Gate()
    const talk = await open([step(1, use("slow")), step(2, say("first done"))], { tools: [tool("slow", gate.run)] })
    await talk.post("go")
    await gate.started
    await talk.post("later a")
    await talk.post("later b")
    gate.end("ok")
    await talk.turns(3)
    expect(talk.of("turn.completed").map(({ payload }) => payload.final_output)).toEqual([
      "first done",
      "re: later a",
      "re: later b"
    ])
  })

  it("take over at once when they steer and the model speaks", async () => {
    const talk = await open([always(say("on and on "), stall)])
    await talk.post("go")
    await talk.until("turn.assistant_delta")
    await talk.post("later, now", "steer")
    expect(await talk.turns(1)).toMatchObject({
      kind: "turn.interrupted",
      payload: { reason: "steer", partial_output: "on and on " }
    })
    expect(await talk.turns(2)).toMatchObject({ payload: { final_output: "re: later, now" } })
  })

  it("let a tool that runs finish when they steer, start none that has not, and then take over", async () => {
    const gate = new Gate()
    let others = 0
    const talk = await open([step(1, use("slow"), use("other")), step(2, say("never said"))], {
      tools: [
        effectTool("slow", gate.run),
        effectTool("other", async () => {
          others += 1
          return "ran"
        })
      ]
    })
    await talk.post("go")
    await gate.started
    await talk.post("later, instead", "steer")
    expect(gate.aborted).toBe(false)
    gate.end("finished")
    await talk.turns(2)
    expect(others).toBe(0)
    expect(
      talk
        .of("tool.result")
        .map(({ payload }) => payload.status)
        .sort()
    ).toEqual(["cancelled", "success"])
    expect(endsOf(talk).map(({ kind }) => kind)).toEqual(["turn.interrupted", "turn.completed"])
    expect(talk.of("turn.completed")[0]?.payload.final_output).toBe("re: later, instead")
  })

  it("go first and together when several steer; what was queued waits behind them", async () => {
    const talk = await open([always(say("…"), stall)])
    await talk.post("go")
    await talk.until("turn.assistant_delta")
    await Promise.all([talk.post("later q"), talk.post("later s1", "steer"), talk.post("later s2", "steer")])
    await talk.turns(3)
    expect(talk.of("turn.completed").map(({ payload }) => payload.final_output)).toEqual([
      "re: later s1\n\nlater s2",
      "re: later q"
    ])
  })

  it("are taken while the conversation is paused, and answered when it goes on", async () => {
    const talk = await open([])
    await talk.until("session.activated")
    await talk.submit({ _tag: "Pause", reason: "lunch" })
    await talk.post("later")
    for (let turn = 0; turn < 5; turn++) await nextTurn()
    expect(talk.of("turn.started")).toEqual([])
    await talk.submit({ _tag: "Resume" })
    expect((await talk.turns()).kind).toBe("turn.completed")
  })

  it("end with the conversation when it is closed, and whatever ran ends too", async () => {
    const gate = new Gate()
    const talk = await open([step(1, say("words "), use("slow"))], { tools: [effectTool("slow", gate.run)] })
    await talk.post("go")
    await gate.started
    await talk.post("later")
    await talk.submit({ _tag: "Close", reason: "done" })
    await talk.until("session.closed")
    expect(gate.aborted).toBe(true)
    expect(endsOf(talk).map(({ kind }) => kind)).toEqual(["turn.interrupted"])
    await expect(talk.post("more")).rejects.toMatchObject({ refusal: { code: "invalid_state" } })
  })

  it("to an agent that is killed in the middle of a turn are gone with it, and its turn has an end", async () => {
    const talk = await open([always(say("…"), stall)])
    const child = "agt_00000000000000c1" as never
    await talk.submit({
      _tag: "SpawnAgent",
      spec: { agent_id: child, role: "worker", model: "scripted/play", parent_id: talk.root }
    })
    await talk.until("agent.ready", 2)
    await talk.post("go", "queue", child)
    await talk.until("turn.assistant_delta")
    await talk.submit({ _tag: "KillAgent", agent_id: child, reason: "enough", force: true })
    expect(endsOf(talk)).toMatchObject([{ kind: "turn.interrupted", agent_id: child }])
    await talk.post("later")
    expect((await talk.turns(2)).kind).toBe("turn.completed")
  })
})

describe("over the wire", () => {
  let server: ProviderServer
  beforeAll(async () => {
    server = await startProviderServer()
  })
  afterAll(() => server.close())

  it.each(formats)("$name is cut off at once by an interrupt, and what came by then is sent back", async (format) => {
    const body = format.stream({ ...plainAnswer, text: "0123456789".repeat(40) })
    let next = 0
    server.respond(() =>
      next++ === 0
        ? { body, cutAfter: Math.floor(body.length * 0.8), pieceBytes: 200, ending: "stall" }
        : { body: format.stream(plainAnswer) }
    )
    let heard = ""
    let wake: () => void = () => undefined
    const enough = new Promise<void>((resolve) => {
      wake = resolve
    })
    const world = await worlds.open({
      serverUrl: server.url,
      deltaEveryMs: 60_000,
      liveTexts: channelTo<readonly [LiveText]>(({ text }) => {
        heard += text
        if (heard.length > 100) wake()
      })
    })
    const talk = await world.create({ model: `${format.name}/test-model` })
    await talk.post("count")
    await enough
    await talk.interrupt()
    await server.idle()
    const { partial_output: partial } = talk.of("turn.interrupted")[0]!.payload
    expect("0123456789".repeat(40).startsWith(partial)).toBe(true)
    expect(partial.length).toBeGreaterThan(100)
    await talk.post("go on")
    expect((await talk.turns(2)).kind).toBe("turn.completed")
    expectWellFormed(server.requests)
    expect(server.requests.at(-1)?.bodyText).toContain(partial)
    expect(world.crashes).toEqual([])
  })

  it.each(formats)(
    "$name gets an answer for every call of a turn that was interrupted in its tools",
    async (format) => {
      const gate = new Gate()
      const asking = { ...plainAnswer, stop: "calls" } as const
      let next = 0
      server.respond(() =>
        next++ === 0
          ? {
              body: format.stream({
                ...asking,
                calls: [
                  { id: "a", name: "slow", arguments: "{}" },
                  { id: "b", name: "slow", arguments: "{}" }
                ]
              })
            }
          : { body: format.stream(plainAnswer) }
      )
      const world = await worlds.open({
        serverUrl: server.url,
        tools: [effectTool("slow", gate.run)],
        runFork: fastRunFork(1)
      })
      const talk = await world.create({ model: `${format.name}/test-model` })
      await talk.post("go")
      await gate.started
      await talk.interrupt()
      await talk.post("and?")
      await talk.turns(2)
      expect(server.requests.length).toBe(2)
      expectWellFormed(server.requests)
      expect(server.requests[1]?.bodyText).toContain("cancelled")
    }
  )
})
