// Goal: a wall clock that jumps changes no order, makes no duration negative and no deadline late. Method: the real
// runtime with a clock that is set back an hour, ahead a year, or to and fro at every look, in the middle of a turn
// with a retry, two tools, a question and its answer.
// Verifies: INV-TURN-TERMINAL, INV-TOOL-TERMINAL
import { describe, expect, it } from "vitest"
import type { AnyRune } from "#src/rune/Rune.ts"
import { count, reportCount } from "../support/counts.ts"
import { fastRunFork } from "../support/runtime/clocks.ts"
import { fail, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { effectTool, tool } from "../support/runtime/tools.ts"
import { type Talk, useWorlds } from "../support/runtime/World.ts"
import { randomFrom, seedFor } from "../support/seed.ts"

const worlds = useWorlds()

const HOUR_MS = 3_600_000
const YEAR_MS = 365 * 24 * HOUR_MS
const startMs = 1_763_251_200_000

/** What the clock is off by at its n-th look. */
type Offset = (look: number) => number

const jumpAt =
  (look: number, byMs: number): Offset =>
  (at) =>
    at < look ? 0 : byMs

const patterns: ReadonlyArray<readonly [name: string, offset: Offset]> = [
  ...[5, 20, 40, 60].map((look) => [`an hour back at look ${look}`, jumpAt(look, -HOUR_MS)] as const),
  ...[5, 20, 40, 60].map((look) => [`a year ahead at look ${look}`, jumpAt(look, YEAR_MS)] as const),
  ["to and fro at every look", (at) => (at % 2 === 0 ? HOUR_MS : -HOUR_MS)],
  ["an hour less at every tenth look", (at) => -Math.floor(at / 10) * HOUR_MS],
  ["a year more at every tenth look", (at) => Math.floor(at / 10) * YEAR_MS]
]

const durationsOf = (runes: ReadonlyArray<AnyRune>): ReadonlyArray<number> =>
  runes.flatMap(({ payload }) => {
    const { delay_ms: delayMs, duration_ms: durationMs } = payload as Readonly<Record<string, unknown>>
    return [delayMs, durationMs].filter((value) => typeof value === "number")
  })

const expectOrder = (talk: Talk, name: string): void => {
  const ids = talk.runes.map(({ event_id: id }) => id)
  expect(ids, `order under ${name}`).toEqual(ids.map((_, index) => index + 1))
  const times = talk.runes.map(({ ts_ms: ms }) => ms)
  expect(times, `times under ${name}`).toEqual([...times].sort((left, right) => left - right))
  for (const duration of durationsOf(talk.runes)) expect(duration).toBeGreaterThanOrEqual(0)
  expect(talk.of("tool.result").length).toBe(talk.of("tool.call").length)
}

const play = [
  { when: { step: 1, attempt: 1 }, play: [say("Let me "), fail("overloaded")] },
  { when: { step: 1 }, play: [say("Let me see. "), use("look"), use("write", { path: "a" })] },
  step(2, say("It said {{output}}."))
]

const live = async (name: string, offset: Offset, realStartMs: number): Promise<void> => {
  let looks = 0
  const nowMs = (): number => startMs + Math.round(performance.now() - realStartMs) + offset(looks++)
  const world = await worlds.open({
    clock: { nowMs },
    runFork: fastRunFork(50),
    scenarios: scenarios({ play }),
    tools: [tool("look", async () => "seen"), effectTool("write", async () => "written", { approval: "ask" })]
  })
  const talk = await world.create({ model: "scripted/play" })
  await talk.post("go")
  const asked = await talk.until("tool.approval_requested")
  // Where time goes ahead a question may be too old when it is answered; where it goes back, never.
  const answered = await talk.approve(asked.payload.call_id).then(
    () => "approved",
    (error: Error) => error.message
  )
  expect(answered, name).toMatch(/ back | less /.test(` ${name} `) ? /^approved$/ : /^approved$|expired/)
  expect((await talk.turns(1)).kind, name).toBe("turn.completed")
  expect(talk.of("turn.retry_scheduled").length).toBe(1)
  await talk.post("again")
  await talk.until("tool.approval_requested", 2)
  await talk.interrupt()
  expect((await talk.turns(2)).kind, name).toBe("turn.interrupted")
  expectOrder(talk, name)
}

describe("a clock that jumps", () => {
  it.each(patterns)("%s breaks nothing", async (name, offset) => {
    // An hour that the clock took back, and that something waited for, would be longer than the test may take.
    await live(name, offset, performance.now())
  })

  it("at random breaks nothing", async () => {
    const rounds = count("turns under a clock that jumps at random", { fast: 5, soak: 1_000 })
    const random = randomFrom(seedFor("clock jumps"))
    for (let round = 0; round < rounds; round++) {
      const jumps = Array.from(
        { length: 8 },
        () => [Math.floor(random() * 100), (random() - 0.5) * 4 * HOUR_MS] as const
      )
      const offset: Offset = (at) => Math.round(jumps.reduce((sum, [look, byMs]) => sum + (at >= look ? byMs : 0), 0))
      await live(`random clock ${round}`, offset, performance.now())
    }
    reportCount("turns under a clock that jumps", 2 * (rounds + patterns.length))
  }, 120_000)
})
