/**
 * Goal: what is asked in the course of a call ends with that call, with its attempt and with the process, in the same
 * batch, once; nothing is asked in the course of a call that is over. Method: one story for each way.
 */
import { describe, expect, it } from "vitest"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import { askingCall, openQuestions, questionId } from "#src/machine/view/Questions.ts"
import type { CallId } from "#src/rune/Ids.ts"
import { callItem, Story, shellTool } from "../../support/story.ts"

const mcp = { ...shellTool, provenance: "mcp" }
const call = "call_1" as CallId
const question = questionId({ call_id: call, attempt: 1, ordinal: 1 })

const openCall = (story: Story, callId: CallId) =>
  story.run({
    _tag: "OpenCall",
    agent_id: story.root,
    call_id: callId,
    tool_name: "bad__question",
    arguments: {},
    tool: { effect_class: "pure", mutating: false, provenance: "mcp" }
  })

const asked = (tool: typeof mcp = mcp): Story => {
  const story = new Story().inBatch(callItem("bad__act", tool))
  story.start("call_1")
  openCall(story, question)
  story.ask(question)
  expect(openQuestions(story.state)).toHaveLength(1)
  return story
}

/** The call ids of the results that the last command wrote. */
const ended = (story: Story, from: number): ReadonlyArray<string> =>
  story.runes
    .slice(from)
    .filter(({ kind }) => kind === "tool.result")
    .map(({ payload }) => (payload as { call_id: string }).call_id)

describe("a question in the course of a call", () => {
  it("knows its call by its id", () => {
    expect(question).toBe("call_1.question_1_1")
    expect(askingCall(question)).toBe(call)
    expect(askingCall(call)).toBeUndefined()
  })

  it("keeps the form that its answer has to fit", () => {
    const story = new Story().inBatch(callItem("bad__act", mcp))
    story.start("call_1")
    openCall(story, question)
    const answer_schema = { type: "object", required: ["name"] }
    const shown_as = { title: "bad asks" }
    story.run({ _tag: "RequireApproval", call_id: question, policy_reason: "asked", shown_as, answer_schema })
    expect(story.call(question).approval).toMatchObject({ answer_schema })
  })

  it("ends with the result of the call", () => {
    const story = asked()
    const from = story.runes.length
    story.finish("call_1")
    expect(ended(story, from)).toEqual([call, question])
    expect(story.runes.at(-1)?.payload).toMatchObject({
      status: "cancelled",
      error: { message: expect.stringContaining("the call that asked has ended") }
    })
    expect(openQuestions(story.state)).toEqual([])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("ends with the turn, and once with the agent", () => {
    for (const command of [
      { _tag: "InterruptTurn", reason: "user" },
      { _tag: "Close", reason: "over" }
    ] as const) {
      const story = asked()
      const from = story.runes.length
      story.run(command)
      expect([...ended(story, from)].sort()).toEqual([call, question])
      expect(checkInvariants(story.runes)).toEqual([])
    }
  })

  it("ends when the call is started again", () => {
    const story = asked({ ...mcp, effect_class: "idempotent" })
    const from = story.runes.length
    story.run({ _tag: "StartCall", call_id: call, sandbox: { level: "none" } })
    expect(ended(story, from)).toEqual([question])
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("stays open while something else ends", () => {
    const story = new Story().inBatch(callItem("a", mcp), callItem("b", { ...mcp, mutating: false }))
    story.start("call_1")
    openCall(story, question)
    story.ask(question)
    story.run({ _tag: "FinishCall", call_id: "call_2" as CallId, status: "error", duration_ms: 0 })
    expect(openQuestions(story.state)).toHaveLength(1)
  })

  it("ends with the process, and an answer to it is told so", () => {
    const story = asked()
    const { resolved } = story.recover()
    expect(resolved).toBe(2)
    expect(openQuestions(story.state)).toEqual([])
    const verdict = story.refused({
      _tag: "ApproveCall",
      call_id: question,
      approver: "ada",
      channel: "test",
      scope: "once"
    })
    expect(verdict).toMatchObject({
      code: "already_decided",
      message: `${question} was cancelled: nobody waits for an answer any more`
    })
    expect(checkInvariants(story.runes)).toEqual([])
  })

  it("is not asked when the call does not run, or is over", () => {
    const story = new Story().inBatch(callItem("bad__act", mcp))
    const command = {
      _tag: "OpenCall",
      agent_id: story.root,
      call_id: question,
      tool_name: "bad__question",
      arguments: {},
      tool: { effect_class: "pure", mutating: false, provenance: "mcp" }
    } as const
    expect(story.refused(command)).toMatchObject({ code: "invalid_state", message: "call_1 is no longer running" })
    story.start("call_1")
    story.finish("call_1")
    expect(story.refused(command)).toMatchObject({ code: "invalid_state" })
  })
})
