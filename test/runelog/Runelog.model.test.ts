// Goal: whatever is done to a runelog, in whatever order, it holds what an array would hold (experiment 15). Method:
// fast-check draws commands, among them clean restarts, kills and power cuts; after each, the logs that it could have
// touched are compared with the model from a drawn cursor, and at the end from the beginning.
// Verifies: INV-EVENTID-MONOTONIC, INV-RUNE-IMMUTABLE, INV-RESUME-NO-GAPS, INV-RESUME-NO-DUPLICATES
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Entry } from "#runelog/commit/Entry.ts"
import { Runelog } from "#runelog/Runelog.ts"
import { EventIdOutOfOrder, LogUnknown } from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import type { Frame, ReadFilter } from "#runelog/segment/Reader.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { count, reportCount } from "../support/counts.ts"
import { DiskSim } from "../support/disk/DiskSim.ts"
import { seedFor } from "../support/seed.ts"
import { directory, errorOf, randomHex } from "./Fixture.ts"

const limits = {
  journalFileBytes: 48 * KIB,
  journalFilesMax: 2,
  reserveBytes: 4 * KIB,
  segmentBytes: 700,
  segmentWriteBytes: 256,
  indexEveryFrames: 3,
  indexEveryBytes: 300,
  openFilesMax: 3,
  residentLogsMax: 2,
  pageBytes: 600
}

type ModelLog = Array<Entry>

class Model {
  readonly logs = new Map<string, ModelLog>()

  log(name: string): ModelLog {
    return this.logs.get(name) ?? []
  }

  /** A later entry of the same stream made it superfluous. */
  isSuperseded(name: string, eventId: number): boolean {
    const entry = this.log(name)[eventId - 1]!
    const later = this.log(name).slice(eventId)
    return entry.role === "delta" && later.some(({ role, stream }) => role === "supersedes" && stream === entry.stream)
  }
}

class Real {
  disk = new DiskSim()
  runelog!: Runelog

  async open(): Promise<void> {
    this.runelog = await Runelog.open({ directory, disk: this.disk, limits, nowMs: () => 0, randomHex, sync: "inline" })
  }
}

type Command = fc.AsyncCommand<Model, Real>

const passes = (entry: Entry, filter: ReadFilter): boolean =>
  (entry.visibility ?? 0) <= (filter.visibilityMax ?? 2) && (filter.families?.has(entry.family ?? 0) ?? true)

const expectFrame = (model: Model, name: string, frame: Frame): void => {
  if (frame.kind === "thinned") {
    for (let eventId = frame.eventId; eventId <= frame.lastEventId; eventId++) {
      expect(model.isSuperseded(name, eventId), `event ${eventId} of ${name} was thinned away`).toBe(true)
    }
    return
  }
  const { body, family = 0, stream = 0, visibility = 0 } = model.log(name)[frame.eventId - 1]!
  expect(frame).toMatchObject({ lastEventId: frame.eventId, visibility, family, stream })
  expect(frame.body.equals(Buffer.from(body as string))).toBe(true)
}

/** Reads from the cursor to the end and compares every frame, and every one that is left out. */
const expectLog = async (
  model: Model,
  { runelog }: Real,
  name: string,
  options: { readonly after?: number; readonly bytesMax?: number; readonly filter?: ReadFilter } = {}
): Promise<void> => {
  const entries = model.log(name)
  const { filter = {} } = options
  expect(await runelog.head(name)).toBe(entries.length)
  if (entries.length === 0) return
  let after = Math.min(options.after ?? 0, entries.length)
  let expected = after + 1
  const skipTo = (eventId: number): void => {
    for (; expected < eventId; expected++)
      expect(passes(entries[expected - 1]!, filter), `event ${expected}`).toBe(false)
  }
  while (after < entries.length) {
    const page = await runelog.read(name, { ...options, after })
    expect(page.head).toBe(entries.length)
    expect(page.next).toBeGreaterThan(after)
    for (const frame of page.frames) {
      skipTo(frame.eventId)
      expect(frame.eventId).toBe(expected)
      expectFrame(model, name, frame)
      expected = frame.lastEventId + 1
    }
    skipTo(page.next + 1)
    after = page.next
  }
  expect(after).toBe(entries.length)
}

const names = ["a", "b", "c"] as const
const nameArbitrary = fc.constantFrom(...names)

const entryArbitrary: fc.Arbitrary<Entry> = fc
  .record({
    body: fc.oneof(
      fc.string({ maxLength: 20 }),
      fc.string({ unit: "binary", maxLength: 80 }),
      fc.constant("x".repeat(900))
    ),
    visibility: fc.nat(2),
    family: fc.nat(3),
    stream: fc.nat(1),
    role: fc.constantFrom(undefined, "delta" as const, "delta" as const, "supersedes" as const)
  })
  .map(({ role, ...entry }) => (role === undefined ? entry : { ...entry, role }))

const batchArbitrary = fc.array(entryArbitrary, { minLength: 1, maxLength: 4 })

const command = (text: string, run: (model: Model, real: Real) => Promise<void>): Command => ({
  check: () => true,
  run,
  toString: () => text
})

const brief = (value: unknown): string => JSON.stringify(value).replace(/x{20,}/g, "x…")

const append = fc.record({ name: nameArbitrary, entries: batchArbitrary }).map(({ name, entries }) =>
  command(`append(${name}, ${brief(entries)})`, async (model, real) => {
    const log = model.log(name)
    await real.runelog.append(name, log.length + 1, entries)
    model.logs.set(name, [...log, ...entries])
    await expectLog(model, real, name, { after: log.length })
  })
)

const appendMany = fc
  .array(fc.record({ name: nameArbitrary, entries: batchArbitrary }), { maxLength: 6 })
  .map((batches) =>
    command(`appendMany(${brief(batches)})`, async (model, real) => {
      const acknowledged: Array<Promise<void>> = []
      for (const { name, entries } of batches) {
        const log = model.log(name)
        acknowledged.push(real.runelog.append(name, log.length + 1, entries))
        model.logs.set(name, [...log, ...entries])
      }
      await Promise.all(acknowledged)
    })
  )

const appendWrong = fc.record({ name: nameArbitrary, by: fc.constantFrom(-1, 1, 5) }).map(({ name, by }) =>
  command(`appendWrong(${name}, ${by})`, async (model, real) => {
    const expected = model.log(name).length + 1
    const error = await errorOf(real.runelog.append(name, expected + by, [{ body: "" }]))
    expect(error).toEqual(new EventIdOutOfOrder({ log: name, expected, got: expected + by }))
  })
)

const read = fc
  .record({
    name: nameArbitrary,
    after: fc.nat(40),
    bytesMax: fc.constantFrom(0, 1, 100, 1000, 1_000_000),
    visibilityMax: fc.nat(2),
    families: fc.uniqueArray(fc.nat(3), { minLength: 1 })
  })
  .map(({ name, after, bytesMax, visibilityMax, families }) =>
    command(`read(${name}, ${after}, ${bytesMax}, ${visibilityMax}, [${families.join()}])`, (model, real) =>
      expectLog(model, real, name, { after, bytesMax, filter: { visibilityMax, families: new Set(families) } })
    )
  )

const seal = nameArbitrary.map((name) =>
  command(`seal(${name})`, async (model, real) => {
    if (model.log(name).length === 0) expect(await errorOf(real.runelog.seal(name))).toBeInstanceOf(LogUnknown)
    else expect(await real.runelog.seal(name)).toMatch(/^[0-9a-f]{64}$/)
    await expectLog(model, real, name)
  })
)

const remove = nameArbitrary.map((name) =>
  command(`remove(${name})`, async (model, real) => {
    if (model.log(name).length === 0) expect(await errorOf(real.runelog.remove(name))).toBeInstanceOf(LogUnknown)
    else await real.runelog.remove(name)
    model.logs.delete(name)
    await expectLog(model, real, name)
  })
)

const list = fc.constant(
  command("list", async (model, real) => {
    expect(await real.runelog.list()).toEqual([...model.logs.keys()].sort())
  })
)

const checkpoint = fc.constant(command("checkpoint", async (_, real) => real.runelog.checkpoint()))

const expectSound = async (disk: DiskSim): Promise<void> => {
  expect((await verify({ directory, disk })).problems).toEqual([])
}

const close = fc.constant(
  command("close", async (_, real) => {
    await real.runelog.close()
    await expectSound(real.disk)
    await real.open()
    expect(real.runelog.recovered).toMatchObject({ clean: true, batches: 0 })
  })
)

const kill = fc.constant(
  command("kill", async (_, real) => {
    real.disk = real.disk.killProcess()
    await expectSound(real.disk)
    await real.open()
  })
)

const powerCut = fc.nat().map((seed) =>
  command(`powerCut(${seed})`, async (_, real) => {
    const successor = real.disk.crash(seed)
    real.disk.powerOff()
    real.disk = successor
    await expectSound(real.disk)
    await real.open()
  })
)

const commands = [
  append,
  append,
  append,
  appendMany,
  appendWrong,
  read,
  seal,
  remove,
  list,
  checkpoint,
  close,
  kill,
  powerCut
]

describe("a runelog", () => {
  it("holds what an array would hold", { timeout: 3_600_000 }, async () => {
    const seed = seedFor("runelog against its model")
    const numRuns = count("runs against the model", { fast: 700, soak: 100_000 })
    let steps = 0
    const maxCommands = 50
    await fc.assert(
      fc.asyncProperty(fc.commands(commands, { maxCommands, size: "max" }), async (drawn) => {
        const real = new Real()
        const model = new Model()
        await real.open()
        await fc.asyncModelRun(() => ({ model, real }), drawn)
        for (const name of names) await expectLog(model, real, name)
        await real.runelog.close()
        steps += [...drawn].length
      }),
      { seed, numRuns, endOnFailure: true }
    )
    reportCount("runs against the model", numRuns)
    reportCount("steps against the model", steps)
  })
})
