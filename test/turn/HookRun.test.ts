// Goal: hooks run after a batch that changed something, one after the other, and what a failure means is what its policy
// says. Method: the real runtime with hooks that misbehave on cue.
// Verifies: INV-HOOKS-NEVER-OVERLAP, INV-TURN-ORDER
import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import { settled } from "#src/contract/Settled.ts"
import type { HookOutcome, HookPort } from "#src/hook/HookPort.ts"
import type { HookChoice } from "#src/machine/Command.ts"
import type { HookFailurePolicy } from "#src/rune/kinds/shared.ts"
import { limits } from "#src/turn/TurnLimits.ts"
import { fastRunFork } from "../support/runtime/clocks.ts"
import { say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { effectTool, tool } from "../support/runtime/tools.ts"
import { type Talk, useWorlds, type WorldOptions } from "../support/runtime/World.ts"

const worlds = useWorlds()

type RunHook = (signal: AbortSignal, attempt: number) => Promise<HookOutcome>

const warn: HookFailurePolicy = { type: "warn_continue" }
const stop: HookFailurePolicy = { type: "fail_session" }

interface Spec {
  readonly policy?: HookFailurePolicy
  readonly timeoutMs?: number
  readonly run: RunHook
}

/** Hooks by name, in order, and a trace of what ran. */
const hooksOf = (specs: { readonly [name: string]: Spec }) => {
  const trace: Array<string> = []
  const chosenFor: Array<ReadonlyArray<string>> = []
  const port: HookPort = {
    choose: (_state, _agentId, batch) => {
      chosenFor.push(batch.map(({ tool_name }) => tool_name))
      return Object.entries(specs).map(
        ([hook_name, { policy = warn, timeoutMs = 1000 }]): HookChoice => ({
          hook_name,
          failure_policy: policy,
          timeout_ms: timeoutMs,
          effect_class: "idempotent"
        })
      )
    },
    run: (_state, hook) =>
      Effect.orDie(
        settled(async (signal) => {
          trace.push(`+${hook.hook_name}`)
          try {
            return await specs[hook.hook_name]!.run(signal, hook.attempt)
          } finally {
            trace.push(`-${hook.hook_name}`)
          }
        })
      )
  }
  return { port, trace, chosenFor }
}

const good: RunHook = async () => ({ status: "succeeded", exit_code: 0, output: "fine" })
const bad: RunHook = async () => ({ status: "failed", exit_code: 2, output: "lint errors" })

const start = async (hooks: HookPort, more: WorldOptions = {}): Promise<Talk> => {
  const world = await worlds.open({
    scenarios: scenarios({ edit: [step(1, use("write")), step(2, say("done"))] }),
    tools: [effectTool("write", async () => "written"), tool("look", async () => "seen")],
    hooks,
    ...more
  })
  const talk = await world.create({ model: "scripted/edit" })
  await talk.post("go")
  return talk
}

describe("hooks", () => {
  it("run in the order in which they were chosen, never two at once, before the model is asked again", async () => {
    const { port, trace, chosenFor } = hooksOf({ format: { run: good }, lint: { run: good }, test: { run: good } })
    const talk = await start(port)
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(chosenFor).toEqual([["write"]])
    expect(trace).toEqual(["+format", "-format", "+lint", "-lint", "+test", "-test"])
    expect(talk.kinds.slice(talk.kinds.indexOf("turn.tools_finished"), -3)).toEqual([
      "turn.tools_finished",
      "hook.started",
      "hook.completed",
      "hook.started",
      "hook.completed",
      "hook.started",
      "hook.completed",
      "turn.hooks_finished",
      "turn.model_requested"
    ])
    expect(talk.of("hook.completed")[0]?.payload).toMatchObject({ status: "succeeded", exit_code: 0, output: "fine" })
  })

  it("do not run after a batch that changed nothing", async () => {
    const { port, chosenFor } = hooksOf({ lint: { run: good } })
    const talk = await start(port, { scenarios: scenarios({ edit: [step(1, use("look")), step(2, say("done"))] }) })
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(chosenFor).toEqual([])
    expect(talk.of("hook.started")).toEqual([])
  })

  it("that fail are passed over when their policy says so", async () => {
    const { port, trace } = hooksOf({ lint: { run: bad }, test: { run: good } })
    const talk = await start(port)
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(trace).toEqual(["+lint", "-lint", "+test", "-test"])
    expect(talk.of("turn.hooks_finished")[0]?.payload.summaries.map(({ status }) => status)).toEqual([
      "failed",
      "succeeded"
    ])
  })

  it("that fail end the turn when their policy says so, and the rest does not run", async () => {
    const { port, trace } = hooksOf({ lint: { run: bad, policy: stop }, test: { run: good } })
    const talk = await start(port)
    expect(await talk.turns()).toMatchObject({
      kind: "turn.error",
      payload: { error_type: "hook_execution_failed", source: "hook", retryable: false }
    })
    expect(trace).toEqual(["+lint", "-lint"])
    expect((await talk.state()).session.status).toBe("active")
  })

  it("that fail are tried again as often as their policy says", async () => {
    const retry: HookFailurePolicy = { type: "retry", max_attempts: 2, delay_ms: 1000 }
    const once = hooksOf({
      lint: {
        policy: retry,
        run: async (signal, attempt) => (attempt < 2 ? bad(signal, attempt) : good(signal, attempt))
      }
    })
    const talk = await start(once.port, { runFork: fastRunFork(100) })
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(talk.of("hook.started").map(({ payload }) => payload.attempt)).toEqual([1, 2])
    const never = hooksOf({ lint: { policy: retry, run: bad } })
    const other = await start(never.port, { runFork: fastRunFork(100) })
    expect((await other.turns()).kind).toBe("turn.error")
    expect(other.of("hook.started").map(({ payload }) => payload.attempt)).toEqual([1, 2])
  })
})

describe("a hook that misbehaves", () => {
  it("by throwing, before or after it promised, has failed with that reason", async () => {
    const early: RunHook = () => {
      throw new Error("early")
    }
    const { port } = hooksOf({ a: { run: early }, b: { run: () => Promise.reject(new Error("later")) } })
    const talk = await start(port)
    await talk.turns()
    expect(talk.of("hook.completed").map(({ payload }) => [payload.status, payload.error?.message])).toEqual([
      ["failed", "early"],
      ["failed", "later"]
    ])
  })

  it("by hanging is over when its time is, whether it listens or not", async () => {
    const listens: RunHook = (signal) =>
      new Promise((resolve) => signal.addEventListener("abort", () => resolve({ status: "succeeded" })))
    const deaf: RunHook = () => new Promise(() => undefined)
    const { port } = hooksOf({ a: { run: listens, timeoutMs: 20 }, b: { run: deaf, timeoutMs: 20 } })
    const talk = await start(port)
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(talk.of("hook.completed").map(({ payload }) => payload.error?.message)).toEqual([
      "hook a did not end within 20 ms",
      "hook b did not end within 20 ms"
    ])
  })

  it("by returning nonsense, or far too much, leaves a record of the usual size", async () => {
    const { port } = hooksOf({
      mad: { run: async () => undefined as unknown as HookOutcome },
      flood: { run: async () => ({ status: "succeeded", output: "x".repeat(5_000_000) }) }
    })
    const talk = await start(port)
    expect((await talk.turns()).kind).toBe("turn.completed")
    const [mad, flood] = talk.of("hook.completed").map(({ payload }) => payload)
    expect(mad).toMatchObject({ status: "failed", error: { message: "hook mad returned no outcome" } })
    expect(flood?.output?.length).toBe(limits.hookOutputCharsMax + 1)
  })

  it("is stopped with its turn", async () => {
    let isStopped = false
    let began: () => void = () => undefined
    const running = new Promise<void>((resolve) => {
      began = resolve
    })
    const { port } = hooksOf({
      slow: {
        run: (signal) => {
          began()
          return new Promise((resolve) =>
            signal.addEventListener("abort", () => {
              isStopped = true
              resolve({ status: "canceled" })
            })
          )
        }
      }
    })
    const talk = await start(port)
    await running
    await talk.interrupt()
    expect((await talk.turns()).kind).toBe("turn.interrupted")
    expect(isStopped).toBe(true)
    expect(talk.of("hook.completed").map(({ payload }) => payload.status)).toEqual(["canceled"])
  })

  it("where hooks are chosen ends in a suspended conversation that says why, and goes on when a person says so", async () => {
    let isBroken = true
    const { port } = hooksOf({ lint: { run: good } })
    const choose: HookPort["choose"] = (...input) => {
      if (isBroken) throw new Error("hooks.json is not JSON")
      return port.choose(...input)
    }
    const talk = await start({ ...port, choose })
    const suspended = await talk.until("session.suspended")
    expect(suspended.payload.reason).toMatch(/^finishing the tool calls of turn_1 .* hooks\.json is not JSON$/)
    expect(talk.of("turn.error").map(({ payload }) => payload.error_type)).toEqual(["agent_crashed"])
    isBroken = false
    await talk.submit({ _tag: "Unsuspend" })
    await talk.post("again")
    expect((await talk.turns(2)).kind).toBe("turn.completed")
  })
})
