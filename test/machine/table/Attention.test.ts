/**
 * Goal: the four guarantees of the attention machine, over random sequences and random schedules: the same step
 * always lands in the same status, every status is a valid one, a stuck status recovers within 12 seconds, and no
 * sequence of signals breaks it. Time is a number that the test moves.
 */
import * as FastCheck from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type AttentionSignal,
  type AttentionStatus,
  attentionStep,
  attentionTable,
  isStale,
  needsHuman,
  recoveryLimits
} from "#src/machine/table/Attention.ts"
import { type MonitorSignal, type MonitorStatus, monitorStep, monitorTable } from "#src/machine/table/Monitor.ts"
import { count, reportCount } from "../../support/counts.ts"
import { randomFrom, seedFor } from "../../support/seed.ts"

const statuses = Object.keys(attentionTable) as ReadonlyArray<AttentionStatus>
const signals = Object.keys(attentionTable.starting) as ReadonlyArray<AttentionSignal>
const anyStatus = FastCheck.constantFrom(...statuses)
const anySignals = FastCheck.array(FastCheck.constantFrom(...signals), { maxLength: 200 })

const runsAs = (name: string) => ({ seed: seedFor(name), numRuns: count(name, { fast: 500, soak: 20_000 }) })

describe("the attention machine", () => {
  it("is deterministic: a status and a signal always give the same status", () => {
    const seen = new Map<string, AttentionStatus>()
    const property = FastCheck.property(anyStatus, anySignals, (start, sequence) => {
      let status = start
      for (const signal of sequence) {
        const next = attentionStep(status, signal)
        const known = seen.get(`${status} ${signal}`) ?? next
        seen.set(`${status} ${signal}`, next)
        expect(next).toBe(known)
        status = next
      }
    })
    FastCheck.assert(property, runsAs("attention is deterministic"))
    expect(seen.size).toBe(statuses.length * signals.length)
  })

  it("lands in a valid status after any sequence, and stays closed until a new session", () => {
    const property = FastCheck.property(anyStatus, anySignals, (start, sequence) => {
      let status = start
      for (const signal of sequence) {
        const before = status
        status = attentionStep(status, signal)
        expect(statuses).toContain(status)
        if (before === "closed") expect(status).toBe(signal === "session_start" ? "running" : "closed")
      }
    })
    FastCheck.assert(property, runsAs("attention stays valid"))
  })

  it("recovers every stuck status in one health check, whatever came before", () => {
    const property = FastCheck.property(anyStatus, anySignals, (start, sequence) => {
      const status = sequence.reduce(attentionStep, start)
      const after = attentionStep(status, "health_check_recovery")
      expect(needsHuman(after)).toBe(false)
      if (!needsHuman(status)) expect(after).toBe(status)
    })
    FastCheck.assert(property, runsAs("attention recovers"))
  })
})

interface Schedule {
  status: AttentionStatus
  lastEventMs: number
  transcriptMs: number
  /** When the agent moved on without telling; undefined while what is shown is right. */
  wrongSinceMs: number | undefined
}

/** One life of an agent that loses hooks: what is shown, beside what is so. */
const liveOnce = (random: () => number): ReadonlyArray<number> => {
  const now: Schedule = { status: "running", lastEventMs: 0, transcriptMs: 0, wrongSinceMs: undefined }
  const late: Array<number> = []
  const phaseMs = Math.floor(random() * recoveryLimits.healthCheckIntervalMs)
  for (let atMs = 0; atMs < 180_000; atMs += 100) {
    if (atMs % recoveryLimits.healthCheckIntervalMs === phaseMs - (phaseMs % 100)) {
      if (isStale({ modifiedMs: now.transcriptMs, lastEventMs: now.lastEventMs })) {
        now.status = attentionStep(now.status, "health_check_recovery")
        now.lastEventMs = atMs
      }
    }
    const chance = random()
    if (chance < 0.01) {
      now.status = attentionStep(now.status, signals[Math.floor(random() * (signals.length - 1))] ?? "stop")
      now.lastEventMs = atMs
      now.transcriptMs = Math.max(now.transcriptMs, atMs)
      now.wrongSinceMs = undefined
    } else if (chance < 0.02 && needsHuman(now.status)) {
      // The person answered in the terminal, and no hook said so: the agent works and writes.
      now.wrongSinceMs ??= atMs
    }
    if (now.wrongSinceMs !== undefined) now.transcriptMs = atMs
    if (!needsHuman(now.status)) now.wrongSinceMs = undefined
    if (now.wrongSinceMs !== undefined) late.push(atMs - now.wrongSinceMs)
  }
  return late
}

describe("recovery", () => {
  it("corrects a status that is wrong within 12 seconds, in 200 random schedules", () => {
    const random = randomFrom(seedFor("attention schedules"))
    let wrong = 0
    for (let schedule = 0; schedule < 200; schedule += 1) {
      const late = liveOnce(random)
      wrong += late.length > 0 ? 1 : 0
      for (const ms of late) expect(ms).toBeLessThanOrEqual(recoveryLimits.maxRecoveryMs)
    }
    // The schedules do lose hooks: a bound that nothing ever tests would hold too.
    expect(wrong).toBeGreaterThan(50)
    reportCount("schedules in which an outside agent was shown wrong for a time", wrong)
  })
})

describe("the monitor", () => {
  const states = Object.keys(monitorTable) as ReadonlyArray<MonitorStatus>
  const heard = Object.keys(monitorTable.idle) as ReadonlyArray<MonitorSignal>

  it("is in a valid state after any sequence, and exited for every signal after the end", () => {
    const sequences = FastCheck.array(FastCheck.constantFrom(...heard), { maxLength: 200 })
    const property = FastCheck.property(FastCheck.constantFrom(...states), sequences, (start, sequence) => {
      let status = start
      for (const signal of sequence) {
        const before = status
        status = monitorStep(status, signal)
        expect(states).toContain(status)
        if (before === "exited") expect(status).toBe("exited")
        if (signal === "session_ended") expect(status).toBe("exited")
      }
    })
    FastCheck.assert(property, runsAs("the monitor stays valid"))
  })

  it("moves by usage from no state to another", () => {
    for (const status of states) expect(monitorStep(status, "usage_reported")).toBe(status)
  })
})
