// Goal: what an agent is told about where it works is first the beginning of its prompt, then notes before the input that
// waits; both are made of the log alone, and an agent that is over is told nothing.
import { describe, expect, it } from "vitest"
import { turnBroken } from "#src/machine/decide/LoopBreakers.ts"
import { fold } from "#src/machine/evolve/Evolve.ts"
import { limits } from "#src/machine/MachineLimits.ts"
import { assembleRequest } from "#src/machine/view/Request.ts"
import type { AgentId } from "#src/rune/Ids.ts"
import { callItem, readTool, Story } from "../support/story.ts"

const hash = (digit: string): string => digit.repeat(64)
const told = (story: Story, text: string, digit: string) =>
  story.run({ _tag: "InstructAgent", agent_id: story.root, text, parts: [{ name: "AGENTS.md", sha256: hash(digit) }] })

const rolesAndTexts = (story: Story) =>
  assembleRequest(story.state, story.agent).map((message) => [
    message.role,
    message.role === "assistant" ? "" : message.content,
    ...("note" in message ? ["note"] : [])
  ])

describe("what an agent is told", () => {
  it("begins its prompt, and later stands before the input that waits", () => {
    const story = new Story().ready()
    expect(told(story, "first", "a")).toEqual(["agent.instructed"])
    story.post("hello")
    expect(told(story, "second", "b")).toEqual(["agent.instructed"])
    expect(rolesAndTexts(story)).toEqual([
      ["system", "first"],
      ["user", "second", "note"],
      ["user", "hello"]
    ])
    expect(story.agent.prompt?.content).toBe("first")
  })

  it("is followed by the agent's own instructions, or those of the conversation", () => {
    const story = new Story().ready({ instructions: "of all" })
    expect(rolesAndTexts(story)).toEqual([["system", "of all"]])
    told(story, "first", "a")
    expect(rolesAndTexts(story)).toEqual([["system", "first\n\n# Instructions for this conversation\n\nof all"]])
    const special = { ...story.agent, instructions: "special" }
    expect(assembleRequest(story.state, special)).toEqual([
      { role: "system", content: `first\n\n# Your role: ${special.role}\n\nspecial` }
    ])
  })

  it("is nothing for an agent that is over, or that is not there", () => {
    const story = new Story().ready()
    told(story, "first", "a")
    const nobody = "agt_00000000000000ff" as AgentId
    const command = { _tag: "InstructAgent", text: "x", parts: [] } as const
    expect(story.refused({ ...command, agent_id: nobody }).code).toBe("not_found")
    const worker = "agt_00000000000000aa" as AgentId
    story.run({
      _tag: "SpawnAgent",
      spec: { agent_id: worker, role: "worker", model: "scripted/demo", parent_id: story.root }
    })
    story.run({ ...command, agent_id: worker })
    story.run({ _tag: "KillAgent", agent_id: worker, reason: "over", force: true })
    expect(story.refused({ ...command, agent_id: worker }).code).toBe("invalid_state")
    expect(story.state.agents.map(({ prompt }) => prompt?.content)).toEqual(["first", undefined])
    const head = story.state.head
    story.tell("agent.instructed", { agent_id: nobody, text: "x", parts: [] })
    expect(story.state.head).toBe(head + 1)
  })

  it("hides no loop, is left out of no request, and goes with what is summed up", () => {
    const story = new Story().ready()
    told(story, "first", "a")
    story.post("go")
    const look = (): void => {
      story.request()
      story.respond([callItem("look", readTool)])
      const { call_id: callId } = story.state.calls[0]!
      story.start(callId)
      story.finish(callId)
      story.settle()
    }
    for (let count = 1; count < limits.sameCallsMax; count += 1) look()
    told(story, "second", "b")
    look()
    expect(turnBroken(story.agent)?.reason).toBe("repeated_tool_calls")
    const noted = story.agent.transcript.find((item) => item.type === "note")!
    const upto = story.agent.transcript.at(-1)!.event_id
    expect(noted.event_id).toBeLessThan(upto)
    story.run({ _tag: "Compact", agent_id: story.root, upto, summary: "looked" })
    expect(story.agent.transcript.map(({ type }) => type)).toEqual(["user", "summary"])
    told(story, "third", "c")
    const error = { error_type: "context_exceeded", message: "too long", retryable: false }
    story.run({ _tag: "FailTurn", agent_id: story.root, error })
    expect(story.agent.transcript.map((item) => [item.type, "unfit" in item])).toEqual([
      ["user", true],
      ["summary", false],
      ["note", false]
    ])
    expect(fold(story.runes, story.conversationId)).toEqual(story.state)
  })
})
