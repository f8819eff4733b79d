// Goal: syncs run where they cost least, and a stalling disk never holds up the process for long. Method: given latencies.
import { describe, expect, it } from "vitest"
import { SyncPolicy } from "#runelog/commit/SyncPolicy.ts"

describe("where syncs run", () => {
  it("is fixed when it is told", () => {
    const policy = new SyncPolicy("pool")
    policy.observe(0.01)
    expect(policy.mode).toBe("pool")
    expect(new SyncPolicy("inline").mode).toBe("inline")
  })

  it("is inline while the disk is quick", () => {
    const policy = new SyncPolicy(undefined)
    for (let flush = 0; flush < 100; flush++) policy.observe(0.2)
    expect(policy.mode).toBe("inline")
  })

  it("is the pool while the average is slow, and inline again when it is quick", () => {
    const policy = new SyncPolicy(undefined)
    for (let flush = 0; flush < 100; flush++) policy.observe(1)
    expect(policy.mode).toBe("pool")
    for (let flush = 0; flush < 100; flush++) policy.observe(0.1)
    expect(policy.mode).toBe("inline")
  })

  it("is the pool at once after a stall, for a while", () => {
    const policy = new SyncPolicy(undefined)
    policy.observe(5)
    let flushes = 0
    while (policy.mode === "pool") {
      policy.observe(0.01)
      flushes += 1
    }
    expect(flushes).toBe(64)
  })
})
