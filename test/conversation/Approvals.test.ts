// Goal: a yes to a changed call lasts no longer than it can be bound to that call, and a yes for longer answers the questions
// that wait and that it covers, and no others. Method: real questions on record; a policy that offers what each case says,
// and the real one.

import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import type { BeforeCall } from "#src/contract/CallGates.ts"
import { CommandRefused } from "#src/contract/CommandErrors.ts"
import { Approvals } from "#src/conversation/Approvals.ts"
import type { Command } from "#src/machine/Command.ts"
import { evaluate } from "#src/policy/Evaluate.ts"
import type { CallId } from "#src/rune/Ids.ts"
import type { ApprovalScope, Learns } from "#src/rune/kinds/tool.ts"
import { fixedSource } from "#src/tool/Source.ts"
import type { Tool } from "#src/tool/Tool.ts"
import { makeRouter } from "#src/tool/ToolRouter.ts"
import { callItem, Story, shellTool } from "../support/story.ts"
import { authorizeCall } from "../support/tool/runTool.ts"

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
      authorize: () =>
        Effect.succeed({
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

  it("is refused when the policy denies what it was changed to, and nothing is submitted", async () => {
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
      tools: { authorize: () => Effect.succeed({ _tag: "Deny", reason: "rule 1 denies bash" }) }
    })
    const { arguments_hash } = state.calls.find(({ call_id }) => call_id === callId)!
    const answer = { call_id: callId, scope: "once", arguments_hash, approver: "ada", channel: "cli" } as const
    const changed = approvals.approve(state.conversation_id, { ...answer, arguments: { command: "rm -rf ." } })
    await expect(changed).rejects.toMatchObject({ refusal: { code: "invalid_state", data: { state: "denied" } } })
    expect(submitted).toEqual([])
  })

  it("for longer is bound to the changed call, and once is to nothing", async () => {
    const bound = { session: { for: "the changed one" } }
    expect(await answered("session", bound)).toMatchObject([{ _tag: "ApproveCall", rule: bound.session }])
    const [once] = await answered("once", undefined)
    expect(once).toMatchObject({ _tag: "ApproveCall", scope: "once" })
    expect(once).not.toHaveProperty("rule")
  })
})

const bash: Tool = {
  name: "bash",
  description: "runs a command",
  parameters: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  ...shellTool,
  provenance: "builtin",
  sandboxed: true,
  access: ({ command }) => ({ command: String(command) }),
  preview: ({ command }) => Effect.succeed({ title: String(command) }),
  run: () => Effect.succeed({ status: "success", output: "" })
}

/** A batch of commands that all wait for an answer, with the real policy and the real machine. */
const waiting = async (commands: ReadonlyArray<string>, more: { readonly beforeCall?: BeforeCall } = {}) => {
  const rules: Array<unknown> = []
  const story = new Story().ready({ workspace: "/w", policy: { mode: "auto" } })
  story.inBatch(...commands.map((command) => callItem("bash", shellTool, JSON.stringify({ command }))))
  const tools = makeRouter({
    sources: [fixedSource([bash])],
    evaluate,
    sandbox: { level: "bubblewrap", contained: true },
    rules,
    ...more
  })
  const ids = story.state.calls.map(({ call_id }) => call_id)
  for (const call of story.state.calls) {
    const verdict = await authorizeCall(tools, story.state, call)
    if (verdict._tag !== "Ask") throw new Error(verdict._tag)
    const { _tag, ...question } = verdict
    story.run({ _tag: "RequireApproval", call_id: call.call_id, ...question })
  }
  const approvals = new Approvals({
    conversations: {
      state: async () => story.state,
      submit: async (_id, command, idempotency) => {
        const verdict = story.send(command, idempotency)
        if (verdict._tag === "Refused") throw new CommandRefused({ refusal: verdict.refusal, command: command._tag })
        return { event_id: verdict._tag === "Accepted" ? story.state.head : verdict.outcome.last_event_id, runes: [] }
      }
    },
    tools,
    learn: async () => undefined
  })
  const approve = (at: number, scope: ApprovalScope, approver = "ada") => {
    const { arguments_hash } = story.state.calls.find(({ call_id }) => call_id === ids[at])!
    const answer = { call_id: ids[at]!, scope, arguments_hash, approver, channel: "cli" }
    return approvals.approve(story.conversationId, answer, { key: `answer ${at}`, hash: "h" })
  }
  const answers = () =>
    story.runes.flatMap((rune) =>
      rune.kind === "tool.approved"
        ? [[ids.indexOf(rune.payload.call_id), rune.payload.scope, rune.payload.approver, rune.payload.channel]]
        : []
    )
  return { story, rules, approve, answers }
}

describe("a yes for longer", () => {
  it.each(["session", "rule"] as const)("(%s) answers the questions that wait and that it covers", async (scope) => {
    const { answers, approve, story } = await waiting(["ls -a", "ls  '-a'", "rm x", "ls -a; rm x", "ls -a"])
    await approve(0, scope)
    expect(answers()).toEqual([
      [0, scope, "ada", "cli"],
      [1, "once", "ada", "cli"],
      [4, "once", "ada", "cli"]
    ])
    expect(story.state.calls.map(({ status }) => status).slice(2, 4)).toEqual([
      "awaiting_approval",
      "awaiting_approval"
    ])
    expect(story.state.decisions.map(({ approver, decision }) => [approver, decision])).toEqual(
      Array.from({ length: 3 }, () => ["ada", "approved"])
    )
  })

  it("once answers nothing else", async () => {
    const { answers, approve } = await waiting(["ls -a", "ls -a"])
    await approve(0, "once")
    expect(answers()).toEqual([[0, "once", "ada", "cli"]])
  })

  it("given again under the same key answers what a crash left unanswered, once", async () => {
    const { answers, approve, story } = await waiting(["ls -a", "ls -a"])
    const [call] = story.state.calls
    const answer = { call_id: call!.call_id, scope: "session", approver: "ada", channel: "cli" } as const
    story.run({ _tag: "ApproveCall", ...answer }, { key: "answer 0", hash: "h" })
    expect(answers()).toHaveLength(1)
    await approve(0, "session")
    await approve(0, "session")
    expect(answers()).toEqual([
      [0, "session", "ada", "cli"],
      [1, "once", "ada", "cli"]
    ])
  })

  it("asks no hook a second time", async () => {
    const asked: Array<string> = []
    const counts: BeforeCall = async (_state, call) => {
      asked.push(call.call_id)
      return undefined
    }
    const { answers, approve } = await waiting(["ls -a", "ls -a", "rm x"], { beforeCall: counts })
    expect(asked).toHaveLength(3)
    await approve(0, "session")
    expect(answers()).toHaveLength(2)
    expect(asked).toHaveLength(3)
  })

  it("does not answer for a hook that asks, nor for what a rule denies or allows by now", async () => {
    const asks: BeforeCall = async (state, call) =>
      call.call_id === state.calls[1]?.call_id ? { _tag: "Ask", reason: "the hook asks" } : undefined
    const hooked = await waiting(["ls -a", "ls -a"], { beforeCall: asks })
    await hooked.approve(0, "session")
    expect(hooked.answers()).toEqual([[0, "session", "ada", "cli"]])
    for (const decision of ["deny", "allow"] as const) {
      const { answers, approve, rules } = await waiting(["ls -a", "ls -a"])
      rules.push({ decision, tool: "bash", command: ["ls", "**"] })
      await approve(0, "session")
      expect(answers()).toEqual([[0, "session", "ada", "cli"]])
    }
  })
})
