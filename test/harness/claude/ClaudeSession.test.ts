/**
 * Goal: sessions of Claude Code as they were recorded show the states they were in; doubled, shuffled, missing and broken
 * signals never show an agent as busy that has ended, never count a tool or a token twice, and never throw.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import * as FastCheck from "fast-check"
import { describe, expect, it } from "vitest"
import { ClaudeSession } from "#src/harness/claude/ClaudeSession.ts"
import type { Heard } from "#src/harness/Port.ts"
import { type MonitorStatus, observe } from "#src/machine/table/Monitor.ts"
import { count, reportCount } from "../../support/counts.ts"
import { seedFor } from "../../support/seed.ts"

const samples = join(import.meta.dirname, "../../fixtures/harness/claude")

interface Recorded {
  readonly hook_event_name: string
  readonly [field: string]: unknown
}

const recorded = (name: string): ReadonlyArray<Recorded> =>
  readFileSync(join(samples, `${name}.hooks.jsonl`), "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => JSON.parse(line))
    .filter((body) => typeof body.hook_event_name === "string")

const names = readdirSync(samples)
  .filter((file) => file.endsWith(".hooks.jsonl"))
  .map((file) => file.replace(".hooks.jsonl", ""))

/** A session with the monitor that folds what it says. */
class Watched {
  readonly session = new ClaudeSession()
  status: MonitorStatus = "initialized"
  readonly seen: Array<string> = []
  readonly heard: Array<Heard> = []

  take(heard: Heard): Heard {
    this.heard.push(heard)
    for (const event of heard.events) {
      this.status = observe(this.status, event)
      if (this.seen.at(-1) !== this.status) this.seen.push(this.status)
    }
    return heard
  }

  hook(name: string, body: unknown = {}): Heard {
    return this.take(this.session.hook(name, body))
  }

  play(bodies: ReadonlyArray<Recorded>): this {
    for (const body of bodies) this.hook(body.hook_event_name, body)
    return this
  }

  events(type: string) {
    return this.heard.flatMap(({ events }) => events).filter((event) => event.type === type)
  }
}

const withPermission = "idle thinking tool_use waiting_for_permission thinking idle exited"
const withTool = "idle thinking tool_use thinking idle exited"
const withText = "idle thinking idle exited"

const expected: Readonly<Record<string, string>> = {
  "p-ask-question": withText,
  "p-bash-allowed": withTool,
  "p-bash-fail": withTool,
  "p-bash-noperm": withPermission,
  "p-exit-plan": withText,
  "p-fail400": withText,
  "p-perm-allow": withPermission,
  "p-perm-deny": withPermission,
  "p-perm-deny-interrupt": "idle thinking tool_use waiting_for_permission exited",
  "p-perm-edit": withPermission,
  "p-pre-allow-edit": withTool,
  "p-pre-ask": withTool,
  "p-pre-defer": "idle thinking tool_use exited",
  "p-pre-deny": withTool,
  "p-task": "idle thinking tool_use thinking idle thinking idle exited",
  "p-text": withText,
  "tty-ask-answered-by-hook": withPermission,
  "tty-ask-question": withPermission,
  "tty-compact": "idle thinking idle compacting idle exited",
  "tty-esc-stream": "idle thinking exited",
  "tty-esc-tool": "idle thinking tool_use exited",
  "tty-exit": withText,
  "tty-immediate": withText,
  "tty-kill9": "idle thinking",
  "tty-paste": withText,
  "tty-perm-dialog-no": "idle thinking tool_use waiting_for_permission exited",
  "tty-perm-dialog-yes": withPermission,
  "tty-perm-hook-late": withPermission,
  "tty-perm-hook-race": withPermission,
  "tty-perm-hook-timeout": withPermission,
  "tty-plan": withPermission,
  "tty-plan-by-hook": "idle thinking tool_use waiting_for_permission",
  "tty-queued": "idle thinking idle thinking idle exited",
  "tty-sighup": withText,
  "tty-sigterm": withText,
  "tty-text": withText
}

describe("recorded sessions", () => {
  it("have an expectation each", () => expect(names.toSorted()).toEqual(Object.keys(expected).toSorted()))

  it.each(names)("%s shows the states it was in", (name) => {
    expect(new Watched().play(recorded(name)).seen.join(" ")).toBe(expected[name])
  })

  it.each(names)("%s says nothing new when every hook comes twice", (name) => {
    const twice = recorded(name).flatMap((body) =>
      body.hook_event_name === "PermissionRequest" ? [body] : [body, body]
    )
    const watched = new Watched().play(twice)
    expect(watched.seen.join(" ")).toBe(expected[name])
    const once = new Watched().play(recorded(name))
    for (const type of ["tool_started", "tool_completed", "agent_message", "turn_completed", "user_prompt"])
      expect([type, watched.events(type).length]).toEqual([type, once.events(type).length])
  })

  it("join a permission to the call that is asked about, and end it with that call", () => {
    const watched = new Watched().play(recorded("tty-perm-hook-late"))
    const question = watched.heard.find((heard) => heard.question !== undefined)?.question
    expect(question).toMatchObject({ toolName: "Bash", input: { command: "touch b.txt" }, title: "Bash: touch b.txt" })
    expect(watched.heard.flatMap(({ settled = [] }) => settled)).toEqual([
      { callId: question?.callId, outcome: "ran", durationMs: 114 }
    ])
  })

  it("say of a refused call that it did not run", () => {
    const watched = new Watched().play(recorded("p-perm-deny"))
    expect(watched.heard.flatMap(({ settled = [] }) => settled)).toMatchObject([{ outcome: "not_run" }])
  })

  it("carry the error of a turn that failed", () => {
    const [completed] = new Watched().play(recorded("p-fail400")).events("turn_completed")
    expect(completed).toHaveProperty("error")
  })
})

const osc = (state: "idle" | "working" | "done" | "blocked") => ({ state, source: "osc" as const })

describe("what no hook reports", () => {
  it.each([
    ["tty-esc-stream", 2],
    ["tty-esc-tool", 3],
    ["tty-perm-dialog-no", 4]
  ])("%s is idle again when the terminal says so", (name, hooks) => {
    const watched = new Watched().play(recorded(name).slice(0, hooks))
    expect(watched.session.isBusy()).toBe(true)
    watched.take(watched.session.status(osc("idle")))
    expect(watched.status).toBe("idle")
    expect(watched.session.isBusy()).toBe(false)
  })

  it("settles a question that was answered in the dialog, and only after the dialog was there", () => {
    const watched = new Watched().play(recorded("tty-perm-dialog-yes").slice(0, 4))
    expect(watched.take(watched.session.status(osc("working"))).settled).toBeUndefined()
    watched.take(watched.session.status(osc("blocked")))
    expect(watched.take(watched.session.status(osc("working"))).settled).toMatchObject([{ outcome: "started" }])
    expect(watched.status).toBe("tool_use")
  })

  it("refuses a question that the dialog was closed on", () => {
    const watched = new Watched().play(recorded("tty-perm-dialog-no").slice(0, 4))
    watched.take(watched.session.status(osc("blocked")))
    expect(watched.take(watched.session.status(osc("idle"))).settled).toMatchObject([{ outcome: "not_run" }])
  })

  it("believes neither output nor silence", () => {
    const watched = new Watched().play(recorded("tty-text").slice(0, 2))
    watched.take(watched.session.status({ state: "idle", source: "silence" }))
    expect(watched.status).toBe("thinking")
  })
})

describe("sub-agents", () => {
  const at = { agent_id: "sub_1", agent_type: "general-purpose" }
  const prompt = { prompt_id: "p1" }
  const tool = { tool_name: "Bash", tool_input: { command: "ls" }, tool_use_id: "t1" }

  const started = (): Watched => {
    const watched = new Watched()
    watched.hook("SessionStart")
    watched.hook("UserPromptSubmit", { ...prompt, prompt: "go" })
    watched.hook("SubagentStart", { ...prompt, ...at })
    return watched
  }

  it("never move their parent with their tools", () => {
    const watched = started()
    watched.hook("PreToolUse", { ...prompt, ...at, ...tool })
    watched.hook("PostToolUse", { ...prompt, ...at, ...tool })
    expect(watched.seen.join(" ")).toBe("idle thinking")
  })

  it("keep their parent busy after its stop, and end its turn with theirs", () => {
    const watched = started()
    watched.hook("Stop", { ...prompt, background_tasks: [{ type: "subagent", status: "running" }] })
    expect(watched.status).toBe("tool_use")
    watched.hook("PreToolUse", { ...prompt, ...at, ...tool })
    const { question } = watched.hook("PermissionRequest", { ...prompt, ...at, ...tool })
    expect(question).toMatchObject({ callId: "t1", subAgent: "sub_1" })
    expect(watched.status).toBe("waiting_for_permission")
    watched.take(watched.session.decided("t1"))
    expect(watched.status).toBe("tool_use")
    watched.hook("PostToolUse", { ...prompt, ...at, ...tool })
    watched.hook("SubagentStop", { ...prompt, ...at })
    expect(watched.status).toBe("idle")
  })

  it("that nobody saw start do not count when they stop", () => {
    const watched = started()
    watched.hook("SubagentStop", { agent_id: "other", agent_type: "" })
    expect(watched.status).toBe("thinking")
  })
})

describe("a session that goes on in the same process", () => {
  it("is not over when it is cleared", () => {
    const watched = new Watched()
    watched.hook("SessionStart")
    watched.hook("SessionEnd", { reason: "clear" })
    watched.hook("SessionStart", { source: "clear" })
    expect(watched.status).toBe("idle")
  })
})

const anyBody = FastCheck.oneof(
  FastCheck.jsonValue(),
  FastCheck.record(
    {
      prompt_id: FastCheck.constantFrom("a", "b", 7, null),
      tool_use_id: FastCheck.constantFrom("t1", "t2", "", []),
      tool_name: FastCheck.constantFrom("Bash", 5, "x".repeat(100_000)),
      tool_input: FastCheck.jsonValue(),
      agent_id: FastCheck.constantFrom("sub", {}, undefined),
      background_tasks: FastCheck.jsonValue(),
      tool_calls: FastCheck.jsonValue(),
      duration_ms: FastCheck.oneof(FastCheck.double(), FastCheck.string()),
      message_id: FastCheck.string(),
      delta: FastCheck.jsonValue(),
      final: FastCheck.boolean()
    },
    { requiredKeys: [] }
  )
)

describe("generated disorder", () => {
  const all = names.flatMap(recorded)

  it("never throws on what hooks cannot be, and ends exited", () => {
    const hooks = FastCheck.array(
      FastCheck.tuple(FastCheck.constantFrom(...new Set(all.map((body) => body.hook_event_name)), "Nothing"), anyBody)
    )
    const numRuns = count("broken hooks", { fast: 300, soak: 10_000 })
    const property = FastCheck.property(hooks, (bodies) => {
      const watched = new Watched()
      for (const [name, body] of bodies) watched.hook(name, body)
      watched.hook("SessionEnd", { reason: "other" })
      expect(watched.status).toBe("exited")
    })
    FastCheck.assert(property, { seed: seedFor("broken hooks"), numRuns })
  })

  it("counts every tool once and is idle after the last stop, in whatever order a turn's hooks come", () => {
    const turns = names.filter((name) => expected[name] === withTool || expected[name] === withPermission)
    const numRuns = count("shuffled turns", { fast: 300, soak: 10_000 })
    let runs = 0
    const property = FastCheck.property(
      FastCheck.constantFrom(...turns).chain((name) => {
        const bodies = recorded(name)
        const inside = bodies.filter((body) => !["SessionStart", "Stop", "SessionEnd"].includes(body.hook_event_name))
        const stop = bodies.filter((body) => body.hook_event_name === "Stop")
        return FastCheck.shuffledSubarray(inside).map((shuffled) => [...shuffled, ...shuffled.slice(0, 2), ...stop])
      }),
      (bodies) => {
        runs += 1
        const watched = new Watched()
        watched.hook("SessionStart")
        watched.play(bodies)
        expect(watched.status).toBe("idle")
        const ids = watched.events("tool_completed").map((event) => ("call_id" in event ? event.call_id : ""))
        expect(new Set(ids).size).toBe(ids.length)
      }
    )
    FastCheck.assert(property, { seed: seedFor("shuffled turns"), numRuns })
    reportCount("turns of Claude Code in disorder, idle after their stop", runs)
  })
})
