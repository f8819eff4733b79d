// Goal: what changed while a goal was pursued is told from the workspace itself, with git by lines and without it by files,
// and where it cannot be told that is said. Method: real directories, with and without git.
import { execFileSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { changesSince, standingOf } from "#src/autonomy/Changes.ts"
import { checkEvidence } from "#src/autonomy/Evidence.ts"
import { makeGit } from "#src/autonomy/Git.ts"
import type { Tools } from "#src/autonomy/GoalContext.ts"
import { limits } from "#src/autonomy/GoalLimits.ts"
import { planPrompt, taskPrompt } from "#src/autonomy/Prompts.ts"
import { goalMet } from "#src/autonomy/Summary.ts"
import { mergeWorktree } from "#src/autonomy/WorktreeMerge.ts"
import { openWorktree, sweepWorktrees, worktreePath } from "#src/autonomy/Worktrees.ts"
import type { ConversationState, PlanState } from "#src/machine/State.ts"
import type { AgentId } from "#src/rune/Ids.ts"
import type { EvidenceSpec } from "#src/rune/kinds/evidence.ts"
import type { WorkspaceBase } from "#src/rune/kinds/plan.ts"
import { workspaceLook } from "#src/tool/evidence/Look.ts"
import { TestRunner } from "../support/autonomy/TestRunner.ts"
import { gitWorkspace, placeIn, useWorkspaces } from "../support/autonomy/workplace.ts"
import { PlanStory, task } from "../support/planStory.ts"

const workspaces = useWorkspaces()
const { signal } = new AbortController()
const tools: Tools = {
  runner: new TestRunner(),
  look: workspaceLook,
  nowMs: () => 1_763_251_262_000,
  node: process.execPath
}

const storyIn = (workspace: string | undefined): PlanStory => {
  const story = new PlanStory().planned([task("a")]).worked()
  if (workspace !== undefined) story.run({ _tag: "UpdateConfig", changes: { workspace } })
  return story
}

const planFrom = (story: PlanStory, base: WorkspaceBase | undefined): PlanState => ({
  ...story.plan,
  base: base ?? null
})

const workspaceIn = (state: ConversationState) => state.session.config.workspace

const baseOf = async (own: Tools, state: ConversationState) => {
  const workspace = workspaceIn(state)
  return workspace === undefined ? undefined : standingOf(own, makeGit(own, workspace, signal), workspace)
}

describe("with git", () => {
  it("lines are counted, files that nobody added are seen, and the index stays as it was", async () => {
    const workspace = gitWorkspace(workspaces.make(), { "a.txt": "one\ntwo\n", "b.bin": "x" })
    const { state } = storyIn(workspace)
    const base = await baseOf(tools, state)
    expect(base?.tree).toMatch(/^[0-9a-f]{40}$/)
    writeFileSync(join(workspace, "a.txt"), "one\n2\n3\n")
    writeFileSync(join(workspace, "new.txt"), "n\n")
    writeFileSync(join(workspace, "b.bin"), Buffer.from([0, 1, 2]))
    const changes = await changesSince(tools, workspaceIn(state), planFrom(storyIn(workspace), base), signal)
    expect(changes).toEqual([
      { path: "a.txt", added: 2, removed: 1, status: "modified" },
      { path: "b.bin", status: "modified" },
      { path: "new.txt", added: 1, removed: 0, status: "added" }
    ])
    const status = execFileSync("git", ["-C", workspace, "status", "--porcelain"], { encoding: "utf8" })
    expect(status).toBe(" M a.txt\n M b.bin\n?? new.txt\n")
    rmSync(join(workspace, ".git"), { recursive: true })
    expect(await changesSince(tools, workspaceIn(state), planFrom(storyIn(workspace), base), signal)).toBeUndefined()
  })
})

/** A repository that names a program wherever git would start one; each leaves a mark. */
const trapped = (): { readonly workspace: string; readonly mark: string } => {
  const workspace = gitWorkspace(workspaces.make(), { "a.txt": "one\n" })
  const mark = join(workspaces.make(), "mark")
  const program = join(workspaces.make(), "program")
  writeFileSync(program, `#!/bin/sh\necho ran >> ${mark}\ncat\n`)
  chmodSync(program, 0o755)
  mkdirSync(join(workspace, "hooks"))
  const hooks = ["post-checkout", "post-index-change", "reference-transaction"]
  for (const hook of hooks) writeFileSync(join(workspace, "hooks", hook), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
  const settings = [
    ["core.fsmonitor", program],
    ["core.hooksPath", join(workspace, "hooks")],
    ["filter.x.clean", program],
    ["filter.x.smudge", program],
    ["filter.x.required", "true"],
    ["diff.x.command", program],
    ["merge.x.driver", program]
  ] as const
  for (const [name, value] of settings) execFileSync("git", ["-C", workspace, "config", name, value])
  writeFileSync(join(workspace, ".gitattributes"), "*.txt filter=x diff=x merge=x\n")
  writeFileSync(join(workspace, "a.txt"), "two\n")
  return { workspace, mark }
}

describe("a repository that names programs", () => {
  it("has none of them run, neither when a goal starts nor when it ends", async () => {
    const { mark, workspace } = trapped()
    const { state } = storyIn(workspace)
    const base = await baseOf(tools, state)
    expect(base?.tree).toBeDefined()
    writeFileSync(join(workspace, "a.txt"), "two\nthree\n")
    expect(await changesSince(tools, workspaceIn(state), planFrom(storyIn(workspace), base), signal)).toEqual([
      { path: "a.txt", added: 1, removed: 0, status: "modified" }
    ])
    expect(existsSync(mark)).toBe(false)
  })

  it("has none of them run by a worktree that is made and merged; their merges are conflicts", async () => {
    const { mark, workspace } = trapped()
    const git = makeGit(tools, workspace, signal)
    const agent = "agt_ann0" as AgentId
    expect(await openWorktree(git, workspace, agent)).toMatchObject({ _tag: "Opened" })
    writeFileSync(join(worktreePath(workspace, agent), "a.txt"), "theirs\n")
    writeFileSync(join(workspace, "a.txt"), "ours\n")
    expect(await mergeWorktree(git, workspace, agent)).toMatchObject({ _tag: "Conflict", files: ["a.txt"] })
    await sweepWorktrees(git, workspace, "agt_", [])
    expect(existsSync(mark)).toBe(false)
  })

  it("is looked at without git where nothing holds what git would start", async () => {
    const { mark, workspace } = trapped()
    const runner = new TestRunner({ contained: false })
    const base = await baseOf({ ...tools, runner }, storyIn(workspace).state)
    expect(Object.keys(base?.files ?? {})).toContain("a.txt")
    expect(runner.commands).toEqual([])
    expect(existsSync(mark)).toBe(false)
  })
})

describe("without git", () => {
  it("files are compared", async () => {
    const workspace = workspaces.make()
    writeFileSync(join(workspace, "a.txt"), "a")
    writeFileSync(join(workspace, "gone.txt"), "g")
    const { state } = storyIn(workspace)
    const base = await baseOf(tools, state)
    expect(Object.keys(base?.files ?? {}).sort()).toEqual(["a.txt", "gone.txt"])
    writeFileSync(join(workspace, "a.txt"), "ab")
    rmSync(join(workspace, "gone.txt"))
    const plan = planFrom(storyIn(workspace), base)
    expect(await changesSince(tools, workspaceIn(state), plan, signal)).toEqual([
      { path: "a.txt", status: "modified" },
      { path: "gone.txt", status: "deleted" }
    ])
    rmSync(workspace, { recursive: true })
    expect(await changesSince(tools, workspaceIn(state), plan, signal)).toBeUndefined()
    expect(await changesSince(tools, workspaceIn(state), planFrom(storyIn(workspace), {}), signal)).toBeUndefined()
  })

  it("and without a workspace nothing is known", async () => {
    const { state } = storyIn(undefined)
    expect(await baseOf(tools, state)).toBeUndefined()
    expect(await changesSince(tools, workspaceIn(state), planFrom(storyIn(undefined), {}), signal)).toBeUndefined()
    const missing = storyIn(join(workspaces.make(), "gone"))
    expect(await baseOf({ ...tools, runner: undefined }, missing.state)).toBeUndefined()
  })
})

describe("the summary of a goal", () => {
  it("says what is not known, what did not change, and stays short", async () => {
    const story = storyIn(undefined)
    const unknown = await goalMet(tools, story.state, story.plan, [], { signal })
    expect(unknown.summary).toMatch(/Changed files: not known/)
    expect(unknown).not.toHaveProperty("changes")
    const workspace = workspaces.make()
    const here = storyIn(workspace)
    const base = await baseOf(tools, here.state)
    expect((await goalMet(tools, here.state, planFrom(here, base), [], { signal })).summary).toMatch(
      /Changed files: none\./
    )
    for (let index = 0; index < 25; index++) writeFileSync(join(workspace, `f${index}`), "x")
    const spec = (index: number): EvidenceSpec => ({ type: "file", path: `f${index}` })
    const evidence = Array.from({ length: 23 }, (_, index) => ({ spec: spec(index), passed: true }))
    const plan = { ...planFrom(here, base), iterations: 2 }
    const { summary } = await goalMet(tools, here.state, plan, evidence, { signal })
    expect(summary).toMatch(/Done, in 2 reviews:\n- do a: done\nChanged files: 25\n(- f\d+\n){20}- and 5 more\n/)
    expect(summary).toMatch(/(- file f\d+ exists\n){20}- and 3 more\nCost: /)
  })
})

describe("what agents are told", () => {
  it("is bounded, however much was said and printed before", async () => {
    const workspace = workspaces.make()
    const story = storyIn(workspace)
    const specs = Array.from(
      { length: 80 },
      (_, index): EvidenceSpec => ({
        type: "command",
        command: ["sh", "-c", `seq 1 600 # ${index}`],
        expected_exit: 0
      })
    )
    const place = { ...placeIn(workspace), state: story.state }
    const found = await checkEvidence(
      tools,
      specs.map((spec) => ({ spec })),
      place
    )
    const chars = found.reduce((sum, one) => sum + (one.detail?.length ?? 0), 0)
    expect(chars).toBeLessThanOrEqual(limits.evidenceDetailsCharsMax + specs.length)
    expect(found.every((one) => one.detail?.endsWith("600"))).toBe(true)
  })

  it("holds the criteria of a task and the words of those before it", () => {
    const criteria = ["all tests are green"]
    const story = new PlanStory().planned([task("a"), task("b", { after: ["a"], success_criteria: criteria })]).worked()
    const prompt = taskPrompt(story.plan, story.plan.tasks[1]!)
    expect(prompt).toMatch(/It is done when:\n- all tests are green/)
    expect(prompt).toMatch(/Done before it:\n- a do a: done/)
    expect(prompt).toMatch(/It is part of this goal: a goal$/)
    expect(planPrompt({ ...story.plan, attempts: 1, reason: "too long" })).toMatch(/^Your plan was rejected: too long/)
  })
})
