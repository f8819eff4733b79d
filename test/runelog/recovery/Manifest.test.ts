// Goal: manifest and journal together know of everything that was acknowledged, whatever happens to the manifest itself.
// Method: the writer on disks in memory, files taken away and changed between two starts; the file read by hand.
// Verifies: G2, G3
import { describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import type { DiskFile } from "#runelog/disk/Disk.ts"
import { systemError } from "#runelog/disk/DiskFault.ts"
import {
  DiskFailed,
  DiskFull,
  FormatUnsupported,
  LogDamaged,
  LogUnknown,
  WriterPoisoned
} from "#runelog/RunelogErrors.ts"
import { readManifest } from "#runelog/recovery/Manifest.ts"
import { MetaFile } from "#runelog/recovery/MetaFile.ts"
import { repairLog } from "#runelog/verify/Repair.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import {
  contentOf,
  directory,
  diskOf,
  entryOf,
  errorOf,
  fill,
  openSmall,
  type Snapshot,
  snapshotOf,
  withCalls,
  withFiles,
  withoutManifest
} from "../Fixture.ts"

const manifestOf = async (disk: Parameters<typeof readManifest>[0]) =>
  readManifest(disk, directory, (await MetaFile.read(disk, directory)).manifest)

/** Two logs, closed in order. */
const closedFiles = async (): Promise<Snapshot> => {
  const disk = makeDiskMemory()
  const runelog = await openSmall({ disk })
  await fill(runelog, "a", 1, 9)
  await fill(runelog, "b", 1, 4)
  await runelog.recordItems(new Map([["thing", "here"]]))
  await runelog.close()
  return snapshotOf(disk)
}

/** The calls of a file, to be replaced one by one. */
const boundTo = (file: DiskFile): DiskFile => ({
  read: (...args) => file.read(...args),
  write: (...args) => file.write(...args),
  writeNow: (...args) => file.writeNow(...args),
  sync: () => file.sync(),
  syncNow: () => file.syncNow(),
  truncate: (length) => file.truncate(length),
  size: () => file.size(),
  close: () => file.close()
})

const without = (files: Snapshot, prefix: string): Snapshot =>
  new Map([...files].filter(([path]) => !path.startsWith(prefix)))

const problemsOf = async (files: Snapshot) => (await verify({ directory, disk: await diskOf(files) })).problems

describe("the manifest", () => {
  it("knows every log and its end once the journal forgets them, and what is removed or recorded beside them", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 9)
    await fill(runelog, "b", 1, 4)
    await runelog.checkpoint()
    expect([...(await manifestOf(disk)).logs].map(([name, { head }]) => [name, head])).toEqual([
      ["a", 9],
      ["b", 4]
    ])
    await fill(runelog, "a", 10, 12)
    await runelog.remove("b")
    await runelog.recordItems(new Map([["thing", "here"]]))
    expect((await manifestOf(disk)).items).toEqual(new Map([["thing", "here"]]))
    expect(runelog.items.get("thing")).toBe("here")
    await runelog.recordItems(new Map([["thing", undefined]]))
    await runelog.close()
    const { items, logs } = await manifestOf(disk)
    expect([[...logs.keys()], logs.get("a")?.head, items.size]).toEqual([["a"], 12, 0])
  })

  it.each([{ rounds: 0 }, { rounds: 3 }])(
    "stays readable where a change of meta failed and is on the disk all the same (written $rounds times before)",
    async ({ rounds }) => {
      const disk = new DiskSim()
      const runelog = await openSmall({ disk })
      const items = (value: string) =>
        new Map(Array.from({ length: 300 }, (_, at) => [`item-${at}`, value.repeat(1000)] as const))
      for (let round = 0; round < rounds; round++) await runelog.recordItems(items("x"))
      const writes: Array<string> = []
      disk.onOperation = ({ operation, path }) => void (operation === "write" && writes.push(path))
      await runelog.recordItems(items("y"))
      const after = writes.findIndex((path) => path.startsWith(`${directory}/meta`))
      disk.failNext("write", { code: "ENOSPC", after, partialBytes: 4096 })
      expect(await errorOf(runelog.recordItems(items("z")))).toBeInstanceOf(DiskFull)
      const letter = async (found: DiskSim): Promise<string | undefined> =>
        (await manifestOf(found)).items.get("item-299")?.slice(0, 1)
      expect(await letter(disk)).toBe("z")
      let cuts = 0
      disk.onOperation = () => {
        cuts += 1
        for (let seed = 0; seed < 8; seed++) left.push(disk.crash(seed))
      }
      const left: Array<DiskSim> = [disk.crash(1)]
      await runelog.recordItems(items("w"))
      disk.onOperation = () => undefined
      expect(cuts).toBeGreaterThan(3)
      for (const found of left) expect(["y", "z", "w"]).toContain(await letter(found))
      expect(await letter(disk)).toBe("w")
      await runelog.close()
    }
  )

  it("is written anew when most of it is old, and stays what it was", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    const items = new Map(Array.from({ length: 400 }, (_, at) => [`item-${at}`, "x".repeat(1000)] as const))
    for (let round = 0; round < 3; round++) await runelog.recordItems(items)
    const isNext = (path: string): boolean => /manifest\.[2-9]$/.test(path)
    disk.onOperation = ({ operation, path }) => {
      if (operation === "write" && isNext(path)) throw systemError("ENOSPC", "write", path)
    }
    expect(await errorOf(runelog.recordItems(items))).toBeInstanceOf(DiskFull)
    disk.onOperation = () => undefined
    for (let round = 0; round < 4; round++) await runelog.recordItems(items)
    const generations: Array<number> = []
    for (let seed = 0; seed < 5; seed++) {
      const crashed = disk.crash(seed)
      generations.push((await MetaFile.read(crashed, directory)).manifest.generation)
      expect((await manifestOf(crashed)).items.size).toBe(400)
      await (await openSmall({ disk: crashed })).close()
      expect((await crashed.list(directory)).filter(({ name }) => name.startsWith("manifest."))).toHaveLength(1)
    }
    expect(Math.min(...generations)).toBeGreaterThan(1)
  })

  it("misses a log whose directory is gone: it cannot be read, nor begun anew, until it is repaired", async () => {
    const files = without(await closedFiles(), `${directory}/runelog/a/`)
    expect(await problemsOf(files)).toEqual([
      {
        file: `${directory}/runelog/a`,
        log: "a",
        offset: 0,
        reason: "the log is missing, the manifest knows of it"
      }
    ])
    const disk = await diskOf(files)
    const runelog = await openSmall({ disk })
    expect(await errorOf(runelog.append("a", 1, [entryOf(1)]))).toBeInstanceOf(LogDamaged)
    expect(await runelog.head("b")).toBe(4)
    await runelog.close()
    expect(await repairLog({ directory, disk }, "a")).toEqual({ log: "a", head: 0, copies: [] })
    expect((await verify({ directory, disk })).problems).toEqual([])
    expect(await errorOf(repairLog({ directory, disk }, "a"))).toBeInstanceOf(LogUnknown)
    const again = await openSmall({ disk })
    await fill(again, "a", 1, 1)
    await again.close()
  })

  it("tells a log that ends in another event, or goes on further, from the one it knows", async () => {
    const files = await closedFiles()
    const other = makeDiskMemory()
    const runelog = await openSmall({ disk: other })
    for (let eventId = 1; eventId <= 9; eventId++) await runelog.append("a", eventId, [{ body: "other" }])
    await runelog.append("b", 1, [entryOf(1)])
    await fill(runelog, "b", 2, 6)
    await runelog.close()
    const foreign = await snapshotOf(other)
    const swapped = withFiles(
      without(files, `${directory}/runelog/`),
      Object.fromEntries([...foreign].filter(([path]) => path.startsWith(`${directory}/runelog/`)))
    )
    expect((await problemsOf(swapped)).map(({ log, reason }) => `${log}: ${reason}`)).toEqual([
      "a: event 9 is not the one that the manifest knows of",
      "b: the log goes on to event 6, the manifest knows of 4"
    ])
    const opened = await openSmall({ disk: await diskOf(swapped) })
    expect((await contentOf(opened, "a")).error).toMatchObject({ reason: expect.stringContaining("not the one") })
  })

  it("that is damaged, cut or gone is told, stops nobody, and is made anew with what is there", async () => {
    const files = await closedFiles()
    const path = `${directory}/manifest.1`
    const bytes = Buffer.from(files.get(path)!)
    const flipped = Buffer.from(bytes)
    flipped[30]! ^= 1
    const longer = Buffer.from(bytes)
    longer.writeUInt8(255, 5)
    const old = (await closedFiles()).get(path)!
    const other = Buffer.concat([old.subarray(0, old.length - 1), Buffer.from("!")])
    // One of another directory, and one of which meta knows more than there are records.
    const meta = Buffer.from(files.get(`${directory}/meta`)!)
    for (const slot of [0, 4096]) {
      meta.writeUInt32LE(meta.readUInt32LE(slot + 92) ^ 1, slot + 92)
      meta.writeUInt32LE(crc32c(meta.subarray(slot), 12, 96, 0), slot + 8)
    }
    const more = Buffer.from(files.get(`${directory}/meta`)!)
    for (const slot of [0, 4096]) {
      more.writeBigUInt64LE(BigInt(bytes.length + 5), slot + 84)
      more.writeUInt32LE(crc32c(more.subarray(slot), 12, 96, 0), slot + 8)
    }
    const damages = [flipped, longer, bytes.subarray(0, bytes.length - 1), other, undefined].map((content) =>
      withFiles(files, { [path]: content })
    )
    damages.push(withFiles(files, { [`${directory}/meta`]: meta }))
    damages.push(withFiles(files, { [`${directory}/meta`]: more, [path]: Buffer.concat([bytes, Buffer.alloc(5)]) }))
    for (const damaged of damages) {
      expect(await problemsOf(damaged)).toMatchObject([{ file: path }])
      const disk = await diskOf(damaged)
      const runelog = await openSmall({ disk })
      await fill(runelog, "a", 10, 10)
      await runelog.close()
      expect((await verify({ directory, disk })).problems).toMatchObject([{ file: `${path}.damaged` }])
      await disk.remove(`${path}.damaged`)
      expect((await verify({ directory, disk })).problems).toEqual([])
      const { logs } = await manifestOf(disk)
      expect([logs.get("a")?.head, logs.get("b")?.head]).toEqual([10, 0])
    }
  })

  it("with a record of a kind that only a newer build knows keeps the directory closed, and is told", async () => {
    const files = await closedFiles()
    const path = `${directory}/manifest.1`
    const record = Buffer.alloc(20)
    record.writeUInt8(9, 4)
    const crc = crc32c(record, 4, 20, 0)
    record.writeUInt32LE(crc, 0)
    const meta = Buffer.from(files.get(`${directory}/meta`)!)
    for (const slot of [0, 4096]) {
      meta.writeBigUInt64LE(20n, slot + 84)
      meta.writeUInt32LE(crc, slot + 92)
      meta.writeUInt32LE(crc32c(meta.subarray(slot), 12, 96, 0), slot + 8)
    }
    const newer = withFiles(files, { [path]: record, [`${directory}/meta`]: meta })
    expect(await problemsOf(newer)).toMatchObject([{ file: path, reason: expect.stringContaining("version 9") }])
    expect(await errorOf(openSmall({ disk: await diskOf(newer) }))).toBeInstanceOf(FormatUnsupported)
  })

  it("of such a directory names no entry that is no log", async () => {
    const stray = {
      [`${directory}/runelog/note.txt`]: Buffer.from("mine"),
      [`${directory}/runelog/.x/y`]: Buffer.from("")
    }
    const disk = await diskOf(withFiles(withoutManifest(await closedFiles()), stray))
    await openSmall({ disk })
    expect([...(await manifestOf(disk)).logs.keys()].toSorted()).toEqual(["a", "b"])
  })

  it("of a directory from before it was known is made from what is there, and learns ends as logs are opened", async () => {
    const disk = await diskOf(withoutManifest(await closedFiles()))
    expect((await verify({ directory, disk })).notes.map(({ text }) => text).join()).toContain("no manifest yet")
    const runelog = await openSmall({ disk })
    expect((await manifestOf(disk)).logs.get("a")).toEqual({ head: 0, crc: 0 })
    await runelog.head("a")
    await runelog.close()
    expect((await manifestOf(disk)).logs.get("a")?.head).toBe(9)
    const gone = without(await snapshotOf(disk), `${directory}/runelog/b/`)
    expect(await problemsOf(gone)).toMatchObject([{ log: "b", reason: "the log is missing" }])
  })

  it("that the disk does not read is no damage, and one that it does not write ends the writer", async () => {
    const whole = await diskOf(await closedFiles())
    const failing = withCalls(whole, {
      open: async (path, mode) => {
        if (path === `${directory}/manifest.1`) throw systemError("EIO", "open", path)
        return whole.open(path, mode)
      }
    })
    expect(await errorOf(verify({ directory, disk: failing }))).toBeInstanceOf(DiskFailed)
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    disk.failNext("sync", { code: "EIO" })
    expect(await errorOf(runelog.recordItems(new Map([["thing", "here"]])))).toBeInstanceOf(WriterPoisoned)
    expect(await errorOf(runelog.recordItems(new Map([["thing", "here"]])))).toBeInstanceOf(WriterPoisoned)
    const first = new DiskSim()
    first.onOperation = ({ operation, path }) => {
      if (operation === "sync" && path === `${directory}/manifest.1`) throw systemError("EIO", "fsync", path)
    }
    expect(await errorOf(openSmall({ disk: first }))).toBeInstanceOf(WriterPoisoned)
  })

  it("that finds no room leaves the journal as it is", async () => {
    const disk = new DiskSim()
    const runelog = await openSmall({ disk })
    await fill(runelog, "a", 1, 5)
    disk.onOperation = ({ operation, path }) => {
      if (operation === "write" && path === `${directory}/manifest.1`) throw systemError("ENOSPC", "write", path)
    }
    expect(await errorOf(runelog.checkpoint())).toBeInstanceOf(DiskFull)
    disk.onOperation = () => undefined
    for (let seed = 0; seed < 5; seed++) {
      const after = await openSmall({ disk: disk.crash(seed) })
      expect(await after.head("a")).toBe(5)
    }
    await runelog.checkpoint()
    expect((await manifestOf(disk)).logs.get("a")?.head).toBe(5)
  })

  it("is not touched where meta may name it, when meta was written and the disk said that it was not", async () => {
    for (const events of [5, 0]) {
      const disk = new DiskSim()
      let isFull = false
      const lying = withCalls(disk, {
        open: async (path, mode) => {
          const file = await disk.open(path, mode)
          if (!path.includes("/meta")) return file
          const write: DiskFile["write"] = async (...args) => {
            await file.write(...args)
            if (isFull) throw systemError("ENOSPC", "write", path)
          }
          return { ...boundTo(file), write }
        }
      })
      const runelog = await openSmall({ disk: lying })
      await fill(runelog, "a", 1, 5)
      if (events > 0) await runelog.checkpoint()
      await fill(runelog, "a", 6, 9)
      isFull = true
      for (let attempt = 0; attempt < 2; attempt++) {
        await fill(runelog, "a", 10 + attempt, 10 + attempt)
        expect(await errorOf(runelog.checkpoint())).toBeInstanceOf(DiskFull)
        for (let seed = 0; seed < 5; seed++) {
          const found = disk.crash(seed)
          expect((await verify({ directory, disk: found })).problems).toEqual([])
          const after = await openSmall({ disk: found })
          expect(await after.head("a")).toBe(10 + attempt)
          await after.close()
        }
      }
      isFull = false
      const steps: Array<DiskSim> = []
      disk.onOperation = () => void steps.push(disk.crash(steps.length))
      await runelog.checkpoint()
      disk.onOperation = () => undefined
      for (const found of steps) expect((await verify({ directory, disk: found })).problems).toEqual([])
      expect(steps.length).toBeGreaterThan(3)
      expect((await disk.list(directory)).filter(({ name }) => name.startsWith("manifest."))).toHaveLength(1)
    }
  })

  it("learns that a log is gone as often as that happens, whatever it is being told meanwhile", async () => {
    const disk = makeDiskMemory()
    let held: Promise<void> = Promise.resolve()
    let syncs = 0
    const slow = withCalls(disk, {
      open: async (path, mode) => {
        const file = await disk.open(path, mode)
        if (!path.includes("/manifest.")) return file
        const sync = async () => {
          syncs += 1
          await held
          return file.sync()
        }
        return { ...boundTo(file), sync }
      }
    })
    const runelog = await openSmall({ disk: slow })
    await fill(runelog, "a", 1, 3)
    await runelog.remove("a")
    const gate = Promise.withResolvers<void>()
    held = gate.promise
    const before = syncs
    const first = runelog.checkpoint()
    while (syncs === before) await new Promise(setImmediate)
    await fill(runelog, "a", 1, 2)
    const second = runelog.checkpoint()
    await fill(runelog, "b", 1, 1)
    await runelog.remove("a")
    gate.resolve()
    await Promise.all([first, second])
    await fill(runelog, "a", 1, 1)
    expect(await runelog.head("a")).toBe(1)
    await runelog.close()
    expect((await manifestOf(disk)).logs.get("a")?.head).toBe(1)
  })
})
