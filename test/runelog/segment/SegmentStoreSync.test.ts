// Goal: frames leave the memory also while a sync of their log waits for the disk, and none of them counts as synced
// before a sync that began after its write. Method: a store over a disk in memory whose syncs and writes can be held.
import { describe, expect, it } from "vitest"
import { Slabs } from "#runelog/commit/Slabs.ts"
import type { DiskFile } from "#runelog/disk/Disk.ts"
import { systemError } from "#runelog/disk/DiskFault.ts"
import { commitExtent, emptyLog, type LogState, lastSegment, startSegment } from "#runelog/LogState.ts"
import { KIB, limits, MIB } from "#runelog/RunelogLimits.ts"
import { FileCache } from "#runelog/segment/FileCache.ts"
import { decodeIndex } from "#runelog/segment/IndexFile.ts"
import { SEGMENT_HEADER_BYTES } from "#runelog/segment/Segment.ts"
import { SegmentStore } from "#runelog/segment/SegmentStore.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { readFileOf, withCalls } from "../Fixture.ts"

type Call = "write" | "sync"

/** A store whose calls to files are noted, and wait for as long as they are held. */
const makeHeld = async () => {
  const disk = makeDiskMemory()
  const noted: Array<string> = []
  const held = new Map<Call, PromiseWithResolvers<void>>()
  const note = async (call: Call, text: string): Promise<void> => {
    noted.push(text)
    await held.get(call)?.promise
  }
  const calls = (file: DiskFile): DiskFile => ({
    ...file,
    write: (source, offset, length, position) =>
      note("write", `write ${length} at ${position}`).then(() => file.write(source, offset, length, position)),
    sync: () => note("sync", "sync").then(file.sync)
  })
  const holding = withCalls(disk, { open: async (path, mode) => calls(await disk.open(path, mode)) })
  await disk.makeDirectory("/logs")
  const slabs = new Slabs(64 * KIB)
  const synced: Array<string> = []
  const options = { disk: holding, directory: "/logs", files: new FileCache(holding, 100), slabs, limits }
  const store = new SegmentStore({ ...options, onSynced: (log) => synced.push(log.name) })
  const hold = (call: Call): PromiseWithResolvers<void> => {
    const holder = Promise.withResolvers<void>()
    held.set(call, holder)
    return holder
  }
  return { disk, store, slabs, noted, hold, held, synced }
}

/** Makes so many bytes durable that only the store looks at, with an index entry. */
const add = (slabs: Slabs, log: LogState, sequence: number, bytes = 100): void => {
  const segment = lastSegment(log) ?? startSegment(log)
  const eventId = log.nextEventId
  const slab = slabs.take(bytes)
  slab.buffer.fill(sequence, 0, bytes)
  segment.index.ids.push(eventId)
  segment.index.offsets.push(segment.bytes)
  segment.index.crcs.push(0)
  const position = segment.bytes
  segment.bytes += bytes
  log.nextEventId += 1
  const ids = { firstEventId: eventId, lastEventId: eventId, sequence }
  commitExtent(
    log,
    { slab, start: 0, end: bytes, ...ids, segment, position, journal: undefined, journalPosition: 0 },
    0
  )
}

const until = async (isTrue: () => boolean): Promise<void> => {
  while (!isTrue()) await Promise.resolve()
}

describe("while a log is synced", () => {
  it("its next frames are written, and wait for the next sync", async () => {
    const { hold, held, noted, slabs, store, synced } = await makeHeld()
    const log = emptyLog("a")
    add(slabs, log, 3)
    const syncHeld = hold("sync")
    const first = store.flush(log, { sync: true })
    await until(() => noted.includes("sync"))
    add(slabs, log, 5)
    add(slabs, log, 6)
    await store.flush(log, { sync: false })
    expect(log).toMatchObject({ pending: [], writtenEventId: 3, unsyncedSequence: 3 })
    expect(slabs.bytes).toBe(0)
    held.clear()
    syncHeld.resolve()
    await first
    expect(synced).toEqual([])
    expect(log.unsyncedSequence).toBe(5)
    expect(log.segments[0]!.unsynced).toBe(true)
    await store.flush(log, { sync: true })
    expect(noted.filter((call) => call === "sync")).toHaveLength(2)
    expect(synced).toEqual(["a"])
  })

  it("a write that ends meanwhile counts as missed", async () => {
    const { hold, held, noted, slabs, store } = await makeHeld()
    const log = emptyLog("a")
    add(slabs, log, 3)
    await store.flush(log, { sync: false })
    add(slabs, log, 4)
    const writeHeld = hold("write")
    const write = store.flush(log, { sync: false })
    await until(() => noted.length === 2)
    // As a seal does, which does not wait for the write of other frames.
    await store.syncSegment(log, log.segments[0]!)
    expect(log.segments[0]!.unsynced).toBe(false)
    held.clear()
    writeHeld.resolve()
    await write
    expect(log.segments[0]!.unsynced).toBe(true)
    await store.flush(log, { sync: true })
    expect(noted.filter((call) => call === "sync")).toHaveLength(2)
    expect(log.unsyncedSequence).toBe(0)
  })

  it("the index promises no more than the sync covers", async () => {
    const { disk, hold, held, noted, slabs, store } = await makeHeld()
    const log = emptyLog("a")
    for (let at = 0; at < 20; at++) add(slabs, log, 3)
    const syncHeld = hold("sync")
    const first = store.flush(log, { sync: true })
    await until(() => noted.includes("sync"))
    add(slabs, log, 4)
    await store.flush(log, { sync: false })
    held.clear()
    syncHeld.resolve()
    await first
    const index = decodeIndex(await readFileOf(disk, store.indexPath("a", log.segments[0]!)))!
    expect(index.durableBytes).toBe(SEGMENT_HEADER_BYTES + 20 * 100)
    expect(index.index.ids).toHaveLength(20)
  })

  it("another sync waits for its turn", async () => {
    const { hold, held, noted, slabs, store } = await makeHeld()
    const log = emptyLog("a")
    add(slabs, log, 3)
    const syncHeld = hold("sync")
    const first = store.flush(log, { sync: true })
    await until(() => noted.includes("sync"))
    add(slabs, log, 4)
    const second = store.flush(log, { sync: true })
    await until(() => log.pending.length === 0)
    for (let turn = 0; turn < 50; turn++) await Promise.resolve()
    expect(noted.filter((call) => call === "sync")).toHaveLength(1)
    held.clear()
    syncHeld.resolve()
    await Promise.all([first, second])
    expect(noted.filter((call) => call === "sync")).toHaveLength(2)
    expect(log).toMatchObject({ unsyncedSequence: 0, syncing: undefined, flushing: undefined })
  })

  it("it is not removed: its files are in use", async () => {
    const { hold, noted, slabs, store } = await makeHeld()
    const log = emptyLog("a")
    add(slabs, log, 3)
    const syncHeld = hold("sync")
    const sync = store.flush(log, { sync: true })
    await until(() => noted.includes("sync"))
    const removed = store.discard(log)
    for (let turn = 0; turn < 50; turn++) await Promise.resolve()
    expect(log.segments).toHaveLength(1)
    syncHeld.resolve()
    expect(await removed).toHaveLength(1)
    await sync
    expect(log.segments).toHaveLength(0)
  })

  it("and the sync fails, those who wait are told on their own account", async () => {
    const { hold, noted, slabs, store } = await makeHeld()
    const log = emptyLog("a")
    add(slabs, log, 3)
    const syncHeld = hold("sync")
    const failures = [store.flush(log, { sync: true }), store.flush(log, { sync: true })].map((flush) =>
      flush.catch((error: { readonly _tag: string }) => error._tag)
    )
    await until(() => noted.includes("sync"))
    const removed = store.discard(log)
    syncHeld.reject(systemError("EIO", "fdatasync", "/logs/a"))
    expect(await Promise.all(failures)).toEqual(["SyncFailed", "SyncFailed"])
    expect(await removed).toHaveLength(1)
  })
})

describe("the write of many frames", () => {
  it("takes large ones from where they lie, and puts small ones together, a MiB at most", async () => {
    const { disk, noted, slabs, store } = await makeHeld()
    const log = emptyLog("a")
    add(slabs, log, 1, 10)
    await store.flush(log, { sync: false })
    noted.length = 0
    const sizes = [100, 200, 300 * KIB, 256 * KIB, 7, ...Array.from({ length: 5 }, () => 220 * KIB), 9]
    for (const [at, bytes] of sizes.entries()) add(slabs, log, at + 2, bytes)
    await store.flush(log, { sync: false })
    const lengths = noted.map((text) => Number(text.split(" ")[1]))
    expect(lengths).toEqual([300, 300 * KIB, 256 * KIB, 7 + 4 * 220 * KIB, 220 * KIB + 9])
    expect(Math.max(...lengths)).toBeLessThanOrEqual(MIB)
    const content = await readFileOf(disk, store.segmentPath("a", log.segments[0]!))
    const expected = [10, ...sizes].map((bytes, at) => Buffer.alloc(bytes, at + 1))
    expect(content.subarray(SEGMENT_HEADER_BYTES).equals(Buffer.concat(expected))).toBe(true)
    expect(slabs.bytes).toBe(0)
  })
})
