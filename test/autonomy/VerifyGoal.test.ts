// Goal: the proof of a met goal can be repeated by anybody who has the repository: on the tree it names, whatever became of
// the files since; and what cannot be repeated is said, never passed. Method: real goals, real git, real programs.
import { execFileSync } from "node:child_process"
import { existsSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { verifyGoal } from "#src/autonomy/VerifyGoal.ts"
import type { PayloadOf } from "#src/rune/Kinds.ts"
import type { EvidenceSpec } from "#src/rune/kinds/evidence.ts"
import { workspaceLook } from "#src/tool/evidence/Look.ts"
import { goalEnd, goalWorld, submitGoal } from "../support/autonomy/goals.ts"
import { TestRunner } from "../support/autonomy/TestRunner.ts"
import { gitWorkspace, useWorkspaces } from "../support/autonomy/workplace.ts"
import { say, scenarios, use } from "../support/runtime/scenarios.ts"
import { useWorlds } from "../support/runtime/World.ts"

const worlds = useWorlds()
const workspaces = useWorkspaces()

const command = (line: string): EvidenceSpec => ({ type: "command", command: ["sh", "-c", line], expected_exit: 0 })
const story = scenarios({
  team: [
    {
      when: { role: "orchestrator" },
      play: [
        use("submit_plan", {
          tasks: [
            { id: "a", title: "a", instructions: "do a", evidence: [{ type: "command", command: "grep -q 42 a.txt" }] }
          ]
        })
      ]
    },
    { when: { role: "worker", step: 1 }, play: [use("write_file", { path: "a.txt", content: "42\n" })] },
    { when: { role: "worker" }, play: [say("done")] },
    { when: { role: "critic" }, play: [use("submit_review", { verdict: "pass" })] }
  ]
})

const git = (workspace: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", workspace, ...args], { stdio: "pipe" }).toString()

const metIn = async (workspace: string) => {
  const world = await worlds.open(goalWorld({ scenarios: story }))
  const goal = await submitGoal(world, {
    ...{ model: "scripted/team", workspace, protect: ["README.md"] },
    hidden_evidence: [command("test $(wc -l < a.txt) = 1")]
  })
  const end = await goalEnd(goal)
  if (end.kind !== "plan.goal_met") throw new Error(end.kind)
  const state = await goal.talk.state()
  const repeat = (
    more: { readonly met?: PayloadOf<"plan.goal_met">; readonly at?: string; readonly contained?: boolean } = {}
  ) => {
    const runner = new TestRunner({ contained: more.contained ?? true })
    const tools = { runner, look: workspaceLook, nowMs: () => 0, node: process.execPath }
    const at = { workspace: more.at ?? workspace, signal: new AbortController().signal }
    return verifyGoal(tools, state, more.met ?? end.payload, at)
  }
  return { met: end.payload, repeat, planId: goal.planId }
}

const outcomes = async (proof: ReturnType<typeof verifyGoal>) => (await proof).checks.map((one) => one.outcome)

describe("the proof of a met goal", () => {
  it("passes again on its own tree after the files changed and git collected its garbage, and leaves no copy", async () => {
    const workspace = gitWorkspace(workspaces.make(), { "README.md": "x\n" })
    const { met, repeat } = await metIn(workspace)
    writeFileSync(join(workspace, "a.txt"), "broken since\n")
    git(workspace, "gc", "-q", "--prune=now")
    const proof = await repeat()
    expect(proof.tree).toBe(met.tree)
    expect(proof.checks.map((one) => [one.outcome, one.origin])).toEqual(
      met.evidence.map((one) => ["passed", one.origin])
    )
    expect(met.evidence).toHaveLength(3)
    expect(existsSync(join(workspace, ".echs"))).toBe(false)
  })

  it("fails where a check does not hold on that tree", async () => {
    const workspace = gitWorkspace(workspaces.make(), { "README.md": "x\n" })
    const { met, repeat } = await metIn(workspace)
    const evidence = [{ ...met.evidence[0]!, spec: command("grep -q 43 a.txt") }]
    expect(await outcomes(repeat({ met: { ...met, evidence } }))).toEqual(["failed"])
  })

  it("is repeated in another clone that fetched its ref, and not in one that has not", async () => {
    const workspace = gitWorkspace(workspaces.make(), { "README.md": "x\n" })
    const { planId, repeat } = await metIn(workspace)
    const clone = workspaces.make()
    execFileSync("git", ["clone", "-q", `file://${workspace}`, clone], { stdio: "pipe" })
    const before = await repeat({ at: clone })
    expect(before.checks.every((one) => one.outcome === "not_repeated")).toBe(true)
    expect(before.checks[0]?.detail).toContain(`refs/echs/proof/${planId}`)
    git(clone, "fetch", "-q", workspace, `refs/echs/proof/${planId}:refs/echs/proof/${planId}`)
    expect(new Set(await outcomes(repeat({ at: clone })))).toEqual(new Set(["passed"]))
  })

  it("is not repeated where nothing holds its commands", async () => {
    const workspace = gitWorkspace(workspaces.make(), { "README.md": "x\n" })
    const { repeat } = await metIn(workspace)
    expect(new Set(await outcomes(repeat({ contained: false })))).toEqual(new Set(["not_repeated"]))
  })

  it("without git is repeated while the files are as they were", async () => {
    const workspace = workspaces.make()
    writeFileSync(join(workspace, "README.md"), "x\n")
    const { repeat } = await metIn(workspace)
    expect(new Set(await outcomes(repeat()))).toEqual(new Set(["passed"]))
    rmSync(join(workspace, "README.md"))
    expect(new Set(await outcomes(repeat()))).toEqual(new Set(["not_repeated"]))
  })
})
