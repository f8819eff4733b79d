// Goal: frames are written once a log has many of them or all logs together too much, by a few lanes, and a log whose
// flush failed is not forgotten. Method: a flusher over a store that only notes what it is asked for.
import { describe, expect, it } from "vitest"
import { Slabs } from "#runelog/commit/Slabs.ts"
import { Flusher } from "#runelog/Flusher.ts"
import { commitExtent, emptyLog, type LogState, lastSegment, startSegment } from "#runelog/LogState.ts"
import { KIB, limits } from "#runelog/RunelogLimits.ts"
import type { SegmentStore } from "#runelog/segment/SegmentStore.ts"
import { errorOf } from "./Fixture.ts"

const makeFlusher = (flush?: (log: LogState) => Promise<void>, release: (log: LogState) => boolean = () => false) => {
  const slabs = new Slabs(64 * KIB)
  const asked: Array<string> = []
  const write = async (log: LogState): Promise<void> => {
    asked.push(log.name)
    await flush?.(log)
    for (const { end, slab, start } of log.pending.splice(0)) {
      log.pendingBytes -= end - start
      slabs.release(slab)
    }
  }
  let flushed = 0
  const store: Pick<SegmentStore, "flush"> = { flush: write }
  const flusher = new Flusher({
    store: store as SegmentStore,
    slabs,
    limits: { ...limits, segmentWriteBytes: 1000, pendingBytesMax: 512 * KIB },
    onFlushed: () => {
      flushed += 1
    },
    release
  })
  let sequence = 0
  const add = (log: LogState, bytes: number): void => {
    sequence += 1
    const segment = lastSegment(log) ?? startSegment(log)
    const extent = { slab: slabs.take(bytes), start: 0, end: bytes, position: segment.bytes, segment, sequence }
    segment.bytes += bytes
    const place = { journal: undefined, journalPosition: 0 }
    commitExtent(log, { ...extent, ...place, firstEventId: sequence, lastEventId: sequence }, 0)
    flusher.noteDurable(log, sequence)
  }
  return { flusher, slabs, asked, add, flushed: () => flushed }
}

const logs = (count: number): ReadonlyArray<LogState> => Array.from({ length: count }, (_, at) => emptyLog(`log-${at}`))

describe("a flusher", () => {
  it("writes the logs that have many frames, and leaves the others", async () => {
    const { add, asked, flushed, flusher } = makeFlusher()
    const [a, b] = [emptyLog("a"), emptyLog("b")]
    add(a, 600)
    add(b, 100)
    expect(flusher.isDue).toBe(false)
    add(a, 600)
    expect(flusher.isDue).toBe(true)
    await flusher.flushDue()
    expect(asked).toEqual(["a"])
    expect(flushed()).toBe(1)
    expect(flusher.isDue).toBe(false)
  })

  it("writes all of them, the longest waiting first, when memory is crowded", async () => {
    const { add, asked, flusher, slabs } = makeFlusher()
    const four = logs(4)
    for (const log of [...four, four[0]!, four[1]!]) add(log, 10)
    expect(slabs.bytes).toBe(6 * 64 * KIB)
    expect(flusher.isDue).toBe(false)
    add(four[2]!, 10)
    expect(flusher.isDue).toBe(true)
    await flusher.flushDue()
    expect(asked).toEqual(["log-0", "log-1", "log-2", "log-3"])
    expect(slabs.bytes).toBe(0)
    expect(flusher.isDue).toBe(false)
  })

  it("ends a flush while frames keep coming: others have their turn", async () => {
    const a = emptyLog("a")
    let left = 3
    const made = makeFlusher(async () => {
      left -= 1
      if (left > 0) made.add(a, 2000)
    })
    made.add(a, 2000)
    await made.flusher.flushDue()
    expect(made.asked).toEqual(["a"])
  })

  it("keeps a log in mind whose flush failed, and tells the failure when all lanes have ended", async () => {
    const failure = new Error("no")
    let isBroken = true
    const ended: Array<string> = []
    const made = makeFlusher(async (log) => {
      if (log.name === "log-0" && isBroken) throw failure
      await new Promise((resolve) => setImmediate(resolve))
      ended.push(log.name)
    })
    const [first, ...others] = logs(3)
    for (const log of [first!, ...others]) made.add(log, 2000)
    expect(await errorOf(made.flusher.flush(new Set([first!, ...others]), { sync: true }))).toBe(failure)
    expect(ended).toEqual(["log-1", "log-2"])
    isBroken = false
    for (const log of logs(6)) made.add(log, 10)
    await made.flusher.flushDue()
    expect(ended).toContain("log-0")
  })

  it("forgets a log that is removed", async () => {
    const { add, asked, flusher } = makeFlusher()
    const a = emptyLog("a")
    add(a, 2000)
    flusher.forget(a)
    expect(flusher.isDue).toBe(false)
    await flusher.flushDue()
    expect(asked).toEqual([])
  })
})

it("leaves the frames that the journal can bring back to it when memory is crowded, and writes the others", async () => {
  const { add, asked, flusher, slabs } = makeFlusher(undefined, (log) => {
    if (log.name === "log-1") return false
    for (const { slab } of log.pending.splice(0)) slabs.release(slab)
    flusher.forget(log)
    return true
  })
  for (const log of logs(8)) add(log, 64 * KIB - 1)
  while (flusher.isDue) await flusher.flushDue()
  expect(slabs.bytes).toBe(0)
  const [opened, none] = logs(2)
  add(opened!, 10)
  flusher.forget(opened!)
  flusher.noteOpened(opened!)
  flusher.noteOpened(none!)
  expect(asked.length).toBeGreaterThan(0)
})
