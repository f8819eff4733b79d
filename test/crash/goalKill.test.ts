// Goal: a server that is killed with SIGKILL at any stage of a goal goes on with it by itself: it ends the same way, no
// finished task is done again, and nothing that must not happen twice happens twice. Method: a real server
// process, killed right after every rune of the plan in turn, and started again; the commands of the workers leave
// a mark each time they run.
// Verifies: G5, G6, INV-REPLAY-DETERMINISTIC
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type AnyRune, Client } from "#src/client/Client.ts"
import { count, reportCount } from "../support/counts.ts"
import { requirePart } from "../support/require.ts"
import { bubblewrap } from "../support/sandbox.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"

const task = (id: string, dependsOn: ReadonlyArray<string>) => ({
  id,
  title: `Write ${id}`,
  instructions: `Write ${id}.txt`,
  depends_on: dependsOn,
  priority: "medium",
  evidence: [{ type: "command", command: ["grep", "-q", id, `${id}.txt`], expected_exit: 0 }]
})

/** The mark is left before the file is written: a command that was cut off in between leaves a mark and no proof. */
const worker = (id: string) => [
  {
    when: { role: "worker", input: `^Task ${id}:`, step: 1 },
    play: [
      { text: `Writing ${id}.` },
      { tool: "bash", arguments: { command: `echo ${id} >> marks; echo ${id} > ${id}.txt` } }
    ]
  },
  // Told that nobody knows whether the command ran, it looks for itself and writes the file, which may be done twice.
  {
    when: { role: "worker", input: `^Task ${id}:`, last_tool: "bash", last_output: "not known|unknown" },
    play: [{ tool: "write_file", arguments: { path: `${id}.txt`, content: `${id}\n` } }]
  },
  { when: { role: "worker", input: `^Task ${id}:` }, play: [{ text: `${id} is written.` }] }
]

const scenario = {
  name: "killed",
  replies: [
    {
      when: { role: "orchestrator" },
      play: [
        {
          tool: "submit_plan",
          arguments: {
            summary: "Two, then one.",
            tasks: [task("one", []), task("two", []), task("three", ["one", "two"])]
          }
        }
      ]
    },
    ...worker("one"),
    ...worker("two"),
    ...worker("three"),
    { when: { role: "critic" }, play: [{ tool: "submit_review", arguments: { verdict: "pass", findings: [] } }] }
  ]
}

let place = ""
beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "echs-goal-kill-"))
  writeFileSync(join(place, "killed.json"), JSON.stringify(scenario))
})
afterAll(() => rmSync(place, { recursive: true, force: true }))

interface Run {
  readonly runes: ReadonlyArray<AnyRune>
  readonly marks: ReadonlyArray<string>
  readonly killed: boolean
}

/** Pursues the goal to its end; kills the server when this many runes of the plan are there. */
const pursue = async (name: string, killAfter: number | undefined): Promise<Run> => {
  const data = join(place, name, "data")
  const workspace = join(place, name, "workspace")
  mkdirSync(workspace, { recursive: true })
  let server: ServerProcess = await startProcess(data)
  const client = await Client.connect({ endpoint: async () => ({ url: server.url, token: server.token }) })
  const runes: Array<AnyRune> = []
  let planned = 0
  let killed = false
  try {
    const { conversation_id: id } = await client.call("goal.submit", {
      goal: "write three files",
      model: `scripted/${join(place, "killed.json")}`,
      workspace,
      policy: { mode: "full_access" }
    })
    for await (const item of client.tail(id, { signal: AbortSignal.timeout(50_000) })) {
      if (!("rune" in item)) continue
      runes.push(item.rune)
      if (item.rune.kind.startsWith("plan.")) planned += 1
      if (planned === killAfter && !killed) {
        killed = true
        await server.end("SIGKILL")
        server = await startProcess(data)
      }
      if (item.rune.kind === "plan.goal_met" || item.rune.kind === "plan.stopped") break
    }
    const marks = readFileSync(join(workspace, "marks"), "utf8").trim().split("\n").sort()
    return { runes, marks, killed }
  } finally {
    await client.close()
    await server.end("SIGTERM")
  }
}

const planKinds = (runes: ReadonlyArray<AnyRune>): ReadonlyArray<string> =>
  runes.filter(({ kind }) => kind.startsWith("plan.")).map(({ kind }) => kind)

const tasksIn = (runes: ReadonlyArray<AnyRune>, kind: string): ReadonlyArray<string> =>
  runes.filter((rune) => rune.kind === kind).map((rune) => String((rune.payload as { task_id?: string }).task_id))

const checkRun = ({ marks, runes }: Run): void => {
  expect(planKinds(runes).at(-1)).toBe("plan.goal_met")
  expect(tasksIn(runes, "plan.task_completed").toSorted()).toEqual(["one", "three", "two"])
  for (const done of ["one", "two", "three"]) {
    const completed = runes.findIndex(
      (rune) => rune.kind === "plan.task_completed" && (rune.payload as { task_id?: string }).task_id === done
    )
    expect(tasksIn(runes.slice(completed), "plan.task_started")).not.toContain(done)
  }
  expect(new Set(marks).size, `marks: ${marks.join(" ")}`).toBe(marks.length)
  expect(runes.map(({ event_id: id }) => id)).toEqual(runes.map((_, index) => index + 1))
}

describe("a goal whose server is killed", () => {
  it("ends as it would have, with every task done once and every effect at most once", async (context) => {
    requirePart(context, bubblewrap)
    const whole = await pursue("whole", undefined)
    checkRun(whole)
    const boundaries = planKinds(whole.runes).length - 1
    const every = Math.max(1, Math.floor(boundaries / count("stages of a goal", { fast: 16, soak: 1_000 })))
    const stages = Array.from({ length: boundaries }, (_, index) => index + 1).filter((at) => (at - 1) % every === 0)
    const kill = async (): Promise<void> => {
      for (let at = stages.shift(); at !== undefined; at = stages.shift()) {
        const run = await pursue(`kill-${at}`, at)
        checkRun(run)
        expect(run.killed).toBe(true)
        kills += 1
      }
    }
    let kills = 0
    await Promise.all([kill(), kill(), kill()])
    reportCount("goal: servers killed at a stage of a goal", kills)
  }, 300_000)
})
