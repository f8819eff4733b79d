// Goal: one call, one result, whatever the tool does: hangs, breaks, lies, floods. Method: the real runtime with tools
// that misbehave on cue.
// Verifies: INV-TOOL-TERMINAL, INV-TOOL-CALL-BEFORE-RESULT, INV-TOOL-APPROVAL-BEFORE-EXEC

import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import type { ToolOutcome, ToolPort } from "#src/tool/ToolPort.ts"
import { limits } from "#src/turn/TurnLimits.ts"
import { fastRunFork } from "../support/runtime/clocks.ts"
import { say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { nextTurn } from "../support/runtime/sink.ts"
import { effectTool, Gate, tool } from "../support/runtime/tools.ts"
import { type Talk, useWorlds, type WorldOptions } from "../support/runtime/World.ts"
import { type FunctionTool, functionTools } from "../support/tool/FunctionTools.ts"

const worlds = useWorlds()

const calling = (...names: ReadonlyArray<string>) =>
  scenarios({
    calls: [step(1, ...names.map((name, index) => use(name, { n: index }))), step(2, say("told: {{output}}"))]
  })

/** A conversation whose first turn calls the given tools, side by side or one after the other as they allow. */
const start = async (tools: ReadonlyArray<FunctionTool>, more: WorldOptions = {}): Promise<Talk> => {
  const world = await worlds.open({ scenarios: calling(...tools.map(({ name }) => name)), tools, ...more })
  const talk = await world.create({ model: "scripted/calls" })
  await talk.post("go")
  return talk
}

const resultOf = (talk: Talk) => talk.of("tool.result").map(({ payload }) => payload)

describe("a tool that does not end in time", () => {
  it("is told so, and what it has by then is kept", async () => {
    const gate = new Gate()
    const talk = await start([tool("slow", gate.run, { timeout_ms: 20 })])
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(gate.aborted).toBe(true)
    expect(resultOf(talk)).toMatchObject([
      { status: "timeout", output: "stopped half-way", error: { code: "tool_timeout" } }
    ])
  })

  it("and does not listen either is not waited for; what it says later is not heard", async () => {
    const gate = new Gate({ honorsSignal: false })
    const talk = await start([tool("deaf", gate.run, { timeout_ms: 20 })])
    const context = await gate.started
    context.progress("stdout", "started\n")
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(resultOf(talk)).toMatchObject([{ status: "timeout", output: "started\n" }])
    context.progress("stdout", "late\n")
    gate.end("late")
    for (let turn = 0; turn < 5; turn++) await nextTurn()
    expect(JSON.stringify(talk.runes)).not.toContain("late")
  })

  it("but succeeds in the moment after has succeeded", async () => {
    const late = (_: unknown, { signal }: { signal: AbortSignal }) =>
      new Promise<string>((resolve) => signal.addEventListener("abort", () => resolve("just made it")))
    const talk = await start([tool("late", late, { timeout_ms: 20 })])
    await talk.turns()
    expect(resultOf(talk)).toMatchObject([{ status: "success", output: "just made it" }])
  })

  it("ends its turn when even the runtime's own patience is over", async () => {
    const long = "x".repeat(limits.outputCharsMax + 1)
    const talk = await start([tool("stuck", async () => long, { timeout_ms: 60_000 })], {
      runFork: fastRunFork(1000),
      keepOutput: () => new Promise(() => undefined)
    })
    expect(await talk.turns()).toMatchObject({
      kind: "turn.error",
      payload: { error_type: "turn_stuck", message: "tool call call_1 did not end within 75000 ms" }
    })
    expect(resultOf(talk)).toMatchObject([{ status: "cancelled" }])
    expect((await talk.state()).session.status).toBe("active")
  })
})

describe("a runner that breaks", () => {
  const breaking = (times: number, more: Partial<FunctionTool> = {}) => {
    const seen = { runs: 0 }
    const run = async () => {
      seen.runs += 1
      if (seen.runs <= times) throw new Error(`broke ${seen.runs}`)
      return "fine"
    }
    return { seen, tool: tool("frail", run, more) }
  }

  it("is tried once more where that is safe", async () => {
    const { seen, tool: frail } = breaking(1)
    const talk = await start([frail], { runFork: fastRunFork(50) })
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(seen.runs).toBe(2)
    expect(talk.of("turn.retry_scheduled").map(({ payload }) => payload)).toMatchObject([
      { delay_ms: 500, target: { type: "tool", call_id: "call_1" }, message: "broke 1" }
    ])
    expect(talk.of("tool.started").map(({ payload }) => payload.attempt)).toEqual([1, 2])
    expect(resultOf(talk)).toMatchObject([{ status: "success", output: "fine" }])
  })

  it("twice ends the turn with the reason, and the next one is taken", async () => {
    const { seen, tool: frail } = breaking(2)
    const talk = await start([frail], { runFork: fastRunFork(50) })
    expect(await talk.turns()).toMatchObject({
      kind: "turn.error",
      payload: { error_type: "tool_execution_failed", message: "broke 2" }
    })
    expect(seen.runs).toBe(2)
    expect(resultOf(talk)).toMatchObject([{ status: "error", error: { code: "tool_execution_failed" } }])
    await talk.post("again")
    expect((await talk.turns(2)).kind).toBe("turn.completed")
  })

  it("is never tried again where it may have changed something", async () => {
    const { seen, tool: frail } = breaking(9, { effect_class: "effect", mutating: true })
    const talk = await start([frail])
    expect((await talk.turns()).kind).toBe("turn.error")
    expect(seen.runs).toBe(1)
    expect(resultOf(talk)).toMatchObject([{ status: "unknown", error: { code: "tool_outcome_unknown" } }])
    expect((await talk.state()).notices.map(({ type }) => type)).toEqual(["unknown_outcome", "turn_error"])
  })

  it("by returning nonsense has broken, whatever the nonsense", async () => {
    for (const nonsense of [undefined, null, 7, [], { status: "fine" }, { status: "success", output: 5 }]) {
      const talk = await start([effectTool("mad", async () => nonsense as unknown as ToolOutcome)])
      expect(await talk.turns()).toMatchObject({ kind: "turn.error", payload: { error_type: "tool_execution_failed" } })
      expect(resultOf(talk)).toMatchObject([{ status: "unknown" }])
    }
  })

  it("before it returns a promise has broken too", async () => {
    const talk = await start([
      effectTool("early", () => {
        throw new Error("too early")
      })
    ])
    expect(await talk.turns()).toMatchObject({ payload: { message: "too early" } })
  })
})

describe("a worker that crashes while its call runs", () => {
  /** Tools whose first outcome breaks whoever looks at it: the call has run, and nobody learns how it ended. */
  const fatal = (one: FunctionTool, times: number) => {
    const seen = { runs: 0 }
    const sound = functionTools([one])
    const unreadable: ToolOutcome = {
      status: "success",
      get output(): string {
        throw new Error("the worker broke down")
      }
    }
    const run: ToolPort["run"] = (...args) => {
      seen.runs += 1
      return seen.runs <= times ? Effect.succeed(unreadable) : sound.run(...args)
    }
    return { seen, tools: { ...sound, run } }
  }

  const crashing = async (one: FunctionTool, times = 1) => {
    const { seen, tools } = fatal(one, times)
    const world = await worlds.open({ scenarios: calling(one.name), tools })
    const talk = await world.create({ model: "scripted/calls" })
    await talk.post("go")
    const end = await talk.turns()
    return { end, seen, talk, world }
  }

  it("does not run an effect a second time: its outcome is unknown, and the model is not asked to guess", async () => {
    const { end, seen, talk, world } = await crashing(effectTool("pay", async () => "paid"))
    expect(seen.runs).toBe(1)
    expect(world.crashes.map(({ message }) => message)).toEqual(["the worker broke down"])
    expect(talk.of("tool.started").map(({ payload }) => payload.attempt)).toEqual([1])
    expect(resultOf(talk)).toMatchObject([{ status: "unknown", error: { code: "tool_outcome_unknown" } }])
    expect(end).toMatchObject({ kind: "turn.error", payload: { error_type: "tool_execution_failed" } })
    expect(talk.of("session.suspended")).toEqual([])
  })

  it("runs once more what may run twice", async () => {
    for (const effectClass of ["pure", "idempotent"] as const) {
      const { end, seen, talk, world } = await crashing(tool("look", async () => "seen", { effect_class: effectClass }))
      expect(seen.runs).toBe(2)
      expect(world.crashes).toHaveLength(1)
      expect(talk.of("tool.started").map(({ payload }) => payload.attempt)).toEqual([1, 2])
      expect(resultOf(talk)).toMatchObject([{ status: "success", output: "seen" }])
      expect(end.kind).toBe("turn.completed")
    }
  })
})

describe("calls of one answer", () => {
  it("run side by side when they only read, and one by one when they change something", async () => {
    const trace: Array<string> = []
    const traced = (name: string) => async () => {
      trace.push(`+${name}`)
      await new Promise((resolve) => setImmediate(resolve))
      await new Promise((resolve) => setImmediate(resolve))
      trace.push(`-${name}`)
      return name
    }
    const gates = [new Gate(), new Gate()]
    const talk = await start([
      tool("a", gates[0]!.run),
      tool("b", gates[1]!.run),
      effectTool("c", traced("c")),
      tool("d", traced("d")),
      effectTool("e", traced("e"))
    ])
    await Promise.all(gates.map((gate) => gate.started))
    expect(trace).toEqual([])
    gates[1]!.end("b")
    gates[0]!.end("a")
    await talk.turns()
    expect(trace).toEqual(["+c", "-c", "+d", "-d", "+e", "-e"])
    expect(talk.of("turn.tools_finished")[0]?.payload.summaries.map(({ tool_name }) => tool_name)).toEqual([
      "a",
      "b",
      "c",
      "d",
      "e"
    ])
  })
})

describe("what a tool prints", () => {
  it("is on record as it comes, per stream, and nothing after its end", async () => {
    const talk = await start([
      tool("chatty", async (_input, { progress }) => {
        progress("stdout", "o")
        progress("stdout", "ne ")
        progress("stderr", "oops ")
        await new Promise(setImmediate)
        progress("stdout", "two")
        progress("stdout", "")
        progress("stdout", 5 as never)
        return "done"
      })
    ])
    await talk.turns()
    expect(talk.of("tool.progress").map(({ payload }) => [payload.stream, payload.chunk])).toEqual([
      ["stdout", "one "],
      ["stderr", "oops "],
      ["stdout", "two"]
    ])
  })

  it("in one piece of any size becomes runes of the usual size", async () => {
    const talk = await start([
      tool("huge", async (_input, { progress }) => {
        progress("stdout", "😀".repeat(50_000))
        return "done"
      })
    ])
    await talk.turns()
    const chunks = talk.of("tool.progress").map(({ payload }) => payload.chunk)
    expect(chunks.join("")).toBe("😀".repeat(50_000))
    expect(chunks.every((chunk) => chunk.length <= limits.deltaCharsMax && chunk.isWellFormed())).toBe(true)
  })

  it("without end stops making runes", async () => {
    const talk = await start([
      tool("flood", async (_input, { progress }) => {
        for (let index = 0; index < 50_000; index++) progress("stdout", `${String(index).padStart(999, ".")}\n`)
        return "done"
      })
    ])
    await talk.turns()
    const runes = talk.of("tool.progress")
    expect(runes.length).toBeGreaterThan(10)
    expect(runes.length).toBeLessThanOrEqual(limits.progressRunesMax + 1)
    expect(resultOf(talk)).toMatchObject([{ status: "success", output: "done" }])
  })
})

describe("an output that is too long", () => {
  const long = `head${"x".repeat(200_000)}tail`
  const sha256 = "a".repeat(64)

  it("keeps its head and its tail", async () => {
    const talk = await start([tool("long", async () => long)])
    await talk.turns()
    const output = resultOf(talk)[0]?.output ?? ""
    expect(output.length).toBeLessThan(limits.outputCharsMax + 100)
    expect(output).toMatch(/^head[\s\S]*characters left out[\s\S]*tail$/)
  })

  it("is kept whole beside the log where there is a place for it", async () => {
    const kept: Array<string> = []
    const keepOutput = async (output: string) => {
      kept.push(output)
      return { sha256, bytes: output.length } as never
    }
    const talk = await start([tool("long", async () => long)], { keepOutput })
    await talk.turns()
    expect(kept).toEqual([long])
    expect(resultOf(talk)).toMatchObject([{ status: "success", output_blob: { sha256, bytes: long.length } }])
  })

  it("is a success also where that place is full", async () => {
    const talk = await start([tool("long", async () => long)], { keepOutput: () => Promise.reject(new Error("full")) })
    await talk.turns()
    expect(resultOf(talk)).toMatchObject([{ status: "success" }])
    expect(resultOf(talk)[0]).not.toHaveProperty("output_blob")
  })

  it("of characters that are no text is still a result", async () => {
    const talk = await start([tool("odd", async () => "\ud800\u0000".repeat(60_000))])
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(resultOf(talk)).toMatchObject([{ status: "success" }])
  })
})

describe("a tool that asks first", () => {
  const asking = (run: FunctionTool["run"]) => effectTool("risky", run, { approval: "ask" })

  it("waits for the answer, and runs when it is yes", async () => {
    const talk = await start([asking(async (input) => `ran with ${JSON.stringify(input)}`)])
    const asked = await talk.until("tool.approval_requested")
    expect(asked.payload).toMatchObject({ call_id: "call_1", shown_as: { title: "risky" } })
    expect(talk.of("tool.started")).toEqual([])
    await talk.approve("call_1")
    await talk.turns()
    expect(resultOf(talk)).toMatchObject([{ status: "success", output: 'ran with {"n":0}' }])
  })

  it("runs with what the approver made of it", async () => {
    const talk = await start([asking(async (input) => JSON.stringify(input))])
    await talk.until("tool.approval_requested")
    const answer = { call_id: "call_1" as never, approver: "ada", channel: "test", scope: "once" } as const
    await talk.submit({ _tag: "ApproveCall", ...answer, arguments: { n: "edited" } })
    await talk.turns()
    expect(resultOf(talk)).toMatchObject([{ output: '{"n":"edited"}' }])
  })

  it("does not run when it is no, and the model is told who said so", async () => {
    let runs = 0
    const talk = await start([
      asking(async () => {
        runs += 1
        return "ran"
      })
    ])
    await talk.until("tool.approval_requested")
    await talk.submit({ _tag: "DenyCall", call_id: "call_1" as never, approver: "ada", reason: "not today" })
    expect(await talk.turns()).toMatchObject({ payload: { final_output: expect.stringContaining("not today") } })
    expect(runs).toBe(0)
    expect(resultOf(talk)).toMatchObject([{ status: "denied" }])
  })

  it("does not run when nobody answers in time", async () => {
    const world = await worlds.open({
      scenarios: calling("risky"),
      tools: [asking(async () => "ran")],
      runFork: fastRunFork(1000)
    })
    const talk = await world.create({ model: "scripted/calls", limits: { approval_timeout_ms: 60_000 } })
    await talk.post("go")
    await talk.turns()
    expect(resultOf(talk)).toMatchObject([{ status: "timeout", error: { code: "approval_timeout" } }])
  })

  it("asks no more once it is allowed for the rest of the conversation", async () => {
    const talk = await start([asking(async () => "ran")])
    await talk.until("tool.approval_requested")
    const answer = { call_id: "call_1" as never, approver: "ada", channel: "test", scope: "session" } as const
    await talk.submit({ _tag: "ApproveCall", ...answer })
    await talk.turns()
    await talk.post("again")
    await talk.turns(2)
    expect(talk.of("tool.approval_requested").length).toBe(1)
    expect(resultOf(talk).map(({ status }) => status)).toEqual(["success", "success"])
  })

  it("takes the first of many answers, and tells the others which it was", async () => {
    let runs = 0
    const talk = await start([
      asking(async () => {
        runs += 1
        return "ran"
      })
    ])
    await talk.until("tool.approval_requested")
    const answers = Array.from({ length: 8 }, (_, index) =>
      index % 2 === 0
        ? talk.approve("call_1")
        : talk.submit({ _tag: "DenyCall", call_id: "call_1" as never, approver: `b${index}`, reason: "no" })
    )
    const settled = await Promise.allSettled(answers)
    expect(settled.filter(({ status }) => status === "fulfilled").length).toBe(1)
    for (const one of settled.slice(1)) {
      expect(one).toMatchObject({
        status: "rejected",
        reason: { refusal: { code: "already_decided", data: { decision: { decision: "approved", approver: "ada" } } } }
      })
    }
    await talk.turns()
    expect(runs).toBe(1)
  })
})

describe("a call that cannot run", () => {
  it("because there is no such tool gets a typed result, and the turn goes on", async () => {
    const world = await worlds.open({ scenarios: calling("nothing"), tools: [] })
    const talk = await world.create({ model: "scripted/calls" })
    await talk.post("go")
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(resultOf(talk)).toMatchObject([{ status: "error", error: { code: "unknown_tool" } }])
    expect(talk.of("tool.started")).toEqual([])
  })

  it("because the policy says so is denied, or rejected, by name", async () => {
    const port = {
      describe: () => [{ name: "x", description: "", parameters: {} }],
      facts: () => ({ effect_class: "effect", mutating: true }) as const,
      sandbox: () => ({ level: "none" }),
      run: () => Effect.succeed({ status: "success" } as const)
    }
    for (const [verdict, status] of [
      [{ _tag: "Deny", reason: "never" } as const, "denied"],
      [{ _tag: "Reject", error: { code: "sandbox_missing", message: "no sandbox" } } as const, "error"]
    ] as const) {
      const world = await worlds.open({
        scenarios: calling("x"),
        tools: { ...port, authorize: () => Effect.succeed(verdict) }
      })
      const talk = await world.create({ model: "scripted/calls" })
      await talk.post("go")
      expect((await talk.turns()).kind).toBe("turn.completed")
      expect(resultOf(talk)).toMatchObject([{ status }])
    }
  })
})
