// Goal: a question expires when its time is over, whatever the clock on the wall does. Method: the real runtime on a
// clock that the test owns, set ahead (or a machine that slept), set back, and both at random.
// Verifies: INV-TOOL-TERMINAL
import { describe, expect, it } from "vitest"
import { limits } from "#src/turn/TurnLimits.ts"
import { count, reportCount } from "../support/counts.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import { OwnClock } from "../support/runtime/clocks.ts"
import { fail, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { nextTurn } from "../support/runtime/sink.ts"
import { effectTool } from "../support/runtime/tools.ts"
import { type Talk, useWorlds, type World, type WorldOptions } from "../support/runtime/World.ts"
import { randomFrom, seedFor } from "../support/seed.ts"

const worlds = useWorlds()

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const TIMEOUT_MS = 10 * MINUTE_MS

const open = (clock: OwnClock, more: WorldOptions = {}): Promise<World> =>
  worlds.open({
    clock,
    monotonicMs: clock.monotonicMs,
    runFork: clock.runFork,
    scenarios: scenarios({
      asks: [step(1, use("write")), step(2, say("Then not."))],
      stumbles: [
        { when: { attempt: 1 }, play: [fail("overloaded", { retry_after_ms: 20_000 })] },
        { play: [say("Here.")] }
      ]
    }),
    tools: [effectTool("write", async () => "written", { approval: "ask" })],
    ...more
  })

const ask = async (world: World, timeoutMs: number): Promise<Talk> => {
  const talk = await world.create({ model: "scripted/asks", limits: { approval_timeout_ms: timeoutMs } })
  await talk.post("go")
  await talk.until("tool.approval_requested")
  await settled()
  return talk
}

/** Lets what is under way without waiting for time come to its end. */
const settled = async (): Promise<void> => {
  for (let turn = 0; turn < 40; turn++) await nextTurn()
}

const pass = async (clock: OwnClock, byMs: number): Promise<void> => {
  clock.pass(byMs)
  await settled()
}

const isExpired = (talk: Talk): boolean => talk.of("tool.result").some(({ payload }) => payload.status === "timeout")

describe("a question", () => {
  it("expires when nobody has answered for as long as it may wait, and not before", async () => {
    const clock = new OwnClock()
    const talk = await ask(await open(clock), TIMEOUT_MS)
    await pass(clock, TIMEOUT_MS - 1)
    expect(isExpired(talk)).toBe(false)
    await pass(clock, 1)
    expect(isExpired(talk)).toBe(true)
    expect((await talk.turns(1)).kind).toBe("turn.completed")
  })

  it("expires soon after the clock was set past its time", async () => {
    const clock = new OwnClock()
    const talk = await ask(await open(clock), TIMEOUT_MS)
    clock.setWall(HOUR_MS)
    await pass(clock, limits.clockLookMs)
    expect(isExpired(talk)).toBe(true)
  })

  it("is not hurried by a clock that was set ahead, but not past its time", async () => {
    const clock = new OwnClock()
    const talk = await ask(await open(clock), TIMEOUT_MS)
    clock.setWall(4 * MINUTE_MS)
    await pass(clock, 6 * MINUTE_MS - 1)
    expect(isExpired(talk)).toBe(false)
    await pass(clock, limits.clockLookMs)
    expect(isExpired(talk)).toBe(true)
  })

  it("expires neither sooner nor later because the clock was set back", async () => {
    const clock = new OwnClock()
    const talk = await ask(await open(clock), TIMEOUT_MS)
    await pass(clock, 5 * MINUTE_MS)
    clock.setWall(-HOUR_MS)
    await pass(clock, 5 * MINUTE_MS - 1)
    expect(isExpired(talk)).toBe(false)
    await pass(clock, 1)
    expect(isExpired(talk)).toBe(true)
  })

  it("that was asked while the clock was a year ahead expires after it was put right", async () => {
    const clock = new OwnClock()
    clock.setWall(365 * 24 * HOUR_MS)
    const talk = await ask(await open(clock), TIMEOUT_MS)
    clock.setWall(-365 * 24 * HOUR_MS)
    await pass(clock, TIMEOUT_MS - 1)
    expect(isExpired(talk)).toBe(false)
    await pass(clock, 1)
    expect(isExpired(talk)).toBe(true)
  })

  it("expires at once in the next process when its time was over in between", async () => {
    const disk = makeDiskMemory()
    const clock = new OwnClock()
    const first = await open(clock, { disk })
    const asked = await ask(first, TIMEOUT_MS)
    await first.close()
    clock.setWall(HOUR_MS)
    const second = await open(clock, { disk, idSeed: 8 })
    const talk = second.talk(asked)
    await second.conversations.recover([talk.id])
    await talk.until("tool.result")
    expect(isExpired(talk)).toBe(true)
  })

  it("waits no longer than it may in a process whose clock is behind the log", async () => {
    const disk = makeDiskMemory()
    const clock = new OwnClock()
    const first = await open(clock, { disk })
    const asked = await ask(first, TIMEOUT_MS)
    await first.close()
    clock.setWall(-HOUR_MS)
    const second = await open(clock, { disk, idSeed: 8 })
    const talk = second.talk(asked)
    await second.conversations.recover([talk.id])
    await pass(clock, TIMEOUT_MS - 1)
    expect(isExpired(talk)).toBe(false)
    await pass(clock, 1)
    expect(isExpired(talk)).toBe(true)
  })

  it("waits longer than a timer can be set for", async () => {
    const clock = new OwnClock()
    const talk = await ask(await open(clock), 2 * limits.timerMsMax)
    expect(clock.longestMs).toBeLessThanOrEqual(limits.timerMsMax)
    await pass(clock, limits.timerMsMax)
    expect(isExpired(talk)).toBe(false)
  })

  it("expires when its time is over by the wall or by the hours that passed, whichever is first", async () => {
    const rounds = count("questions under a clock that is set at random", { fast: 40, soak: 4_000 })
    const random = randomFrom(seedFor("clocks set at random"))
    for (let round = 0; round < rounds; round++) await expireAtRandom(random)
    reportCount("questions under a clock that is set at random", rounds)
  }, 120_000)
})

/** Steps of a look each, in which the wall clock may be set: the question is open exactly as long as it may be. */
const expireAtRandom = async (random: () => number): Promise<void> => {
  const clock = new OwnClock()
  const world = await open(clock)
  const talk = await ask(world, TIMEOUT_MS)
  const askedMs = clock.nowMs()
  const passedMs = clock.monotonicMs()
  for (let isOver = false; !isOver; ) {
    if (random() < 0.05) clock.setWall(Math.round((random() - 0.6) * 10 * MINUTE_MS))
    await pass(clock, limits.clockLookMs)
    isOver = clock.nowMs() >= askedMs + TIMEOUT_MS || clock.monotonicMs() >= passedMs + TIMEOUT_MS
    expect(isExpired(talk), `after ${clock.monotonicMs() - passedMs} ms, wall ${clock.nowMs() - askedMs} ms`).toBe(
      isOver
    )
  }
  await world.close()
}

describe("a retry", () => {
  it("comes soon after the clock was set past its time", async () => {
    const clock = new OwnClock()
    const talk = await (await open(clock)).create({ model: "scripted/stumbles" })
    await talk.post("go")
    await talk.until("turn.retry_scheduled")
    await settled()
    clock.setWall(HOUR_MS)
    await pass(clock, limits.clockLookMs)
    expect(talk.kinds).toContain("turn.retry_started")
  })
})
