// Goal: a crash costs one child, restarts stop where the spec says, and who was asked to stop stays stopped. Method:
// real fibers on a clock that the test moves.
// Verifies: G9, INV-AGENT-SUPERVISED

import { it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { describe, expect } from "vitest"
import type { RunFork } from "#src/supervise/Branch.ts"
import { childSpec, defaultIntensity } from "#src/supervise/ChildSpec.ts"
import { noteCrash } from "#src/supervise/Intensity.ts"
import { Supervisor, type SupervisorOptions } from "#src/supervise/Supervisor.ts"

interface Told {
  readonly restarts: Array<string>
  readonly givenUp: Array<string>
  readonly ended: Array<string>
}

/** A supervisor on the clock of the test, and what it told. */
const supervised = Effect.map(Effect.context<never>(), (context) => {
  const told: Told = { restarts: [], givenUp: [], ended: [] }
  const options: SupervisorOptions = {
    name: "root",
    onRestart: (spec, _cause, restarts) => told.restarts.push(`${spec.id} ${restarts}`),
    onGiveUp: (spec, cause) => told.givenUp.push(`${spec.id}: ${(Cause.squash(cause) as Error).message}`),
    onEnd: (spec) => told.ended.push(spec.id),
    runFork: Effect.runForkWith(context) as RunFork
  }
  return { supervisor: new Supervisor(options), told }
})

const boom = new Error("boom")

/** Lets every fiber that can go on go on. */
const turn = TestClock.adjust(0)

describe("the intensity window", () => {
  const intensity = { restartsMax: 2, withinMs: 1000 }

  it("allows so many crashes within any window, and not one more", () => {
    const first = noteCrash(intensity, [], 0)
    const second = noteCrash(intensity, first.crashes, 10)
    const third = noteCrash(intensity, second.crashes, 999)
    expect([first._tag, second._tag, third._tag]).toEqual(["Restart", "Restart", "GiveUp"])
  })

  it("forgets crashes that have left the window", () => {
    const crashes = [0, 10]
    expect(noteCrash(intensity, crashes, 1000)).toEqual({ _tag: "Restart", crashes: [10, 1000] })
    expect(noteCrash(intensity, crashes, 5000)).toEqual({ _tag: "Restart", crashes: [5000] })
  })

  it("allows none at all when told so", () => {
    expect(noteCrash({ restartsMax: 0, withinMs: 1000 }, [], 0)._tag).toBe("GiveUp")
  })
})

describe("a supervised child", () => {
  it.effect("runs once when it ends well", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      let runs = 0
      supervisor.start(
        childSpec("a"),
        Effect.sync(() => {
          runs += 1
        })
      )
      yield* turn
      expect(runs).toBe(1)
      expect(supervisor.size).toBe(0)
      expect(told).toEqual({ restarts: [], givenUp: [], ended: ["a"] })
    })
  )

  it.effect("is restarted after a crash, up to its intensity, and then given up once", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      let runs = 0
      supervisor.start(
        childSpec("a"),
        Effect.suspend(() => {
          runs += 1
          return Effect.andThen(Effect.sleep(100), Effect.die(boom))
        })
      )
      for (let step = 0; step < 20; step++) yield* TestClock.adjust(100)
      expect(runs).toBe(defaultIntensity.restartsMax + 1)
      expect(told.restarts).toEqual(["a 1", "a 2", "a 3"])
      expect(told.givenUp).toEqual(["a: boom"])
      expect(told.ended).toEqual(["a"])
    })
  )

  it.effect("is restarted for ever when its crashes are far enough apart", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      const apart = defaultIntensity.withinMs / defaultIntensity.restartsMax
      supervisor.start(childSpec("a"), Effect.andThen(Effect.sleep(apart), Effect.fail(boom)))
      for (let step = 0; step < 50; step++) yield* TestClock.adjust(apart)
      expect(told.restarts.length).toBe(50)
      expect(told.givenUp).toEqual([])
      yield* Effect.promise(() => supervisor.stopAll())
    })
  )

  it.effect("is counted on when it is started again under the same name", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      const spec = childSpec("a", { intensity: { restartsMax: 1, withinMs: 1000 } })
      const crashOnceThenWait = (runs: { count: number }) =>
        Effect.suspend(() => (runs.count++ === 0 ? Effect.die(boom) : Effect.never))
      supervisor.start(spec, crashOnceThenWait({ count: 0 }))
      yield* Effect.promise(() => supervisor.stop("a"))
      supervisor.start(spec, crashOnceThenWait({ count: 0 }))
      yield* turn
      expect(told.givenUp).toEqual(["a: boom"])
    })
  )

  it.effect("starts afresh after it was given up", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      const spec = childSpec("a", { intensity: { restartsMax: 1, withinMs: 1000 } })
      supervisor.start(spec, Effect.die(boom))
      yield* turn
      supervisor.start(spec, Effect.die(boom))
      yield* turn
      expect(told.restarts).toEqual(["a 1", "a 1"])
      expect(told.givenUp).toEqual(["a: boom", "a: boom"])
    })
  )

  it.effect("forgets its crashes once it has ended well", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      const spec = childSpec("a", { intensity: { restartsMax: 1, withinMs: 1000 } })
      let runs = 0
      const body = Effect.suspend(() => (runs++ % 2 === 0 ? Effect.die(boom) : Effect.void))
      for (let time = 0; time < 3; time++) {
        supervisor.start(spec, body)
        yield* turn
      }
      expect(told.restarts).toEqual(["a 1", "a 1", "a 1"])
      expect(told.givenUp).toEqual([])
      expect(supervisor.remembersCrashes).toBe(false)
    })
  )

  it.effect("is never restarted when it is stopped, whatever it does about it", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      supervisor.start(childSpec("quiet"), Effect.never)
      supervisor.start(
        childSpec("loud"),
        Effect.onInterrupt(Effect.never, () => Effect.die(boom))
      )
      yield* turn
      yield* Effect.promise(() => supervisor.stopAll())
      expect(supervisor.size).toBe(0)
      expect(told.restarts).toEqual([])
      expect(told.givenUp).toEqual([])
      expect([...told.ended].sort()).toEqual(["loud", "quiet"])
    })
  )

  it.effect("is gone when it is stopped in the moment it starts", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      supervisor.start(childSpec("a"), Effect.never)
      yield* Effect.promise(() => supervisor.stop("a"))
      expect(supervisor.has("a")).toBe(false)
      expect(told.ended).toEqual(["a"])
      supervisor.start(childSpec("a"), Effect.void)
      yield* turn
      expect(told.ended).toEqual(["a", "a"])
    })
  )

  it.effect("is left behind when it does not end in time, and its name is free again", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      const spec = childSpec("a", { shutdownMs: 1000 })
      supervisor.start(spec, Effect.uninterruptible(Effect.sleep(60_000)))
      yield* turn
      const stopped = supervisor.stop("a")
      expect(supervisor.stop("a")).toBe(stopped)
      yield* TestClock.adjust(999)
      expect(supervisor.has("a")).toBe(true)
      yield* TestClock.adjust(1)
      yield* Effect.promise(() => stopped)
      expect(supervisor.has("a")).toBe(false)
      expect(told.ended).toEqual(["a"])
      supervisor.start(spec, Effect.never)
      yield* TestClock.adjust(60_000)
      // The end of the one left behind is not the end of the one that runs now.
      expect(supervisor.has("a")).toBe(true)
      expect(told.ended).toEqual(["a"])
      yield* Effect.promise(() => supervisor.stopAll())
    })
  )

  it.effect("that interrupts itself counts as crashed: nobody had asked it to end", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      supervisor.start(childSpec("a", { intensity: { restartsMax: 1, withinMs: 1000 } }), Effect.interrupt)
      yield* turn
      expect(told.restarts).toEqual(["a 1"])
      expect(told.givenUp).toEqual(["a: a ended without being asked to"])
    })
  )

  it.effect("does not touch its siblings, however it ends", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      let finished = 0
      for (let index = 0; index < 50; index++) {
        const work = Effect.andThen(
          Effect.sleep(1000 + index),
          Effect.sync(() => {
            finished += 1
          })
        )
        supervisor.start(childSpec(`sibling ${index}`), work)
      }
      supervisor.start(childSpec("bad"), Effect.andThen(Effect.sleep(10), Effect.die(boom)))
      yield* TestClock.adjust(500)
      expect(told.givenUp).toEqual(["bad: boom"])
      expect(supervisor.size).toBe(50)
      yield* TestClock.adjust(2000)
      expect(finished).toBe(50)
    })
  )

  it.effect("under a name in use is not started a second time", () =>
    Effect.gen(function* () {
      const { supervisor } = yield* supervised
      let second = 0
      supervisor.start(childSpec("a"), Effect.never)
      supervisor.start(
        childSpec("a"),
        Effect.sync(() => {
          second += 1
        })
      )
      yield* turn
      expect(second).toBe(0)
      expect(supervisor.ids).toEqual(["a"])
      yield* Effect.promise(() => supervisor.stopAll())
    })
  )

  it.effect("that is temporary is not restarted; one that is permanent is, also when it ends well", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      supervisor.start(childSpec("temporary", { restart: "temporary" }), Effect.die(boom))
      supervisor.start(childSpec("permanent", { restart: "permanent" }), Effect.sleep(10))
      yield* TestClock.adjust(10)
      yield* TestClock.adjust(10)
      expect(told.restarts).toEqual(["permanent 1", "permanent 2"])
      expect(told.givenUp).toEqual([])
      yield* TestClock.adjust(10)
      yield* TestClock.adjust(10)
      expect(told.givenUp).toEqual(["permanent: permanent ended without being asked to"])
    })
  )

  it.effect("leaves no record that no longer matters", () =>
    Effect.gen(function* () {
      const { supervisor } = yield* supervised
      for (let index = 0; index < 200; index++) {
        let crashed = false
        const body = Effect.suspend(() => {
          if (crashed) return Effect.never
          crashed = true
          return Effect.die(boom)
        })
        supervisor.start(childSpec(`child ${index}`), body)
        yield* Effect.promise(() => supervisor.stop(`child ${index}`))
        yield* TestClock.adjust(1000)
      }
      const records = (supervisor as unknown as { readonly crashes: ReadonlyMap<string, unknown> }).crashes
      expect(records.size).toBeLessThanOrEqual(70)
    })
  )
})

describe("the tree of fibers", () => {
  const agent = "agent a"
  const names = (supervisor: Supervisor): unknown => {
    const flat = (node: ReturnType<Supervisor["tree"]>): unknown =>
      node === undefined ? undefined : node.children.length === 0 ? node.name : [node.name, ...node.children.map(flat)]
    return flat(supervisor.tree((id) => id))
  }

  it.effect("has every child below its branches, and goes when the last child is gone", () =>
    Effect.gen(function* () {
      const { supervisor } = yield* supervised
      expect(names(supervisor)).toBeUndefined()
      supervisor.start(childSpec("model", { under: [agent, "turn 1"] }), Effect.never)
      supervisor.start(childSpec("tool", { under: [agent, "turn 1"] }), Effect.never)
      supervisor.start(childSpec("start", { under: ["agent b"] }), Effect.never)
      supervisor.start(childSpec("closing"), Effect.never)
      yield* turn
      expect(names(supervisor)).toEqual(["root", [agent, ["turn 1", "model", "tool"]], ["agent b", "start"], "closing"])
      yield* Effect.promise(() => supervisor.stopAll())
      supervisor.trim()
      expect(names(supervisor)).toBeUndefined()
    })
  )

  it.effect("below a branch is interrupted with it, is not restarted, and the rest runs on", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      const interrupted: Array<string> = []
      const body = (id: string) => Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted.push(id)))
      for (const id of ["model", "tool"]) supervisor.start(childSpec(id, { under: [agent, "turn 1"] }), body(id))
      supervisor.start(childSpec("next", { under: [agent, "turn 2"] }), body("next"))
      yield* turn
      yield* Effect.promise(() => supervisor.stopUnder([agent, "turn 1"]))
      expect(interrupted.sort()).toEqual(["model", "tool"])
      expect({ ...told, ended: told.ended.sort() }).toEqual({ restarts: [], givenUp: [], ended: ["model", "tool"] })
      expect(names(supervisor)).toEqual(["root", [agent, ["turn 2", "next"]]])
      yield* Effect.promise(() => supervisor.stopUnder([agent]))
      expect(interrupted).toContain("next")
      expect(supervisor.size).toBe(0)
    })
  )

  it.effect("keeps nobody waiting for a child that does not end", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      const deaf = Effect.onInterrupt(Effect.never, () => Effect.never)
      supervisor.start(childSpec("deaf", { under: [agent], shutdownMs: 1000 }), deaf)
      yield* turn
      const stopping = supervisor.stopUnder([agent])
      // The same name is another branch from now on.
      supervisor.start(childSpec("next", { under: [agent] }), Effect.never)
      yield* TestClock.adjust(999)
      expect(told.ended).toEqual([])
      yield* TestClock.adjust(1)
      yield* Effect.promise(() => stopping)
      expect(told.ended).toEqual(["deaf"])
      expect(supervisor.ids).toEqual(["next"])
    })
  )

  it.effect("restarts a child in its place", () =>
    Effect.gen(function* () {
      const { supervisor, told } = yield* supervised
      let runs = 0
      const body = Effect.suspend(() => (runs++ === 0 ? Effect.die(boom) : Effect.never))
      supervisor.start(childSpec("frail", { under: [agent] }), body)
      yield* turn
      expect(told.restarts).toEqual(["frail 1"])
      expect(names(supervisor)).toEqual(["root", [agent, "frail"]])
      yield* Effect.promise(() => supervisor.stopAll())
    })
  )
})
