// Goal: calls that overlap do not get into each other's way. Each of these once lost events, stopped the writer or never
// came to an end.
import { afterEach, describe, expect, it } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { withJitter } from "../../support/runelog/DiskJitter.ts"
import { appendNext, bodyOf, directory, entries, openSmall, readWhole } from "../../support/runelog/small.ts"
import { settled, turn } from "../../support/runelog/turns.ts"
import { randomFrom } from "../../support/seed.ts"

let runelog: Runelog
afterEach(() => settled(runelog.close(), "close"))

/** Calls on it overlap in other ways for every seed. */
const restless = (seed: number): Disk => withJitter(new DiskSim(), { chance: randomFrom(seed), share: 0.4 })

/** Syncs take a few turns each, always. */
const withLongSync = (disk: DiskSim): Disk => {
  const plain = withJitter(disk, { chance: () => 1, share: 0 })
  return {
    ...plain,
    open: async (path, mode) => {
      const file = await plain.open(path, mode)
      const sync = async (): Promise<void> => {
        for (let turns = 0; turns < 3; turns++) await turn()
        await file.sync()
      }
      return { ...file, sync }
    }
  }
}

const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index + 1)

describe("appends", () => {
  it("to more logs than may be resident all arrive, in order", async () => {
    runelog = await openSmall(restless(1), { limits: { residentLogsMax: 1 } })
    const logs = ["alpha", "beta", "gamma"]
    const eventIds = numbers(20)
    await Promise.all(
      eventIds.flatMap((eventId) => logs.map((log) => runelog.append(log, eventId, entries(bodyOf(log, eventId)))))
    )
    for (const log of logs) expect(await readWhole(runelog, log)).toEqual(eventIds.map((id) => bodyOf(log, id)))
  })

  it.each([1, 2, 3, 4, 5, 6, 7, 8])("to a log that is being opened keep their order (seed %i)", async (seed) => {
    runelog = await openSmall(restless(seed))
    const flying: Array<Promise<void>> = []
    for (const eventId of numbers(30)) {
      flying.push(runelog.append("log", eventId, entries(bodyOf("log", eventId))))
      if (seed % 2 === 0) await undefined
      else await turn()
    }
    await Promise.all(flying)
    expect(await runelog.head("log")).toBe(30)
  })
})

describe("a page from memory", () => {
  it.each([1, 60, 100, 250, 1000])("of %i bytes leaves out nothing", async (bytesMax) => {
    runelog = await openSmall(new DiskSim())
    // One batch per append, several frames in each: the page ends inside one of them.
    for (const first of [1, 4, 7]) {
      await runelog.append("log", first, entries(...[0, 1, 2].map((more) => bodyOf("log", first + more, 50))))
    }
    const expected = numbers(9).map((eventId) => bodyOf("log", eventId, 50))
    expect(await readWhole(runelog, "log", bytesMax)).toEqual(expected)
  })
})

describe.each([11, 12, 13, 14])("with seed %i", (seed) => {
  const fill = async (log: string): Promise<void> => {
    for (const _ of numbers(6)) await appendNext(runelog, log, 700)
  }

  it("seals of one log at once are all answered alike", async () => {
    runelog = await openSmall(restless(seed))
    await fill("log")
    const digests = await Promise.all([runelog.seal("log"), runelog.seal("log"), runelog.seal("log")])
    expect(new Set(digests).size).toBe(1)
    expect(runelog.poisoned).toBeUndefined()
  })

  it("a removal beside seals, checkpoints and readers leaves nothing and harms nothing", async () => {
    runelog = await openSmall(restless(seed))
    await fill("log")
    await fill("other")
    const others = Promise.allSettled([
      runelog.seal("log"),
      runelog.checkpoint(),
      runelog.read("log", { after: 0 }),
      runelog.seal("log")
    ])
    await Promise.all([runelog.remove("log"), runelog.remove("log")])
    await others
    expect(runelog.poisoned).toBeUndefined()
    expect(await runelog.list()).toEqual(["other"])
    expect(await runelog.head("log")).toBe(0)
  })

  it("a name is free for a new life as soon as its removal is answered", async () => {
    runelog = await openSmall(restless(seed))
    await fill("log")
    const first = runelog.remove("log")
    const second = runelog.remove("log")
    await first
    await appendNext(runelog, "log")
    await second
    await runelog.checkpoint()
    expect(await readWhole(runelog, "log")).toEqual([bodyOf("log", 1)])
    expect(runelog.poisoned).toBeUndefined()
  })

  it("a close waits for the seal, the checkpoint and the reader under way", async () => {
    runelog = await openSmall(restless(seed))
    await fill("log")
    const calls = [runelog.seal("log"), runelog.checkpoint(), runelog.read("log", { after: 0 })]
    await runelog.close()
    const outcomes = await Promise.allSettled(calls)
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"])
  })

  it("a log whose segment waits for its seal is not forgotten", async () => {
    runelog = await openSmall(restless(seed), { limits: { residentLogsMax: 1, segmentWriteBytes: 1 } })
    for (const log of ["alpha", "beta", "gamma"]) await fill(log)
    await Promise.all([runelog.remove("alpha"), appendNext(runelog, "beta"), runelog.seal("gamma")])
    expect(runelog.poisoned).toBeUndefined()
    expect(await runelog.list()).toEqual(["beta", "gamma"])
  })
})

describe("under steady load", () => {
  it("seal, checkpoint and remove come to an end", async () => {
    runelog = await openSmall(withLongSync(new DiskSim()), { sync: "pool", limits: { pendingBytesMax: 8192 * KIB } })
    await appendNext(runelog, "sealed")
    await appendNext(runelog, "removed")
    let isOver = false
    const flying: Array<Promise<void>> = []
    // One more in every turn: whenever a batch is answered, the next one waits already.
    const load = async (): Promise<void> => {
      for (let eventId = 1; !isOver; eventId++) {
        flying.push(runelog.append("busy", eventId, entries("steady")))
        await turn()
      }
    }
    const loading = load()
    for (let turns = 0; turns < 20; turns++) await turn()
    const calls = [() => runelog.seal("sealed"), () => runelog.checkpoint(), () => runelog.remove("removed")]
    for (const call of calls) {
      let isAnswered = false
      const answer = call().then(() => {
        isAnswered = true
      })
      for (let turns = 0; turns < 500 && !isAnswered; turns++) await turn()
      expect(isAnswered).toBe(true)
      await answer
    }
    isOver = true
    await loading
    await Promise.all(flying)
  })

  it("a list names every log that has events, whatever is forgotten meanwhile", async () => {
    runelog = await openSmall(restless(9), { limits: { residentLogsMax: 1, segmentWriteBytes: 1 } })
    const logs = ["alpha", "beta", "gamma"]
    for (const _ of numbers(10)) {
      const known: Array<string> = []
      for (const log of logs) if ((await runelog.head(log)) > 0) known.push(log)
      const [names] = await Promise.all([runelog.list(), ...logs.map((log) => appendNext(runelog, log))])
      expect(names).toEqual(expect.arrayContaining(known))
    }
  })
})

describe("a checkpoint", () => {
  it("is not over before the sync of the directory of logs that another one began", async () => {
    const disk = new DiskSim()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    let isHeld = false
    const held: Disk = withJitter(disk, { chance: () => 1, share: 0 })
    const gated: Disk = {
      ...held,
      syncDirectory: async (path) => {
        if (isHeld && path === `${directory}/runelog`) await released
        return held.syncDirectory(path)
      }
    }
    runelog = await openSmall(gated)
    await appendNext(runelog, "log")
    isHeld = true
    let done = 0
    const first = runelog.checkpoint().then(() => done++)
    for (let turns = 0; turns < 50; turns++) await turn()
    const second = runelog.checkpoint().then(() => done++)
    for (let turns = 0; turns < 50; turns++) await turn()
    expect(done).toBe(0)
    release()
    await Promise.all([first, second])
  })
})
