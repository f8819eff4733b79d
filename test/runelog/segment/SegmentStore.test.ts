// Goal: frames reach their segment in order and once, a failed sync ends all trust, and an index never stands in the way.
// Method: a store of its own over a disk in memory, with calls that fail or wait where the test says so.
import { describe, expect, it } from "vitest"
import { Slabs } from "#runelog/commit/Slabs.ts"
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { systemError } from "#runelog/disk/DiskFault.ts"
import { bytesOf, FRAME_HEADER_BYTES, flag, frameKind, sealFrame } from "#runelog/Frame.ts"
import { commitExtent, emptyLog, type LogState, lastSegment, startSegment } from "#runelog/LogState.ts"
import { SyncFailed } from "#runelog/RunelogErrors.ts"
import { limits } from "#runelog/RunelogLimits.ts"
import { FileCache } from "#runelog/segment/FileCache.ts"
import { decodeIndex } from "#runelog/segment/IndexFile.ts"
import { scanFrames } from "#runelog/segment/Scan.ts"
import { SEGMENT_HEADER_BYTES } from "#runelog/segment/Segment.ts"
import { SegmentStore } from "#runelog/segment/SegmentStore.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { errorOf, readFileOf, withCalls } from "../Fixture.ts"

type FileCalls = (path: string, file: DiskFile) => Partial<DiskFile>

/** A disk whose files differ from others in a few calls. */
const withFileCalls = (disk: Disk, calls: FileCalls): Disk =>
  withCalls(disk, {
    open: async (path, mode) => {
      const file = await disk.open(path, mode)
      return { ...file, ...calls(path, file) }
    }
  })

const makeStore = async (disk: Disk) => {
  await disk.makeDirectory("/logs")
  const slabs = new Slabs(4096)
  const synced: Array<string> = []
  const files = new FileCache(disk, 100)
  const store = new SegmentStore({
    disk,
    directory: "/logs",
    files,
    slabs,
    limits,
    onSynced: (log) => synced.push(log.name)
  })
  return { store, slabs, files, synced }
}

/** Makes one entry durable: encoded at the end of the last segment and due to be written. */
const add = (slabs: Slabs, log: LogState, options: { readonly rotate?: boolean; readonly sequence?: number } = {}) => {
  const isFirst = options.rotate === true || log.segments.length === 0
  const segment = isFirst ? startSegment(log) : lastSegment(log)!
  const eventId = log.nextEventId
  const body = Buffer.from(`event ${eventId}`)
  const slab = slabs.take(FRAME_HEADER_BYTES + body.length)
  body.copy(slab.buffer, FRAME_HEADER_BYTES)
  segment.index.ids.push(eventId)
  segment.index.offsets.push(segment.bytes)
  segment.index.crcs.push(log.crc)
  log.crc = sealFrame(bytesOf(slab.buffer), 0, body.length, {
    flags: isFirst ? flag.segmentFirst : 0,
    kind: frameKind.entry,
    family: 0,
    stream: 0,
    eventId,
    previousCrc: log.crc
  })
  log.nextEventId += 1
  const end = FRAME_HEADER_BYTES + body.length
  const position = segment.bytes
  segment.bytes += end
  const ids = { firstEventId: eventId, lastEventId: eventId, sequence: options.sequence ?? eventId }
  commitExtent(log, { slab, start: 0, end, ...ids, segment, position, journal: undefined, journalPosition: 0 }, log.crc)
}

const addMany = (slabs: Slabs, log: LogState, count: number): void => {
  for (let at = 0; at < count; at++) add(slabs, log)
}

/** The last event of a segment file, every frame checked. */
const lastEventOf = async (disk: Disk, store: SegmentStore, log: LogState, at = 0): Promise<number> => {
  const segment = log.segments[at]!
  const file = await disk.open(store.segmentPath(log.name, segment), "read")
  const start = { offset: SEGMENT_HEADER_BYTES, eventId: segment.firstEventId, previousCrc: segment.headerCrc }
  const end = await scanFrames(file, start, { endOffset: await file.size() })
  expect(end.fault).toBeUndefined()
  return end.lastEventId
}

const full = (): Error => systemError("ENOSPC", "write", "/logs/a")
const broken = (): Error => systemError("EIO", "fdatasync", "/logs/a")

describe("a flush", () => {
  it("writes what waits, each segment in one piece, and gives its memory back", async () => {
    const disk = makeDiskMemory()
    const writes: Array<number> = []
    const counted = withFileCalls(disk, (_, file) => ({
      write: (source, offset, length, position) => {
        writes.push(position)
        return file.write(source, offset, length, position)
      }
    }))
    const { slabs, store, synced } = await makeStore(counted)
    const log = emptyLog("a")
    addMany(slabs, log, 3)
    add(slabs, log, { rotate: true })
    add(slabs, log)
    await store.flush(log, { sync: false })
    expect(writes).toEqual([0, 0])
    expect(log).toMatchObject({ pending: [], pendingBytes: 0, writtenEventId: 5, unsyncedSequence: 1 })
    expect(slabs.bytes).toBe(0)
    expect(synced).toEqual([])
    expect(await lastEventOf(disk, store, log, 0)).toBe(3)
    expect(await lastEventOf(disk, store, log, 1)).toBe(5)
    // One frame is written from where it lies, several are gathered.
    add(slabs, log)
    await store.flush(log, { sync: false })
    addMany(slabs, log, 2)
    await store.flush(log, { sync: true })
    expect(writes).toHaveLength(4)
    expect(await lastEventOf(disk, store, log, 1)).toBe(8)
    expect(log.unsyncedSequence).toBe(0)
    expect(synced).toEqual(["a"])
  })

  it("waits for the one before it, also for one that failed", async () => {
    const disk = makeDiskMemory()
    const held = Promise.withResolvers<void>()
    let isFirst = true
    const holding = withFileCalls(disk, (_, file) => ({
      write: async (...args) => {
        if (isFirst) {
          isFirst = false
          await held.promise
        }
        return file.write(...args)
      }
    }))
    const { slabs, store } = await makeStore(holding)
    const log = emptyLog("a")
    addMany(slabs, log, 2)
    const first = errorOf(store.flush(log, { sync: false }))
    addMany(slabs, log, 2)
    const second = store.flush(log, { sync: true })
    held.reject(full())
    expect(await first).toMatchObject({ code: "ENOSPC" })
    await second
    // What the first could not write was not forgotten.
    expect(await lastEventOf(disk, store, log)).toBe(4)
    expect(log).toMatchObject({ flushing: undefined, pending: [], unsyncedSequence: 0 })
  })

  it("that syncs is not done with what came meanwhile", async () => {
    const disk = makeDiskMemory()
    const log = emptyLog("a")
    const held = Promise.withResolvers<void>()
    const holding = withFileCalls(disk, (_, file) => ({ sync: () => held.promise.then(file.sync) }))
    const { slabs, store, synced } = await makeStore(holding)
    add(slabs, log, { sequence: 4 })
    const flush = store.flush(log, { sync: true })
    while (log.pending.length > 0) await Promise.resolve()
    add(slabs, log, { sequence: 9 })
    held.resolve()
    await flush
    expect(log.unsyncedSequence).toBe(9)
    expect(synced).toEqual([])
    await store.flush(log, { sync: true })
    expect(synced).toEqual(["a"])
  })
})

describe("a log that is removed", () => {
  it("gives back its memory and its segments, once the flush under way has ended", async () => {
    const disk = makeDiskMemory()
    const held = Promise.withResolvers<void>()
    const holding = withFileCalls(disk, (_, file) => ({
      write: (...args) => held.promise.then(() => file.write(...args))
    }))
    const { slabs, store } = await makeStore(holding)
    const log = emptyLog("a")
    addMany(slabs, log, 2)
    const flush = errorOf(store.flush(log, { sync: false }))
    const discarded = store.discard(log)
    expect(log.segments).toHaveLength(1)
    held.reject(full())
    expect(await discarded).toHaveLength(1)
    await flush
    expect(log).toMatchObject({ segments: [], pending: [], pendingBytes: 0, durableSegments: 0 })
    expect(slabs.bytes).toBe(0)
  })
})

describe("a sync that fails", () => {
  const failing = (which: "file" | "directory" | "root"): Disk => {
    const disk = makeDiskMemory()
    const path = which === "directory" ? "/logs/a" : "/logs"
    if (which === "file") return withFileCalls(disk, () => ({ sync: () => Promise.reject(broken()) }))
    return withCalls(disk, {
      syncDirectory: (place) => (place === path ? Promise.reject(broken()) : disk.syncDirectory(place))
    })
  }

  it.each(["file", "directory", "root"] as const)("of a %s is the last that is trusted", async (which) => {
    const { slabs, store, synced } = await makeStore(failing(which))
    const [log, other] = [emptyLog("a"), emptyLog("b")]
    add(slabs, log)
    add(slabs, other)
    const syncAll = async (state: LogState): Promise<void> => {
      await store.flush(state, { sync: true })
      await store.syncRoot()
    }
    const failure = await errorOf(syncAll(log))
    expect(failure).toBeInstanceOf(SyncFailed)
    expect(failure).toMatchObject({ cause: { code: "EIO" } })
    // Another file would sync; that it does proves nothing about what was lost before.
    expect(await errorOf(store.flush(other, { sync: true }))).toBe(failure)
    expect(await errorOf(store.syncRoot())).toBe(failure)
    expect(await errorOf(store.trusted("/x", async () => undefined))).toBe(failure)
    expect(() => store.refuseDistrusted()).toThrow(SyncFailed)
    expect(synced).toEqual(which === "root" ? ["a"] : [])
  })

  it("is not forgotten by a sync that ends after it", async () => {
    const { store } = await makeStore(makeDiskMemory())
    const [slow, fast] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const first = errorOf(store.trusted("/one", () => slow.promise))
    const second = errorOf(store.trusted("/two", () => fast.promise))
    fast.reject(broken())
    slow.reject(broken())
    expect(await second).toMatchObject({ path: "/two" })
    expect(await first).toBe(await second)
  })
})

describe("the directory of logs", () => {
  it("is synced once for those who ask at once, and not where nothing changed", async () => {
    const disk = makeDiskMemory()
    const synced: Array<string> = []
    const held = Promise.withResolvers<void>()
    const { slabs, store } = await makeStore(
      withCalls(disk, {
        syncDirectory: async (path) => {
          synced.push(path)
          if (path === "/logs") await held.promise
        }
      })
    )
    await store.syncRoot()
    expect(synced).toEqual([])
    const log = emptyLog("a")
    add(slabs, log)
    await store.flush(log, { sync: true })
    const asked = [store.syncRoot(), store.syncRoot()]
    held.resolve()
    await Promise.all(asked)
    expect(synced).toEqual(["/logs/a", "/logs"])
    store.markRootUnsynced()
    await store.syncRoot()
    expect(synced).toEqual(["/logs/a", "/logs", "/logs"])
  })

  it("is synced again for who comes while it is synced and has made something since", async () => {
    const disk = makeDiskMemory()
    const holds = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let begun = 0
    const { store } = await makeStore(withCalls(disk, { syncDirectory: () => holds[begun++]!.promise }))
    store.markRootUnsynced()
    const first = store.syncRoot()
    store.markRootUnsynced()
    let isDone = false
    const second = store.syncRoot().then(() => {
      isDone = true
    })
    holds[0]!.resolve()
    await first
    while (begun < 2) await Promise.resolve()
    expect(isDone).toBe(false)
    holds[1]!.resolve()
    await second
  })

  it("that fails tells all who wait for it", async () => {
    const disk = makeDiskMemory()
    const { store } = await makeStore(withCalls(disk, { syncDirectory: () => Promise.reject(broken()) }))
    store.markRootUnsynced()
    const [first, second] = [errorOf(store.syncRoot()), errorOf(store.syncRoot())]
    expect(await first).toBeInstanceOf(SyncFailed)
    expect(await second).toBe(await first)
  })
})

describe("an index", () => {
  it("is written once enough entries are missing, and speaks of what is written only", async () => {
    const disk = makeDiskMemory()
    const { slabs, store } = await makeStore(disk)
    const log = emptyLog("a")
    addMany(slabs, log, 15)
    await store.flush(log, { sync: true })
    const path = store.indexPath("a", log.segments[0]!)
    expect(await disk.exists(path)).toBe(false)
    add(slabs, log)
    await store.flush(log, { sync: true })
    const first = decodeIndex(await readFileOf(disk, path))!
    expect(first.index.ids).toHaveLength(16)
    expect(first.durableBytes).toBe(log.segments[0]!.writtenBytes)
    add(slabs, log)
    await store.writeIndex(log, log.segments[0]!)
    expect(decodeIndex(await readFileOf(disk, path))!.index.ids).toHaveLength(16)
    await store.flush(log, { sync: true })
    await store.writeIndexes(log)
    expect(decodeIndex(await readFileOf(disk, path))!.index.ids).toHaveLength(17)
  })

  it("is written at the end where it says something else, and not for a segment that was never opened", async () => {
    const disk = makeDiskMemory()
    let writes = 0
    const counted = withFileCalls(disk, (path, file) => ({
      write: (...args) => {
        if (path.endsWith(".idx")) writes += 1
        return file.write(...args)
      }
    }))
    const { slabs, store } = await makeStore(counted)
    const log = emptyLog("a")
    addMany(slabs, log, 2)
    await store.flush(log, { sync: true })
    await store.writeIndexes(log)
    await store.writeIndexes(log)
    expect(writes).toBe(1)
    log.segments[0]!.bytes = 0
    log.segments[0]!.indexedBytes = 0
    await store.writeIndexes(log)
    expect(writes).toBe(1)
  })

  it("can be done without where there is no room for it, and only then", async () => {
    const disk = makeDiskMemory()
    let error: Error | undefined = full()
    const refusing = withFileCalls(disk, (path, file) => ({
      write: (...args) => (path.endsWith(".idx") && error !== undefined ? Promise.reject(error) : file.write(...args))
    }))
    const { slabs, store } = await makeStore(refusing)
    const log = emptyLog("a")
    const segment = (): ReturnType<typeof lastSegment> => lastSegment(log)
    addMany(slabs, log, 20)
    await store.flush(log, { sync: true })
    expect(segment()).toMatchObject({ indexedEntries: 0, indexedBytes: 0 })
    error = systemError("EIO", "write", "/logs/a")
    expect(await errorOf(store.writeIndexes(log))).toMatchObject({ code: "EIO" })
    error = undefined
    await store.writeIndexes(log)
    expect(segment()).toMatchObject({ indexedEntries: 20, indexedBytes: segment()!.writtenBytes })
  })
})
