// Goal: images and files of people and tools are in the request until a provider refuses them, and from then on they are
// named. Method: stories with attachments, refused once in a retry and once at the end of a turn.
import { describe, expect, it } from "vitest"
import { assembleRequest, type RequestMessage } from "#src/machine/view/Request.ts"
import type { CallId } from "#src/rune/Ids.ts"
import type { Content } from "#src/rune/kinds/shared.ts"
import { callItem, readTool, Story } from "../support/story.ts"

const blob = { sha256: "a".repeat(64), bytes: 7 }
const image = { type: "image", media_type: "image/png", blob } as const
const named = `[image image/png, 7 bytes, blob:${blob.sha256}: the provider refused it, and it is not shown]`
const notes = { type: "file", name: "notes", text: "milk" } as const
const content: Content = [{ type: "text", text: "look" }, image, notes]

const messages = (story: Story): ReadonlyArray<RequestMessage> => assembleRequest(story.state, story.agent)

const begun = (): Story => {
  const story = new Story().ready()
  story.run({ _tag: "PostMessage", content, mode: "queue" })
  story.request()
  story.respond([callItem("shot", readTool), callItem("shot", readTool)])
  story.start("call_1")
  story.start("call_2")
  const shown = { attachments: [image], output: "a shot", duration_ms: 1 }
  story.run({ _tag: "FinishCall", call_id: "call_1" as CallId, status: "success", ...shown })
  story.run({ _tag: "FinishCall", call_id: "call_2" as CallId, status: "error", ...shown })
  story.settle()
  return story
}

const toolMessages = (story: Story) =>
  messages(story).flatMap((message) =>
    message.role === "tool" ? [[message.content, message.attachments] as const] : []
  )

const refuse = (story: Story, more: { readonly retryable: boolean }): void => {
  story.request()
  const error = { error_type: "attachment_refused", message: "bad image", source: "harness", ...more } as const
  story.run({ _tag: "FailModelCall", agent_id: story.root, error })
}

describe("what is attached", () => {
  it("is in the request, and a call that failed shows nothing", () => {
    const story = begun()
    expect(messages(story)[0]).toEqual({ role: "user", content })
    expect(toolMessages(story)).toEqual([
      ["a shot", [image]],
      ["The call failed.\na shot", undefined]
    ])
  })

  it.each([true, false])("is named once it was refused, retried %j, and what comes later is shown", (retryable) => {
    const story = begun()
    refuse(story, { retryable })
    const textOnly = [{ type: "text", text: "look" }, { type: "text", text: named }, notes]
    expect(messages(story)[0]).toEqual({ role: "user", content: textOnly })
    expect(toolMessages(story)[0]).toEqual([`a shot\n${named}`, undefined])
    if (retryable) story.run({ _tag: "RetryDue", agent_id: story.root })
    if (retryable) story.request()
    if (retryable) story.respond([{ type: "text", text: "I see nothing." }])
    story.post("plain")
    story.request()
    story.respond([{ type: "text", text: "yes" }])
    story.run({ _tag: "PostMessage", content, mode: "queue" })
    expect(messages(story).at(-1)).toEqual({ role: "user", content })
    expect(messages(story)[0]).toEqual({ role: "user", content: textOnly })
  })
})
