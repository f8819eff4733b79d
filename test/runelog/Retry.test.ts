// Goal: one attempt waits at a time, pauses grow up to the longest, and nothing runs after a stop. Method: timers that the
// test fires, and the real one once.
import { describe, expect, it } from "vitest"
import { afterTimeout, Retry } from "#runelog/Retry.ts"
import { manualTimers } from "./Fixture.ts"

describe("a retry", () => {
  it("waits once, longer each time, and shorter again after a success", async () => {
    const timers = manualTimers()
    let attempts = 0
    const run = (): void => {
      attempts += 1
    }
    const retry = new Retry({ delayMsMin: 10, delayMsMax: 35, later: timers.later, run })
    for (let round = 0; round < 4; round++) {
      retry.plan()
      retry.plan()
      expect(retry.isWaiting).toBe(true)
      await timers.fire()
      expect(retry.isWaiting).toBe(false)
    }
    retry.succeeded()
    retry.plan()
    expect(timers.delays).toEqual([10, 20, 35, 35, 10])
    expect(attempts).toBe(4)
    retry.stop()
    retry.plan()
    expect(retry.isWaiting).toBe(false)
    expect(timers.pending).toBe(0)
  })

  it("runs after a real pause, unless it is called off", async () => {
    const ran: Array<string> = []
    const cancel = afterTimeout(0, () => ran.push("called off"))
    cancel()
    const { promise, resolve } = Promise.withResolvers<void>()
    // Keeps the process alive, which the timer itself must not.
    const held = setInterval(() => undefined, 1_000)
    afterTimeout(1, () => {
      ran.push("ran")
      resolve()
    })
    await promise
    clearInterval(held)
    expect(ran).toEqual(["ran"])
  })
})
