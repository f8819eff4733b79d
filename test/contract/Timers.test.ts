// Goal: delayed and repeated work happens when the clock says so, is cancelled for certain, and keeps no program alive.
// Method: a clock that the test moves, and a program of its own.
import { spawnSync } from "node:child_process"
import { it as itEffect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { describe, expect, it } from "vitest"
import { every, type RunFork, after as runAfter } from "#src/contract/Timers.ts"
import { top } from "../tidy/Source.ts"

const onTestClock = Effect.map(Effect.context<never>(), (context) => Effect.runForkWith(context) as RunFork)

const program = (script: string) =>
  spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
    cwd: top,
    encoding: "utf8",
    timeout: 20_000
  })

describe("delayed work", () => {
  itEffect.effect("runs once, when its time has come", () =>
    Effect.gen(function* () {
      let runs = 0
      runAfter(1000, () => void runs++, yield* onTestClock)
      yield* TestClock.adjust(999)
      expect(runs).toBe(0)
      yield* TestClock.adjust(1)
      expect(runs).toBe(1)
      yield* TestClock.adjust(10_000)
      expect(runs).toBe(1)
    })
  )

  itEffect.effect("that is cancelled does not run, and may be cancelled again", () =>
    Effect.gen(function* () {
      let runs = 0
      const cancel = runAfter(1000, () => void runs++, yield* onTestClock)
      cancel()
      cancel()
      yield* TestClock.adjust(5000)
      expect(runs).toBe(0)
    })
  )

  it("keeps no program alive", () => {
    const script = `import { after } from "./src/contract/Timers.ts"; after(60_000, () => console.log("late"))`
    expect(program(script)).toMatchObject({ status: 0, signal: null, stdout: "" })
  })

  it("that breaks breaks the program, as a callback would", () => {
    const script = `import { after } from "./src/contract/Timers.ts"; after(1, () => { throw new Error("boom") }); setTimeout(() => {}, 10_000)`
    const run = program(script)
    expect(run.status).not.toBe(0)
    expect(run.stderr).toContain("boom")
  })
})

describe("repeated work", () => {
  itEffect.effect("runs that long after each time until it is cancelled", () =>
    Effect.gen(function* () {
      let runs = 0
      const cancel = every(100, () => void runs++, yield* onTestClock)
      yield* TestClock.adjust(350)
      expect(runs).toBe(3)
      cancel()
      yield* TestClock.adjust(1000)
      expect(runs).toBe(3)
    })
  )
})
