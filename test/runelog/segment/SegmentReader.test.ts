// Goal: a page at any cursor costs one read where the index can be believed, is no longer than asked for, and is the
// right one whatever the frames' sizes. Method: logs in segments, every cursor, a disk that counts its reads.
import { describe, expect, it } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import { FRAME_HEADER_BYTES } from "#runelog/Frame.ts"
import { KIB, MIB } from "#runelog/RunelogLimits.ts"
import { decodeIndex, encodeIndex } from "#runelog/segment/IndexFile.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { indexPath, openSmall, readFileOf, withCalls, writeFileOf } from "../Fixture.ts"

const limits = {
  segmentBytes: 64 * MIB,
  indexEveryFrames: 16,
  indexEveryBytes: 16 * KIB,
  journalFileBytes: 8 * MIB,
  pendingBytesMax: 64 * MIB
}

/** A log on its own disk, closed, so that every page comes from its segment. */
const written = async (bodies: ReadonlyArray<number>): Promise<Disk> => {
  const disk = makeDiskMemory()
  const runelog = await openSmall({ disk, limits })
  for (const [at, bytes] of bodies.entries()) {
    await runelog.append("a", at + 1, [{ body: Buffer.alloc(bytes, at) }])
  }
  await runelog.close()
  return disk
}

const counting = (disk: Disk): { readonly disk: Disk; readonly reads: Array<number> } => {
  const reads: Array<number> = []
  const open: Disk["open"] = async (path, mode) => {
    const file = await disk.open(path, mode)
    if (!path.endsWith(".seg")) return file
    return {
      ...file,
      read: (target, offset, length, position) => {
        reads.push(length)
        return file.read(target, offset, length, position)
      }
    }
  }
  return { disk: withCalls(disk, { open }), reads }
}

describe("a page at a cursor", () => {
  it("costs one read, is whole and no longer than asked for", async () => {
    const counted = counting(await written(Array.from({ length: 100 }, () => 200)))
    const runelog = await openSmall({ disk: counted.disk, limits })
    await runelog.head("a")
    for (const wanted of [90, 5, 47, 100, 1, 64, 31]) {
      counted.reads.length = 0
      const page = await runelog.read("a", { after: wanted - 1, bytesMax: 3 * (FRAME_HEADER_BYTES + 200) })
      const ids = page.frames.map(({ eventId }) => eventId)
      expect(ids).toEqual([wanted, wanted + 1, wanted + 2].filter((id) => id <= 100))
      expect(counted.reads).toHaveLength(1)
    }
  })

  it("is right where frames differ in size, and where one is larger than the page", async () => {
    const bodies = Array.from({ length: 120 }, (_, at) => (at % 7 === 0 ? 5000 : at % 11))
    const runelog = await openSmall({ disk: await written(bodies), limits })
    for (let step = 0; step < 120; step++) {
      const wanted = ((step * 37) % 120) + 1
      for (const bytesMax of [0, 100, 6000]) {
        const page = await runelog.read("a", { after: wanted - 1, bytesMax })
        const [first] = page.frames
        expect(first).toMatchObject({ eventId: wanted })
        expect(first!.body.equals(Buffer.alloc(bodies[wanted - 1]!, wanted - 1))).toBe(true)
        const bytes = page.frames.reduce((sum, { body }) => sum + FRAME_HEADER_BYTES + body.length, 0)
        expect(page.frames.length === 1 || bytes <= bytesMax).toBe(true)
        expect(page.next).toBe(wanted + page.frames.length - 1)
      }
    }
  })

  it("reads no more than a piece at a time for an index with few entries", async () => {
    const disk = await written(Array.from({ length: 40 }, () => 20 * KIB))
    const path = indexPath("a", 1)
    const { index, durableBytes } = decodeIndex(await readFileOf(disk, path))!
    const few = { ids: index.ids.slice(0, 2), offsets: index.offsets.slice(0, 2), crcs: index.crcs.slice(0, 2) }
    await writeFileOf(disk, path, encodeIndex({ index: few, durableBytes }))
    const counted = counting(disk)
    const runelog = await openSmall({ disk: counted.disk, limits })
    await runelog.head("a")
    counted.reads.length = 0
    const page = await runelog.read("a", { after: 38, bytesMax: 4 * KIB })
    expect(page.frames.map(({ eventId }) => eventId)).toEqual([39])
    expect(Math.max(...counted.reads)).toBeLessThanOrEqual(256 * KIB + 4 * KIB)
    expect(counted.reads.length).toBeGreaterThan(2)
  })
})
