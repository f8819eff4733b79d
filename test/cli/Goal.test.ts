// Goal: a person who follows a goal sees its plan, what is being done, and in the end what was done and what shows it;
// whatever the agents say. Method: runes of a whole goal through the fold and the renderer that `echs goal` uses.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Board } from "#src/cli/goal/Board.ts"
import { GoalLines } from "#src/cli/goal/Lines.ts"
import { goalFields, goalOptions } from "#src/cli/goal/Options.ts"
import { widthOf } from "#src/cli/render/Text.ts"
import { decide } from "#src/cli/Turn.ts"
import { makeVerb } from "#src/cli/VerbSpec.ts"
import { type AnyRune, type Client, RequestFailed } from "#src/client/Client.ts"
import { kinds } from "#src/rune/Kinds.ts"
import { GoalOptions } from "#src/rune/kinds/plan.ts"
import { Budget } from "#src/rune/kinds/shared.ts"
import { recordingTerminal } from "../support/terminal.ts"

const planId = "plan_0000000000000001"
let eventId = 0
const rune = (kind: string, payload: object, agentId?: string): AnyRune =>
  ({
    event_id: ++eventId,
    conversation_id: "conv_0000000000000001",
    kind,
    visibility: "public",
    ts_ms: eventId * 1_000,
    schema_version: 1,
    payload: kind.startsWith("plan.") ? { plan_id: planId, ...payload } : payload,
    ...(agentId === undefined ? {} : { agent_id: agentId })
  }) as unknown as AnyRune

const task = (taskId: string, title: string, dependsOn: ReadonlyArray<string> = [], priority = "medium") => ({
  task_id: taskId,
  title,
  instructions: "",
  depends_on: dependsOn,
  priority
})

const follow = (runes: ReadonlyArray<AnyRune>) => {
  const terminal = recordingTerminal()
  const board = new Board(planId)
  const lines = new GoalLines(terminal, board)
  const said = runes.flatMap((one) => {
    board.apply(one)
    return lines.linesOf(one)
  })
  return { board, lines, said: said.join("\n") }
}

const evidence = {
  spec: { type: "command", command: ["npm", "test"], expected_exit: 0 },
  passed: true,
  exit_code: 0
}

const started = (): ReadonlyArray<AnyRune> => [
  rune("plan.goal_received", { goal: "make the tests pass", auto_start: true }),
  rune("plan.planning_started", { attempt: 1 }),
  rune("plan.created", { tasks: [task("t1", "read the code", [], "high"), task("t2", "fix add", ["t1"])] }),
  rune("plan.approved", { approver: "auto_start" }),
  rune("plan.task_assigned", { task_id: "t1", agent_id: "agt_1" }),
  rune("plan.task_started", { task_id: "t1", attempt: 1 })
]

describe("a goal that is followed", () => {
  it("shows the plan as a tree with what each task waits for", () => {
    const { said } = follow(started())
    expect(said).toContain("make the tests pass")
    expect(said).toMatch(/├─ ○ 1\. read the code {2}high/)
    expect(said).toMatch(/└─ ○ 2\. fix add {2}after 1/)
  })

  it("says why a plan waits", () => {
    const tasks = [task("t1", "read the code")]
    expect(follow([rune("plan.created", { tasks, needs_approval: "no sandbox" })]).said).toContain(
      "? waits for approval: no sandbox"
    )
    expect(follow([rune("plan.created", { tasks })]).said).not.toContain("waits")
  })

  it("names the task an agent works on beside the tool it uses, until the call has its result", () => {
    const call = rune(
      "tool.call",
      { call_id: "call_1", tool_name: "bash", arguments: { command: "npm test" } },
      "agt_1"
    )
    const { board, lines } = follow([...started(), call])
    expect(board.currentTools).toEqual(["read the code: bash npm test"])
    expect(lines.status(1_000)).toContain("executing · 0/2 tasks · 0 tokens · 1.0 s · read the code: bash npm test")
    board.apply(rune("tool.result", { call_id: "call_1", status: "success" }))
    expect(board.currentTools).toEqual([])
  })

  it("ends with the summary, the evidence, the time and the cost", () => {
    const { board, lines } = follow([
      ...started(),
      rune("plan.task_completed", { task_id: "t1", result: "read", evidence: [evidence] }),
      rune("turn.completed", { usage: { input_tokens: 1_000, output_tokens: 200, usd: 0.5 } }, "agt_1"),
      rune("plan.review_started", { iteration: 1 }),
      rune("plan.goal_met", { summary: "add() adds\n1 file changed", evidence: [evidence] })
    ])
    expect(board.end?.outcome).toBe("goal_met")
    expect(board.done).toBe(1)
    expect(lines.ending()).toBe("✓ goal met  9.0 s · $0.50\n  add() adds\n  1 file changed\n")
  })

  it("tells a failure, a critique, a changed plan and the reason of a stop", () => {
    const { board, lines, said } = follow([
      ...started(),
      rune("plan.task_failed", {
        task_id: "t1",
        attempt: 1,
        error: { code: "evidence_missing", message: "nothing changed" }
      }),
      rune("plan.critique", {
        verdict: "retry",
        findings: [{ severity: "error", category: "bug", title: "still wrong", file: "add.js", line: 3 }]
      }),
      rune("plan.updated", {
        changes: [
          { type: "task_added", task: task("t3", "look again") },
          { type: "task_changed", task: task("t2", "fix add well") },
          { type: "task_cancelled", task_id: "t1", reason: "superseded" }
        ]
      }),
      rune("plan.blocked", { task_ids: ["t2"], reason: "nothing can run" }),
      rune("plan.unblocked", { task_ids: ["t2"], reason: "told to" }),
      rune("plan.stopped", { reason: "iterations_exhausted", summary: "10 reviews" })
    ])
    expect(said).toContain("✗ read the code: nothing changed")
    expect(said).toContain("✗ still wrong · add.js:3")
    expect(said).toContain("– 1. read the code")
    expect(said).toContain("2. fix add well")
    expect(said).toContain("3. look again")
    expect(said).toContain("blocked: nothing can run")
    expect(board.tasks.map((one) => one.state)).toEqual(["cancelled", "waiting", "waiting"])
    expect(lines.ending()).toContain("✗ stopped: iterations_exhausted")
  })

  it("leaves runes of another plan alone", () => {
    const { board } = follow([...started(), rune("plan.stopped", { plan_id: "plan_other", reason: "cancelled" })])
    expect(board.end).toBeUndefined()
  })

  it("takes any payload of any kind without failing, and no line is wider than the terminal", () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.keys(kinds)),
        fc.dictionary(fc.string(), fc.anything()),
        (kind, payload) => {
          const { lines, said } = follow([...started(), rune(kind, payload)])
          for (const line of [...said.split("\n"), lines.status(0)]) expect(widthOf(line)).toBeLessThanOrEqual(80)
        }
      )
    )
  })
})

describe("an answer that comes too late", () => {
  const answer = async (code: string) => {
    const terminal = recordingTerminal({ answers: ["y"] })
    const item = { call_id: "call_1", tool_name: "bash", arguments: {}, policy_reason: "", choices: ["once"] }
    const call = async (name: string) => {
      if (name === "approval.list") return { items: [item] }
      throw new RequestFailed(name, { code, message: `it is ${code}` } as never)
    }
    const { signal } = new AbortController()
    await decide(
      { client: { call } as unknown as Client, conversationId: "conv_1", terminal, signal, after: 0 },
      "call_1"
    )
    return terminal.complaints()
  }

  it.each(["already_decided", "not_found", "invalid_state"])("is told when it is %s", async (code) => {
    expect(await answer(code)).toContain(code)
  })

  it("is a failure when it is anything else", async () => {
    await expect(answer("internal")).rejects.toBeInstanceOf(RequestFailed)
  })
})

describe("the flags of echs goal", () => {
  const asked = async (...args: ReadonlyArray<string>) => {
    const terminal = recordingTerminal()
    let fields: object | undefined
    const verb = makeVerb({
      name: "goal",
      options: goalOptions,
      example: "",
      run: async ({ values }) => {
        fields = goalFields(values, "/here")
        return 0
      }
    })
    const code = await verb.run(args, terminal)
    return { code, fields, complaint: terminal.complaints() }
  }

  it("say everything that the protocol knows about a goal", async () => {
    const budget = ["--tokens", "9", "--usd", "0.5", "--tool-calls", "7", "--time", "90s"]
    const task = ["--task-tokens", "8", "--task-usd", "2", "--task-tool-calls", "6", "--task-time", "2h"]
    const loop = ["--max-iterations", "4", "--max-replans", "0", "--stall-tokens", "5", "--stop-on-budget"]
    const place = ["--workspace", "there", "--model", "a/b", "--title", "t", "--policy", "read_only", "--parallel", "2"]
    const own = ["--check", "npm test", "--hidden-check", "sh x", "--protect", "test/**", "--critic-model", "c/d"]
    const { fields } = await asked(...budget, ...task, ...loop, ...place, ...own, "--worktrees", "--review")
    expect(fields).toEqual({
      auto_start: false,
      workspace: "/here/there",
      labels: { directory: "/here/there" },
      model: "a/b",
      title: "t",
      policy: { mode: "read_only" },
      max_parallel: 2,
      evidence: [{ type: "command", command: ["sh", "-c", "npm test"], expected_exit: 0 }],
      hidden_evidence: [{ type: "command", command: ["sh", "-c", "sh x"], expected_exit: 0 }],
      protect: ["test/**"],
      models: { critic: "c/d" },
      budget: { tokens: 9, usd: 0.5, tool_calls: 7, wall_ms: 90_000 },
      options: {
        worktrees: true,
        max_iterations: 4,
        max_replans: 0,
        tokens_without_progress: 5,
        stop_on_budget: true,
        task_budget: { tokens: 8, usd: 2, tool_calls: 6, wall_ms: 7_200_000 }
      }
    })
    const known = Object.keys((fields as { options: object }).options)
    expect(known.sort()).toEqual(Object.keys(GoalOptions.fields).sort())
    expect(Object.keys((fields as { budget: object }).budget).sort()).toEqual(Object.keys(Budget.fields).sort())
  })

  it("say nothing that was not said, and nothing about a conversation that is there already", async () => {
    expect((await asked()).fields).toEqual({
      auto_start: true,
      workspace: "/here",
      labels: { directory: "/here" }
    })
    expect((await asked("--in", "last")).fields).toEqual({ auto_start: true })
  })

  it.each([
    [["--tokens", "0"], "--tokens must be a whole number, 1 or greater"],
    [["--usd", "-1"], "--usd"],
    [["--usd", "free"], "--usd must be a number greater than 0"],
    [["--usd", "0"], "--usd must be a number greater than 0"],
    [["--task-usd", "1e9"], "--task-usd must be a number greater than 0"],
    [["--time", "10"], "--time must be a number, 1 or greater, followed by s, m, h or d"],
    [["--time", "0m"], "--time must be a number, 1 or greater"],
    [["--task-time", "soon"], "--task-time must be a number"],
    [["--tool-calls", "1.5"], "--tool-calls must be a whole number, 1 or greater"],
    [["--max-iterations", "0"], "--max-iterations must be a whole number, 1 or greater"],
    [["--max-replans", "few"], "--max-replans must be a whole number, 0 or greater"],
    [["--stall-tokens", ""], "--stall-tokens must be a whole number, 1 or greater"],
    [["--parallel", "0"], "--parallel must be a whole number, 1 or greater"],
    [["--policy", "none"], "--policy must be one of: read_only, auto, full_access"],
    [["--worktrees=yes"], "--worktrees"],
    [["--in", "last", "--model", "a/b"], "--model applies to a new conversation and cannot be combined with --in"]
  ])("are refused by name when they make no sense: %j", async (args, complaint) => {
    const refused = await asked(...args)
    expect(refused).toMatchObject({ code: 2, fields: undefined })
    expect(refused.complaint).toContain(complaint)
  })
})
