// Goal: a follower sees every event once, in order, however it and the writer interleave, and never waits for something
// that already happened. Method: writers and followers at random paces, over rotation, restarts of the iteration and
// removal; every wait is one the test itself ends.
// Verifies: INV-RESUME-NO-GAPS, INV-RESUME-NO-DUPLICATES
import { describe, expect, it } from "vitest"
import { LogUnknown, SegmentCorrupt, WriterClosed } from "#runelog/Errors.ts"
import { type FollowOptions, follow } from "#runelog/Follow.ts"
import type { Page } from "#runelog/Reader.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { count, reportCount } from "../support/counts.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { entryOf, errorOf, fill, openSmall } from "./Fixture.ts"

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Ids until `last` was seen, or the iteration ended. */
const idsUntil = async (pages: AsyncIterable<Page>, last: number, pause: () => Promise<void> = async () => {}) => {
  const ids: Array<number> = []
  for await (const { frames } of pages) {
    for (const { eventId } of frames) ids.push(eventId)
    if (ids.at(-1) === last) break
    await pause()
  }
  return ids
}

const range = (from: number, to: number): ReadonlyArray<number> =>
  Array.from({ length: to - from + 1 }, (_, at) => from + at)

describe("a follower", () => {
  it("reads what is there and then waits for more, across segments", async () => {
    const runelog = await openSmall({ limits: { segmentBytes: 400 } })
    await fill(runelog, "a", 1, 20)
    const ids = idsUntil(follow(runelog, "a", { after: 3, bytesMax: 300 }), 60)
    await fill(runelog, "a", 21, 60)
    expect(await ids).toEqual(range(4, 60))
  })

  it("misses no event, however the two interleave", { timeout: 300_000 }, async () => {
    const seed = seedFor("followers and writers")
    const chance = randomFrom(seed)
    const pause = async (): Promise<void> => {
      const draw = chance()
      if (draw < 0.3) return
      if (draw < 0.7) for (let tick = 0; tick < draw * 20; tick++) await undefined
      else await turn()
    }
    const rounds = count("followers and writers", { fast: 400, soak: 20_000 })
    for (let round = 0; round < rounds; round++) {
      const runelog = await openSmall({ limits: { segmentBytes: 300 }, sync: round % 2 === 0 ? "inline" : "pool" })
      const last = 1 + Math.floor(chance() * 25)
      const followers = Array.from({ length: 3 }, () =>
        idsUntil(follow(runelog, "a", { after: 0, bytesMax: 1 + Math.floor(chance() * 400) }), last, pause)
      )
      for (let eventId = 1; eventId <= last; eventId++) {
        const append = runelog.append("a", eventId, [entryOf(eventId)])
        if (chance() < 0.5) await append
        await pause()
      }
      for (const ids of followers) expect(await ids, `SEED=${seed} round ${round}`).toEqual(range(1, last))
      await runelog.close()
    }
    reportCount("followers that saw everything", rounds * 3)
  })

  it("waits for a log that does not exist yet", async () => {
    const runelog = await openSmall()
    const ids = idsUntil(follow(runelog, "later", { after: 0 }), 2)
    await turn()
    await fill(runelog, "later", 1, 2)
    expect(await ids).toEqual([1, 2])
  })

  it("moves over what its filter leaves out", async () => {
    const runelog = await openSmall()
    const options: FollowOptions = { after: 0, filter: { families: new Set([0]) } }
    const seen = idsUntil(follow(runelog, "a", options), 12)
    await fill(runelog, "a", 1, 12)
    expect(await seen).toEqual([4, 8, 12])
  })

  it("holds back nothing and nobody: one page at a time, taken when it likes", async () => {
    const runelog = await openSmall()
    const pages = follow(runelog, "a", { after: 0, bytesMax: 1 })
    await fill(runelog, "a", 1, 3)
    expect((await pages.next()).value).toMatchObject({ next: 1, head: 3 })
    await fill(runelog, "a", 4, 50)
    expect((await pages.next()).value).toMatchObject({ next: 2, head: 50 })
    await pages.return()
    expect(await pages.next()).toMatchObject({ done: true })
  })
})

describe("following ends", () => {
  const waiting = async (runelog: Runelog, signal: AbortSignal) => {
    const ids = idsUntil(follow(runelog, "a", { after: 0, signal }), -1)
    await turn()
    return ids
  }

  it("when it is told to, while it waits, before it began and in between", async () => {
    const runelog = await openSmall()
    await fill(runelog, "a", 1, 3)
    const controller = new AbortController()
    const ids = waiting(runelog, controller.signal)
    await turn()
    controller.abort()
    expect(await ids).toEqual([1, 2, 3])
    expect(await waiting(runelog, AbortSignal.abort())).toEqual([])
    const second = new AbortController()
    const pages = follow(runelog, "a", { after: 0, signal: second.signal })
    const page = pages.next()
    second.abort()
    expect(await page).toEqual({ done: true, value: undefined })
  })

  it("and leaves no listener behind", async () => {
    const runelog = await openSmall()
    await fill(runelog, "a", 1, 1)
    const stops: Array<() => void> = []
    let watching = 0
    const watched: Pick<Runelog, "read" | "watch"> = {
      read: (log, options) => runelog.read(log, options),
      watch: (log, listener) => {
        watching += 1
        const stop = runelog.watch(log, listener)
        stops.push(stop)
        return () => {
          watching -= 1
          stop()
        }
      }
    }
    for await (const page of follow(watched, "a", { after: 0 })) {
      expect(page.next).toBe(1)
      break
    }
    expect([watching, stops.length]).toEqual([0, 1])
  })

  it("with the error of a read: the log is removed, damaged or closed", async () => {
    const removed = await openSmall()
    await fill(removed, "a", 1, 2)
    const first = errorOf(idsUntil(follow(removed, "a", { after: 0 }), -1))
    await turn()
    await removed.remove("a")
    expect(await first).toBeInstanceOf(LogUnknown)
    const closed = await openSmall()
    const second = errorOf(idsUntil(follow(closed, "a", { after: 0 }), -1))
    await turn()
    await closed.close()
    expect(await second).toBeInstanceOf(WriterClosed)
    const corrupt = new SegmentCorrupt({ log: "a", file: "f", offset: 1, reason: "rot" })
    const damaged = { read: () => Promise.reject(corrupt), watch: () => () => {} }
    expect(await errorOf(idsUntil(follow(damaged, "a", { after: 0 }), 1))).toBe(corrupt)
  })
})
