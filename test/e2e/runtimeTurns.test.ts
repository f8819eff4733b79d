// Goal: turns run to their end, one after another, and what goes wrong inside them stays inside them. Method: the real
// runtime with the scripted provider and function tools; every log is checked after every test.
// Verifies: INV-TURN-ORDER, INV-READY-NO-PENDING-TOOLS, INV-ONE-MODEL-CALL-PER-AGENT, INV-REPLAY-IDEMPOTENT
import { describe, expect, it } from "vitest"
import { always, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { effectTool, tool } from "../support/runtime/tools.ts"
import { useWorlds } from "../support/runtime/World.ts"

const worlds = useWorlds()

describe("a turn", () => {
  it("answers, and the answer is the end", async () => {
    const world = await worlds.open({})
    const talk = await world.create()
    await talk.post("hello")
    const end = await talk.turns()
    expect(end).toMatchObject({ kind: "turn.completed", payload: { final_output: "hello" } })
    expect(talk.kinds).toEqual([
      "session.created",
      "agent.spawning",
      "agent.ready",
      "session.activated",
      "turn.started",
      "turn.model_requested",
      "turn.assistant_delta",
      "turn.assistant_final",
      "turn.completed"
    ])
  })

  it("runs what the model asks for and tells it what came of it", async () => {
    const ran: Array<unknown> = []
    const world = await worlds.open({
      scenarios: scenarios({
        two: [
          step(1, say("looking. "), use("look", { at: "a" }), use("write", { to: "b" })),
          step(2, say("it said {{output}}"))
        ]
      }),
      tools: [
        tool("look", async (input) => {
          ran.push(input)
          return "seen"
        }),
        effectTool("write", async (input, { progress }) => {
          ran.push(input)
          progress("stdout", "writing\n")
          return "written"
        })
      ]
    })
    const talk = await world.create({ model: "scripted/two" })
    await talk.post("go")
    expect(await talk.turns()).toMatchObject({ kind: "turn.completed", payload: { final_output: "it said written" } })
    expect(ran).toEqual([{ at: "a" }, { to: "b" }])
    expect(talk.of("tool.result").map((rune) => rune.payload.status)).toEqual(["success", "success"])
    expect(talk.kinds.slice(talk.kinds.indexOf("turn.tool_calls_received"))).toEqual([
      "turn.tool_calls_received",
      "tool.call",
      "tool.call",
      "tool.started",
      "tool.result",
      "tool.started",
      "tool.progress",
      "tool.result",
      "turn.tools_finished",
      "turn.model_requested",
      "turn.assistant_delta",
      "turn.assistant_final",
      "turn.completed"
    ])
  })

  it("waits for the one before it", async () => {
    const world = await worlds.open({ scenarios: scenarios({ slow: [always(say("re: {{input}}", { delay_ms: 2 }))] }) })
    const talk = await world.create({ model: "scripted/slow" })
    await Promise.all([talk.post("one"), talk.post("two"), talk.post("three")])
    await talk.turns(3)
    expect(talk.of("turn.completed").map((rune) => rune.payload.final_output)).toEqual([
      "re: one",
      "re: two",
      "re: three"
    ])
    expect(talk.of("turn.queued").length).toBe(2)
  })
})
