// Goal: whoever watches is told, and nobody else. Method: plain calls.
import { describe, expect, it, vi } from "vitest"
import { Watchers } from "#runelog/Watchers.ts"

describe("watchers", () => {
  it("hear of their log, or of all", () => {
    const watchers = new Watchers()
    const [own, all] = [vi.fn(), vi.fn()]
    expect(watchers.isEmpty).toBe(true)
    const stopOwn = watchers.add("a", own)
    const stopAll = watchers.addEverywhere(all)
    expect(watchers.isEmpty).toBe(false)
    watchers.tell("a")
    watchers.tell("b")
    expect(own).toHaveBeenCalledTimes(1)
    expect(all.mock.calls).toEqual([["a"], ["b"]])
    stopOwn()
    stopAll()
    watchers.tell("a")
    expect([own.mock.calls.length, all.mock.calls.length]).toEqual([1, 2])
    expect(watchers.isEmpty).toBe(true)
  })

  it("are several on one log, and stopping twice stops only one", () => {
    const watchers = new Watchers()
    const [first, second] = [vi.fn(), vi.fn()]
    const stop = watchers.add("a", first)
    watchers.add("a", second)
    stop()
    stop()
    watchers.tell("a")
    expect([first.mock.calls.length, second.mock.calls.length]).toEqual([0, 1])
  })

  it("that are stopped late do not stop those who came after", () => {
    const watchers = new Watchers()
    const stop = watchers.add("a", vi.fn())
    stop()
    const later = vi.fn()
    watchers.add("a", later)
    stop()
    watchers.tell("a")
    expect(later).toHaveBeenCalledTimes(1)
  })

  it("are all told when there is nothing more to come", () => {
    const watchers = new Watchers()
    const [a, b] = [vi.fn(), vi.fn()]
    watchers.add("a", a)
    watchers.add("b", b)
    watchers.tellAll()
    expect([a.mock.calls.length, b.mock.calls.length]).toEqual([1, 1])
  })
})
