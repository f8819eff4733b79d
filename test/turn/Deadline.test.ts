// Goal: work of others ends in time, one way or the other, and nobody waits longer than said. Method: promises that the
// test settles, with fake timers.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { type Ended, messageOf, timerMs, underDeadline } from "#src/turn/Deadline.ts"
import { limits } from "#src/turn/TurnLimits.ts"

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

const never = new AbortController().signal

describe("work under a deadline", () => {
  it("returns what it returns", async () => {
    const ended = await underDeadline(async () => "done", { timeoutMs: 100, signal: never })
    expect(ended).toEqual({ _tag: "Returned", value: "done", late: false })
    expect(vi.getTimerCount()).toBe(0)
  })

  it("that throws, before its promise or in it, ends as thrown", async () => {
    const at = { timeoutMs: 100, signal: never }
    const early = (): Promise<never> => {
      throw new Error("early")
    }
    expect(await underDeadline(early, at)).toMatchObject({ _tag: "Threw", late: false })
    expect(await underDeadline(() => Promise.reject(new Error("late")), at)).toMatchObject({ _tag: "Threw" })
  })

  it("is told when its time is over, and may still wind up", async () => {
    let seen: AbortSignal | undefined
    const work = (signal: AbortSignal): Promise<string> => {
      seen = signal
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve("what I have")))
    }
    const ended = underDeadline(work, { timeoutMs: 100, signal: never })
    await vi.advanceTimersByTimeAsync(99)
    expect(seen?.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await ended).toEqual({ _tag: "Returned", value: "what I have", late: true })
  })

  it("that does not wind up is not waited for", async () => {
    const ended = underDeadline(() => new Promise(() => undefined), { timeoutMs: 100, signal: never })
    let outcome: Ended<unknown> | undefined
    void ended.then((one) => {
      outcome = one
    })
    await vi.advanceTimersByTimeAsync(100 + limits.windUpMs - 1)
    expect(outcome).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1)
    expect(outcome).toEqual({ _tag: "Overran" })
  })

  it("that is interrupted is not waited for at all", async () => {
    const outside = new AbortController()
    let inside: AbortSignal | undefined
    const work = (signal: AbortSignal): Promise<never> => {
      inside = signal
      return new Promise(() => undefined)
    }
    const ended = underDeadline(work, { timeoutMs: 100, signal: outside.signal })
    await vi.advanceTimersByTimeAsync(1)
    outside.abort()
    expect(await ended).toMatchObject({ _tag: "Interrupted" })
    expect(inside?.aborted).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  it("that was interrupted before it began does not begin", async () => {
    const work = vi.fn(async () => "ran")
    expect(await underDeadline(work, { timeoutMs: 100, signal: AbortSignal.abort() })).toMatchObject({
      _tag: "Interrupted"
    })
    expect(work).not.toHaveBeenCalled()
  })

  it("may have any time a number can say", () => {
    expect(timerMs(-5)).toBe(0)
    expect(timerMs(1e15)).toBe(limits.timerMsMax)
    expect(timerMs(20)).toBe(20)
  })
})

describe("what went wrong", () => {
  it("is told in few and well-formed words", () => {
    expect(messageOf(new Error("plain"))).toBe("plain")
    expect(messageOf(undefined)).toBe("undefined")
    expect(messageOf("x".repeat(10_000)).length).toBe(limits.errorCharsMax)
    expect(messageOf(new Error("\ud800")).isWellFormed()).toBe(true)
  })
})
