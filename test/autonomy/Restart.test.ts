// Goal: a server that stops at any step of a goal goes on with it when it is started again: the goal ends the same way, no
// finished task is done again, no prompt is sent twice, no verdict is given twice. Method: the runtime is stopped after
// some rune of a goal, ten places over its length, its memory is thrown away, and another one goes on from the log.
// Verifies: INV-TASK-ORDER
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import type { AnyRune, RuneOf } from "#src/rune/Rune.ts"
import { goalWorld, submitGoal } from "../support/autonomy/goals.ts"
import { useWorkspaces } from "../support/autonomy/workplace.ts"
import { reportCount } from "../support/counts.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import { readLog } from "../support/runtime/Logs.ts"
import { useWorlds, type World } from "../support/runtime/World.ts"

const worlds = useWorlds()
const workspaces = useWorkspaces()

const isEnd = (rune: AnyRune): boolean => rune.kind === "plan.goal_met" || rune.kind === "plan.stopped"

const only = <K extends RuneOf<"plan.task_completed">["kind"] | "turn.queued" | "plan.critique">(
  runes: ReadonlyArray<AnyRune>,
  kind: K
) => runes.filter((rune) => rune.kind === kind)

interface Ended {
  readonly runes: ReadonlyArray<AnyRune>
  readonly letter: string
}

/** Runs the goal with a stop as soon as `stopAfter` runes are durable; everything after it is another runtime's work. */
const runWithStop = async (way: string, stopAfter: number): Promise<Ended> => {
  const disk = makeDiskMemory()
  const workspace = workspaces.make()
  const first = await worlds.open(goalWorld({ disk, unchecked: true }))
  const { talk } = await submitGoal(first, { model: `scripted/goal-${way}`, workspace })
  await first.until(() => talk.runes.length >= stopAfter || talk.runes.some(isEnd), talk.id)
  await first.close()
  const second = await worlds.open(goalWorld({ disk, idSeed: 99, unchecked: true }))
  await second.conversations.recover([talk.id])
  const runes = await logUntilEnd(second, talk.id)
  await second.close()
  return { runes, letter: readFileSync(join(workspace, "goal/letter.txt"), "utf8") }
}

const logUntilEnd = async (world: World, id: Parameters<typeof readLog>[1]): Promise<ReadonlyArray<AnyRune>> => {
  const isOver = async () => (await readLog(world.store, id)).some(isEnd)
  if (!(await isOver())) await world.until(() => (world.durable.get(id) ?? []).some(isEnd), id)
  return readLog(world.store, id)
}

const taskIds = (runes: ReadonlyArray<AnyRune>) =>
  only(runes, "plan.task_completed").map((rune) => (rune as RuneOf<"plan.task_completed">).payload.task_id)

describe.each(["success", "critique", "replan", "blocked"])("a goal of the way %s", (way) => {
  it("ends the same wherever it was stopped", async () => {
    const whole = await runWithStop(way, Number.MAX_SAFE_INTEGER)
    const prompts = only(whole.runes, "turn.queued").length
    const verdicts = only(whole.runes, "plan.critique").length
    // Several runes become durable at once, so fewer places than runes are met; text is not worth a stop of its own.
    const total = whole.runes.length
    let stops = 0
    for (let at = 5; at < total; at += Math.max(1, Math.floor(total / 10))) {
      const { letter, runes } = await runWithStop(way, at)
      expect(runes.find(isEnd)?.kind, `stop after ${at}`).toBe("plan.goal_met")
      expect(letter).toBe(whole.letter)
      const done = taskIds(runes)
      expect(new Set(done).size, `tasks after a stop at ${at}`).toBe(done.length)
      expect(done.toSorted()).toEqual(taskIds(whole.runes).toSorted())
      expect(only(runes, "turn.queued").length, `prompts after a stop at ${at}`).toBe(prompts)
      expect(only(runes, "plan.critique").length).toBe(verdicts)
      expect(runes.filter(isEnd)).toHaveLength(1)
      expect(checkInvariants(runes)).toEqual([])
      stops += 1
    }
    reportCount("goals stopped and taken up again", stops)
  }, 120_000)
})
