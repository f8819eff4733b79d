// Goal: looking at a conversation starts none of what it has to do, however often it is looked at and whether or not it
// leaves memory in between; speaking to it does, once, in the order in which it was spoken to. Method: the real runtime on
// a disk in memory, stopped in the middle of a turn and opened again without going on by itself.
import { describe, expect, it } from "vitest"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import { say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { nextTurn } from "../support/runtime/sink.ts"
import { effectTool, Gate, tool } from "../support/runtime/tools.ts"
import { useWorlds, type World } from "../support/runtime/World.ts"

const worlds = useWorlds()

const pays = scenarios({ pay: [step(1, use("pay")), step(2, say("paid"))] })

const quiet = async (): Promise<void> => {
  for (let turn = 0; turn < 6; turn++) await nextTurn()
}

/** A world in which a conversation was stopped while its tool ran and a message was queued, opened again. */
const stopped = async (
  make: typeof tool
): Promise<{ readonly runs: () => number; readonly world: World; id: string }> => {
  const disk = makeDiskMemory()
  const gate = new Gate()
  const first = await worlds.open({ disk, scenarios: pays, tools: [make("pay", gate.run)] })
  const talk = await first.create({ model: "scripted/pay" })
  await talk.post("one")
  await gate.started
  await talk.post("two")
  await first.close()
  let runs = 0
  const world = await worlds.open({
    disk,
    idSeed: 8,
    scenarios: pays,
    tools: [make("pay", async () => `paid ${++runs}`)]
  })
  return { id: talk.id, runs: () => runs, world }
}

describe.each([
  ["pure", tool, 4],
  ["effect", effectTool, 3]
] as const)("a conversation that stopped in call of the class %s", (_kind, make, runsInAll) => {
  it("is looked at without going on, and goes on when it is spoken to", async () => {
    const { id, runs, world } = await stopped(make)
    const { head } = await world.conversations.state(id)
    for (let look = 0; look < 4; look++) {
      const state = await world.conversations.state(id)
      expect(state.head).toBe(head)
      expect(state.agents[0]).toMatchObject({ turn: { turn_id: "turn_1" }, queue: [{ input: "two" }] })
      await quiet()
      // It may leave although it has work: nobody has asked for the work.
      if (look % 2 === 1) expect(world.conversations.unload(id as never)).toBe(true)
    }
    expect(runs()).toBe(0)
    expect(world.durable.get(id as never)).toBeUndefined()
    const [one, two] = await Promise.all(
      ["three", "four"].map((content) =>
        world.conversations.submit(id, { _tag: "PostMessage", content, mode: "queue" })
      )
    )
    expect(one!.event_id).toBeLessThan(two!.event_id)
    const isOver = (): boolean =>
      (world.durable.get(id as never) ?? []).filter(({ kind }) => kind === "turn.completed").length === 4
    await world.until(isOver)
    const started = (world.durable.get(id as never) ?? []).filter(({ kind }) => kind === "turn.started")
    expect(started.map(({ payload }) => (payload as { input: unknown }).input)).toEqual(["two", "three", "four"])
    expect(runs()).toBe(runsInAll)
  })
})
