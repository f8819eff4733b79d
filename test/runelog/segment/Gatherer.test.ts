// Goal: extents reach the file each where it belongs, in few writes, and no buffer is used again while a write reads it.
// Method: a file that records what it is asked to write, and ends its writes when it is told to.
import { describe, expect, it } from "vitest"
import type { DiskFile } from "#runelog/disk/Disk.ts"
import { bytesOf } from "#runelog/Frame.ts"
import { type Extent, emptyLog, startSegment } from "#runelog/LogState.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { Gatherer, NO_HEADER } from "#runelog/segment/Gatherer.ts"

const segment = startSegment(emptyLog("log"))

/** Extents of these sizes that follow each other from `position` on, each filled with its number. */
const extentsOf = (position: number, sizes: ReadonlyArray<number>): ReadonlyArray<Extent> => {
  let next = position
  return sizes.map((bytes, at) => {
    const slab = { ...bytesOf(Buffer.alloc(bytes + 8, at + 1)), used: 0, references: 1 }
    const ids = { firstEventId: at + 1, lastEventId: at + 1, sequence: 1, journal: undefined, journalPosition: 0 }
    const extent = { slab, start: 8, end: bytes + 8, segment, position: next, ...ids }
    next += bytes
    return extent
  })
}

interface Write {
  readonly position: number
  readonly bytes: Buffer
  readonly source: Uint8Array
}

const makeFile = (ended: () => Promise<void> = async () => undefined) => {
  const writes: Array<Write> = []
  const file: Pick<DiskFile, "write"> = {
    write: async (source, offset, length, position) => {
      writes.push({ position, source, bytes: Buffer.from(source.subarray(offset, offset + length)) })
      await ended()
    }
  }
  return { file: file as DiskFile, writes }
}

/** What the file holds from `position` on. */
const contentFrom = (position: number, writes: ReadonlyArray<Write>): Buffer => {
  let next = position
  for (const write of writes) {
    expect(write.position).toBe(next)
    next += write.bytes.length
  }
  return Buffer.concat(writes.map(({ bytes }) => bytes))
}

const expected = (sizes: ReadonlyArray<number>): Buffer =>
  Buffer.concat(sizes.map((bytes, at) => Buffer.alloc(bytes, at + 1)))

describe("extents of a segment", () => {
  it("are put together while they are small, and written from where they lie when they are large", async () => {
    const sizes = [100, 200, 300 * KIB, 50, 600 * KIB, 200 * KIB, 200 * KIB, 200 * KIB, 200 * KIB, 200 * KIB, 200 * KIB]
    const extents = extentsOf(1000, sizes)
    const { file, writes } = makeFile()
    await new Gatherer().write(file, NO_HEADER, extents)
    expect(contentFrom(1000, writes).equals(expected(sizes))).toBe(true)
    expect(writes.map(({ bytes }) => bytes.length)).toEqual([300, 300 * KIB, 50, 600 * KIB, 1000 * KIB, 200 * KIB])
    expect(writes[1]!.source).toBe(extents[2]!.slab.buffer)
  })

  it("come behind the header of a new file, in one write even if they are large", async () => {
    const header = Buffer.alloc(128, "h")
    for (const sizes of [[40, 60], [300 * KIB], [1024 * KIB]]) {
      const { file, writes } = makeFile()
      await new Gatherer().write(file, header, extentsOf(128, sizes))
      expect(writes).toHaveLength(1)
      expect(contentFrom(0, writes).equals(Buffer.concat([header, expected(sizes)]))).toBe(true)
    }
  })

  it("are put together in buffers that are used again, a few of which are kept", async () => {
    const gatherer = new Gatherer()
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const atOnce = makeFile(() => released)
    const writing = Array.from({ length: 4 }, () => gatherer.write(atOnce.file, NO_HEADER, extentsOf(0, [10, 20])))
    release()
    await Promise.all(writing)
    const used = new Set(atOnce.writes.map(({ source }) => source))
    expect(used.size).toBe(4)
    const later = makeFile(() => Promise.reject(new Error("no")))
    for (let at = 0; at < 3; at++) {
      await expect(gatherer.write(later.file, NO_HEADER, extentsOf(0, [10, 20]))).rejects.toThrow("no")
    }
    expect(later.writes.every(({ source }) => used.has(source))).toBe(true)
    const many = makeFile()
    await Promise.all(Array.from({ length: 4 }, () => gatherer.write(many.file, NO_HEADER, extentsOf(0, [10, 20]))))
    expect(many.writes.filter(({ source }) => used.has(source))).toHaveLength(3)
  })
})
