// Goal: a yes to a changed call lasts no longer than it can be bound to that call. Method: a real question on record, and
// a policy that offers what each case says.
import { describe, expect, it } from "vitest"
import { Approvals } from "#src/conversation/Approvals.ts"
import type { Command } from "#src/machine/Command.ts"
import type { CallId } from "#src/rune/Ids.ts"
import type { ApprovalScope, Learns } from "#src/rune/kinds/tool.ts"
import { callItem, Story, shellTool } from "../support/story.ts"

const callId = "call_1" as CallId

const asked = () => {
  const story = new Story().inBatch(callItem("bash", shellTool, '{"command":"rm x"}'))
  const learns = { session: { for: "session" }, rule: { for: "good" } }
  const question = {
    policy_reason: "r",
    shown_as: { title: "t" },
    choices: ["once", "session", "rule"],
    learns
  } as const
  story.run({ _tag: "RequireApproval", call_id: callId, ...question })
  return story
}

const answered = async (scope: ApprovalScope, learns: Learns | undefined) => {
  const { state } = asked()
  const submitted: Array<Command> = []
  const approvals = new Approvals({
    conversations: {
      state: async () => state,
      submit: async (_id, command) => {
        submitted.push(command)
        return { event_id: 9, runes: [] }
      }
    },
    tools: {
      authorize: async () => ({
        _tag: "Ask",
        policy_reason: "r",
        shown_as: { title: "t" },
        ...(learns === undefined ? {} : { learns })
      })
    }
  })
  const hash = state.calls.find(({ call_id }) => call_id === callId)!.arguments_hash
  const changed = { command: "rm $x" }
  await approvals.approve(state.conversation_id, {
    call_id: callId,
    scope,
    arguments_hash: hash,
    arguments: changed,
    approver: "ada",
    channel: "cli"
  })
  return submitted
}

describe("a yes to a changed call", () => {
  it.each(["session", "rule"] as const)("for longer (%s) is refused when nothing can be bound", async (scope) => {
    const other = scope === "session" ? { rule: { for: "good" } } : { session: { for: "session" } }
    for (const learns of [undefined, {}, other])
      await expect(answered(scope, learns)).rejects.toMatchObject({ refusal: { code: "bad_request" } })
  })

  it("for longer is bound to the changed call, and once is to nothing", async () => {
    const bound = { session: { for: "the changed one" } }
    expect(await answered("session", bound)).toMatchObject([{ _tag: "ApproveCall", rule: bound.session }])
    const [once] = await answered("once", undefined)
    expect(once).toMatchObject({ _tag: "ApproveCall", scope: "once" })
    expect(once).not.toHaveProperty("rule")
  })
})
