// Goal: what changed between two moments is told, and nothing else. Method: summaries as the server sends them, compared.
import { describe, expect, it } from "vitest"
import type { ConversationSummary } from "#src/client/Client.ts"
import { changesBetween } from "#src/dashboard/state/Compare.ts"

const summary = (change: object): ConversationSummary =>
  ({
    state: "active",
    attention: "idle",
    turns: 1,
    tool_calls: 0,
    agents_alive: 1,
    cost_usd: 0,
    usage: { input_tokens: 10, output_tokens: 5, cached_tokens: 0, reasoning_tokens: 0, usd: 0 },
    plan: null,
    agents: [{ agent_id: "agt_1", role: "root", name: null, model: "m", status: "idle" }],
    ...change
  }) as unknown as ConversationSummary

describe("two moments of a conversation", () => {
  it("are the same where nothing changed", () => {
    expect(changesBetween(summary({}), summary({}))).toEqual([])
  })

  it("differ in figures, agents and tasks, each as it was and as it became", () => {
    const worker = { agent_id: "agt_2", role: "worker", name: "digger", model: "m", status: "running_turn" }
    const root = { agent_id: "agt_1", role: "root", name: null, model: "m", status: "idle" }
    const task = { task: { task_id: "t1", title: "dig" }, status: "completed" }
    const after = summary({
      turns: 2,
      agents: [root, worker],
      plan: { status: "executing", revision: 1, tasks: [task] }
    })
    expect(changesBetween(summary({}), after)).toEqual([
      { what: "turns", before: "1", after: "2" },
      { what: "plan", before: "", after: "executing, plan 1" },
      { what: "agent digger (agt_2)", before: "", after: "running_turn" },
      { what: "task dig (t1)", before: "", after: "completed" }
    ])
    expect(changesBetween(after, summary({})).map(({ what }) => what)).toContain("agent digger (agt_2)")
  })
})
