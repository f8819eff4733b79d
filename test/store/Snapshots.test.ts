// Goal: a snapshot is the state that was saved or is not used, and losing all of them costs nothing but time. Method:
// both disks, every way a file can be wrong, and the simulated disk cut at every step of a save.
// Verifies: INV-SNAPSHOT-INTEGRITY
import * as fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import { type SnapshotReport, Snapshots, type SnapshotsOptions } from "#src/store/Snapshots.ts"
import { DiskSim } from "../support/disk/DiskSim.ts"
import { seedFor } from "../support/seed.ts"
import { conversationIdOf, type Place, places } from "./support.ts"

const id = conversationIdOf(1)
const state = (head: number) => ({ head, text: "état ".repeat(100), nested: { list: [1, 2, 3] } })

/** Every event is durable, and itself. */
const eventSum = async (_conversationId: string, eventId: number) => eventId

const readFile = async (disk: Disk, path: string): Promise<Buffer> => {
  const file = await disk.open(path, "read")
  const buffer = Buffer.alloc(await file.size())
  await file.read(buffer, 0, buffer.length, 0)
  await file.close()
  return buffer
}

const writeFile = async (disk: Disk, path: string, content: Uint8Array): Promise<void> => {
  const file = await disk.open(path, "write")
  await file.truncate(0)
  await file.write(content, 0, content.length, 0)
  await file.close()
}

describe.each(places)("snapshots on %s", (_name, makePlace) => {
  let place: Place
  let snapshots: Snapshots
  const reports: Array<SnapshotReport> = []
  const pathOf = (eventId: number) => `${place.directory}/snapshots/${id}/${String(eventId).padStart(16, "0")}.snap`
  const open = (options: Partial<SnapshotsOptions> = {}) =>
    new Snapshots({
      disk: place.disk,
      directory: `${place.directory}/snapshots`,
      shape: "1",
      eventSum,
      onReport: (report) => reports.push(report),
      ...options
    })

  beforeEach(() => {
    place = makePlace()
    snapshots = open()
    reports.length = 0
  })
  afterEach(() => place.dispose())

  it("come back as they were saved, the newest first", async () => {
    expect(await snapshots.load(id, { head: 9 })).toBeUndefined()
    const saved = await snapshots.save(id, 5, state(5))
    await snapshots.save(id, 9, state(9))
    expect(saved).toMatchObject({ _tag: "Saved" })
    expect(await open().load(id, { head: 20 })).toMatchObject({ eventId: 9, value: state(9) })
    expect(reports).toEqual([])
  })

  it("are kept in small number", async () => {
    for (const eventId of [1, 2, 3, 4, 5]) await snapshots.save(id, eventId, state(eventId))
    expect(await snapshots.list(id)).toEqual([4, 5])
    await snapshots.save(id, 5, state(5))
    expect(await snapshots.list(id)).toEqual([4, 5])
  })

  it("newer than the log are not used", async () => {
    await snapshots.save(id, 5, state(5))
    await snapshots.save(id, 9, state(9))
    expect(await snapshots.load(id, { head: 8 })).toMatchObject({ eventId: 5 })
    expect(reports).toEqual([{ conversationId: id, file: pathOf(9), fault: "beyond_head" }])
  })

  it("of an event that the log does not hold are not written, and not used once it holds another one there", async () => {
    const unknown = open({ eventSum: async () => undefined })
    expect(await unknown.save(id, 5, state(5))).toEqual({ _tag: "NotDurable" })
    expect(await unknown.list(id)).toEqual([])
    await snapshots.save(id, 5, state(5))
    await snapshots.save(id, 9, state(9))
    const other = open({ eventSum: async (_id, eventId) => (eventId === 9 ? 10 : eventId) })
    expect(await other.load(id, { head: 20 })).toMatchObject({ eventId: 5, value: state(5) })
    expect(reports.map(({ fault }) => fault)).toEqual(["not_durable", "other_event"])
  })

  it("of another shape or another conversation are not used", async () => {
    await snapshots.save(id, 5, state(5))
    expect(await open({ shape: "2" }).load(id, { head: 9 })).toBeUndefined()
    await writeFile(place.disk, pathOf(5), await readFile(place.disk, pathOf(5)).then(renamed))
    expect(await snapshots.load(id, { head: 9 })).toBeUndefined()
    expect(reports.map(({ fault }) => fault)).toEqual(["other_shape", "other_shape"])
  })

  it("that are larger than allowed are neither written nor read", async () => {
    const tight = open({ bytesMax: 100 })
    expect(await tight.save(id, 5, state(5))).toMatchObject({ _tag: "TooLarge", bytesMax: 100 })
    expect(await tight.list(id)).toEqual([])
    await snapshots.save(id, 5, { zeros: "0".repeat(5000) })
    expect(await tight.load(id, { head: 9 })).toBeUndefined()
    expect(reports.map(({ fault }) => fault)).toEqual(["too_large", "unreadable"])
  })

  it("that were altered or cut are reported, and an older good one serves", async () => {
    await snapshots.save(id, 5, state(5))
    await snapshots.save(id, 9, state(9))
    const good = await readFile(place.disk, pathOf(9))
    for (let at = 0; at < good.length; at += 5) {
      const altered = Buffer.from(good)
      altered[at]! ^= 0x11
      await writeFile(place.disk, pathOf(9), altered)
      const found = await snapshots.load(id, { head: 20 })
      // A changed byte that changes nothing is the one case where the newest still holds.
      if (found?.eventId === 9) expect(found.value, `byte ${at}`).toEqual(state(9))
      else expect(found, `byte ${at}`).toMatchObject({ eventId: 5, value: state(5) })
    }
    expect(reports.length).toBeGreaterThan(10)
    for (const length of [0, 3, good.indexOf("\n"), good.length - 1]) {
      await writeFile(place.disk, pathOf(9), good.subarray(0, length))
      expect(await snapshots.load(id, { head: 20 })).toMatchObject({ eventId: 5 })
    }
  })

  it("with a hash that does not match are reported as such", async () => {
    await snapshots.save(id, 9, state(9))
    const content = await readFile(place.disk, pathOf(9))
    const header = JSON.parse(content.subarray(0, content.indexOf("\n")).toString()) as { sha256: string }
    const forged = JSON.stringify({ ...header, sha256: "0".repeat(64) })
    const changed = Buffer.concat([Buffer.from(forged), content.subarray(content.indexOf("\n"))])
    await writeFile(place.disk, pathOf(9), changed)
    expect(await snapshots.load(id, { head: 20 })).toBeUndefined()
    expect(reports).toEqual([{ conversationId: id, file: pathOf(9), fault: "hash_mismatch" }])
    await writeFile(place.disk, pathOf(9), Buffer.from("null\n"))
    expect(await snapshots.load(id, { head: 20 })).toBeUndefined()
  })

  it("can be forgotten, all of them", async () => {
    await snapshots.save(id, 5, state(5))
    await snapshots.remove(id)
    expect(await snapshots.load(id, { head: 9 })).toBeUndefined()
    expect(await snapshots.list(id)).toEqual([])
    await snapshots.remove(id)
  })
})

const renamed = (content: Buffer): Buffer =>
  Buffer.from(content.toString("latin1").replace(id, conversationIdOf(2)), "latin1")

describe("a snapshot", () => {
  it("holds any JSON value", async () => {
    const snapshots = new Snapshots({ disk: new DiskSim(), directory: "/snapshots", shape: "1", eventSum })
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        await snapshots.save(id, 1, value)
        const found = await snapshots.load(id, { head: 1 })
        expect(JSON.stringify(found?.value)).toBe(JSON.stringify(value))
      }),
      { seed: seedFor("snapshots"), numRuns: 50 }
    )
  })

  it("is there whole or not at all, whenever the power goes", async () => {
    const seed = seedFor("snapshot crash")
    const save = async (disk: DiskSim) => {
      const snapshots = new Snapshots({ disk, directory: "/snapshots", shape: "1", eventSum })
      await snapshots.save(id, 5, state(5))
      const from = disk.operationCount
      return { snapshots, from }
    }
    const probe = new DiskSim()
    const { from: start, snapshots: first } = await save(probe)
    await first.save(id, 9, state(9))
    const steps = probe.operationCount - start
    for (let step = 0; step <= steps; step++) {
      const disk = new DiskSim()
      const { from, snapshots } = await save(disk)
      disk.onOperation = ({ index }) => {
        if (index - from === step) disk.powerOff()
      }
      const acknowledged = await snapshots.save(id, 9, state(9)).then(
        () => true,
        () => false
      )
      for (let draw = 0; draw < 5; draw++) {
        const after = new Snapshots({
          disk: disk.crash(seed + step * 100 + draw),
          directory: "/snapshots",
          shape: "1",
          eventSum
        })
        const found = await after.load(id, { head: 20 })
        if (acknowledged) expect(found?.eventId).toBe(9)
        expect(found?.value).toEqual(state(found?.eventId ?? 0))
      }
    }
  })

  it("that finds no room says so and leaves the old one", async () => {
    const disk = new DiskSim()
    const snapshots = new Snapshots({ disk, directory: "/snapshots", shape: "1", eventSum })
    await snapshots.save(id, 5, state(5))
    disk.failNext("write", { code: "ENOSPC" })
    await expect(snapshots.save(id, 9, state(9))).rejects.toMatchObject({ _tag: "DiskFull" })
    disk.failNext("list", { code: "EIO" })
    await expect(snapshots.load(id, { head: 9 })).rejects.toThrow("EIO")
    disk.failNext("open", { code: "EIO" })
    await expect(snapshots.load(id, { head: 9 })).rejects.toThrow("EIO")
    expect(await snapshots.load(id, { head: 9 })).toMatchObject({ eventId: 5 })
  })
})
