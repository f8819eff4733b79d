// Goal: worktrees of goals that are over are cleared away however the goal ended, also when the server died in between;
// those of a goal that goes on are left alone. Method: goals in memory on the real machine, real git, a list on disk.
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { makeGit } from "#src/autonomy/Git.ts"
import { WorktreeJanitor, type WorktreeJanitorOptions } from "#src/autonomy/WorktreeJanitor.ts"
import { openWorktree, worktreePath } from "#src/autonomy/Worktrees.ts"
import { readWorktrees, writeWorktrees } from "#src/config/WorktreeFiles.ts"
import type { AgentId } from "#src/rune/Ids.ts"
import { TestRunner } from "../support/autonomy/TestRunner.ts"
import { gitWorkspace, useWorkspaces } from "../support/autonomy/workplace.ts"
import { PlanStory, planId, task } from "../support/planStory.ts"

const workspaces = useWorkspaces()
const runner = new TestRunner()
const { signal } = new AbortController()

const refsIn = (workspace: string): string =>
  execFileSync("git", ["-C", workspace, "for-each-ref", "--format=%(refname)", "refs/echs"], { encoding: "utf8" })

/** A goal whose worker is at work in a worktree, with a change that nobody has merged. */
const atWork = async () => {
  const workspace = gitWorkspace(workspaces.make(), { "a.txt": "a\n" })
  const data = workspaces.make()
  const story = new PlanStory().ready({ workspace }) as PlanStory
  const goal = { plan_id: planId, goal: "a goal", auto_start: true, options: { worktrees: true } }
  story.run({ _tag: "SubmitGoal", payload: goal })
  story.carry("Plan").step({ _tag: "CreatePlan", payload: { plan_id: planId, tasks: [task("a")] } })
  story.approved().carry("BeginTask")
  const worker = story.plan.tasks[0]!.agent_id as AgentId
  await openWorktree(makeGit({ runner }, workspace, signal), workspace, worker)
  const place = worktreePath(workspace, worker)
  writeFileSync(join(place, "work.txt"), "work\n")
  return { workspace, data, story, worker, place }
}

type Scene = Awaited<ReturnType<typeof atWork>>

const keeperOf = ({ data, story }: Scene, more: Partial<WorktreeJanitorOptions> = {}) => {
  const reports: Array<unknown> = []
  const janitor = new WorktreeJanitor({
    runner,
    conversations: { state: async () => story.state },
    goals: { read: () => readWorktrees(data), write: (goals) => writeWorktrees(data, goals) },
    onReport: (_goal, report) => void reports.push(report),
    ...more
  })
  return { janitor, reports }
}

/** The janitor hears what happened since, and has done all it will. */
const told = async (janitor: WorktreeJanitor, { story }: Scene): Promise<void> => {
  janitor.notice(story.runes)
  await janitor.settled()
}

const stopped = ({ story }: Scene): void => {
  story.step({ _tag: "Cancel", payload: { plan_id: planId, reason: "user_cancel" } })
}

describe("worktrees of a goal", () => {
  it("stay while it is pursued and while an agent of it lives, and go when the last one is gone", async () => {
    const scene = await atWork()
    const { place, story, worker, workspace } = scene
    const { janitor, reports } = keeperOf(scene)
    await told(janitor, scene)
    expect(readWorktrees(scene.data)).toEqual([{ conversation_id: story.conversationId, plan_id: planId, workspace }])
    stopped(scene)
    await told(janitor, scene)
    expect(existsSync(place)).toBe(true)
    story.carry("Dismiss")
    await told(janitor, scene)
    expect(existsSync(join(workspace, ".echs"))).toBe(false)
    expect(refsIn(workspace)).toBe(`refs/echs/kept/${worker}\n`)
    expect(reports).toEqual([{ kept: [`refs/echs/kept/${worker}`], left: [] }])
    expect(readWorktrees(scene.data)).toEqual([])
    expect(existsSync(join(scene.data, "worktrees.json"))).toBe(false)
  })

  it("go when the conversation is closed", async () => {
    const scene = await atWork()
    const { janitor } = keeperOf(scene)
    await told(janitor, scene)
    scene.story.run({ _tag: "Close", reason: "enough" })
    await told(janitor, scene)
    expect(existsSync(scene.place)).toBe(false)
  })

  it("are found at the next start when the server died before they were gone", async () => {
    const scene = await atWork()
    const first = keeperOf(scene)
    await told(first.janitor, scene)
    await first.janitor.close()
    stopped(scene)
    scene.story.carry("Dismiss")
    first.janitor.notice(scene.story.runes)
    await first.janitor.settled()
    expect(existsSync(scene.place)).toBe(true)
    const second = keeperOf(scene)
    await second.janitor.recover()
    expect(existsSync(scene.place)).toBe(false)
    expect(refsIn(scene.workspace)).toBe(`refs/echs/kept/${scene.worker}\n`)
  })

  it("stay on the list where nothing would hold git, and where something cannot be kept", async () => {
    const scene = await atWork()
    await told(keeperOf(scene).janitor, scene)
    stopped(scene)
    scene.story.carry("Dismiss")
    await keeperOf(scene, { runner: new TestRunner({ contained: false }) }).janitor.recover()
    expect(existsSync(scene.place)).toBe(true)
    mkdirSync(join(scene.place, "inner"))
    gitWorkspace(join(scene.place, "inner"), { "b.txt": "b\n" })
    const { janitor, reports } = keeperOf(scene)
    await janitor.recover()
    expect(reports).toEqual([{ kept: [], left: [scene.worker] }])
    expect(existsSync(join(scene.place, "inner", "b.txt"))).toBe(true)
    expect(readWorktrees(scene.data)).toHaveLength(1)
  })

  it("are not looked for where a goal has none, and a list that is none is empty", async () => {
    const scene = await atWork()
    const plain = { ...scene, story: new PlanStory().planned([task("a")]) }
    const asked: Array<string> = []
    const state = async (id: string) => {
      asked.push(id)
      return plain.story.state
    }
    await told(keeperOf(plain, { conversations: { state } }).janitor, plain)
    expect(asked).toEqual([])
    writeFileSync(join(scene.data, "worktrees.json"), '[{"plan_id": 1}, "x", ')
    expect(readWorktrees(scene.data)).toEqual([])
  })
})
