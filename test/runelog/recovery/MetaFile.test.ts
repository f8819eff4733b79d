// Goal: what meta says survives a torn update, and no failure of one update spoils the next. Method: a disk in memory, a
// disk that fails on command, slots damaged by hand.
import { describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import { FormatUnsupported, JournalCorrupt, SyncFailed } from "#runelog/RunelogErrors.ts"
import { MetaFile } from "#runelog/recovery/MetaFile.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { directory, errorOf, readFileOf, writeFileOf } from "../Fixture.ts"

const id = "0123456789abcdef".repeat(2)
const path = `${directory}/meta`
const slotBytes = 4096

const created = async (disk = makeDiskMemory()) => {
  await disk.makeDirectory(directory)
  return { disk, meta: await MetaFile.create(disk, directory, id) }
}

describe("meta", () => {
  it("begins clean, with nothing in the journal", async () => {
    const { disk, meta } = await created()
    expect(meta.state).toMatchObject({ directoryId: id, floor: 1, sequence: 0, clean: true })
    await meta.close()
    expect(await MetaFile.read(disk, directory)).toEqual(meta.state)
  })

  it("is written over what an interrupted start left", async () => {
    const disk = makeDiskMemory()
    await disk.makeDirectory(directory)
    await writeFileOf(disk, `${path}.tmp`, Buffer.from("half"))
    const { meta } = await created(disk)
    expect(meta.state.directoryId).toBe(id)
    expect(await disk.exists(`${path}.tmp`)).toBe(false)
  })

  it("keeps updates in the order they were asked for", async () => {
    const { disk, meta } = await created()
    await Promise.all([
      meta.update({ floor: 5 }),
      meta.update({ sequence: 9, clean: false }),
      meta.update({ floor: 7 })
    ])
    await meta.close()
    const again = await MetaFile.open(disk, directory)
    expect(again.state).toMatchObject({ floor: 7, sequence: 9, clean: false })
  })

  it("is durable once it was opened, also where its writer was killed before a sync", async () => {
    const disk = new DiskSim()
    await disk.makeDirectory(directory)
    await disk.syncDirectory("/")
    const meta = await MetaFile.create(disk, directory, id)
    await meta.update({ floor: 2 })
    disk.onOperation = ({ operation }) => {
      if (operation === "sync") disk.powerOff()
    }
    await errorOf(meta.update({ floor: 3 }))
    const killed = disk.killProcess()
    expect((await MetaFile.open(killed, directory)).state.floor).toBe(3)
    for (let seed = 0; seed < 32; seed++) {
      expect((await MetaFile.read(killed.crash(seed), directory)).floor, `seed ${seed}`).toBe(3)
    }
    const refused = killed.killProcess()
    refused.failNext("sync", { code: "EIO" })
    expect(await errorOf(MetaFile.open(refused, directory))).toBeInstanceOf(SyncFailed)
  })

  it("falls back to the slot before when the newest is torn", async () => {
    const { disk, meta } = await created()
    await meta.update({ floor: 2 })
    await meta.update({ floor: 3 })
    const content = await readFileOf(disk, path)
    const newest = content.readUInt32LE(24) === 3 ? 0 : slotBytes
    content.fill(0xee, newest + 30, newest + 60)
    await writeFileOf(disk, path, content)
    expect((await MetaFile.read(disk, directory)).floor).toBe(2)
  })

  it("is refused when neither slot is intact, or when it is of another version", async () => {
    const { disk } = await created()
    const content = await readFileOf(disk, path)
    content.writeUInt32LE(2, slotBytes + 12)
    content.writeUInt32LE(crc32c(content.subarray(slotBytes), 12, 96, 0), slotBytes + 8)
    await writeFileOf(disk, path, content)
    const version = await errorOf(MetaFile.open(disk, directory))
    expect(version).toEqual(new FormatUnsupported({ file: path, version: 2, supported: 1 }))
    await writeFileOf(disk, path, Buffer.alloc(0))
    expect(await errorOf(MetaFile.read(disk, directory))).toBeInstanceOf(JournalCorrupt)
  })

  it("takes the next update after one that found no room", async () => {
    const disk = new DiskSim()
    const { meta } = await created(disk)
    disk.failNext("write", { code: "ENOSPC" })
    expect(await errorOf(meta.update({ floor: 4 }))).toMatchObject({ code: "ENOSPC" })
    await meta.update({ floor: 5 })
    expect(meta.state.floor).toBe(5)
    await meta.close()
  })

  it("says so when an update could not be synced", async () => {
    const disk = new DiskSim()
    const { meta } = await created(disk)
    disk.failNext("sync", { code: "ENOSPC" })
    expect(await errorOf(meta.update({ floor: 4 }))).toBeInstanceOf(SyncFailed)
    expect(meta.state.floor).toBe(1)
  })

  it("is not left open when it cannot be made", async () => {
    const disk = new DiskSim()
    await disk.makeDirectory(directory)
    disk.failNext("sync", { code: "EIO" })
    expect(await errorOf(MetaFile.create(disk, directory, id))).toMatchObject({ code: "EIO" })
  })
})
