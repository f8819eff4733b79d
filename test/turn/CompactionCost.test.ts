// Goal: summing up costs what any call costs: reserved before it is made, counted when it is over, and not made where the
// budget has no room for it. Method: the real runtime with a model of a tiny context, its calls counted at the port.
// Verifies: INV-AGENT-BUDGET
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { describe, expect, it } from "vitest"
import { user } from "#src/provider/Canonical.ts"
import type { Usage } from "#src/provider/Provider.ts"
import { makeRegistry, type Registry } from "#src/provider/Registry.ts"
import type { Budget } from "#src/rune/kinds/shared.ts"
import { AttemptCost } from "#src/turn/AttemptCost.ts"
import { Models } from "#src/turn/Models.ts"
import { Spending } from "#src/turn/Spending.ts"
import { fastRunFork } from "../support/runtime/clocks.ts"
import { always, fail, type ReplySpec, say, scenarios } from "../support/runtime/scenarios.ts"
import { type Talk, useWorlds } from "../support/runtime/World.ts"
import { Story } from "../support/story.ts"

const worlds = useWorlds()

const price = { input: 2_000_000, cachedInput: 200_000, cacheWrite: 2_500_000, output: 10_000_000 }
const models = { "scripted/small": { contextTokens: 700, maxOutputTokens: 100, price } }
const summary: ReplySpec = { when: { role: "compaction" }, play: [say("They talked about numbers.")] }
const answer = always(say(`${"x".repeat(400)} {{turn}}`))

interface Counted {
  readonly role: string
  readonly usage: Usage
}

/** Models whose calls are counted as the provider counts them. */
const counting =
  (counted: Array<Counted>) =>
  (registry: Registry): Registry => ({
    ...registry,
    resolve: (fullName) =>
      Result.map(registry.resolve(fullName), ({ provider, ...rest }) => ({
        ...rest,
        provider: {
          name: provider.name,
          stream: (request, options) =>
            Stream.tap(provider.stream(request, options), (event) =>
              Effect.sync(() => {
                if (event.type === "usage") counted.push({ role: request.metadata?.role ?? "", usage: event.usage })
              })
            )
        }
      }))
  })

const converse = async (talk: Talk, turns: number): Promise<void> => {
  for (let turn = 1; turn <= turns; turn++) {
    await talk.post(`message ${turn}`)
    await talk.turns(turn)
  }
}

const open = async (replies: ReadonlyArray<ReplySpec>, budget?: Budget) => {
  const counted: Array<Counted> = []
  const world = await worlds.open({
    models,
    scenarios: scenarios({ small: replies }),
    wrapRegistry: counting(counted),
    runFork: fastRunFork(50)
  })
  const talk = await world.create({ model: "scripted/small", ...(budget === undefined ? {} : { budget }) })
  return { talk, counted, sumsUp: () => counted.filter(({ role }) => role === "compaction").length }
}

const total = (counted: ReadonlyArray<Counted>, field: keyof Usage): number =>
  counted.reduce((sum, { usage }) => sum + usage[field], 0)

const costUsd = (counted: ReadonlyArray<Counted>): number =>
  counted.reduce((sum, { usage }) => sum + usage.input_tokens * price.input + usage.output_tokens * price.output, 0) /
  1e12

describe("summing up", () => {
  it("is counted with the call that it made room for, tokens and money", async () => {
    const { counted, sumsUp, talk } = await open([summary, answer])
    await converse(talk, 8)
    expect(sumsUp()).toBeGreaterThanOrEqual(1)
    const { usage } = await talk.state()
    expect(usage.input_tokens).toBe(total(counted, "input_tokens"))
    expect(usage.output_tokens).toBe(total(counted, "output_tokens"))
    expect(usage.usd).toBeCloseTo(costUsd(counted), 6)
    const told = [...talk.of("turn.assistant_final"), ...talk.of("turn.compacted"), ...talk.of("turn.model_requested")]
    const finals = told.map(({ payload }) => payload.usage?.output_tokens ?? 0)
    expect(finals.reduce((sum, tokens) => sum + tokens, 0)).toBe(total(counted, "output_tokens"))
  })

  it("is counted when the call that it made room for fails", async () => {
    const stumbles = { when: { input: "message 5", attempt: 1 }, play: [fail("overloaded")] }
    const { counted, sumsUp, talk } = await open([summary, stumbles, answer])
    await converse(talk, 5)
    expect(sumsUp()).toBe(1)
    expect(talk.of("turn.retry_scheduled")[0]?.payload).not.toHaveProperty("usage")
    const [made] = talk.of("turn.compacted")
    const cost = counted.find(({ role }) => role === "compaction")?.usage
    expect(made?.payload.usage).toMatchObject({
      input_tokens: cost?.input_tokens,
      output_tokens: cost?.output_tokens
    })
    expect((await talk.state()).usage.input_tokens).toBe(total(counted, "input_tokens"))
  })

  it("is left to the text itself where the budget has no room for it, and the budget holds", async () => {
    const free = await open([summary, answer])
    await converse(free.talk, 5)
    expect(free.sumsUp()).toBe(1)
    // As much as the answers need, and nothing for a summary beside the call that comes after it.
    const answers = free.counted.filter(({ role }) => role !== "compaction")
    const tokens = total(answers, "input_tokens") + total(answers, "output_tokens") - 1
    const tight = await open([summary, answer], { tokens })
    await converse(tight.talk, 5)
    expect(tight.sumsUp()).toBe(0)
    expect(tight.talk.of("turn.compacted")[0]?.payload.summary).toContain("user: message 1")
    expect(tight.talk.of("turn.completed").length).toBe(5)
    const last = tight.counted.slice(-1)
    const { usage } = await tight.talk.state()
    expect(usage.input_tokens + usage.output_tokens - tokens).toBeLessThan(
      total(last, "input_tokens") + total(last, "output_tokens")
    )
  })
})

describe("what is reserved for summing up", () => {
  const request = { requestId: "req_1", model: "small", messages: [user("y".repeat(297))] }
  // 99 tokens and the wrapping of a message, and an answer of 100.
  const worst = 99 + 8 + 100

  const purseOf = (budget: Budget) => {
    const story = new Story().ready({ budget })
    const spending = new Spending()
    const commands = {
      conversationId: story.conversationId,
      state: () => story.state,
      submit: async () => undefined,
      settled: async () => undefined
    }
    const registry = makeRegistry({ key: () => undefined, models })
    const options = { commands, spending, nowMs: () => story.nowMs, models: new Models(registry) }
    const attemptCost = new AttemptCost(options, { agentId: story.root, fullName: "scripted/small" })
    const reserve = () => spending.reserve(story.state, story.root, attemptCost.estimate(request), story.nowMs)
    return { attemptCost, reserve }
  }

  it("stands in the way of others until the attempt is over", () => {
    const { attemptCost, reserve } = purseOf({ tokens: 2 * worst })
    expect(attemptCost.estimate(request).tokens).toBe(worst)
    const call = reserve()
    expect(attemptCost.hasRoomFor(request)).toBe(true)
    expect(reserve()._tag).toBe("Contended")
    attemptCost.close()
    expect(reserve()._tag).toBe("Reserved")
    expect(call._tag).toBe("Reserved")
  })

  it("is refused beside a call that may need the rest", () => {
    const { attemptCost, reserve } = purseOf({ tokens: 2 * worst - 1 })
    reserve()
    expect(attemptCost.hasRoomFor(request)).toBe(false)
  })

  it("is told once, and is nothing where nothing is known to have been used", () => {
    const { attemptCost } = purseOf({})
    expect(attemptCost.takeSettled()).toEqual({})
    attemptCost.settle({ input_tokens: 3, output_tokens: 1 })
    expect(attemptCost.takeSettled()).toEqual({ usage: { input_tokens: 3, output_tokens: 1 } })
    expect(attemptCost.takeSettled()).toEqual({})
  })
})
