// Goal: no program is started before what led to it is on disk: no hook, no command of the evidence, no git command of a
// worktree. Method: the real runtime over a log whose appends take their time, wait for ever or are refused; every start of
// a program compares what the state holds with what is durable.
// Verifies: INV-GOAL-EVIDENCE
import { setImmediate as turnOfLoop } from "node:timers/promises"
import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import { makeHooks } from "#src/hook/Hooks.ts"
import type { ProgramEnded } from "#src/hook/Program.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import type { RuneStore } from "#src/store/runes/RuneStore.ts"
import { fixedSource } from "#src/tool/Source.ts"
import type { Tool } from "#src/tool/Tool.ts"
import { makeRouter } from "#src/tool/ToolRouter.ts"
import { goalEnd, goalWorld, submitGoal } from "../support/autonomy/goals.ts"
import { TestRunner } from "../support/autonomy/TestRunner.ts"
import { gitWorkspace, useWorkspaces } from "../support/autonomy/workplace.ts"
import { reportCount } from "../support/counts.ts"
import { say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { useWorlds } from "../support/runtime/World.ts"

const worlds = useWorlds()
const workspaces = useWorkspaces()

/** A store in front of which every append waits for the gate, in order; with the kinds of what is on its way. */
const gated = (
  gate: (runes: ReadonlyArray<AnyRune>) => Promise<void>,
  underWay: Set<ReadonlyArray<AnyRune>> = new Set()
) => {
  let last: Promise<unknown> = Promise.resolve()
  return (store: RuneStore): RuneStore => {
    const appendNow: RuneStore["appendNow"] = (id, runes, options) => {
      const turn = last.then(() => gate(runes)).then(() => store.appendNow(id, runes, options))
      underWay.add(runes)
      last = turn.catch(() => undefined).then(() => underWay.delete(runes))
      return turn
    }
    return new Proxy(store, {
      get: (target, name) => {
        if (name === "appendNow") return appendNow
        const member = Reflect.get(target, name) as unknown
        return typeof member === "function" ? member.bind(target) : member
      }
    })
  }
}

const slow = async (): Promise<void> => {
  for (let at = 0; at < 8; at += 1) await turnOfLoop()
}

/** The end of a worker's turn. The lead's turn proves nothing: its checks begin with its plan, while it still talks. */
const endsWork = ({ agent_id: agentId, kind }: AnyRune): boolean =>
  kind === "turn.completed" && agentId?.endsWith("lead") === false

/** What a program of a goal may be started for: a step of the plan, or the end of a worker's turn. */
const leads = (rune: AnyRune): boolean => rune.kind.startsWith("plan.") || endsWork(rune)

class WatchingRunner extends TestRunner {
  readonly underWay = new Set<ReadonlyArray<AnyRune>>()
  readonly early: Array<string> = []

  override run(request: Parameters<TestRunner["run"]>[0]) {
    const ahead = [...this.underWay].flat().filter(leads)
    this.early.push(...ahead.map(({ kind }) => `${kind} was not on disk when ${request.argv.at(-1)} was started`))
    return super.run(request)
  }
}

describe("a program of a goal", () => {
  it.each([
    ["in the workspace", {}],
    ["in worktrees", { worktrees: true }]
  ])("starts when all before it is on disk, %s", async (_name, options) => {
    const workspace = gitWorkspace(workspaces.make(), { "read.me": "hello\n" })
    const runner = new WatchingRunner()
    const world = await worlds.open(goalWorld({ runner, wrapStore: gated(slow, runner.underWay) }))
    const goal = await submitGoal(world, { model: "scripted/goal-success", workspace, max_parallel: 1, options })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect(runner.commands.length).toBeGreaterThan(8)
    expect(runner.early).toEqual([])
    reportCount("programs of goals started, each after its runes were durable", runner.commands.length)
  })

  it("never starts when the end of the work is never on disk", async () => {
    const workspace = gitWorkspace(workspaces.make(), { "read.me": "hello\n" })
    const runner = new TestRunner()
    let began: () => void = () => undefined
    const held = new Promise<void>((resolve) => {
      began = resolve
    })
    const gate = async (runes: ReadonlyArray<AnyRune>): Promise<void> => {
      if (!runes.some(endsWork)) return
      began()
      await slow()
      await slow()
      throw Object.assign(new Error("no space left"), { _tag: "DiskFull" })
    }
    const world = await worlds.open(goalWorld({ runner, wrapStore: gated(gate), reloadAfterMs: [], unchecked: true }))
    await submitGoal(world, { model: "scripted/goal-success", workspace, max_parallel: 1 })
    await held
    const before = [...runner.commands]
    await slow()
    await slow()
    await slow()
    expect(runner.commands).toEqual(before)
  })
})

describe("a hook before a call", () => {
  const write: Tool = {
    name: "write",
    description: "writes",
    parameters: { type: "object" },
    effect_class: "effect",
    mutating: true,
    provenance: "builtin",
    access: () => ({}),
    preview: () => Effect.succeed({ title: "write" }),
    run: () => Effect.succeed({ status: "success", output: "" })
  }
  const ended: ProgramEnded = { exit_code: 0, signal: null, aborted: false, stdout: "", stderr: "", output: "" }

  const open = async (gate: (runes: ReadonlyArray<AnyRune>) => Promise<void>) => {
    const early: Array<string> = []
    const underWay = new Set<ReadonlyArray<AnyRune>>()
    let starts = 0
    const hooks = makeHooks({
      dataDirectory: "/data",
      open: (path) =>
        path === "/data/hooks.json"
          ? {
              stamp: "1",
              text: () => JSON.stringify({ hooks: { PreToolUse: [{ hooks: [{ type: "command", command: "true" }] }] } })
            }
          : undefined,
      isTrusted: () => false,
      isContained: true,
      programs: {
        run: async () => {
          starts += 1
          early.push(...[...underWay].flat().map(({ kind }) => kind))
          return ended
        }
      },
      variable: () => undefined,
      discard: () => undefined,
      sharedDirectory: (workspace) => workspace,
      onTrouble: () => undefined
    })
    const tools = makeRouter({
      sources: [fixedSource([write])],
      evaluate: () => ({ verdict: "allow", reason: "test", network: false }),
      sandbox: { level: "none", contained: false },
      beforeCall: hooks.preToolUse
    })
    const world = await worlds.open({
      scenarios: scenarios({ edit: [step(1, use("write")), step(2, say("done"))] }),
      tools,
      wrapStore: gated(gate, underWay),
      reloadAfterMs: [],
      unchecked: true
    })
    const talk = await world.create({ model: "scripted/edit", workspace: "/w" })
    return { talk, early, starts: () => starts }
  }

  it("starts when the call is on disk", async () => {
    const { early, starts, talk } = await open(slow)
    await talk.post("go")
    expect((await talk.turns()).kind).toBe("turn.completed")
    expect(starts()).toBe(1)
    expect(early).toEqual([])
  })

  it("never starts for a call that the log refused", async () => {
    let refused: () => void = () => undefined
    const over = new Promise<void>((resolve) => {
      refused = resolve
    })
    const { starts, talk } = await open(async (runes) => {
      if (!runes.some(({ kind }) => kind === "tool.call")) return
      await slow()
      refused()
      throw Object.assign(new Error("no space left"), { _tag: "DiskFull" })
    })
    await talk.post("go")
    await over
    await slow()
    await slow()
    expect(starts()).toBe(0)
  })
})
