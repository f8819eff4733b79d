// Goal: what says nothing is no message and no goal, whoever says it. Method: the commands themselves, with every kind of
// nothing and with the least that is something.
import { describe, expect, it } from "vitest"
import type { Content } from "#src/rune/kinds/shared.ts"
import { Story } from "../support/story.ts"

const nothings: ReadonlyArray<Content> = ["", " \n\t", "\u00a0", [], [{ type: "text", text: " " }]]
const refusal = { _tag: "Refused", refusal: { code: "bad_request" } }

describe("a conversation", () => {
  it.each(nothings)("takes no message of %j", (content) => {
    const story = new Story()
    story.create()
    const runes = story.runes.length
    expect(story.send({ _tag: "PostMessage", content, mode: "queue" })).toMatchObject(refusal)
    expect(story.send({ _tag: "SendAgentMessage", to_agent_id: story.root, content })).toMatchObject(refusal)
    expect(story.runes).toHaveLength(runes)
  })

  it("takes no goal that says nothing", () => {
    const story = new Story()
    story.create()
    const payload = { plan_id: "plan_1" as never, goal: " \n", auto_start: true }
    expect(story.send({ _tag: "SubmitGoal", payload })).toMatchObject(refusal)
  })

  it("takes an attachment without a word", () => {
    const story = new Story()
    story.create()
    const content: Content = [
      { type: "text", text: "" },
      { type: "image", media_type: "image/png", url: "https://example.com/a.png" }
    ]
    expect(story.send({ _tag: "PostMessage", content, mode: "queue" })).toMatchObject({ _tag: "Accepted" })
  })
})
