// Goal: whatever ends a request settles it once: with what was told, else with an estimate that is marked; and a cost that is
// not known is never shown as zero. Method: conversations told command by command, ended in every way the machine knows.
// Verifies: INV-AGENT-BUDGET
import { describe, expect, it } from "vitest"
import { settlementOf } from "#src/machine/decide/Settlement.ts"
import { limits } from "#src/machine/MachineLimits.ts"
import { costText } from "#src/machine/view/PlanSummary.ts"
import { attentionItems } from "#src/machine/view/Supervision.ts"
import { pendingWork } from "#src/machine/work/PendingWork.ts"
import { makeRequestId } from "#src/rune/Ids.ts"
import type { Usage } from "#src/rune/kinds/shared.ts"
import { addTo, addTotals, costUsd, noUsage, shownUsage, usageOf } from "#src/rune/UsageTotals.ts"
import { Story, textItem } from "../../support/story.ts"

const priced = { input_tokens: 100, input_usd: 0.5, output_usd_per_token: 0.01 }
const known = (more = {}) => ({ estimate: priced, told: null, chars: 0, ...more })

const asked = (more = {}): Story => {
  const story = new Story().ready()
  story.post("go")
  ask(story, more)
  return story
}

const ask = (story: Story, more = {}): void => {
  const request = { agent_id: story.root, request_id: makeRequestId(story.ids), provider: "p", model: "m" }
  story.run({ _tag: "RequestModel", ...request, estimate: priced, ...more })
}

const say = (story: Story, content: string, usage?: Usage): void => {
  story.run({ _tag: "AppendText", agent_id: story.root, content, ...(usage === undefined ? {} : { usage }) })
}

const estimate = { input_tokens: 100, output_tokens: 2, usd: 0.52, estimated: true }
const error = { error_type: "timeout", message: "no answer", retryable: true, source: "harness" } as const

describe("what a request is charged with", () => {
  it("is nothing where there is none, or where nothing is known of it", () => {
    expect(settlementOf(null)).toBeUndefined()
    expect(settlementOf(undefined)).toBeUndefined()
    expect(settlementOf(known({ estimate: null }))).toBeUndefined()
  })

  it("is an estimate from the request and the text, with its price where that is known", () => {
    expect(settlementOf(known({ chars: 4 }))).toEqual(estimate)
    const unpriced = settlementOf(known({ estimate: { input_tokens: 100 }, chars: 4 }))
    expect(unpriced).toEqual({ input_tokens: 100, output_tokens: 2, estimated: true })
  })

  it("is what was told, and for the text since then an estimate", () => {
    const told = { input_tokens: 90, output_tokens: 1, cached_tokens: 50, usd: 0.3 }
    expect(settlementOf(known({ told }))).toEqual(told)
    expect(settlementOf(known({ told, chars: 3 }))).toEqual(told)
    expect(settlementOf(known({ told, chars: 4 }))).toEqual({ ...told, output_tokens: 2, usd: 0.31, estimated: true })
    const { usd: _, ...bare } = told
    expect(settlementOf(known({ told: bare, chars: 4 }))).toEqual({ ...bare, output_tokens: 2, estimated: true })
    expect(settlementOf(known({ told, estimate: null, chars: 4 }))).not.toHaveProperty("usd")
  })
})

describe("a request under way", () => {
  it.each<readonly [string, (story: Story) => unknown]>([
    ["an interrupt", (story) => story.run({ _tag: "InterruptTurn", reason: "user" })],
    ["new input", (story) => story.post("other", "steer")],
    ["a kill", (story) => story.run({ _tag: "KillAgent", agent_id: story.root, reason: "user", force: true })],
    ["the end of the conversation", (story) => story.run({ _tag: "Close", reason: "done" })],
    ["a broken engine", (story) => story.run({ _tag: "FailTurn", agent_id: story.root, error })],
    ["an answer without figures", (story) => story.respond([textItem("done")], story.root)]
  ])("is charged by %s, once", (what, end) => {
    const story = asked()
    say(story, "word")
    if (what === "an answer without figures")
      story.run({ _tag: "ReceiveResponse", agent_id: story.root, items: [textItem("word")] })
    else end(story)
    expect(story.state.usage).toMatchObject(estimate)
    expect(story.state.agents[0]?.usage ?? story.state.usage).toMatchObject(estimate)
  })

  it("counts its thoughts as text, and remembers what was told last", () => {
    const story = asked()
    story.run({ _tag: "AppendReasoning", agent_id: story.root, content: "hmm…" })
    expect(story.turn?.request).toMatchObject({ chars: 4, told: null })
    say(story, "", { input_tokens: 90, output_tokens: 7 })
    say(story, "word")
    story.run({ _tag: "InterruptTurn", reason: "user" })
    expect(story.state.usage).toMatchObject({ input_tokens: 90, output_tokens: 7, unpriced: true, estimated: false })
  })

  it("is charged when another one replaces it, as told or as estimated", () => {
    const story = asked()
    say(story, "word")
    ask(story)
    expect(story.runes.at(-1)?.payload).toMatchObject({ usage: estimate, partial_output: "word" })
    ask(story, { usage: { input_tokens: 1, output_tokens: 1, usd: 0 } })
    expect(story.state.usage).toMatchObject({ input_tokens: 101, output_tokens: 3 })
    ask(story)
    expect(story.state.usage.input_tokens).toBe(201)
  })

  it("is free where the provider turned it away, and told where it failed half-way", () => {
    const story = asked()
    const failed = { _tag: "FailModelCall", agent_id: story.root, error, outage: true } as const
    story.run(failed)
    expect(story.runes.at(-1)?.payload).not.toHaveProperty("usage")
    story.run({ _tag: "RetryDue", agent_id: story.root })
    ask(story)
    story.run({ ...failed, usage: estimate })
    expect(story.state.usage).toMatchObject(estimate)
  })

  it("is charged at the end of the process, with the next start, once", () => {
    const story = asked()
    say(story, "word")
    const request = story.turn?.request
    const { drafts, resolved } = story.recover()
    expect(resolved).toBe(0)
    expect(drafts).toHaveLength(1)
    expect(story.runes.at(-1)?.payload).toMatchObject({
      cut_off: [{ request_id: request?.request_id, usage: estimate }]
    })
    expect(story.state.usage).toMatchObject(estimate)
    expect(story.recover().drafts).toEqual([])
    ask(story)
    expect(story.runes.at(-1)?.payload).toMatchObject({ replaces: request?.request_id, partial_output: "word" })
    expect(story.runes.at(-1)?.payload).not.toHaveProperty("usage")
    story.tell("system.recovered", { pending: 0, resolved: 0, cut_off: [{ ...cut(story), usage: estimate }] })
    expect(story.state.usage).toMatchObject(estimate)
  })

  const cut = (story: Story) => ({
    agent_id: story.root,
    turn_id: story.turn!.turn_id,
    request_id: makeRequestId(story.ids)
  })

  it("for a summary is charged with the summary", () => {
    const story = asked({ purpose: "summary" })
    const usage = { input_tokens: 30, output_tokens: 3, usd: 0.1 }
    story.run({ _tag: "Compact", agent_id: story.root, upto: 1, summary: "short", usage })
    expect(story.turn?.request).toBeNull()
    expect(story.state.usage).toMatchObject({ ...usage, estimated: false })
    ask(story)
    expect(story.runes.at(-1)?.payload).not.toHaveProperty("replaces")
    const refused = story.refused({ _tag: "Compact", agent_id: story.root, upto: 1, summary: "shorter" })
    expect(refused.message).toContain("being answered")
  })
})

describe("a sum", () => {
  const free: Usage = { input_tokens: 1, output_tokens: 1, usd: 0 }
  const unknown: Usage = { input_tokens: 1, output_tokens: 1 }

  it("has a cost as long as every price is known", () => {
    const sum = noUsage()
    expect(costUsd(sum)).toBe(0)
    addTo(sum, free)
    addTo(sum, { input_tokens: 0, output_tokens: 0 })
    expect(usageOf(sum)).toEqual(free)
    addTo(sum, unknown)
    expect(costUsd(sum)).toBeNull()
    expect(usageOf(sum)).toEqual({ input_tokens: 2, output_tokens: 2 })
    const other = noUsage()
    addTotals(other, sum)
    expect(shownUsage(other)).toMatchObject({ input_tokens: 2, usd: null })
    expect(costText({ usage: other, tool_calls: 1, agents: 1 })).toContain("at an unknown cost")
  })

  it("says when some of it is an estimate", () => {
    const sum = noUsage()
    addTo(sum, { ...free, estimated: true, cached_tokens: 1, reasoning_tokens: 1 })
    expect(shownUsage(sum)).toMatchObject({ estimated: true, usd: 0 })
    expect(usageOf(sum, unknown)).toEqual({
      input_tokens: 2,
      output_tokens: 2,
      cached_tokens: 1,
      reasoning_tokens: 1,
      estimated: true
    })
  })
})

describe("a call that is held because its provider is down", () => {
  const held = (story: Story, more = {}) => {
    const circuit = { error_type: "circuit_open", message: "down", retryable: true, source: "harness" } as const
    const fields = { agent_id: story.root, error: circuit, outage: true, held: true, provider: "p", delay_ms: 10 }
    return story.run({ _tag: "FailModelCall", ...fields, ...more })
  }

  it("is no failure, whatever the limits of the conversation are, and another piece of work each time", () => {
    const story = new Story().ready({ limits: { max_llm_retries: 0, llm_retry_ms: 0 } })
    story.post("go")
    const keys = new Set<string>()
    for (let times = 1; times <= 3; times++) {
      for (const { key } of pendingWork(story.state)) keys.add(key)
      expect(held(story)).toEqual(["turn.retry_scheduled"])
      expect(story.runes.at(-1)?.payload).toMatchObject({ held: true, attempt: 1 })
      expect(story.turn).toMatchObject({ llm_failures: 0, holds: times, retry: { held: true } })
      expect(pendingWork(story.state)).toMatchObject([{ _tag: "RetryAfter", held_by: "p" }])
      for (const { key } of pendingWork(story.state)) keys.add(key)
      expect(attentionItems(story.state)).toMatchObject([{ type: "provider" }])
      story.run({ _tag: "RetryDue", agent_id: story.root })
    }
    expect(keys.size).toBe(6)
  })

  it("waits without a name where nobody said which provider it is", () => {
    const story = new Story().ready()
    story.post("go")
    held(story, { provider: undefined })
    expect(pendingWork(story.state)[0]).not.toHaveProperty("held_by")
  })

  it("is given up after as long as an outage is waited out", () => {
    const story = new Story().ready()
    story.post("go")
    held(story)
    story.run({ _tag: "RetryDue", agent_id: story.root })
    story.nowMs += limits.llmRetryMs + 10
    expect(held(story)).toEqual(["turn.error"])
  })
})
