// Goal: a packed log is the same log in less room: every read, check and repair says the same, whatever was done to the
// file is found, and no moment of a crash loses anything. Method: the engine on disks in memory and simulated ones.
import { randomBytes } from "node:crypto"
import { describe, expect, it } from "vitest"
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { PACKED_BLOCK_BYTES, packSegment } from "#runelog/segment/PackedSegment.ts"
import { PACKED_VERSION } from "#runelog/segment/Segment.ts"
import { SegmentFile } from "#runelog/segment/SegmentFile.ts"
import { repairLog } from "#runelog/verify/Repair.ts"
import { verify as verifyDirectory } from "#runelog/verify/Verify.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { directory, entries, openSmall, readWhole } from "../../support/runelog/small.ts"

const limits = { segmentBytes: 1024 * 1024, journalFileBytes: 4 * 1024 * 1024, pendingBytesMax: 16 * 1024 * 1024 }
const open = (disk: Disk) => openSmall(disk, { limits })

const text = (eventId: number): string =>
  `event ${eventId} `.padEnd(900, "the printer wraps every line that is too long ")

const fill = async (disk: Disk, events: number, body = text) => {
  const runelog = await open(disk)
  for (let eventId = 1; eventId <= events; eventId++) await runelog.append("a", eventId, entries(body(eventId)))
  return runelog
}

const segmentPath = `${directory}/runelog/a/0000000000000001.seg`

const withFile = async <A>(disk: Disk, path: string, body: (file: DiskFile) => Promise<A>): Promise<A> => {
  const file = await disk.open(path, "write")
  try {
    return await body(file)
  } finally {
    await file.close()
  }
}

const sizeOf = (disk: Disk, path: string) => withFile(disk, path, (file) => file.size())

const flip = (disk: Disk, path: string, at: number) =>
  withFile(disk, path, async (file) => {
    const byte = Buffer.alloc(1)
    await file.read(byte, 0, 1, at)
    await file.write(Buffer.from([byte[0]! ^ 0x40]), 0, 1, at)
  })

const verify = (disk: Disk) => verifyDirectory({ directory, disk })

const packed = async (events: number) => {
  const disk = makeDiskMemory()
  const runelog = await fill(disk, events)
  const before = await readWhole(runelog, "a")
  await runelog.pack("a")
  return { disk, runelog, before }
}

describe("a packed log", () => {
  it("reads the same at every cursor, before and after a restart, and takes a fraction of the room", async () => {
    const { before, disk, runelog } = await packed(700)
    expect(await sizeOf(disk, segmentPath)).toBeLessThan((700 * 900) / 10)
    expect(await readWhole(runelog, "a")).toEqual(before)
    await runelog.close()
    const again = await open(disk)
    expect(await readWhole(again, "a", 100_000)).toEqual(before)
    for (const after of [0, 1, 290, 291, 699]) {
      const page = await again.read("a", { after, bytesMax: 1 })
      expect(page.frames[0]!.body.toString()).toBe(text(after + 1))
    }
    await again.close()
  })

  it("goes on in another segment, and that one is packed when it is at rest again", async () => {
    const { before, disk, runelog } = await packed(20)
    await runelog.append("a", 21, entries(text(21)))
    for (let eventId = 22; eventId <= 40; eventId++) await runelog.append("a", eventId, entries(text(eventId)))
    await runelog.pack("a")
    await runelog.pack("a")
    expect(await sizeOf(disk, `${directory}/runelog/a/0000000000000021.seg`)).toBeLessThan(4096)
    expect((await readWhole(runelog, "a")).slice(0, 20)).toEqual(before)
    expect(await runelog.head("a")).toBe(40)
    await runelog.close()
    expect((await verify(disk)).problems).toEqual([])
  })

  it("is sound to a check that reads everything", async () => {
    const { disk, runelog } = await packed(700)
    await runelog.close()
    const report = await verify(disk)
    expect(report.problems).toEqual([])
    expect(report.sealed).toBe(1)
  })

  it("can be copied as the sealed files it consists of", async () => {
    const { runelog } = await packed(20)
    const [file] = await runelog.sealedFiles("a")
    const bytes = await file!.read(0, file!.bytes)
    expect(bytes.toString("latin1", 0, 8)).toBe("ECHSSEG\n")
    expect(bytes.readUInt16LE(12)).toBe(1)
  })

  it("says in its header a version of its own, which an older build refuses instead of taking it for damage", async () => {
    const { disk } = await packed(20)
    const header = Buffer.alloc(16)
    await withFile(disk, segmentPath, (file) => file.read(header, 0, 16, 0))
    expect(header.readUInt16LE(12)).toBe(PACKED_VERSION)
  })
})

describe("a log that would gain nothing", () => {
  it("stays as it is", async () => {
    const disk = makeDiskMemory()
    const small = await fill(disk, 2)
    const noise = makeDiskMemory()
    const random = await fill(noise, 12, () => randomBytes(600).toString("base64"))
    for (const [on, runelog] of [
      [disk, small],
      [noise, random]
    ] as const) {
      await runelog.pack("a")
      const version = Buffer.alloc(2)
      await withFile(on, segmentPath, (file) => file.read(version, 0, 2, 12))
      expect(version.readUInt16LE(0)).toBe(1)
      expect(await on.exists(`${segmentPath}.tmp`)).toBe(false)
      await runelog.close()
    }
  })
})

describe("damage to a packed log", () => {
  const places = async (disk: Disk) => {
    const size = await sizeOf(disk, segmentPath)
    return { size, table: 140, sizes: 145, first: 200, last: size - 20 }
  }

  it("is named by a check, serves the good prefix where there is one, and is never cut as a torn end", async () => {
    for (const name of ["table", "sizes", "first", "last"] as const) {
      for (const withIndex of ["with its index", "without"]) {
        const { disk, runelog } = await packed(700)
        await runelog.close()
        await flip(disk, segmentPath, (await places(disk))[name])
        if (withIndex === "without") await disk.remove(segmentPath.replace(".seg", ".idx"))
        const size = await sizeOf(disk, segmentPath)
        expect((await verify(disk)).problems.length, `${name} ${withIndex}`).toBeGreaterThan(0)
        const again = await open(disk)
        const read = await readWhole(again, "a", 100_000).catch(() => [])
        expect(read.length, `${name} ${withIndex}`).toBe(name === "last" ? 562 : 0)
        await expect(again.append("a", 701, entries("more"))).rejects.toMatchObject({ _tag: "LogDamaged" })
        await again.close()
        expect(await sizeOf(disk, segmentPath)).toBe(size)
      }
    }
  })

  it("is repaired: the good prefix stays, as a plain segment, and the whole file is kept", async () => {
    const { disk, runelog } = await packed(700)
    await runelog.close()
    const { last, size } = await places(disk)
    await flip(disk, segmentPath, last)
    const { copies, head } = await repairLog({ directory, disk }, "a")
    expect(head).toBeGreaterThan(PACKED_BLOCK_BYTES / 1000)
    expect(head).toBeLessThan(700)
    expect(await sizeOf(disk, copies[0]!)).toBe(size)
    const again = await open(disk)
    expect(await readWhole(again, "a", 100_000)).toEqual(Array.from({ length: head }, (_, at) => text(at + 1)))
    await again.append("a", head + 1, entries("on"))
    await again.close()
    expect((await verify(disk)).problems).toEqual([])
  })

  it("in the middle of a log is told of when it is read, and what lies behind can still be had", async () => {
    const { disk, runelog } = await packed(20)
    for (let eventId = 21; eventId <= 40; eventId++) await runelog.append("a", eventId, entries(text(eventId)))
    await runelog.close()
    await flip(disk, segmentPath, (await places(disk)).last)
    await disk.remove(segmentPath.replace(".seg", ".idx"))
    const again = await open(disk)
    await expect(again.read("a", { after: 0 })).rejects.toMatchObject({ _tag: "SegmentCorrupt" })
    expect((await again.read("a", { after: 20 })).frames.length).toBeGreaterThan(0)
  })

  it("by bytes behind its last block is named, and everything before them is served", async () => {
    const { before, disk, runelog } = await packed(20)
    await runelog.close()
    const size = await sizeOf(disk, segmentPath)
    await withFile(disk, segmentPath, (file) => file.write(Buffer.from("junk"), 0, 4, size))
    expect((await verify(disk)).problems).toMatchObject([{ reason: "bytes behind the seal" }])
    const again = await open(disk)
    expect(await readWhole(again, "a")).toEqual(before)
    await again.close()
  })

  it("that was there before it was packed is found by the digest, and the old file stays", async () => {
    const disk = makeDiskMemory()
    const runelog = await fill(disk, 20)
    await runelog.seal("a")
    await flip(disk, segmentPath, 5000)
    await expect(runelog.pack("a")).rejects.toMatchObject({ _tag: "SegmentCorrupt" })
    expect(await disk.exists(`${segmentPath}.tmp`)).toBe(false)
    expect(await sizeOf(disk, segmentPath)).toBeGreaterThan(20 * 900)
  })
})

describe("packing", () => {
  it("on a full disk leaves the log as it was", async () => {
    const disk = new DiskSim()
    const runelog = await fill(disk, 40)
    await runelog.seal("a")
    disk.capacityBytes = disk.usedBytes
    await runelog.pack("a")
    expect((await readWhole(runelog, "a")).length).toBe(40)
  })

  it("of something that is no segment is refused", async () => {
    const disk = makeDiskMemory()
    const source = await disk.open("/source", "create")
    await source.write(Buffer.alloc(500, 1), 0, 500, 0)
    const target = await disk.open("/target", "create")
    await expect(packSegment(source, target, 500)).rejects.toThrow("not a segment")
  })
})

describe("what an interrupted packing left", () => {
  it("is removed by the next one, also by a repair that unpacks", async () => {
    const disk = makeDiskMemory()
    const runelog = await fill(disk, 20)
    await runelog.seal("a")
    const leave = async () => (await disk.open(`${segmentPath}.tmp`, "create")).close()
    await leave()
    await runelog.pack("a")
    expect(await disk.exists(`${segmentPath}.tmp`)).toBe(false)
    const file = await SegmentFile.open(disk, segmentPath, "write")
    const before = await file.size()
    await leave()
    await file.truncate(1000)
    expect([before > 1000, await file.size(), file.isPacked]).toEqual([true, 1000, false])
    await file.close()
  })
})

describe("packed blocks", () => {
  it("are kept, few of them for all files together", async () => {
    const disk = makeDiskMemory()
    const runelog = await fill(disk, 20)
    await runelog.pack("a")
    const files = await Promise.all(Array.from({ length: 20 }, () => SegmentFile.open(disk, segmentPath, "read")))
    const bytes = Buffer.alloc(200)
    for (const file of [...files, files[0]!, files[19]!]) {
      expect(await file.read(bytes, 0, 200, 0)).toBe(200)
      expect(bytes.toString("latin1", 0, 8)).toBe("ECHSSEG\n")
    }
    expect(await files[0]!.read(bytes, 0, 200, 10_000_000)).toBe(0)
    for (const file of files) await file.close()
  })

  it("of which a file claims more than any has are not believed", async () => {
    const disk = makeDiskMemory()
    const runelog = await fill(disk, 20)
    await runelog.pack("a")
    await withFile(disk, segmentPath, async (file) => {
      await file.write(Buffer.from([0xff, 0xff, 0xff, 0xff]), 0, 4, 140)
    })
    const file = await SegmentFile.open(disk, segmentPath, "read")
    expect([await file.size(), file.isPacked]).toEqual([0, true])
    await file.close()
  })
})

describe("a segment file", () => {
  it("that is plain reads, writes and is cut as any file", async () => {
    const disk = makeDiskMemory()
    const file = await SegmentFile.open(disk, "/x.seg", "create")
    await file.write(Buffer.from("abc"), 0, 3, 0)
    file.writeNow(Buffer.from("d"), 0, 1, 3)
    file.syncNow()
    await file.sync()
    await file.truncate(2)
    expect(await file.size()).toBe(2)
    expect(file.isPacked).toBe(false)
    await file.close()
  })
})
