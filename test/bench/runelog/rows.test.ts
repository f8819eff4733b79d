// Goal: the figures say what was measured. Method: known latencies, samples and rows through the arithmetic, and the
// raw limit read back from its file.
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { appendRows, makeAppendSubjects } from "./appendRows.ts"
import { startChild } from "./child.ts"
import { makeDirectory } from "./directory.ts"
import { writeLargeLog } from "./largeLog.ts"
import { Latency } from "./latency.ts"
import { RawCommit } from "./raw.ts"
import { aimedRow, comparedRow, unlessShown } from "./rows.ts"
import { drive, measureInTurns, median, type Sample, type Subject, summarize } from "./sampling.ts"

const within = (directory: (path: string) => Promise<void> | void) => async () => {
  const path = mkdtempSync(join(tmpdir(), "echs-bench-test-"))
  try {
    await directory(path)
  } finally {
    rmSync(path, { recursive: true, force: true })
  }
}

const sampleOf = (count: number, ms: number): Sample => ({
  count,
  seconds: 1,
  cpuMicroseconds: count * 2,
  p50Ms: ms,
  p99Ms: ms * 3,
  checkpoints: 1
})

describe("latencies", () => {
  it("keep percentiles to a few percent from microseconds to minutes", () => {
    for (const scaleMs of [0.01, 1, 250, 60_000]) {
      const latency = new Latency()
      for (let step = 1; step <= 1000; step++) latency.record((step / 1000) * scaleMs)
      expect(latency.percentileMs(0.5) / scaleMs).toBeCloseTo(0.5, 1)
      expect(latency.percentileMs(0.99) / scaleMs / 0.99).toBeGreaterThan(0.95)
      expect(latency.percentileMs(0.99) / scaleMs / 0.99).toBeLessThan(1.05)
    }
  })

  it("are 0 when there are none", () => {
    expect(new Latency().percentileMs(0.5)).toBe(0)
  })
})

describe("samples", () => {
  it("become medians, so that one bad second changes nothing", () => {
    const summary = summarize([sampleOf(100, 1), sampleOf(3, 900), sampleOf(110, 1.5)])
    expect(summary).toMatchObject({ perSecond: 100, p50Ms: 1.5, p99Ms: 4.5, cpuMicrosecondsPerItem: 2, checkpoints: 3 })
    expect([summary.slowestPerSecond, summary.fastestPerSecond]).toEqual([3, 110])
    expect(median([4, 1, 3, 2])).toBe(2.5)
    expect(() => median([])).toThrow(/nothing/)
  })

  it("are taken in turns, there and back, and every subject is closed also when one fails", async () => {
    const events: Array<string> = []
    const subject = (name: string, isBroken: boolean): Subject => ({
      name,
      prepare: async () => void events.push(`prepare ${name}`),
      sample: async () => {
        events.push(name)
        if (isBroken && events.filter((event) => event === name).length === 2) throw new Error("the disk is gone")
        return sampleOf(1, 1)
      },
      settle: async () => undefined,
      close: async () => void events.push(`close ${name}`)
    })
    const options = { seconds: 0.01, rounds: 2, progress: () => undefined }
    await measureInTurns([subject("a", false), subject("b", false)], options)
    expect(events.join(" ")).toBe("prepare a a prepare b b a b b a close a close b")
    events.length = 0
    await expect(measureInTurns([subject("a", true), subject("b", false)], options)).rejects.toThrow("the disk is gone")
    expect(events.slice(-2)).toEqual(["close a", "close b"])
  })
})

describe("the load", () => {
  it("keeps exactly so many appends outstanding and counts what was acknowledged", async () => {
    let outstanding = 0
    let most = 0
    let acknowledged = 0
    const append = async (): Promise<void> => {
      outstanding += 1
      most = Math.max(most, outstanding)
      await new Promise((resolve) => setImmediate(resolve))
      outstanding -= 1
      acknowledged += 1
    }
    const latency = new Latency()
    const count = await drive({ outstanding: 7, append, isOver: () => acknowledged >= 100 }, latency)
    expect(most).toBe(7)
    expect(count).toBe(acknowledged)
    expect(latency.count).toBe(count)
  })

  it("counts no append that was refused", async () => {
    const refusals: Array<number> = []
    let tries = 0
    const append = async (): Promise<void> => {
      tries += 1
      if (tries % 2 === 1) throw new Error("busy")
    }
    const retry = async (_: unknown, appender: number): Promise<void> => void refusals.push(appender)
    const latency = new Latency()
    expect(await drive({ outstanding: 1, append, retry, isOver: () => latency.count >= 5 }, latency)).toBe(5)
    expect(refusals).toHaveLength(5)
    await expect(drive({ outstanding: 1, append, isOver: () => false }, latency)).rejects.toThrow("busy")
  })
})

describe("the raw limit", () => {
  it(
    "has the bytes in its file when it says so",
    within(async (path) => {
      const raw = new RawCommit(join(path, "raw"))
      const records = Array.from({ length: 20 }, (_, index) => Buffer.alloc(256, index + 1))
      await Promise.all(records.map((record) => raw.append(record)))
      raw.close()
      expect(readFileSync(join(path, "raw")).subarray(0, 20 * 256)).toEqual(Buffer.concat(records))
    })
  )
})

describe("the memory of a reader", () => {
  it(
    "is its own, however large the process is that started it",
    within(async (path) => {
      const runes = 2_000
      await writeLargeLog(path, runes)
      const ballast = Buffer.alloc(512 * 1024 * 1024, 1)
      const reader = await startChild("memoryReader.ts", [path])
      await reader.kill()
      const report = JSON.parse(reader.line)
      expect(report.runes).toBe(runes)
      expect(report.growthBytes).toBeGreaterThan(0)
      expect(report.growthBytes).toBeLessThan(ballast.length / 4)
    })
  )
})

describe("rows", () => {
  const limit = { name: "limit", value: 200, unit: "appends/s" }
  const ours = { name: "ours", value: 90, unit: "appends/s" }

  it("are judged by their ratio, in the direction of the aim", () => {
    expect(comparedRow(ours, limit, { atLeast: 0.45 })).toMatchObject({ baseline: "limit", ratio: 0.45, met: true })
    expect(comparedRow(ours, limit, { atLeast: 0.5 })).toMatchObject({ target: 0.5, met: false })
    expect(comparedRow(ours, limit, { atMost: 0.2 })).toMatchObject({ target: 0.2, met: false })
    expect(comparedRow(ours, limit)).not.toHaveProperty("met")
    expect(aimedRow(ours, { atMost: 90 })).toMatchObject({ target: 90, met: true })
  })

  it("meet no target whose condition was not there", () => {
    const judged = comparedRow(ours, limit, { atLeast: 0.4 })
    expect(unlessShown(judged, true).met).toBe(true)
    expect(unlessShown(judged, false).met).toBe(false)
  })

  it("ask what was promised: ratios to the limit, SQLite and LMDB, and an even acknowledgement", () => {
    const subjects = makeAppendSubjects("unused")
    const results = new Map(subjects.map(({ name }) => [name, summarize([sampleOf(1000, 1)])]))
    const rows = appendRows(results)
    expect(rows.flatMap(({ target }) => target ?? []).sort((left, right) => left - right)).toEqual([
      0.4, 0.5, 0.5, 1, 3, 4, 20, 40
    ])
    expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
    for (const { name } of subjects) expect(rows.map((row) => row.name)).toContain(name)
  })
})

describe("the directory", () => {
  it(
    "is made where asked and removed with what is in it",
    within((path) => {
      const listeners = process.listenerCount("SIGINT")
      const made = makeDirectory(path)
      expect(process.listenerCount("SIGINT")).toBe(listeners + 1)
      made.remove()
      expect(() => readFileSync(made.path)).toThrow(/ENOENT/)
      expect(process.listenerCount("SIGINT")).toBe(listeners)
    })
  )
})
