// Goal: the broken disks break exactly one promise, and a durability check notices. Method: the careful way to save a
// file (write, sync, rename, sync the directory) over the simulated disk, crashed under many seeds.

import { describe, expect, it } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import { withoutDirectorySync, withoutSync } from "./DiskMutant.ts"
import { DiskSim } from "./DiskSim.ts"

const content = new TextEncoder().encode("acknowledged ".repeat(100))

const save = async (disk: Disk, options: { readonly onCallingThread: boolean }) => {
  await disk.makeDirectory("/data")
  await disk.syncDirectory("/")
  const file = await disk.open("/data/temporary", "create")
  if (options.onCallingThread) {
    file.writeNow(content, 0, content.length, 0)
    file.syncNow()
  } else {
    await file.write(content, 0, content.length, 0)
    await file.sync()
  }
  await file.close()
  await disk.rename("/data/temporary", "/data/final")
  await disk.syncDirectory("/data")
}

/** In how many of 200 crashes the saved file is missing or wrong. */
const countLosses = async (sim: DiskSim): Promise<number> => {
  let losses = 0
  for (let seed = 0; seed < 200; seed++) {
    const disk = sim.crash(seed)
    const found = new Uint8Array(content.length)
    if (await disk.exists("/data/final")) {
      const file = await disk.open("/data/final", "read")
      await file.read(found, 0, found.length, 0)
    }
    if (Buffer.compare(found, content) !== 0) losses++
  }
  return losses
}

const lossesWith = async (wrap: (disk: Disk) => Disk, options = { onCallingThread: false }) => {
  const sim = new DiskSim()
  await save(wrap(sim), options)
  return countLosses(sim)
}

describe("a durability check", () => {
  it("passes over the whole disk", async () => {
    expect(await lossesWith((disk) => disk)).toBe(0)
    expect(await lossesWith((disk) => disk, { onCallingThread: true })).toBe(0)
  })

  it("fails without file syncs", async () => {
    expect(await lossesWith(withoutSync)).toBeGreaterThan(50)
    expect(await lossesWith(withoutSync, { onCallingThread: true })).toBeGreaterThan(50)
  })

  it("fails without directory syncs", async () => {
    expect(await lossesWith(withoutDirectorySync)).toBeGreaterThan(50)
  })
})

describe.each([
  ["withoutSync", withoutSync],
  ["withoutDirectorySync", withoutDirectorySync]
])("%s", (_name, wrap) => {
  it("does everything else", async () => {
    const sim = new DiskSim()
    const disk = wrap(sim)
    expect(await disk.makeDirectory("/a/b")).toBe("/a")
    const file = await disk.open("/a/c", "create")
    await file.write(content, 0, 10, 0)
    file.writeNow(content, 0, 10, 10)
    await file.truncate(15)
    expect([await file.size(), await file.read(new Uint8Array(99), 0, 99, 0)]).toEqual([15, 15])
    await file.close()
    await expect(file.size()).rejects.toEqual(expect.objectContaining({ code: "EBADF" }))
    await disk.rename("/a/c", "/a/d")
    expect(await disk.list("/a")).toEqual([
      { name: "b", kind: "directory" },
      { name: "d", kind: "file" }
    ])
    await disk.remove("/a/d")
    expect((await disk.lock("/a"))._tag).toBe("Acquired")
    expect((await sim.lock("/a"))._tag).toBe("Held")
    await disk.removeTree("/a")
    expect(await disk.exists("/a")).toBe(false)
  })

  it("syncs what it does not leave out", async () => {
    const operations: Array<string> = []
    const disk = wrap(new DiskSim({ onOperation: ({ operation }) => operations.push(operation) }))
    const file = await disk.open("/a", "create")
    await file.sync()
    file.syncNow()
    await disk.syncDirectory("/")
    expect(operations).toEqual(wrap === withoutSync ? ["create", "syncDirectory"] : ["create", "sync", "sync"])
  })
})
