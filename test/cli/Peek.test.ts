/** Goal: what peek shows follows from the events of an agent alone. */
import { describe, expect, it } from "vitest"
import { addEvent, emptyPeek } from "#src/cli/verbs/peek.ts"

const peeked = (events: ReadonlyArray<object>, messagesMax = 2) => {
  const peek = emptyPeek("conv_1")
  for (const [index, event] of events.entries()) addEvent(peek, { ts_ms: 1_000 + index, event }, messagesMax)
  return peek
}

describe("peek", () => {
  it("shows the state, the tool that runs, the last prompt and the last messages", () => {
    const peek = peeked([
      { type: "user_prompt", text: "go" },
      { type: "agent_message", content: "one" },
      { type: "agent_message", content: "two" },
      { type: "agent_message", content: "three" },
      { type: "tool_started", tool_name: "Bash" },
      { type: "state_change", state: "active", sub_state: "tool_use" }
    ])
    expect(peek).toMatchObject({ state: "tool_use", since_ms: 1_005, tools_running: ["Bash"], last_prompt: "go" })
    expect(peek.messages).toEqual(["two", "three"])
  })

  it("counts tools that ended, and has none running when the agent is idle", () => {
    const peek = peeked([
      { type: "tool_started", tool_name: "Bash" },
      { type: "tool_started", tool_name: "Read" },
      { type: "tool_completed", tool_name: "Bash", success: false },
      { type: "state_change", state: "idle" }
    ])
    expect(peek).toMatchObject({ state: "idle", tools_running: [], tools_completed: 1, tools_failed: 1 })
    expect(peeked([{ type: "session_ended" }]).state).toBe("exited")
  })
})
