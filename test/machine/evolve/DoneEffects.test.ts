// Goal: what an agent did to the world is in every request, however often its conversation is summed up. Method: stories
// whose calls are cut out of the transcript, and the text that the next request has of them.
import { describe, expect, it } from "vitest"
import { effectsText, shortened } from "#src/machine/evolve/DoneEffects.ts"
import { limits } from "#src/machine/MachineLimits.ts"
import { assembleRequest } from "#src/machine/view/Request.ts"
import type { CallId } from "#src/rune/Ids.ts"
import { callItem, readTool, Story, shellTool, textItem, writeTool } from "../../support/story.ts"

const runCall = (story: Story, name: string, args: string, output = "ok"): void => {
  if (story.agent.turn === null) story.post("go")
  story.request()
  story.respond([callItem(name, shellTool, args)])
  const { call_id } = story.state.calls.at(-1)!
  story.start(call_id)
  story.finish(call_id, output)
  story.settle()
}

const compact = (story: Story, summary = "s"): void => {
  story.run({ _tag: "Compact", agent_id: story.root, upto: story.state.head, summary })
}

describe("what an agent has done", () => {
  it("is told once its call is no longer among the messages, after any number of summaries", () => {
    const story = new Story().ready()
    runCall(story, "pay", '{"invoice":"INV-7"}', "paid\n  INV-7")
    expect(effectsText(story.agent)).toBe("")
    for (let round = 0; round < 5; round++) {
      compact(story, `summary ${round}`)
      const text = JSON.stringify(assembleRequest(story.state, story.agent))
      expect(text).toContain(JSON.stringify('- pay {"invoice":"INV-7"} → success: paid INV-7').slice(1, -1))
      expect(text).toContain(`summary ${round}`)
    }
  })

  it("is told also where there is no summary to tell it beside", () => {
    const story = new Story().ready()
    runCall(story, "pay", "{}")
    const transcript = story.agent.transcript.filter((item) => item.type === "user")
    const told = assembleRequest(story.state, { ...story.agent, transcript })
    expect(told[0]).toMatchObject({ role: "user", content: expect.stringContaining("- pay {} → success: ok") })
    expect(told.length).toBe(2)
  })

  it("has calls that failed or whose outcome is unknown, with what is known of them", () => {
    const story = new Story().inBatch(callItem("pay", shellTool, '{"n":1}'), callItem("pay", shellTool, '{"n":2}'))
    story.start("call_1")
    const error = { code: "declined", message: "no money" }
    const failed = { _tag: "FinishCall", call_id: "call_1" as CallId, status: "error", error, duration_ms: 1 } as const
    story.run(failed)
    story.start("call_2")
    story.run({ _tag: "FinishCall", call_id: "call_2" as CallId, status: "unknown", duration_ms: 1 })
    story.settle()
    compact(story)
    expect(effectsText(story.agent).split("\n").slice(1)).toEqual([
      '- pay {"n":1} → error: declined: no money',
      '- pay {"n":2} → outcome unknown, it may have taken effect'
    ])
  })

  it("has no call that never ran, and none that does no harm when it is done again", () => {
    const story = new Story().inBatch(
      callItem("pay", shellTool),
      callItem("look", readTool),
      callItem("write", writeTool, '{"a":1}')
    )
    story.ask("call_1")
    story.run({ _tag: "DenyCall", call_id: "call_1" as CallId, approver: "ada", reason: "no" })
    for (const id of ["call_2", "call_3"]) {
      story.start(id)
      story.finish(id)
    }
    story.settle()
    expect(story.agent.effects).toEqual([])
  })

  it("is bounded: many calls of one tool do not push out the only one of another", () => {
    const story = new Story().ready()
    runCall(story, "pay", `{"note":"${"n".repeat(500)}","to":"ada"}`, "o".repeat(500))
    for (let count = 0; count < limits.effectsMax + 4; count++) {
      runCall(story, "bash", `{"command":"make ${count}"}`)
      compact(story)
    }
    const { effects, effects_dropped: dropped } = story.agent
    expect([effects.length, dropped]).toEqual([limits.effectsMax, 5])
    expect(effects[0]).toMatchObject({
      tool_name: "pay",
      arguments: expect.stringMatching(/^\{"note":"n+ … n*","to":"ada"\}$/)
    })
    expect(effects[0]?.arguments.length).toBeLessThanOrEqual(limits.effectArgumentsCharsMax)
    expect(effects[0]?.outcome.length).toBe(limits.effectOutcomeCharsMax)
    expect(effects[1]?.arguments).toBe('{"command":"make 5"}')
    expect(effectsText(story.agent).split("\n").at(-1)).toMatch(/^- and 5 more that are not listed/)
  })

  it("is nobody's where the agent is gone or was never there", () => {
    const story = new Story().inBatch(callItem("pay", shellTool))
    const call = {
      call_id: "call_9" as CallId,
      tool_name: "pay",
      arguments: {},
      arguments_hash: "h",
      effect_class: "effect",
      mutating: true
    } as const
    story.tell("tool.call", call, { agent_id: "agt_nobody" as never })
    story.tell(
      "tool.result",
      { call_id: "call_9" as CallId, status: "success", duration_ms: 1 },
      { agent_id: "agt_nobody" as never }
    )
    expect(story.agent.effects).toEqual([])
  })
})

describe("a text that is shortened", () => {
  it("has its beginning and its end, and never more than it may", () => {
    const text = "abcdefghij".repeat(10)
    expect(shortened(text, 100)).toBe(text)
    for (let max = 0; max < 100; max++) expect(shortened(text, max).length).toBeLessThanOrEqual(max)
    expect(shortened(text, 33)).toBe(`${text.slice(0, 20)} … ${text.slice(-10)}`)
    expect(shortened("👩‍👩‍👧".repeat(20), 30).isWellFormed()).toBe(true)
  })
})

describe("the input that is being worked on", () => {
  it("stays word for word while its turn runs, and no longer", () => {
    const story = new Story().ready()
    runCall(story, "pay", "{}")
    compact(story)
    compact(story)
    expect(story.agent.transcript.map((item) => item.type)).toEqual(["user", "summary"])
    story.request()
    story.respond([textItem("done")])
    compact(story)
    expect(story.agent.transcript.map((item) => item.type)).toEqual(["summary"])
  })
})

describe("an input that did not fit", () => {
  const error = { error_type: "context_exceeded", message: "too large", retryable: false } as const
  const big = `begin ${"b".repeat(5000)} end`
  const failed = (content: string | ReadonlyArray<{ readonly type: "text"; readonly text: string }>): Story => {
    const story = new Story().ready()
    story.run({ _tag: "PostMessage", content, mode: "queue" })
    story.run({ _tag: "FailTurn", agent_id: story.root, error })
    return story
  }

  it("is only mentioned in later requests, in whatever form it came", () => {
    for (const content of [big, [{ type: "text", text: big }] as const]) {
      const story = failed(content)
      story.post("hello")
      const [first, second] = assembleRequest(story.state, story.agent)
      expect(first?.role === "user" && first.content).toMatch(
        /^\[A message of 50\d\d characters was left out.*begin b+ … b+ end/
      )
      expect(JSON.stringify(first).length).toBeLessThan(700)
      expect(second).toEqual({ role: "user", content: "hello" })
    }
  })

  it("is whole again when its turn is retried", () => {
    const story = failed(big)
    story.run({ _tag: "RetryTurn" })
    expect(assembleRequest(story.state, story.agent)).toEqual([{ role: "user", content: big }])
  })

  it("stays when it was answered: then it can be summed up", () => {
    const story = new Story().ready()
    story.post(big)
    story.request()
    story.respond([callItem("look", readTool)])
    story.run({ _tag: "FailTurn", agent_id: story.root, error })
    expect(assembleRequest(story.state, story.agent)[0]).toEqual({ role: "user", content: big })
  })

  it("is left out also behind the summary of what came before it", () => {
    const story = new Story().ready()
    runCall(story, "pay", "{}")
    compact(story)
    story.run({ _tag: "FailTurn", agent_id: story.root, error })
    expect(story.agent.transcript[0]).toMatchObject({ type: "user", unfit: true })
  })

  it("of a turn that fails with nothing said, or is retried with nothing kept, changes nothing", () => {
    const story = new Story().ready()
    story.post("go")
    story.tell("turn.compacted", { upto: story.state.head, summary: "s" }, {})
    const place = { agent_id: story.root, turn_id: story.turn.turn_id }
    Object.assign(story.agent, { transcript: [] })
    story.tell("turn.error", error, place)
    story.run({ _tag: "RetryTurn" })
    expect(story.agent.transcript).toEqual([])
  })
})
