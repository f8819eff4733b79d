// Goal: a moment without descriptors or memory says nothing about the disk. Whatever cannot be opened is tried again,
// appends go on while there is room, nothing acknowledged is lost, and only a failed change of an open file ends the
// writer. Method: a simulated disk whose calls fail with each code at each place, and timers that the test fires.
// Verifies: G1, G2
import { describe, expect, it } from "vitest"
import type { Runelog } from "#runelog/Runelog.ts"
import { DiskFailed, isScarce, isUnopened, ResourcesScarce, WriterPoisoned } from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { count, reportCount } from "../support/counts.ts"
import { DiskSim, type Fault, type Operation } from "../support/disk/DiskSim.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { contentOf, directory, errorOf, fill, manualTimers, openSmall, settle } from "./Fixture.ts"

const codes = ["EMFILE", "ENFILE", "ENOMEM", "EAGAIN"] as const
const beginnings = ["open", "create", "openDirectory", "makeDirectory", "list", "exists"] as const
const limits = { journalFilesMax: 4, journalFileBytes: 40 * KIB, segmentBytes: 2000, segmentWriteBytes: 500 }
const forGood: Pick<Fault, "times"> = { times: 1_000_000 }

const open = async (disk: DiskSim) => {
  const timers = manualTimers()
  const runelog = await openSmall({ disk, limits, later: timers.later })
  return { runelog, timers }
}

/** Deltas and what supersedes them, so that seals have something to drop. */
const append = async (runelog: Runelog, log: string, eventId: number): Promise<void> => {
  const role = eventId % 4 === 0 ? ("supersedes" as const) : ("delta" as const)
  await runelog.append(log, eventId, [{ body: `${eventId} ${"x".repeat(200)}`, role }])
}

/** The refusal of a call, if it is refused; timers fire while it waits. */
const refusalOf = async (
  call: Promise<unknown>,
  timers: Pick<ReturnType<typeof manualTimers>, "fire">
): Promise<unknown> => {
  let isOver = false
  const outcome = call.then(
    () => undefined,
    (error: unknown) => error
  )
  const end = outcome.finally(() => {
    isOver = true
  })
  for (await settle(); !isOver; ) await timers.fire()
  return end
}

const everyHead = async (runelog: Runelog, heads: ReadonlyMap<string, number>): Promise<void> => {
  for (const [log, head] of heads) {
    expect(await runelog.head(log), log).toBe(head)
    expect((await contentOf(runelog, log)).error, log).toBeUndefined()
  }
}

describe("a moment without descriptors or memory", () => {
  const cases = codes.flatMap((code) => beginnings.map((operation) => [code, operation] as const))

  it.each(cases)("%s at every %s leaves a writer that goes on", async (code, operation) => {
    const disk = new DiskSim()
    const { runelog, timers } = await open(disk)
    for (let eventId = 1; eventId <= 6; eventId++) await append(runelog, "a", eventId)
    disk.failNext(operation, { code, ...forGood })
    let head = 6
    const refusals = new Set<string>()
    for (let attempt = 0; attempt < 60; attempt++) {
      const refusal = await refusalOf(append(runelog, "a", head + 1), timers)
      if (refusal === undefined) head += 1
      else refusals.add((refusal as { readonly _tag: string })._tag)
      if (attempt % 10 === 9) await timers.fire()
    }
    expect(runelog.poisoned).toBeUndefined()
    expect([...refusals].filter((tag) => tag !== "ResourcesScarce")).toEqual([])
    disk.clearFaults()
    await timers.fire()
    for (let more = 0; more < 20; more++) await append(runelog, "a", ++head)
    for (let seed = 0; seed < 3; seed++) {
      const after = await openSmall({ disk: disk.crash(seed), limits })
      await everyHead(after, new Map([["a", head]]))
    }
    await settle()
    await runelog.close()
    expect((await verify({ directory, disk })).problems).toEqual([])
  })

  it("is waited out with pauses that grow, and those who wait for room are told to come back", async () => {
    const disk = new DiskSim()
    const { runelog, timers } = await open(disk)
    await append(runelog, "a", 1)
    disk.failNext("create", { code: "EMFILE", ...forGood })
    let head = 1
    let refusal: unknown
    while (refusal === undefined && head < 500) {
      refusal = await refusalOf(append(runelog, "a", head + 1), timers)
      if (refusal === undefined) head += 1
      else expect(refusal).toBeInstanceOf(ResourcesScarce)
    }
    expect(refusal).toMatchObject({ message: expect.stringContaining("EMFILE") })
    for (let attempt = 0; attempt < 10; attempt++) await timers.fire()
    const reopenings = timers.delays.filter((delayMs) => delayMs !== 1_000)
    expect(reopenings.slice(0, 4)).toEqual([50, 100, 200, 400])
    expect(Math.max(...reopenings)).toBe(5_000)
    // The last words of a turn still find the room that is kept for them.
    await runelog.append("a", head + 1, [{ body: "over" }], { terminal: true })
    disk.clearFaults()
    await timers.fire()
    await append(runelog, "a", head + 2)
    expect(await runelog.head("a")).toBe(head + 2)
    await runelog.close()
  })

  it("of a start is an answer of its own, and the next start succeeds", async () => {
    const disk = new DiskSim()
    const first = await openSmall({ disk })
    await fill(first, "a", 1, 3)
    const killed = disk.killProcess()
    for (const operation of ["open", "openDirectory"] as const) {
      killed.failNext(operation, { code: "EMFILE" })
      expect(await errorOf(openSmall({ disk: killed }))).toBeInstanceOf(ResourcesScarce)
    }
    const again = await openSmall({ disk: killed })
    expect(await again.head("a")).toBe(3)
  })

  it("of a read or of a log to be opened is told to the one who asked, and to nobody else", async () => {
    const disk = new DiskSim()
    const first = await openSmall({ disk, limits })
    await fill(first, "a", 1, 30)
    await first.close()
    const runelog = await openSmall({ disk, limits })
    disk.failNext("open", { code: "ENFILE", times: 2 })
    expect(await errorOf(runelog.head("a"))).toBeInstanceOf(ResourcesScarce)
    disk.failNext("list", { code: "EMFILE" })
    expect(await errorOf(runelog.list())).toBeInstanceOf(ResourcesScarce)
    disk.clearFaults()
    expect(await runelog.head("a")).toBe(30)
    await fill(runelog, "a", 31, 32)
    expect(runelog.poisoned).toBeUndefined()
    await runelog.close()
  })
})

describe("a file that cannot be opened for another reason", () => {
  it("ends nothing: appends are refused with the reason when they need it, and go on when it opens", async () => {
    const disk = new DiskSim()
    const { runelog, timers } = await open(disk)
    await append(runelog, "a", 1)
    disk.failNext("create", { code: "EACCES", ...forGood })
    let head = 1
    let refusal: unknown
    while (refusal === undefined && head < 500) {
      refusal = await refusalOf(append(runelog, "a", head + 1), timers)
      if (refusal === undefined) head += 1
    }
    expect(refusal).toBeInstanceOf(DiskFailed)
    expect(runelog.poisoned).toBeUndefined()
    disk.clearFaults()
    await refusalOf(append(runelog, "a", head + 1), timers)
    head = await runelog.head("a")
    await append(runelog, "a", head + 1)
    await runelog.close()
    expect((await verify({ directory, disk })).problems).toEqual([])
  })
})

describe("a change of an open file", () => {
  it.each([...codes, "EIO"] as const)("that fails with %s ends the writer", async (code) => {
    for (const operation of ["write", "sync", "rename", "syncDirectory"] as const) {
      const disk = new DiskSim()
      const { runelog, timers } = await open(disk)
      await append(runelog, "a", 1)
      disk.failNext(operation, { code })
      let head = 1
      while (runelog.poisoned === undefined && head < 200) {
        if ((await refusalOf(append(runelog, "a", head + 1), timers)) === undefined) head += 1
      }
      expect(runelog.poisoned, operation).toBeInstanceOf(WriterPoisoned)
      const after = await openSmall({ disk: disk.killProcess(), limits })
      expect(await after.head("a"), operation).toBeGreaterThanOrEqual(head)
    }
  })

  it("is told from what came before it by the name of the call", () => {
    const error = (code: string, syscall?: string) => Object.assign(new Error(code), { code, syscall })
    for (const code of codes) {
      for (const syscall of ["open", "scandir", "rm", "mkdir", undefined]) {
        expect([isScarce(error(code, syscall)), isUnopened(error(code, syscall))]).toEqual([true, true])
      }
      for (const syscall of ["write", "fdatasync", "fsync", "ftruncate", "rename"]) {
        expect([isScarce(error(code, syscall)), isUnopened(error(code, syscall))]).toEqual([false, false])
      }
    }
    expect([isScarce(error("EIO", "open")), isUnopened(error("EIO", "open"))]).toEqual([false, true])
    expect([isScarce(error("EIO", "unlink")), isUnopened(error("EIO", "unlink"))]).toEqual([false, false])
    expect([isScarce(new Error("EMFILE")), isUnopened(undefined)]).toEqual([false, false])
  })
})

const isGone = async (
  runelog: Runelog,
  log: string,
  timers: Pick<ReturnType<typeof manualTimers>, "fire">
): Promise<boolean> => {
  const refusal = await refusalOf(runelog.append(log, 1_000_000, [{ body: "" }]), timers)
  return (refusal as { readonly _tag: string })._tag === "LogUnknown"
}

describe("scarcity at random", () => {
  it("loses nothing, through power cuts too", async () => {
    const seed = seedFor("scarcity at random")
    const lives = count("lives with scarce descriptors", { fast: 60, soak: 5_000 })
    const random = randomFrom(seed)
    const pick = <A>(values: ReadonlyArray<A>): A => values[Math.floor(random() * values.length)]!
    const operations: ReadonlyArray<Operation> = [...beginnings, "removeTree", "remove"]
    let faults = 0
    for (let life = 0; life < lives; life++) {
      const disk = new DiskSim()
      const { runelog, timers } = await open(disk)
      const heads = new Map<string, number>()
      for (let step = 0; step < 60; step++) {
        const log = pick(["a", "b", "c"])
        const head = heads.get(log) ?? 0
        const does = random()
        if (does < 0.1) {
          disk.failNext(pick(operations), {
            code: pick(codes),
            after: Math.floor(random() * 4),
            times: 1 + Math.floor(random() * 3)
          })
          faults += 1
        } else if (does < 0.15) await refusalOf(runelog.checkpoint(), timers)
        else if (does < 0.2) await refusalOf(runelog.seal(log), timers)
        else if (does < 0.25) await timers.fire()
        else if (does < 0.28 && head > 0) {
          const refusal = await refusalOf(runelog.remove(log), timers)
          // The removal may be durable although its files could not be removed yet.
          if (refusal === undefined || (await isGone(runelog, log, timers))) heads.delete(log)
        } else if ((await refusalOf(append(runelog, log, head + 1), timers)) === undefined) heads.set(log, head + 1)
        if (random() < 0.3) await settle()
      }
      expect(runelog.poisoned, `life ${life}`).toBeUndefined()
      const cut = await openSmall({ disk: disk.crash(life), limits })
      for (const [log, head] of heads) expect(await cut.head(log), `life ${life}, ${log}`).toBe(head)
      disk.clearFaults()
      await timers.fire()
      await everyHead(runelog, heads)
      await runelog.close()
      expect((await verify({ directory, disk })).problems, `life ${life}`).toEqual([])
    }
    reportCount("lives with scarce descriptors", lives)
    reportCount("calls failed for want of descriptors or memory, at most", faults)
  })
})
