// Goal: a conversation that outgrows its model goes on, with its newest part intact, and never sums up for ever. Method:
// the real runtime with models of tiny contexts, over the scripted provider.

import { describe, expect, it } from "vitest"
import type { LiveText } from "#src/contract/LiveText.ts"
import type { TranscriptItem } from "#src/machine/State.ts"
import { compactionPoints } from "#src/machine/view/Request.ts"
import { choosePoint } from "#src/turn/Compaction.ts"
import { extract, piecesOf } from "#src/turn/SummaryText.ts"
import { limits } from "#src/turn/TurnLimits.ts"
import { channelTo } from "../support/runtime/channelTo.ts"
import { fastRunFork } from "../support/runtime/clocks.ts"
import { always, fail, type ReplySpec, say, scenarios } from "../support/runtime/scenarios.ts"
import { useWorlds } from "../support/runtime/World.ts"
import { callItem, readTool, Story, shellTool, textItem } from "../support/story.ts"

const worlds = useWorlds()

const talked = (turns: number, chars = 100): Story => {
  const story = new Story().ready()
  for (let index = 0; index < turns; index++) {
    story.post(`question ${index}`)
    story.request()
    story.respond([textItem(`answer ${index} ${"x".repeat(chars)}`)])
  }
  return story
}

describe("the point to cut at", () => {
  it("leaves about as much of the newest part as is to be kept", () => {
    const story = talked(10)
    const points = compactionPoints(story.agent)
    const point = choosePoint(story.agent, 600)!
    const kept = story.agent.transcript.filter((item) => item.event_id > point)
    expect(points).toContain(point)
    expect(JSON.stringify(kept).length).toBeGreaterThan(400)
    expect(JSON.stringify(kept).length).toBeLessThan(1400)
    expect(kept.at(-1)).toMatchObject({ content: expect.stringContaining("answer 9") })
  })

  it("is the first there is when even the newest item is larger than what is to be kept", () => {
    const story = talked(3, 5000)
    expect(choosePoint(story.agent, 10)).toBe(compactionPoints(story.agent).at(-2))
    expect(choosePoint(talked(1, 5000).agent, 10)).toBe(compactionPoints(talked(1, 5000).agent).at(0))
  })

  it("is never inside a question that waits for its answer", () => {
    const story = talked(2)
    story.post("now")
    story.request()
    story.respond([callItem("a", readTool)])
    const point = choosePoint(story.agent, 0)!
    expect(story.agent.transcript.filter((item) => item.event_id > point).map((item) => item.type)).toEqual([
      "user",
      "assistant"
    ])
  })

  it("is nowhere when there is nothing old", () => {
    const story = new Story().ready()
    story.post("only a question")
    expect(choosePoint(story.agent, 0)).toBeUndefined()
  })
})

describe("a summary without a model", () => {
  it("has something of everything and stays small", () => {
    const story = talked(400, 3000)
    const text = extract(story.agent.transcript)
    expect(text.length).toBeLessThanOrEqual(limits.summaryCharsMax)
    expect(text).toContain("question 0")
    expect(text.isWellFormed()).toBe(true)
    expect(extract([])).toBe("")
  })
})

const worked = (calls: number): Story => {
  const story = new Story().ready()
  for (let index = 0; index < calls; index++) {
    story.inBatch(textItem("w".repeat(200)), callItem("pay", shellTool, `{"invoice":"INV-${index}"}`))
    const { call_id } = story.state.calls.at(-1)!
    story.start(call_id)
    story.finish(call_id, `paid ${index}`)
    story.settle()
    story.request()
    story.respond([textItem("done")])
  }
  return story
}

describe("a stand-in for a summary", () => {
  it("names every call, its arguments and its outcome", () => {
    const text = extract(worked(40).agent.transcript)
    for (let index = 0; index < 40; index++) {
      expect(text).toContain(`pay {"invoice":"INV-${index}"} → success: paid ${index}`)
    }
    expect(text).toContain("user: go")
  })

  it("names every call also where there is little room", () => {
    const { transcript } = worked(100).agent
    const text = extract(transcript, 3600)
    expect(text.length).toBeLessThanOrEqual(3600)
    expect(text.match(/^pay .*→ success/gm)?.length).toBe(100)
  })

  it("still holds the facts when it is summed up again and again", () => {
    let items: ReadonlyArray<TranscriptItem> = worked(3).agent.transcript
    for (let round = 0; round < 20; round++) {
      const content = extract(items)
      for (let index = 0; index < 3; index++) expect(content).toContain(`"INV-${index}"} → success: paid ${index}`)
      const more = talked(6).agent.transcript
      items = [{ type: "summary", event_id: 1, content }, ...more]
      expect(extract(items).length).toBeLessThan(JSON.stringify(items).length)
    }
  })
})

describe("pieces of a transcript", () => {
  const tokensOf = (item: TranscriptItem): number => Math.ceil(JSON.stringify(item).length / 3)

  it("each fit, and hold everything in its order", () => {
    const { transcript } = worked(30).agent
    const pieces = piecesOf(transcript, { tokensMax: 500, tokensOf })
    expect(pieces.length).toBeGreaterThan(5)
    expect(pieces.flat()).toEqual(transcript)
    for (const piece of pieces) {
      expect(piece.reduce((sum, item) => sum + tokensOf(item), 0)).toBeLessThanOrEqual(500)
    }
  })

  it("of one item that fits nowhere are texts that do, and nothing of it is lost", () => {
    const story = new Story().ready()
    const long = Array.from({ length: 3000 }, (_, index) => `line ${index}`).join(" ")
    story.post(long)
    const pieces = piecesOf(story.agent.transcript, { tokensMax: 500, tokensOf })
    for (const piece of pieces) expect(tokensOf(piece[0]!)).toBeLessThanOrEqual(500)
    expect(pieces.flatMap((piece) => piece.map((item) => item.content)).join("")).toBe(`user: ${long}`)
  })
})

const small = { contextTokens: 700, maxOutputTokens: 100 }
const models = { "scripted/small": small, "scripted/full": { contextTokens: 100_000, maxOutputTokens: 100 } }
const summary: ReplySpec = { when: { role: "compaction" }, play: [say("They talked about numbers.")] }
const long = "x".repeat(400)

describe("a context that fills", () => {
  it("is summed up by the model itself, and the newest part stays word for word", async () => {
    const world = await worlds.open({
      models,
      scenarios: scenarios({ small: [summary, always(say(`${long} {{turn}}`))] })
    })
    const talk = await world.create({ model: "scripted/small" })
    for (let turn = 1; turn <= 8; turn++) {
      await talk.post(`message ${turn}`)
      expect((await talk.turns(turn)).kind).toBe("turn.completed")
    }
    const compacted = talk.of("turn.compacted")
    expect(compacted.length).toBeGreaterThanOrEqual(1)
    expect(compacted.length).toBeLessThan(8)
    expect(compacted[0]?.payload).toMatchObject({
      summary: "They talked about numbers.",
      tokens_before: expect.any(Number)
    })
    const { transcript } = await talk.agent()
    expect(transcript[0]).toMatchObject({ type: "summary", content: "They talked about numbers." })
    expect(transcript.at(-2)).toMatchObject({ type: "user", content: "message 8" })
    // Only between model calls, never under one.
    for (const { event_id } of compacted) expect(talk.runes[event_id]?.kind).toBe("turn.model_requested")
  })

  it("is summed up from its own text when the model cannot", async () => {
    const replies = [{ when: { role: "compaction" }, play: [fail("refusal")] }, always(say(long))]
    const world = await worlds.open({ models, scenarios: scenarios({ small: replies }), runFork: fastRunFork(50) })
    const talk = await world.create({ model: "scripted/small" })
    for (let turn = 1; turn <= 5; turn++) {
      await talk.post(`message ${turn}`)
      await talk.turns(turn)
    }
    expect(talk.of("turn.completed").length).toBe(5)
    expect(talk.of("turn.compacted")[0]?.payload.summary).toContain("user: message 1")
  })

  it("is summed up from its own text when asking fails for half of the time that an outage is waited out", async () => {
    const replies = [{ when: { role: "compaction" }, play: [fail("server_error")] }, always(say(long))]
    const factor = 200
    const [startMs, beganMs] = [1_763_251_200_000, performance.now()]
    const world = await worlds.open({
      models,
      scenarios: scenarios({ small: replies }),
      runFork: fastRunFork(factor),
      clock: { nowMs: () => startMs + Math.round((performance.now() - beganMs) * factor) }
    })
    const talk = await world.create({ model: "scripted/small" })
    for (let turn = 1; turn <= 5; turn++) {
      await talk.post(`message ${turn}`)
      expect((await talk.turns(turn)).kind).toBe("turn.completed")
    }
    expect(talk.of("turn.retry_scheduled").length).toBeGreaterThanOrEqual(1)
    expect(talk.of("turn.compacted")[0]?.payload.summary).toContain("user: message 1")
  })

  it("with nothing to sum up ends the turn with a typed error, and the next small message is answered", async () => {
    const seeing = { "scripted/small": { ...models["scripted/small"], images: true } }
    const world = await worlds.open({ models: seeing, scenarios: scenarios({ small: [summary, always(say("ok"))] }) })
    const talk = await world.create({ model: "scripted/small" })
    // An image counts for more than all that the model has room for.
    const image = { type: "image", media_type: "image/png", blob: { sha256: "0".repeat(64), bytes: 9 } } as const
    await talk.submit({ _tag: "PostMessage", content: [image], mode: "queue" })
    expect(await talk.turns()).toMatchObject({
      kind: "turn.error",
      payload: { error_type: "context_exceeded", retryable: false }
    })
    expect(talk.of("turn.model_requested")).toEqual([])
    expect(talk.of("turn.compacted")).toEqual([])
    expect((await talk.state()).session.status).toBe("active")
    await talk.post("hello")
    expect(await talk.turns(2)).toMatchObject({ kind: "turn.completed", payload: { final_output: "ok" } })
  })

  it("with a message that is too long sends its beginning and its end", async () => {
    const world = await worlds.open({ models, scenarios: scenarios({ small: [summary, always(say("{{input}}"))] }) })
    const talk = await world.create({ model: "scripted/small" })
    const parts = ["first ", "second"].map((text) => ({ type: "text" as const, text: text.repeat(500) }))
    for (const [turn, content] of ["y".repeat(5000), parts].entries()) {
      await talk.submit({ _tag: "PostMessage", content, mode: "queue" })
      expect((await talk.turns(turn + 1)).kind).toBe("turn.completed")
      expect(talk.of("turn.assistant_final")[turn]!.payload.content).toContain("characters left out")
      expect(talk.of("turn.started")[turn]!.payload.input).toEqual(content)
    }
  })

  it("that only the provider has noticed is summed up before the next attempt", async () => {
    let refused = 0
    const replies = [
      summary,
      { when: { turn: 3, attempt: 1 }, play: [fail("context_exceeded")] },
      always(say(`${long} {{turn}}`))
    ]
    const world = await worlds.open({
      models,
      scenarios: scenarios({ full: replies }),
      runFork: fastRunFork(50),
      liveTexts: channelTo<readonly [LiveText]>(() => {
        refused += 1
      })
    })
    const talk = await world.create({ model: "scripted/full" })
    for (let turn = 1; turn <= 3; turn++) {
      await talk.post(`message ${turn}`)
      await talk.turns(turn)
    }
    expect(talk.of("turn.completed").length).toBe(3)
    expect(talk.of("turn.retry_scheduled").map((rune) => rune.payload.error_type)).toEqual(["context_exceeded"])
    expect(talk.of("turn.compacted").length).toBe(1)
    const order = talk.kinds.slice(talk.kinds.indexOf("turn.retry_scheduled"))
    expect(order.slice(0, 5)).toEqual([
      "turn.retry_scheduled",
      "turn.retry_started",
      "turn.model_requested",
      "turn.compacted",
      "turn.model_requested"
    ])
    expect(refused).toBeGreaterThan(0)
  })

  it("that the provider never stops complaining about ends the turn, after a bounded number of summaries", async () => {
    const replies = [summary, { when: { turn: 1 }, play: [say(long)] }, always(fail("context_exceeded"))]
    const world = await worlds.open({ models, scenarios: scenarios({ full: replies }), runFork: fastRunFork(50) })
    const talk = await world.create({ model: "scripted/full" })
    await talk.post("one")
    await talk.turns(1)
    await talk.post("two")
    expect(await talk.turns(2)).toMatchObject({ kind: "turn.error", payload: { error_type: "context_exceeded" } })
    expect(talk.of("turn.compacted").length).toBeLessThanOrEqual(3)
    expect((await talk.state()).session.status).toBe("active")
  })

  it("is summed up in less than it was, however much the model has to say about it", async () => {
    const wordy = { when: { role: "compaction" }, play: [say("w".repeat(9000))] }
    const world = await worlds.open({ models, scenarios: scenarios({ small: [wordy, always(say(long))] }) })
    const talk = await world.create({ model: "scripted/small" })
    for (let turn = 1; turn <= 6; turn++) {
      await talk.post(`message ${turn}`)
      await talk.turns(turn)
    }
    expect(talk.of("turn.completed").length).toBe(6)
    expect(talk.of("turn.compacted").length).toBeGreaterThan(0)
    for (const { payload } of talk.of("turn.compacted")) expect(payload.summary).toMatch(/^w{100,1500}$/)
  })
})
