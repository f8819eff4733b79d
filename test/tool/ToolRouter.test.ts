// Goal: one port over all sources: what an agent may not have it neither sees nor calls, arguments are checked before
// anything else, a question always comes, and a call runs with the decision that its start put on record. Method: the
// router with small tools of its own, and the real policy.
// Verifies: INV-TOOL-SANDBOX

import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import type { Objection } from "#src/contract/CallGates.ts"
import type { ConversationState } from "#src/machine/State.ts"
import { evaluate } from "#src/policy/Evaluate.ts"
import type { Evaluate, PolicyQuestion } from "#src/policy/PolicyPort.ts"
import { fixedSource } from "#src/tool/Source.ts"
import type { Tool } from "#src/tool/Tool.ts"
import { limits } from "#src/tool/ToolLimits.ts"
import type { ToolContext, ToolPort } from "#src/tool/ToolPort.ts"
import { makeRouter, type RouterOptions } from "#src/tool/ToolRouter.ts"
import { authorizeCall, runCall } from "../support/tool/runTool.ts"
import { callOf, conversationWith, memoryBlobs, rootAgent, usePlace } from "../support/tool/ToolPlace.ts"

const place = usePlace()

const toolNamed = (name: string, more: Partial<Tool> = {}): Tool => ({
  name,
  description: `${name} for tests`,
  parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  effect_class: "pure",
  mutating: false,
  provenance: "builtin",
  access: ({ path }) => ({ reads: [String(path)] }),
  preview: ({ path }) => Effect.succeed({ title: `${name} ${String(path)}`, diff: "a diff" }),
  run: () => Effect.succeed({ status: "success", output: name }),
  ...more
})

const look = toolNamed("look")
const change = toolNamed("change", {
  mutating: true,
  effect_class: "effect",
  access: ({ path }) => ({ writes: [String(path)] })
})
const plan = toolNamed("plan", { mutating: true, approval: "never", access: () => ({}) })

const routerOf = (tools: ReadonlyArray<Tool>, more: Partial<RouterOptions> = {}): ToolPort =>
  makeRouter({ sources: [fixedSource(tools)], evaluate, sandbox: { level: "none", contained: false }, ...more })

const state = (config: ConversationState["session"]["config"] = {}, agent: Readonly<Record<string, unknown>> = {}) =>
  conversationWith({ workspace: place.workspace, ...config }, { agent })

const namesOf = (router: ToolPort, at: ConversationState) => router.describe(at, rootAgent).map(({ name }) => name)

describe("the tools of an agent", () => {
  const router = routerOf([look, change, plan])

  it.each([
    ["all", {}, {}, ["look", "change", "plan"]],
    ["those its conversation names", { tools: ["look"] }, {}, ["look"]],
    ["those it is given itself", {}, { tools: ["change", { name: "plan" }] }, ["change", "plan"]],
    ["those in both lists", { tools: ["look", "change"] }, { tools: ["change", "plan"] }, ["change"]],
    ["those that begin like a name with a star", {}, { tools: ["ch*"] }, ["change"]],
    ["none where the list is empty", { tools: [] }, {}, []],
    ["all where a list speaks of servers only", { tools: [{ type: "mcp", url: "x" }] }, {}, ["look", "change", "plan"]],
    ["none that change anything for a critic", {}, { role: "critic" }, ["look", "plan"]],
    ["none that change anything for an explorer", {}, { role: "explorer", tools: ["change"] }, []]
  ])("are %s", (_name, config, agent, expected) => {
    expect(namesOf(router, state(config, agent))).toEqual(expected)
  })

  it("are never more than those of the agents above it", () => {
    const child = { agent_id: "agt_11111111", role: "worker", tools: null, parent_id: rootAgent, workspace: null }
    const under = (agent: Readonly<Record<string, unknown>>, more: Readonly<Record<string, unknown>> = {}) => {
      const at = state({}, agent)
      const withChild = { ...at, agents: [...at.agents, { ...child, ...more }] } as unknown as ConversationState
      return router.describe(withChild, child.agent_id as typeof rootAgent).map(({ name }) => name)
    }
    expect(under({})).toEqual(["look", "change", "plan"])
    expect(under({ role: "critic" })).toEqual(["look", "plan"])
    expect(under({ tools: ["look", "change"] }, { tools: ["change", "plan"] })).toEqual(["change"])
  })

  it("cannot be called when they cannot be seen", async () => {
    const restricted = state({ tools: ["look"] })
    expect(router.facts(restricted, rootAgent, "change")).toBeUndefined()
    const verdict = await authorizeCall(router, restricted, callOf("change", { path: "a" }))
    expect(verdict).toMatchObject({ _tag: "Reject", error: { code: "unknown_tool" } })
    const outcome = await runCall(router, restricted, callOf("change", { path: "a" }), place.context())
    expect(outcome).toMatchObject({ status: "error", error: { code: "unknown_tool" } })
  })

  it("have the settings of their entry", async () => {
    const settings = state({ tools: [{ name: "look", timeout_ms: 1_000, approval: "always" }] })
    expect(router.facts(settings, rootAgent, "look")).toEqual({
      effect_class: "pure",
      mutating: false,
      provenance: "builtin",
      timeout_ms: 1_000
    })
    expect(await authorizeCall(router, settings, callOf("look", { path: "a" }))).toMatchObject({ _tag: "Ask" })
  })

  it("of a name that two sources have are those of the first", async () => {
    const other = toolNamed("look", {
      description: "another",
      run: () => Effect.succeed({ status: "success", output: "other" })
    })
    const two = makeRouter({
      sources: [fixedSource([look]), fixedSource([other, change])],
      evaluate,
      sandbox: { level: "none", contained: false }
    })
    expect(namesOf(two, state())).toEqual(["look", "change"])
    expect(await runCall(two, state(), callOf("look", { path: "a" }), place.context())).toMatchObject({
      output: "look"
    })
  })
})

describe("arguments", () => {
  it.each([
    [{}, "look: the arguments: path is missing"],
    [{ path: 7 }, "look: path must be string"],
    [[], "look: the arguments must be an object"],
    [null, "look: the arguments must be an object"]
  ])("that do not fit are told by place: %j", async (input, message) => {
    const router = routerOf([look])
    const error = { code: "invalid_arguments", message, retryable: false }
    expect(await authorizeCall(router, state(), callOf("look", input))).toMatchObject({ _tag: "Reject", error })
    // An approver may have changed them after the question.
    expect(await runCall(router, state(), callOf("look", input), place.context())).toMatchObject({
      status: "error",
      error
    })
  })
})

describe("a question", () => {
  const authorize = (tool: Tool, input: unknown = { path: "a" }) =>
    authorizeCall(routerOf([tool]), state(), callOf(tool.name, input))

  it("shows what would happen, where, and with which reach", async () => {
    expect(await authorize(change)).toMatchObject({
      _tag: "Ask",
      shown_as: {
        title: "change a",
        diff: "a diff",
        workspace: place.workspace,
        roots: [place.workspace],
        network: false
      }
    })
  })

  it("comes although its preview fails", async () => {
    const broken = { ...change, preview: () => Effect.die(new Error("no such file")) }
    const verdict = await authorize(broken)
    expect(verdict).toMatchObject({ _tag: "Ask", shown_as: { title: "change" } })
    expect(JSON.stringify(verdict)).toContain("no preview: no such file")
  })

  it("comes although its preview throws at once", async () => {
    const broken: Tool = {
      ...change,
      preview: () => {
        throw new Error("at once")
      }
    }
    expect(await authorize(broken)).toMatchObject({ _tag: "Ask", shown_as: { title: "change" } })
  })

  it("shows no more than fits", async () => {
    const long = "x".repeat(limits.shownDiffCharsMax + 7)
    const verdict = await authorize({
      ...change,
      preview: () => Effect.succeed({ title: "t", diff: long, detail: long })
    })
    const shown = (verdict as { shown_as: { diff: string; detail: string } }).shown_as
    expect(shown.diff.endsWith("x\n… 7 characters more")).toBe(true)
    expect(shown.detail.length).toBeLessThan(limits.shownDetailCharsMax + 100)
  })

  it("is not asked by a tool that only talks to ECHS", async () => {
    expect(await authorize(plan)).toEqual({
      _tag: "Allow",
      sandbox: { level: "in_process", network: false, roots: [] }
    })
  })
})

describe("the decision", () => {
  const recording = (answers: ReadonlyArray<ReturnType<Evaluate>>) => {
    const asked: Array<PolicyQuestion> = []
    const evaluateNext: Evaluate = (question) => {
      asked.push(question)
      return answers[Math.min(asked.length, answers.length) - 1]!
    }
    return { asked, evaluate: evaluateNext }
  }
  const allow = { verdict: "allow", reason: "because", network: true } as const

  it("is asked for with everything that is known", async () => {
    const { asked, evaluate: recorded } = recording([allow])
    const router = routerOf([{ ...change, sandboxed: true }], {
      evaluate: recorded,
      rules: ["of the server"],
      sandbox: { level: "bubblewrap", contained: true }
    })
    const grants = [{ tool_name: "x", scope: "session", arguments_hash: "h", expires_ms: null }]
    const config = {
      policy: { mode: "read_only" as const, rules: ["of the conversation"] },
      workspace: place.workspace
    }
    const at = conversationWith(config, { grants: grants as never, last_ms: 17 })
    expect(await authorizeCall(router, at, callOf("change", { path: "a" }))).toEqual({
      _tag: "Allow",
      sandbox: { level: "bubblewrap", network: true, roots: [place.workspace] }
    })
    expect(asked).toEqual([
      {
        tool_name: "change",
        mutating: true,
        effect_class: "effect",
        provenance: "builtin",
        approval: "by_policy",
        contained: true,
        access: { writes: ["a"] },
        arguments_hash: "0".repeat(64),
        mode: "read_only",
        rules: ["of the conversation", "of the server"],
        grants,
        workspace: place.workspace,
        now_ms: 17
      }
    ])
  })

  it("on record at the start is the one the call runs with", async () => {
    const { asked, evaluate: recorded } = recording([allow, { ...allow, network: false }])
    const seen: Array<ToolContext> = []
    const tool: Tool = {
      ...change,
      run: (_input, context) =>
        Effect.sync(() => {
          seen.push(context)
          return { status: "success" }
        })
    }
    const router = routerOf([tool], { evaluate: recorded })
    const call = callOf("change", { path: "a" })
    router.sandbox(state(), call)
    await runCall(router, state(), { ...call, attempt: 1 }, place.context())
    expect(asked).toHaveLength(1)
    expect(seen[0]?.network).toBe(true)
    // Another attempt is another decision.
    await runCall(router, state(), { ...call, attempt: 2 }, { ...place.context(), attempt: 2 })
    expect(asked).toHaveLength(2)
    expect(seen[1]?.network).toBe(false)
  })

  it("of a hook can only be stricter than the policy", async () => {
    const call = callOf("change", { path: "a" })
    const deny = { verdict: "deny", reason: "the policy" } as const
    const judged = async (policy: ReturnType<Evaluate>, objection: Objection | undefined) => {
      const router = routerOf([change], { evaluate: () => policy, beforeCall: async () => objection })
      return authorizeCall(router, state(), call)
    }
    expect(await judged(allow, { _tag: "Deny", reason: "the hook" })).toEqual({ _tag: "Deny", reason: "the hook" })
    expect(await judged(allow, { _tag: "Ask", reason: "the hook" })).toMatchObject({
      _tag: "Ask",
      policy_reason: "the hook",
      choices: ["once"]
    })
    expect(await judged(deny, { _tag: "Ask", reason: "the hook" })).toEqual({ _tag: "Deny", reason: "the policy" })
    expect(await judged(allow, undefined)).toMatchObject({ _tag: "Allow" })
  })

  it("to deny that comes between the answer and the start holds", async () => {
    const router = routerOf([change], { evaluate: () => ({ verdict: "deny", reason: "not any more" }) })
    const call = callOf("change", { path: "a" })
    expect(await authorizeCall(router, state(), call)).toEqual({ _tag: "Deny", reason: "not any more" })
    router.sandbox(state(), call)
    expect(await runCall(router, state(), call, place.context())).toMatchObject({
      status: "error",
      error: { code: "tool_denied", message: "not any more" }
    })
  })

  it("is to deny where the arguments do not tell what a call does", () => {
    const blind: Tool = {
      ...change,
      access: () => {
        throw new Error("cannot tell")
      }
    }
    expect(routerOf([blind]).sandbox(state(), callOf("change", {}))).toMatchObject({ network: false })
  })

  it.each([
    ["builtin", {}, "path_checks"],
    ["builtin", { access: () => ({ url: "https://example.org" }) }, "address_checks"],
    ["mcp", {}, "none"],
    ["remote", {}, "none"]
  ] as const)("says honestly what holds a tool: %s %j", (provenance, more, level) => {
    const router = routerOf([{ ...look, ...more, provenance } as Tool], { evaluate: () => allow })
    expect(router.sandbox(state(), callOf("look", { path: "a" }))).toMatchObject({ level })
  })
})

describe("output", () => {
  it("that is too long is kept whole beside the result, which has head, tail and the way to the rest", async () => {
    const blobs = memoryBlobs()
    const output = `begin${"ä".repeat(limits.outputCharsMax)}end`
    const router = routerOf([{ ...look, run: () => Effect.succeed({ status: "success", output }) }], { blobs })
    const outcome = await runCall(router, state(), callOf("look", { path: "a" }), place.context())
    const sha256 = outcome.output_blob?.sha256 ?? ""
    expect(blobs.kept.get(sha256)?.toString()).toBe(output)
    expect(outcome.output).toMatch(/^begin[\s\S]*end$/)
    expect(outcome.output).toContain(`8 characters left out; read_file "blob:${sha256}" has all`)
    expect(outcome.output!.length).toBeLessThan(limits.outputCharsMax + 200)
  })

  it("that is too long is cut where there is no room for the whole", async () => {
    const output = "x".repeat(limits.outputCharsMax + 1)
    const tool: Tool = { ...look, run: () => Effect.succeed({ status: "success", output }) }
    const full = { keep: () => Promise.reject(new Error("disk full")), read: () => Promise.reject(new Error("none")) }
    for (const more of [{}, { blobs: full }]) {
      const outcome = await runCall(routerOf([tool], more), state(), callOf("look", { path: "a" }), place.context())
      expect(outcome.output_blob).toBeUndefined()
      expect(outcome.output).toContain("\n… 1 characters left out …\n")
    }
  })
})
