/**
 * Goal: a provider that is away is waited for as long as the conversation is patient, and no longer; what only a
 * person can mend waits for one; both are in front of whoever supervises. Verifies: INV-TURN-TERMINAL.
 */
import { describe, expect, it } from "vitest"
import { outageMs } from "#src/machine/decide/model.ts"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { limits, withRetryDefaults } from "#src/machine/MachineLimits.ts"
import { attentionItems, attentionOf } from "#src/machine/view/Supervision.ts"
import type { PlanId } from "#src/rune/Ids.ts"
import type { ConversationConfig } from "#src/rune/kinds/shared.ts"
import { PlanStory } from "../support/planStory.ts"
import { Story, textItem } from "../support/story.ts"

const outage = { error_type: "overloaded", message: "busy", retryable: true, source: "harness" } as const
const wrongKey = { error_type: "authentication", message: "no", retryable: false, source: "harness" } as const

const asked = (config: ConversationConfig = {}, story: Story = new Story().ready(config)): Story => {
  story.post("go")
  story.request()
  return story
}

const fail = (story: Story, more: object = {}) =>
  story.run({ _tag: "FailModelCall", agent_id: story.root, error: outage, outage: true, provider: "openai", ...more })

/** Fails until the turn ends; returns how long it was tried and how often. */
const failUntilOver = (story: Story, more: object = {}) => {
  const fromMs = story.nowMs
  for (let tries = 1; ; tries++) {
    if (fail(story, more).includes("turn.error")) return { tries, tookMs: story.nowMs - fromMs }
    story.nowMs = story.turn.retry!.due_ms
    story.run({ _tag: "RetryDue", agent_id: story.root })
    story.request()
  }
}

describe("an outage", () => {
  it("is waited out for fifteen minutes, with delays of a minute at most", () => {
    const { tookMs, tries } = failUntilOver(asked())
    expect(tookMs).toBeLessThanOrEqual(limits.llmRetryMs + 100)
    expect(tookMs).toBeGreaterThan(limits.llmRetryMs - limits.llmRetryDelayMsMax - 100)
    expect(tries).toBeGreaterThan(15)
  })

  it("is waited out for six hours where a goal is pursued", () => {
    const story = asked({}, new PlanStory().goal())
    const { tookMs } = failUntilOver(story)
    expect(tookMs).toBeGreaterThan(limits.llmRetryGoalMs - limits.llmRetryDelayMsMax - 1000)
  })

  it("is waited out for as long as the conversation says, or tried as often as it says", () => {
    expect(failUntilOver(asked({ limits: { llm_retry_ms: 0 } })).tries).toBe(1)
    expect(failUntilOver(asked({ limits: { max_llm_retries: 7 } })).tries).toBe(8)
    expect(failUntilOver(asked({ limits: { max_llm_retries: 0, llm_retry_ms: 99_999 } })).tries).toBe(1)
  })

  it("is over with the first answer: the next one has all the time again", () => {
    const story = asked()
    fail(story)
    expect(story.turn.failing_since_ms).not.toBeNull()
    story.run({ _tag: "RetryDue", agent_id: story.root })
    story.request()
    story.respond([textItem("here"), { type: "tool_call", tool_name: "x", arguments_text: "{}" }])
    expect(story.turn.failing_since_ms).toBeNull()
  })

  it("is no reason to ask for ever what was answered wrongly", () => {
    expect(failUntilOver(asked(), { outage: false }).tries).toBe(limits.maxLlmRetries + 1)
  })

  it("that takes longer than a moment is shown with its next try", () => {
    const story = asked()
    for (let failures = 1; failures <= 3; failures++) {
      fail(story)
      expect(attentionItems(story.state).length, `${failures}`).toBe(failures < 3 ? 0 : 1)
      if (failures < 3) {
        story.nowMs = story.turn.retry!.due_ms
        story.run({ _tag: "RetryDue", agent_id: story.root })
        story.request()
      }
    }
    expect(attentionItems(story.state)).toMatchObject([
      {
        type: "provider",
        title: "waiting for openai (overloaded): busy",
        expires_ms: story.turn.retry!.due_ms,
        since_ms: story.turn.failing_since_ms
      }
    ])
    expect(attentionOf(story.state)).toBe("running")
    expect(story.run({ _tag: "RetryTurn" })).toEqual(["turn.retry_started"])
    expect(attentionItems(story.state)).toEqual([])
    expect(checkInvariants(story.runes)).toEqual([])
  })
})

describe("what only a person can mend", () => {
  const stop = (story: Story, more: object = {}) =>
    fail(story, { error: wrongKey, outage: false, waits_for: "person", ...more })

  it("waits without a timer until somebody retries or stops", () => {
    const story = asked()
    expect(stop(story)).toEqual(["turn.retry_scheduled"])
    expect(story.effects).toEqual([])
    expect(attentionOf(story.state)).toBe("awaiting_input")
    expect(attentionItems(story.state)).toMatchObject([
      { type: "provider", title: "openai needs a person (authentication): no", expires_ms: null }
    ])
    expect(story.run({ _tag: "RetryTurn" })).toEqual(["turn.retry_started"])
    story.request()
    expect(stop(story, { provider: undefined })).toEqual(["turn.retry_scheduled"])
    expect(attentionItems(story.state)[0]?.title).toBe("the provider needs a person (authentication): no")
    expect(story.run({ _tag: "InterruptTurn", reason: "never mind" })).toEqual(["turn.interrupted"])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("ends the turn where nobody is to be waited for", () => {
    expect(stop(asked({ limits: { llm_retry_ms: 0 } }))).toEqual(["turn.error"])
    expect(stop(asked({ limits: { max_llm_retries: 2 } }))).toEqual(["turn.error"])
  })
})

describe("how long an outage is waited out", () => {
  const given = { limits: { max_tool_retries: 3 } }

  it("is what the conversation says, else what its server does, else the default", () => {
    expect(withRetryDefaults(given)).toBe(given)
    expect(withRetryDefaults(given, {})).toBe(given)
    const retry = { llm_retry_ms: 5, llm_retry_goal_ms: limits.llmRetryGoalMs }
    expect(withRetryDefaults(given, { llmRetryMs: 5 })).toEqual({ limits: { max_tool_retries: 3, ...retry } })
    expect(withRetryDefaults({}, { llmRetryGoalMs: 7 }).limits).toEqual({
      llm_retry_ms: limits.llmRetryMs,
      llm_retry_goal_ms: 7
    })
    for (const own of [{ llm_retry_ms: 1 }, { llm_retry_goal_ms: 1 }])
      expect(withRetryDefaults({ limits: own }, { llmRetryMs: 5, llmRetryGoalMs: 7 }).limits).toEqual(own)
  })

  it("may differ while a goal is pursued", () => {
    const story = new Story().ready({ limits: { llm_retry_ms: 5, llm_retry_goal_ms: 7 } })
    expect(outageMs(story.state)).toBe(5)
    story.run({ _tag: "SubmitGoal", payload: { plan_id: "plan_1" as PlanId, goal: "g", auto_start: false } })
    expect(outageMs(story.state)).toBe(7)
  })
})
