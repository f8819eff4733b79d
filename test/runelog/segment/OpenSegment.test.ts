// Goal: a closed segment is brought into memory once, whole and in its place, or with its fault; an index only ever saves
// reading. Method: files of a closed log altered by hand, opened through the parts that open them.
// Verifies: INV-SEGMENT-CONTIGUOUS
import { describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import { Slabs } from "#runelog/commit/Slabs.ts"
import type { Disk } from "#runelog/disk/Disk.ts"
import { systemError } from "#runelog/disk/DiskFault.ts"
import { bytesOf, FRAME_HEADER_BYTES, frameBytes } from "#runelog/Frame.ts"
import { emptyLog, type LogState } from "#runelog/LogState.ts"
import { resolveLimits } from "#runelog/Options.ts"
import { FormatUnsupported, LogDamaged, SegmentCorrupt } from "#runelog/RunelogErrors.ts"
import { Quarantine } from "#runelog/recovery/Quarantine.ts"
import { FileCache } from "#runelog/segment/FileCache.ts"
import { decodeIndex } from "#runelog/segment/IndexFile.ts"
import {
  checkLink,
  closedFault,
  loadClosedSegment,
  type OpenLogOptions,
  openHeader,
  readIndexFile,
  scanSegment,
  sealFault,
  unopened,
  useSegmentFile
} from "#runelog/segment/OpenSegment.ts"
import type { ScanEnd } from "#runelog/segment/Scan.ts"
import { encodeSegmentHeader, SEGMENT_HEADER_BYTES } from "#runelog/segment/Segment.ts"
import { SegmentStore } from "#runelog/segment/SegmentStore.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import {
  bodiesOf,
  contentOf,
  directory,
  diskOf,
  entryOf,
  errorOf,
  fill,
  indexPath,
  openSmall,
  type Snapshot,
  segmentPath,
  smallLimits,
  snapshotOf,
  withCalls,
  withFiles,
  writeFileOf
} from "../Fixture.ts"

const limits = { segmentBytes: 800 }
const events = 40

const closed = async (): Promise<{ readonly files: Snapshot; readonly firstIds: ReadonlyArray<number> }> => {
  const disk = makeDiskMemory()
  const runelog = await openSmall({ disk, limits })
  await fill(runelog, "a", 1, events)
  await runelog.close()
  const files = await snapshotOf(disk)
  const firstIds = [...files.keys()].flatMap((path) =>
    path.endsWith(".seg") ? [Number.parseInt(path.slice(-20), 10)] : []
  )
  expect(firstIds.length).toBeGreaterThan(4)
  return { files, firstIds }
}

const partsOf = (disk: Disk): OpenLogOptions => {
  const resolved = resolveLimits({ ...smallLimits, ...limits })
  const files = new FileCache(disk, 10)
  const store = new SegmentStore({
    disk,
    directory: `${directory}/runelog`,
    files,
    slabs: new Slabs(resolved.slabBytes),
    limits: resolved,
    onSynced: () => undefined
  })
  return {
    disk,
    files,
    store,
    quarantine: new Quarantine(disk, `${directory}/quarantine`),
    limits: resolved,
    onDamage: () => undefined
  }
}

/** The log as it is before any of its segments was opened. */
const unopenedLog = (firstIds: ReadonlyArray<number>): LogState => {
  const log = emptyLog("a")
  log.segments.push(...firstIds.map(unopened))
  return log
}

const bodies = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => entryOf(from + at).body)

const withVersion = (content: Uint8Array, version: number): Buffer => {
  const copy = Buffer.from(content)
  copy.writeUInt16LE(version, 12)
  copy.writeUInt32LE(crc32c(copy, 12, SEGMENT_HEADER_BYTES, 0), 8)
  return copy
}

/** Where the seal of a segment starts. */
const sealAt = (content: Uint8Array): number => Buffer.from(content).lastIndexOf('{"frames"') - FRAME_HEADER_BYTES

const end = (fields: Partial<ScanEnd> = {}): ScanEnd => ({
  offset: 500,
  lastEventId: 9,
  crc: 1,
  openBatch: undefined,
  seal: undefined,
  fault: undefined,
  ...fields
})

describe("a closed segment", () => {
  it("is opened once, however many need it at once", async () => {
    const { files, firstIds } = await closed()
    const disk = await diskOf(files)
    let reads = 0
    const counted = withCalls(disk, {
      open: async (path, mode) => {
        const file = await disk.open(path, mode)
        return {
          ...file,
          read: (...args) => {
            if (args[3] === 0 && path.endsWith(".seg")) reads += 1
            return file.read(...args)
          }
        }
      }
    })
    const log = unopenedLog(firstIds)
    const parts = partsOf(counted)
    const [one, two] = await Promise.all([loadClosedSegment(parts, log, 0), loadClosedSegment(parts, log, 0)])
    expect(one).toBe(two)
    expect(log.segments[0]).toBe(one)
    expect(one).toMatchObject({ firstEventId: 1, fault: undefined, followed: true })
    const before = reads
    expect(await loadClosedSegment(parts, log, 0)).toBe(one)
    expect(reads).toBe(before)
  })

  it("is read from its last index entry on, or from its start where that does not hold", async () => {
    const { files, firstIds } = await closed()
    const disk = await diskOf(files)
    const parts = partsOf(disk)
    const path = segmentPath("a", 1)
    const hint = decodeIndex(Buffer.from(files.get(indexPath("a", 1))!))!
    const wrong = { ...hint, index: { ...hint.index, crcs: hint.index.crcs.map((crc) => crc ^ 1) } }
    const short = { ...hint, index: { ids: [1], offsets: [SEGMENT_HEADER_BYTES], crcs: [hint.index.crcs[0]!] } }
    const ends = await Promise.all(
      [undefined, hint, wrong, short].map((known) =>
        useSegmentFile(parts, "a", path, async (file) => {
          const opened = await openHeader(file, { path, log: "a", firstEventId: 1 })
          if (opened._tag === "Fault") throw new Error(opened.reason)
          const scanned = await scanSegment(file, opened.segment, await file.size(), {
            hint: known,
            limits: parts.limits
          })
          expect(opened.segment.index).toEqual(hint.index)
          expect(opened.segment.indexedEntries).toBe(known === hint ? hint.index.ids.length : 0)
          return scanned
        })
      )
    )
    for (const one of ends) expect(one).toEqual(ends[0])
    expect(ends[0]!.lastEventId).toBe(firstIds[1]! - 1)
  })

  it("without its file is damage, and one that cannot be read is not", async () => {
    const { files, firstIds } = await closed()
    const disk = await diskOf(withFiles(files, { [segmentPath("a", 1)]: undefined }))
    const log = unopenedLog(firstIds)
    expect(await errorOf(loadClosedSegment(partsOf(disk), log, 0))).toEqual(
      new SegmentCorrupt({ log: "a", file: segmentPath("a", 1), offset: 0, reason: "the file is missing" })
    )
    const broken = withCalls(disk, { open: () => Promise.reject(systemError("EIO", "open", "/data")) })
    expect(await errorOf(loadClosedSegment(partsOf(broken), log, 1))).toMatchObject({ code: "EIO" })
  })

  it("is refused in another format, of another log, from another event or before another segment", async () => {
    const { files, firstIds } = await closed()
    const second = firstIds[1]!
    const path = segmentPath("a", second)
    const of = async (content: Uint8Array): Promise<unknown> =>
      errorOf(loadClosedSegment(partsOf(await diskOf(withFiles(files, { [path]: content }))), unopenedLog(firstIds), 1))
    expect(await of(withVersion(files.get(path)!, 9))).toEqual(
      new FormatUnsupported({ file: path, version: 9, supported: 1 })
    )
    const headerOf = (log: string, firstEventId: number): Buffer =>
      encodeSegmentHeader({ log, firstEventId, previousHeadCrc: 5 }).buffer
    expect(await of(headerOf("b", second))).toMatchObject({ reason: 'the segment belongs to log "b"' })
    expect(await of(headerOf("a", 3))).toMatchObject({ reason: `the segment starts at event 3, not ${second}` })
    expect(await of(files.get(path)!.subarray(0, 50))).toMatchObject({ _tag: "SegmentCorrupt", offset: 0 })
  })
})

describe("an index file", () => {
  it("is nothing when it is missing or torn", async () => {
    const { files } = await closed()
    const of = async (content: Uint8Array | undefined) =>
      readIndexFile(partsOf(await diskOf(withFiles(files, { [indexPath("a", 1)]: content }))), "a", { firstEventId: 1 })
    expect(await of(files.get(indexPath("a", 1)))).toMatchObject({
      durableBytes: files.get(segmentPath("a", 1))!.length
    })
    expect(await of(undefined)).toBeUndefined()
    expect(await of(files.get(indexPath("a", 1))!.subarray(0, 20))).toBeUndefined()
  })
})

describe("the end of a closed segment", () => {
  const place = { size: 900, lastEventId: 9, promisedBytes: 0 }
  const fault = { offset: 500, reason: "checksum mismatch" }

  it("must be its last event, outside a batch, with the seal that an index promised", async () => {
    const file = await makeDiskMemory().open("/empty", "create")
    expect(await closedFault(file, end(), place)).toBeUndefined()
    expect(await closedFault(file, end({ lastEventId: 7 }), place)).toEqual({
      offset: 500,
      reason: "events 8 to 9 are missing"
    })
    expect(await closedFault(file, end({ lastEventId: 7, fault }), place)).toBe(fault)
    const openBatch = { offset: 400, lastEventId: 8, crc: 1 }
    expect(await closedFault(file, end({ openBatch }), place)).toEqual({
      offset: 400,
      reason: "the segment ends inside a batch"
    })
    expect(await closedFault(file, end(), { ...place, promisedBytes: 700 })).toEqual({
      offset: 500,
      reason: "the seal is missing"
    })
    expect(await closedFault(file, end({ fault }), { ...place, promisedBytes: 700 })).toBe(fault)
  })

  it("may be a seal that was never finished, but nothing that good frames follow", async () => {
    const { files, firstIds } = await closed()
    const content = Buffer.from(files.get(segmentPath("a", 1))!)
    const at = sealAt(content)
    const first = content.subarray(SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + frameBytes(bytesOf(content).view, 128))
    const cut = content.subarray(0, at + 20)
    const changed = (bytes: Uint8Array): Snapshot =>
      withFiles(files, { [segmentPath("a", 1)]: bytes, [indexPath("a", 1)]: undefined })
    const torn = await openSmall({ disk: await diskOf(changed(cut)), limits })
    expect(bodiesOf(await contentOf(torn, "a"))).toEqual(bodies(1, events))
    expect(await torn.seal("a")).toMatch(/^[0-9a-f]{64}$/)
    const followed = changed(Buffer.concat([cut, first]))
    const log = unopenedLog(firstIds)
    const loaded = await loadClosedSegment(partsOf(await diskOf(followed)), log, 0)
    expect(loaded.fault).toMatchObject({ offset: at, lastEventId: firstIds[1]! - 1 })
    const damaged = await openSmall({ disk: await diskOf(followed), limits })
    // All of its events are there and can be read; what is behind them is nobody's to overwrite.
    expect(bodiesOf(await contentOf(damaged, "a"))).toEqual(bodies(1, events))
    expect(await errorOf(damaged.seal("a"))).toMatchObject({ _tag: "SegmentCorrupt", offset: at })
    expect(await errorOf(damaged.append("a", events + 1, [{ body: "x" }]))).toBeInstanceOf(LogDamaged)
  })

  it("is a fault with a seal that cannot be read", () => {
    expect(sealFault(end())).toBeUndefined()
    expect(sealFault(end({ seal: { body: "{}", bytes: 34 } }))).toEqual({
      offset: 500,
      reason: "the seal cannot be read"
    })
  })
})

describe("the link of a segment", () => {
  it("is checked against the one before it, when that is open", async () => {
    const { files, firstIds } = await closed()
    const parts = partsOf(await diskOf(files))
    const log = unopenedLog(firstIds)
    await loadClosedSegment(parts, log, 0)
    const second = await loadClosedSegment(parts, log, 1)
    expect(second.linked).toBe(true)
    await checkLink(parts, log, 1)
    second.linked = false
    log.segments[0]!.headCrc! ^= 1
    expect(await errorOf(checkLink(parts, log, 1))).toMatchObject({
      file: segmentPath("a", firstIds[1]!),
      reason: "the segment does not continue the one before it"
    })
  })

  it("is else checked against the header of the one behind it, open or not", async () => {
    const { files, firstIds } = await closed()
    const parts = partsOf(await diskOf(files))
    const log = unopenedLog(firstIds)
    const third = await loadClosedSegment(parts, log, 2)
    expect(third).toMatchObject({ linked: false, followed: true })
    const second = await loadClosedSegment(parts, log, 1)
    expect(second).toMatchObject({ linked: false, followed: true })
    Object.assign(second, { followed: false, headCrc: second.headCrc! ^ 1 })
    expect(await errorOf(checkLink(parts, log, 1))).toMatchObject({
      file: segmentPath("a", firstIds[1]!),
      offset: second.bytes,
      reason: "the next segment continues another one"
    })
    // Of one that is damaged itself nothing is concluded.
    second.fault = { offset: 1, reason: "damage", lastEventId: 1 }
    await checkLink(parts, log, 1)
    expect(second.followed).toBe(false)
  })

  it("is not checked against one that is gone, unreadable or of another format: who reads on is told", async () => {
    const { files, firstIds } = await closed()
    const second = firstIds[1]!
    const path = segmentPath("a", second)
    const nexts: ReadonlyArray<Uint8Array | undefined> = [
      undefined,
      files.get(path)!.subarray(0, 30),
      withVersion(files.get(path)!, 9)
    ]
    for (const next of nexts) {
      const disk = await diskOf(withFiles(files, { [path]: next }))
      const log = unopenedLog(firstIds)
      expect(await loadClosedSegment(partsOf(disk), log, 0)).toMatchObject({ followed: true, fault: undefined })
      // It became so while the log was open: else opening would have found it.
      const live = await diskOf(files)
      const runelog = await openSmall({ disk: live, limits })
      await runelog.head("a")
      await (next === undefined ? live.remove(path) : writeFileOf(live, path, next))
      const content = await contentOf(runelog, "a", { bytesMax: 100 })
      expect(bodiesOf(content)).toEqual(bodies(1, second - 1))
      expect(content.error).toMatchObject({ file: path })
    }
  })

  it("waits for another time where the disk fails, and that is no damage", async () => {
    const { files, firstIds } = await closed()
    const disk = await diskOf(files)
    const path = segmentPath("a", firstIds[1]!)
    let isBroken = true
    const failing = withCalls(disk, {
      open: (place, mode) =>
        isBroken && place === path ? Promise.reject(systemError("EIO", "open", place)) : disk.open(place, mode)
    })
    const parts = partsOf(failing)
    const log = unopenedLog(firstIds)
    expect(await errorOf(loadClosedSegment(parts, log, 0))).toMatchObject({ code: "EIO" })
    expect(log.segments[0]).toMatchObject({ followed: false, fault: undefined })
    isBroken = false
    expect(await loadClosedSegment(parts, log, 0)).toMatchObject({ followed: true })
  })
})
