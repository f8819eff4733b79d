// Goal: workers in git worktrees of their own do not get in each other's way; what they did is merged into the working
// directory, conflicts are told by file, and nothing of the person's repository is touched besides. Method: real git.
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeGit } from "#src/autonomy/Git.ts"
import { mergeWorktree } from "#src/autonomy/WorktreeMerge.ts"
import { openWorktree, sweepWorktrees, worktreePath } from "#src/autonomy/Worktrees.ts"
import { limits as machineLimits } from "#src/machine/MachineLimits.ts"
import type { AgentId } from "#src/rune/Ids.ts"
import { workspaceLook } from "#src/tool/evidence/Look.ts"
import { fileTools } from "../support/autonomy/fileTools.ts"
import { type Goal, goalEnd, goalWorld, submitGoal } from "../support/autonomy/goals.ts"
import { TestRunner } from "../support/autonomy/TestRunner.ts"
import { gitWorkspace, useWorkspaces } from "../support/autonomy/workplace.ts"
import { say, scenarios, use } from "../support/runtime/scenarios.ts"
import { effectTool } from "../support/runtime/tools.ts"
import { useWorlds } from "../support/runtime/World.ts"

const worlds = useWorlds()
const workspaces = useWorkspaces()
const tools = { runner: new TestRunner(), look: workspaceLook, nowMs: () => 0 }
const signal = new AbortController().signal
const [ann, bob] = ["agt_ann0", "agt_bob0"] as const as readonly [AgentId, AgentId]

const git = (directory: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", directory, ...args], { encoding: "utf8" })

/** A repository with a commit, and a change on top that is not committed. */
const repository = (): string => {
  const directory = gitWorkspace(workspaces.make(), { "a.txt": "one\ntwo\nthree\n", "b.txt": "b\n" })
  writeFileSync(join(directory, "b.txt"), "b, not committed\n")
  return directory
}

describe("a worktree", () => {
  it("starts from the workspace as it is, and is merged into it without a trace in index, branches or commits", async () => {
    const workspace = repository()
    const before = [git(workspace, "rev-parse", "HEAD"), git(workspace, "status", "--porcelain", "b.txt")]
    const own = makeGit(tools, workspace, signal)
    expect(await openWorktree(own, workspace, ann)).toEqual({ _tag: "Opened", path: worktreePath(workspace, ann) })
    expect(readFileSync(join(worktreePath(workspace, ann), "b.txt"), "utf8")).toBe("b, not committed\n")
    writeFileSync(join(worktreePath(workspace, ann), "a.txt"), "ONE\ntwo\nthree\n")
    writeFileSync(join(worktreePath(workspace, ann), "new.bin"), Buffer.from([0, 255, 1]))
    expect(await mergeWorktree(own, workspace, ann)).toMatchObject({ _tag: "Merged" })
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("ONE\ntwo\nthree\n")
    expect([...readFileSync(join(workspace, "new.bin"))]).toEqual([0, 255, 1])
    // A crash after the merge and before its record: merging again changes nothing.
    expect(await mergeWorktree(own, workspace, ann)).toMatchObject({ _tag: "Merged" })
    await sweepWorktrees(own, workspace, "agt_ann", [])
    expect([git(workspace, "rev-parse", "HEAD"), git(workspace, "status", "--porcelain", "b.txt")]).toEqual(before)
    expect(git(workspace, "for-each-ref", "refs/echs")).toBe("")
    expect(git(workspace, "worktree", "list").trim().split("\n")).toHaveLength(1)
    expect(existsSync(join(workspace, ".echs"))).toBe(false)
  })

  it("that goes leaves what was not merged in a ref, and one with a repository of its own stays", async () => {
    const workspace = repository()
    const own = makeGit(tools, workspace, signal)
    const place = (agentId: AgentId, name: string) => join(worktreePath(workspace, agentId), name)
    const [merged, open, broken, nested] = ["agt_x1", "agt_x2", "agt_x3", "agt_x4"] as ReadonlyArray<string> as [
      AgentId,
      AgentId,
      AgentId,
      AgentId
    ]
    for (const one of [merged, open, broken, nested]) {
      await openWorktree(own, workspace, one)
      writeFileSync(place(one, `${one}.txt`), "work\n")
    }
    await mergeWorktree(own, workspace, merged)
    rmSync(place(broken, ".git"))
    gitWorkspace(place(nested, "inner"), { "a.txt": "a\n" })
    const kept = [`refs/echs/kept/${open}`, `refs/echs/kept/${broken}`]
    expect(await sweepWorktrees(own, workspace, "agt_x", [])).toEqual({ kept, left: [nested] })
    expect(readdirSync(join(workspace, ".echs/worktrees"))).toEqual([nested])
    for (const [at, one] of [open, broken].entries()) {
      expect(git(workspace, "show", `${kept[at]}:${one}.txt`)).toBe("work\n")
      expect(git(workspace, "diff", "--name-only", `${kept[at]}^`, kept[at]!)).toBe(`${one}.txt\n`)
    }
    const refs = git(workspace, "for-each-ref", "--format=%(refname)", "refs/echs").trim().split("\n")
    expect(refs).toEqual([`refs/echs/${nested}`, ...kept])
    expect(await sweepWorktrees(own, workspace, "agt_x", [nested])).toEqual({ kept: [], left: [] })
    rmSync(place(nested, "inner"), { recursive: true })
    expect(await sweepWorktrees(own, workspace, "agt_x", [])).toEqual({
      kept: [`refs/echs/kept/${nested}`],
      left: []
    })
    expect(existsSync(join(workspace, ".echs"))).toBe(false)
    expect(git(workspace, "status", "--porcelain", "b.txt")).toBe(" M b.txt\n")
  })

  it("is refused below the top of a repository, and where nothing holds git", async () => {
    const below = join(repository(), "sub")
    mkdirSync(below)
    expect(await openWorktree(makeGit(tools, below, signal), below, ann)).toEqual({
      _tag: "Failed",
      reason: "the workspace is sub/ of a repository, and worktrees need its top"
    })
    const unheld = { ...tools, runner: new TestRunner({ contained: false }) }
    const workspace = repository()
    expect(await openWorktree(makeGit(unheld, workspace, signal), workspace, ann)).toMatchObject({
      _tag: "Failed",
      reason: expect.stringContaining("nothing would hold it")
    })
  })

  it("keeps the trees that are written at once apart, whatever the ids of the processes", async () => {
    const workspace = repository()
    const own = makeGit(tools, workspace, signal)
    const trees = await Promise.all(Array.from({ length: 4 }, () => own.writeTree(workspace)))
    expect(new Set(trees).size).toBe(1)
    expect(readdirSync(join(workspace, ".git")).filter((name) => name.startsWith("echs-index"))).toEqual([])
    const scripts = tools.runner.commands.filter((one) => one.includes("write-tree"))
    expect(scripts.length).toBeGreaterThan(0)
    expect(scripts.filter((one) => one.includes("$$"))).toEqual([])
  })

  it("is found again by whoever opens it a second time, with the work in it", async () => {
    const workspace = repository()
    const own = makeGit(tools, workspace, signal)
    await openWorktree(own, workspace, ann)
    writeFileSync(join(worktreePath(workspace, ann), "a.txt"), "half done\n")
    await openWorktree(own, workspace, ann)
    expect(readFileSync(join(worktreePath(workspace, ann), "a.txt"), "utf8")).toBe("half done\n")
    await sweepWorktrees(own, workspace, "agt_", [ann])
    expect(existsSync(worktreePath(workspace, ann))).toBe(true)
  })

  it("of two workers merges changes of different lines, and names the files in which they conflict", async () => {
    const workspace = repository()
    const own = makeGit(tools, workspace, signal)
    for (const agent of [ann, bob]) await openWorktree(own, workspace, agent)
    writeFileSync(join(worktreePath(workspace, ann), "a.txt"), "ONE\ntwo\nthree\n")
    writeFileSync(join(worktreePath(workspace, bob), "b.txt"), "bob\n")
    expect(await mergeWorktree(own, workspace, ann)).toMatchObject({ _tag: "Merged" })
    expect(await mergeWorktree(own, workspace, bob)).toMatchObject({ _tag: "Merged" })
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("ONE\ntwo\nthree\n")
    expect(readFileSync(join(workspace, "b.txt"), "utf8")).toBe("bob\n")
    writeFileSync(join(worktreePath(workspace, bob), "a.txt"), "uno\ntwo\nthree\n")
    expect(await mergeWorktree(own, workspace, bob)).toEqual({
      ...{ _tag: "Conflict", files: ["a.txt"], persons: ["a.txt"] },
      lost: expect.stringContaining("+uno")
    })
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("ONE\ntwo\nthree\n")
  })

  it("is seen to change also in the moment it is made, and by as many characters as before", async () => {
    const workspace = repository()
    const own = makeGit(tools, workspace, signal)
    await openWorktree(own, workspace, ann)
    for (const word of ["uno", "due", "tre", "sei"]) {
      writeFileSync(join(worktreePath(workspace, ann), "a.txt"), `${word}\ntwo\nthree\n`)
      expect(await mergeWorktree(own, workspace, ann)).toMatchObject({ _tag: "Merged" })
      expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe(`${word}\ntwo\nthree\n`)
      writeFileSync(join(workspace, "a.txt"), "one\ntwo\nthree\n")
    }
  })

  it("needs a repository, and one that is gone cannot be merged", async () => {
    const plain = workspaces.make()
    const own = makeGit(tools, plain, signal)
    expect(await openWorktree(own, plain, ann)).toEqual({
      _tag: "Failed",
      reason: "the workspace is no git repository"
    })
    const workspace = repository()
    expect(await mergeWorktree(makeGit(tools, workspace, signal), workspace, ann)).toMatchObject({ _tag: "Failed" })
    const nobody = makeGit({ ...tools, runner: undefined }, workspace, signal)
    expect(await openWorktree(nobody, workspace, ann)).toMatchObject({ _tag: "Failed" })
  })
})

describe("a goal with worktrees", () => {
  it("lets workers work side by side and merges what they did", async () => {
    const workspace = repository()
    const world = await worlds.open(goalWorld())
    const options = { worktrees: true }
    const goal = await submitGoal(world, { model: "scripted/goal-success", workspace, options })
    const end = await goalEnd(goal)
    expect(end.kind).toBe("plan.goal_met")
    expect(readFileSync(join(workspace, "goal/letter.txt"), "utf8")).toMatch(/^Dear reader/)
    const places = goal.talk.of("agent.spawning").map((rune) => rune.payload.workspace !== undefined)
    expect(places.filter(Boolean)).toHaveLength(3)
    await goal.talk.until("agent.terminated", 5)
    expect(git(workspace, "worktree", "list").trim().split("\n")).toHaveLength(1)
  })

  const write = (content: string) => use("write_file", { path: "a.txt", content })
  const when = (input: string, step: number) => ({ role: "worker", input, step })
  const planOf = (...ids: ReadonlyArray<string>) => {
    const evidence = (id: string) => [{ type: "command", command: ["grep", "-q", id, "a.txt"] }]
    const tasks = ids.map((id) => ({ id, title: id, instructions: id, evidence: evidence(id) }))
    return { when: { role: "orchestrator" }, play: [use("submit_plan", { tasks })] }
  }
  const done = { when: { role: "worker" }, play: [say("done")] }
  const passes = { when: { role: "critic" }, play: [use("submit_review", { verdict: "pass" })] }
  /** What was read, as the models were told. */
  const readIn = ({ talk }: Goal): ReadonlyArray<string> =>
    talk
      .of("tool.result")
      .flatMap(({ payload }) => (payload.output?.includes("three") === true ? [payload.output] : []))

  it("has work that conflicts brought together by its own worker, who has both sides, at no attempt", async () => {
    const workspace = repository()
    const conflict = scenarios({
      conflict: [
        planOf("ann", "bob"),
        { when: when("could not be merged", 1), play: [use("read_file", { path: "a.txt" })] },
        { when: when("could not be merged", 2), play: [write("ann\nbob\nthree\n")] },
        { when: when("^Task ann", 1), play: [write("ann\ntwo\nthree\n")] },
        { when: when("^Task bob", 1), play: [write("bob\ntwo\nthree\n")] },
        done,
        passes
      ]
    })
    const world = await worlds.open(goalWorld({ scenarios: conflict }))
    const goal = await submitGoal(world, { model: "scripted/conflict", workspace, options: { worktrees: true } })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect(goal.talk.of("plan.task_failed")).toEqual([])
    expect(goal.talk.of("plan.task_released")).toEqual([])
    const [returned, ...more] = goal.talk.of("plan.task_returned")
    expect(more).toEqual([])
    expect(returned?.payload.error).toMatchObject({ code: "merge_conflict", data: { files: ["a.txt"] } })
    expect(goal.talk.of("plan.task_assigned")).toHaveLength(2)
    const [seen] = readIn(goal)
    expect(seen).toMatch(/<<<<<<< [0-9a-f]+\n(ann|bob)\n=======\n(ann|bob)\n>>>>>>> [0-9a-f]+\ntwo\nthree\n/)
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("ann\nbob\nthree\n")
    expect(goal.talk.of("plan.task_completed").map(({ payload }) => payload.tree)).toEqual([
      expect.stringMatching(/^[0-9a-f]{40}$/),
      expect.stringMatching(/^[0-9a-f]{40}$/)
    ])
  })

  it("lets a change of the person stand, and tells the worker what it had done there", async () => {
    const workspace = repository()
    const story = scenarios({
      person: [
        planOf("ann"),
        { when: when("could not be merged", 1), play: [use("read_file", { path: "a.txt" })] },
        { when: when("could not be merged", 2), play: [write("person\nann\nthree\n")] },
        { when: when("^Task ann", 1), play: [write("ann\ntwo\nthree\n")] },
        { when: when("^Task ann", 2), play: [use("person_writes", {})] },
        done,
        passes
      ]
    })
    const person = effectTool("person_writes", async () => {
      writeFileSync(join(workspace, "a.txt"), "person\ntwo\nthree\n")
      return "typing"
    })
    const world = await worlds.open(goalWorld({ scenarios: story, tools: [...fileTools, person] }))
    const goal = await submitGoal(world, { model: "scripted/person", workspace, options: { worktrees: true } })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    const [returned] = goal.talk.of("plan.task_returned")
    expect(returned?.payload.error.message).toBe("the person changed a.txt meanwhile, and that stands")
    expect(readIn(goal)).toEqual(["person\ntwo\nthree\n"])
    const told = goal.talk.runes.map(({ payload }) => JSON.stringify(payload))
    expect(told.find((text) => text.includes("passed its checks and could not be merged"))).toMatch(
      /You had done this:.*\+ann/
    )
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("person\nann\nthree\n")
  })

  it("asks a person when its worker leaves both sides as they are, and has lost nothing when it is resumed", async () => {
    const workspace = repository()
    const lazy = scenarios({
      lazy: [
        planOf("ann", "bob"),
        { when: when("could not be merged", 1), play: [say("looks fine")] },
        { when: when("^Task ann", 1), play: [write("ann\ntwo\nthree\n")] },
        { when: when("^Task bob", 1), play: [write("bob\ntwo\nthree\n")] },
        done,
        passes
      ]
    })
    const world = await worlds.open(goalWorld({ scenarios: lazy }))
    const goal = await submitGoal(world, { model: "scripted/lazy", workspace, options: { worktrees: true } })
    const suspended = (await goal.talk.until("plan.suspended"))?.payload
    expect(suspended).toMatchObject({ cause: "merge", question: expect.stringContaining("a.txt") })
    expect(goal.talk.of("plan.task_returned")).toHaveLength(machineLimits.mergesAgainMax)
    expect(goal.talk.of("plan.task_failed")).toEqual([])
    const worker = (await goal.talk.state()).plan?.tasks.find((one) => one.status === "running")?.agent_id ?? ann
    // The person does what the worker did not.
    writeFileSync(join(worktreePath(workspace, worker), "a.txt"), "ann\nbob\nthree\n")
    await goal.talk.submit({ _tag: "ResumeGoal", plan_id: goal.planId, reason: "merged by hand" })
    expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
    expect(goal.talk.of("plan.task_assigned")).toHaveLength(2)
    expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("ann\nbob\nthree\n")
  })

  it.each([true, false])(
    "opens the task again that broke what another had shown (worktrees: %s)",
    async (worktrees) => {
      const workspace = repository()
      const later = { depends_on: ["ann"] }
      const evidence = (id: string) => [{ type: "command", command: ["grep", "-q", id, "a.txt"] }]
      const task = (id: string, more: object = {}) => ({
        id,
        title: id,
        instructions: id,
        evidence: evidence(id),
        ...more
      })
      const story = scenarios({
        breaks: [
          {
            when: { role: "orchestrator" },
            play: [use("submit_plan", { tasks: [task("ann"), task("bob", later), task("cleo", later)] })]
          },
          { when: when("its work broke", 1), play: [write("ann\nbob\ncleo\n")] },
          { when: when("^Task ann", 1), play: [write("ann\ntwo\nthree\n")] },
          { when: when("^Task bob", 1), play: [write("bob\ntwo\nthree\n")] },
          { when: when("^Task cleo", 1), play: [write("bob\ntwo\ncleo\n")] },
          done,
          passes
        ]
      })
      const world = await worlds.open(goalWorld({ scenarios: story }))
      const options = { worktrees }
      const goal = await submitGoal(world, { model: "scripted/breaks", workspace, options, max_parallel: 1 })
      expect((await goalEnd(goal)).kind).toBe("plan.goal_met")
      const reopened = goal.talk.of("plan.task_reopened").map(({ payload }) => payload)
      expect(reopened).toMatchObject([{ task_id: "bob", error: { code: "regression" } }])
      expect(reopened[0]?.evidence.map(({ spec }) => spec)).toMatchObject([{ command: ["grep", "-q", "ann", "a.txt"] }])
      expect(goal.talk.of("plan.task_failed")).toEqual([])
      expect(goal.talk.of("plan.review_started")).toHaveLength(1)
      const again = goal.talk.of("plan.task_completed").filter(({ payload }) => payload.task_id === "bob")
      expect(again.at(-1)?.payload.evidence.map(({ passed }) => passed)).toEqual([true, true])
      expect(readFileSync(join(workspace, "a.txt"), "utf8")).toBe("ann\nbob\ncleo\n")
    }
  )

  it("is stopped before anything is paid for where no worktrees can be made", async () => {
    const plain = workspaces.make()
    const part = join(repository(), "src")
    for (const workspace of [plain, part]) {
      mkdirSync(join(workspace, "src"), { recursive: true })
      const world = await worlds.open(goalWorld())
      const goal = await submitGoal(world, { model: "scripted/goal-stuck", workspace, options: { worktrees: true } })
      expect((await goalEnd(goal)).payload).toMatchObject({ reason: "no_worktrees" })
      expect(goal.talk.of("turn.model_requested")).toEqual([])
    }
  })
})
