// Goal: scenarios are validated with messages a person can act on, selected by the request alone, and the built-in
// ones are good enough for a first impression. Method: the registry's own way of loading them, whole turns played.
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { describe, expect, it } from "vitest"
import {
  type AssistantMessage,
  assistant,
  type Message,
  type ToolDefinition,
  toolResults,
  user
} from "#src/provider/Canonical.ts"
import type { ModelProvider } from "#src/provider/Provider.ts"
import { errorKinds } from "#src/provider/ProviderErrors.ts"
import { makeRegistry, type RegistryConfig } from "#src/provider/Registry.ts"
import { parseScenario, parseScenarioText } from "#src/provider/scripted/Scenario.ts"
import { makeScripted } from "#src/provider/scripted/Scripted.ts"
import { collect, sampleRequest } from "../support/provider-server/Collect.ts"

const provider = (more: Partial<RegistryConfig> = {}): ModelProvider => {
  const found = makeRegistry({ key: () => undefined, ...more }).resolve("scripted/demo")
  if (Result.isFailure(found)) throw found.failure
  return found.success.provider
}

const playing = (replies: ReadonlyArray<object>): ModelProvider => {
  const scenario = parseScenario("test", { name: "test", replies })
  if (Result.isFailure(scenario)) throw scenario.failure
  return makeScripted({ load: () => Effect.fromResult(scenario) })
}

/** No time passes in scenarios played here. */
const noTime = (clock: Clock.Clock): Clock.Clock => ({
  currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
  currentTimeMillis: clock.currentTimeMillis,
  currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
  currentTimeNanos: clock.currentTimeNanos,
  monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
  monotonicTimeNanos: clock.monotonicTimeNanos,
  sleep: () => Effect.void
})

const play = async (
  from: ModelProvider,
  model: string,
  messages: ReadonlyArray<Message>,
  tools: ReadonlyArray<ToolDefinition> = []
) => {
  const request = sampleRequest({ model, messages, tools, requestId: `req${messages.length}` })
  const events = await Effect.runPromise(
    Effect.updateService(Stream.runCollect(from.stream(request)), Clock.Clock, noTime)
  )
  const found = events.find((event) => event.type === "assistant_final")
  return { last: events.at(-1)?.type, final: assistant(found?.items ?? []) }
}

const callsIn = (message: AssistantMessage) => message.content.filter((part) => part.type === "tool_call")

const reasonOf = (value: unknown): string => {
  const parsed = parseScenario("mine", value)
  if (Result.isSuccess(parsed)) throw new Error("accepted")
  return parsed.failure.message
}

describe("the demo", () => {
  const tools = ["list_files", "read_file", "write_file", "bash"].map((name) => ({
    name,
    description: name,
    parameters: {}
  }))

  const turn = async (history: ReadonlyArray<Message>, output: (tool: string) => string) => {
    const messages: Array<Message> = [...history]
    const called: Array<string> = []
    for (let step = 0; step < 10; step++) {
      const { final, last } = await play(provider(), "demo", messages, tools)
      expect(last).toBe("done")
      messages.push(final)
      const calls = callsIn(final)
      if (calls.length === 0) return { messages, called, last: final }
      called.push(...calls.map((call) => call.tool_name))
      messages.push(
        toolResults(
          calls.map((call) => ({ type: "tool_result", call_id: call.call_id, output: output(call.tool_name) }))
        )
      )
    }
    throw new Error("the turn does not end")
  }

  it("looks around, writes a file, runs a command and sums up", async () => {
    const { called, last } = await turn([user("show me")], (tool) => (tool === "bash" ? "  8  70 echs-demo.md" : "ok"))
    expect(called).toEqual(["list_files", "write_file", "bash"])
    expect(JSON.stringify(last)).toContain("8  70 echs-demo.md")
  })

  it("takes no for an answer", async () => {
    const { called, last } = await turn([user("show me")], (tool) =>
      tool === "write_file" ? "The call was denied by the user." : "ok"
    )
    expect(called).toEqual(["list_files", "write_file"])
    expect(JSON.stringify(last)).toContain("leave the workspace as it is")
  })

  it("answers a second input too", async () => {
    const first = await turn([user("show me")], () => "ok")
    const second = await turn([...first.messages, user("and now?")], () => "# A note")
    expect(second.called).toEqual(["read_file"])
    expect(JSON.stringify(second.last)).toContain("# A note")
  })

  it("gives the same answer to the same request", async () => {
    const once = await collect(playing([{ play: [{ text: "{{input}}", delay_ms: 0 }] }]))
    expect(await collect(playing([{ play: [{ text: "{{input}}", delay_ms: 0 }] }]))).toEqual(once)
    expect(once.usage).toEqual({
      input_tokens: 6,
      cached_input_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: 6,
      reasoning_tokens: 0
    })
  })
})

describe("echo", () => {
  it("says the input back", async () => {
    const got = await collect(provider(), sampleRequest({ model: "echo", messages: [user("Grüße, 世界 👋")] }))
    expect(got.text).toBe("Grüße, 世界 👋")
  })
})

describe("selection", () => {
  const asked = async (replies: ReadonlyArray<object>, more: Parameters<typeof sampleRequest>[0] = {}) =>
    (await collect(playing(replies), sampleRequest(more))).text

  it("takes the first reply whose condition holds", async () => {
    const replies = [
      { when: { role: "planner" }, play: [{ text: "plan" }] },
      { when: { role: "critic", attempt: 2 }, play: [{ text: "second opinion" }] },
      { when: { input: "^FIX" }, play: [{ text: "fix" }] },
      { when: { instructions: "terse" }, play: [{ text: "ok" }] },
      { when: { tools: ["bash"] }, play: [{ text: "shell" }] },
      { play: [{ text: "else" }] }
    ]
    expect(await asked(replies, { metadata: { role: "planner" } })).toBe("plan")
    expect(await asked(replies, { metadata: { role: "critic", attempt: 2 } })).toBe("second opinion")
    expect(await asked(replies, { messages: [user("fix it")] })).toBe("fix")
    expect(await asked(replies, { instructions: "Be terse." })).toBe("ok")
    expect(await asked(replies, { tools: [{ name: "bash", description: "", parameters: {} }] })).toBe("shell")
    expect(await asked(replies, { metadata: { role: "critic" } })).toBe("else")
  })

  it("counts turns and steps in the history", async () => {
    const replies = [1, 2].flatMap((turn) =>
      [1, 2].map((step) => ({ when: { turn, step }, play: [{ text: `${turn}.${step}` }] }))
    )
    const called = assistant([{ type: "tool_call", call_id: "c", tool_name: "a", arguments: "{}" }])
    const result = toolResults([{ type: "tool_result", call_id: "c", output: "fine" }])
    expect(await asked(replies, { messages: [user("x")] })).toBe("1.1")
    expect(await asked(replies, { messages: [user("x"), called, result] })).toBe("1.2")
    expect(
      await asked(replies, {
        messages: [user("x"), called, result, assistant([{ type: "text", text: "y" }]), user("z")]
      })
    ).toBe("2.1")
    const last = [{ when: { last_tool: "a", last_output: "FINE" }, play: [{ text: "seen {{output}}" }] }]
    expect(await asked(last, { messages: [user("x"), called, result] })).toBe("seen fine")
  })

  it("fails with the situation when no reply fits", async () => {
    const got = await collect(playing([{ when: { turn: 9 }, play: [] }]))
    expect(got.outcome).toMatchObject({
      _tag: "Failed",
      error: { kind: "invalid_request", message: 'scenario "test" has no reply for turn 1, step 1, role none' }
    })
  })

  it("calls the first tool of a list that is offered, and the first if none is", async () => {
    const replies = [{ play: [{ tool: ["bash", "run_command"], arguments: { command: "echo {{input}}" } }] }]
    const offered = await collect(
      playing(replies),
      sampleRequest({ messages: [user("hi")], tools: [{ name: "run_command", description: "", parameters: {} }] })
    )
    expect(offered.calls[0]).toMatchObject({ tool_name: "run_command", arguments: '{"command":"echo hi"}' })
    expect((await collect(playing(replies))).calls[0]?.tool_name).toBe("bash")
  })
})

describe("scenarios", () => {
  it("can play every kind of error", async () => {
    for (const kind of errorKinds) {
      const got = await collect(playing([{ play: [{ text: "a" }, { error: { kind, retry_after_ms: 5 } }] }]))
      expect(got.outcome).toMatchObject({ _tag: "Failed", error: { kind, retryAfterMs: 5 } })
      expect(got.text).toBe("a")
    }
  })

  it("are refused with the place and the expectation", () => {
    expect(reasonOf({ name: "x", replies: [] })).toMatch(/^scenario "mine": .*replies/s)
    expect(reasonOf({ name: "x", replies: [{ play: [{ txt: "typo" }] }] })).toContain('["replies"][0]["play"][0]')
    expect(reasonOf({ name: "x", replies: [{ play: [], extra: 1 }] })).toContain('["extra"]')
    expect(reasonOf({ name: "x", replies: [{ when: { turn: 0 }, play: [] }] })).toContain('["turn"]')
    expect(reasonOf({ name: "x", replies: [{ when: { input: "(" }, play: [] }] })).toBe(
      'scenario "mine": replies[0].when.input is not a regular expression: ('
    )
    expect(reasonOf({ name: "x", replies: [{ play: [{ error: { kind: "bad luck" } }] }] })).toContain("rate_limited")
    expect(reasonOf(null)).toContain("mine")
  })

  it("from files are read by path, and what is wrong with them is said", async () => {
    const files: { readonly [path: string]: string } = {
      "./s.json": '{"name":"s","replies":[{"play":[{"text":"from a file"}]}]}',
      "./bad.json": "{"
    }
    const readText = async (path: string) => files[path] ?? Promise.reject(new Error("no such file"))
    const from = provider({ readText, scenarios: { mine: { name: "mine", replies: [{ play: [{ text: "mine" }] }] } } })
    expect((await collect(from, sampleRequest({ model: "./s.json" }))).text).toBe("from a file")
    expect((await collect(from, sampleRequest({ model: "mine" }))).text).toBe("mine")
    const bad = await collect(from, sampleRequest({ model: "./bad.json" }))
    expect(bad.outcome).toMatchObject({
      error: { kind: "invalid_request", message: expect.stringContaining("not valid JSON") }
    })
    const missing = await collect(from, sampleRequest({ model: "nowhere" }))
    expect(missing.outcome).toMatchObject({
      error: {
        message: expect.stringMatching(
          /^scenario "nowhere": neither built in \(demo, echo, .*mine\) nor a readable file: no such file$/
        )
      }
    })
    expect(Result.isFailure(parseScenarioText("huge", " ".repeat(5 * 1024 * 1024)))).toBe(true)
  })
})
