// Goal: a question of an agent reaches a person and only a person answers it. Method: the tool itself, with transcripts
// as the log would have them.
import { describe, expect, it } from "vitest"
import type { ConversationState } from "#src/machine/State.ts"
import { answerIssue, makeAskUser } from "#src/tool/builtin/question/AskUser.ts"
import { previewOf, runTool, type TestContext } from "../support/tool/runTool.ts"

const tool = makeAskUser()

/** A conversation in which a model made the call with these arguments. */
const context = (written: object): TestContext => {
  const calls = [{ call_id: "call_1", tool_name: "ask_user", arguments: written }]
  const transcript = [{ type: "assistant", event_id: 1, turn_id: "turn_1", content: "", items: [], calls }]
  const state = { agents: [{ transcript: [] }, { transcript }] } as unknown as ConversationState
  return { call_id: "call_1", conversation: { state: () => state } } as unknown as TestContext
}

describe("ask_user", () => {
  it("gives the model what the person said", async () => {
    const written = { question: "Which?", options: ["a", "b"] }
    const outcome = await runTool(tool, { ...written, answer: "neither" }, context(written))
    expect(outcome).toEqual({ status: "success", output: "neither" })
  })

  it("takes no answer from the model, even when a person lets it pass", async () => {
    const written = { question: "Which?", answer: "a" }
    for (const input of [written, { ...written, answer: "b" }]) {
      expect(await runTool(tool, input, context(written))).toMatchObject({
        status: "error",
        error: { code: "invalid_arguments" }
      })
    }
  })

  it("without an answer is an error, and a yes without one is told so", async () => {
    for (const answer of [undefined, "", "  ", 7]) {
      const outcome = await runTool(tool, { question: "Which?", answer }, context({ question: "Which?" }))
      expect(outcome.status).toBe("error")
      expect(answerIssue("ask_user", { question: "Which?", answer })).toMatch(/answer/)
    }
    expect(answerIssue("ask_user", undefined)).toMatch(/answer/)
    expect(answerIssue("ask_user", { answer: "yes" })).toBeUndefined()
    expect(answerIssue("bash", {})).toBeUndefined()
  })

  it("shows the question and what can be chosen", async () => {
    const shown = await previewOf(tool, { question: "Which?", options: ["a", "b"] }, { workspace: undefined })
    expect(shown).toEqual({ title: "Which?", detail: "- a\n- b" })
    expect(await previewOf(tool, { question: "Why?" }, { workspace: undefined })).toEqual({ title: "Why?" })
    expect(tool).toMatchObject({ approval: "always", mutating: false, effect_class: "pure" })
    expect(tool.access({ question: "Why?" })).toEqual({})
  })
})
