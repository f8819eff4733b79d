// Goal: verify changes nothing, calls a sound directory sound, and names file, offset and reason of each fault. Method:
// directories of every kind, each altered in one place; a writer at work beside it.
// Verifies: INV-CRC-VALID, INV-SEGMENT-CONTIGUOUS
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import { systemError } from "#runelog/disk/DiskFault.ts"
import { bytesOf, FRAME_HEADER_BYTES, flag, frameKind, sealFrame } from "#runelog/Frame.ts"
import {
  BATCH_HEADER_BYTES,
  GROUP_HEADER_BYTES,
  JOURNAL_PAGE_BYTES as page,
  readBatchHeader,
  sealBatch
} from "#runelog/journal/JournalBatch.ts"
import { Runelog } from "#runelog/Runelog.ts"
import { DataMissing, DiskFailed } from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { decodeIndex, encodeIndex } from "#runelog/segment/IndexFile.ts"
import { encodeSealFrame, parseSeal } from "#runelog/segment/SealFrame.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { FINDINGS_MAX, Findings, type InspectedEvent, type Inspection } from "#runelog/verify/VerifyReport.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import {
  contentOf,
  directory,
  diskOf,
  entryOf,
  errorOf,
  fill,
  flipBit,
  indexPath,
  journalPath,
  openSmall,
  type Snapshot,
  segmentPath,
  settle,
  snapshotOf,
  withCalls,
  withFiles,
  withoutManifest
} from "../Fixture.ts"

const limits = { segmentBytes: 800, segmentWriteBytes: 1024 * KIB }

const closedFiles = async (): Promise<{ readonly files: Snapshot; readonly firstIds: ReadonlyArray<number> }> => {
  const disk = makeDiskMemory()
  const runelog = await openSmall({ disk, limits })
  await fill(runelog, "a", 1, 40)
  await runelog.close()
  const files = await snapshotOf(disk)
  const firstIds = [...files.keys()].flatMap((path) =>
    path.endsWith(".seg") ? [Number.parseInt(path.slice(-20), 10)] : []
  )
  return { files, firstIds }
}

/** Events 1 to 5 in a segment, 6 to 8 and another log in the journal. */
const openFiles = async (): Promise<Snapshot> => {
  const disk = makeDiskMemory()
  const runelog = await openSmall({ disk, limits: { segmentWriteBytes: 1024 * KIB } })
  await fill(runelog, "a", 1, 5)
  await runelog.checkpoint()
  await fill(runelog, "a", 6, 8)
  await fill(runelog, "b", 1, 2)
  return snapshotOf(disk)
}

const reportOf = async (files: Snapshot, changes: Record<string, Uint8Array | undefined> = {}) =>
  verify({ directory, disk: await diskOf(withFiles(files, changes)), inspect: () => attentive })

/** Looks at every event and finds nothing. */
const attentive: Inspection = { log: () => () => [], finish: async () => undefined }

const reasonsOf = async (
  files: Snapshot,
  changes: Record<string, Uint8Array | undefined>
): Promise<ReadonlyArray<string>> => (await reportOf(files, changes)).problems.map(({ reason }) => reason)

/** A journal with the payload of its first needed batch changed and the checksums put right again. */
const withPayload = (files: Snapshot, change: (payload: Buffer) => number | undefined): Buffer => {
  const journal = Buffer.from(files.get(journalPath())!)
  const batches: Array<number> = []
  for (let at = page; at < journal.length; at += page)
    if (readBatchHeader(bytesOf(journal), at) !== undefined) batches.push(at)
  const at = batches.at(-1)!
  const header = readBatchHeader(bytesOf(journal), at)!
  const payload = journal.subarray(at + BATCH_HEADER_BYTES, at + BATCH_HEADER_BYTES + header.payloadBytes)
  const groups = change(payload) ?? header.groups
  sealBatch(bytesOf(journal), at, { ...header, groups })
  return journal
}

describe("a sound directory", () => {
  it("is counted and has no problems, closed or not", async () => {
    const { files, firstIds } = await closedFiles()
    const before = [...files].map(([path, content]) => [path, Buffer.from(content).toString("hex")])
    const disk = await diskOf(files)
    const report = await verify({ directory, disk })
    expect(report).toMatchObject({
      logs: 1,
      segments: firstIds.length,
      sealed: firstIds.length - 1,
      entries: 40,
      batches: 0,
      problems: [],
      notes: []
    })
    expect(
      [...(await snapshotOf(disk))].map(([path, content]) => [path, Buffer.from(content).toString("hex")])
    ).toEqual(before)
    const open = await reportOf(await openFiles())
    expect(open).toMatchObject({ logs: 2, segments: 1, entries: 5, batches: 5, problems: [] })
    expect(open.notes).toMatchObject([{ text: "the next start applies 5 batches" }])
  })

  it("needs no lock and takes none, on the real disk too", async () => {
    const place = mkdtempSync(join(tmpdir(), "echs-verify-"))
    try {
      const runelog = await Runelog.open({ directory: place })
      await runelog.append("a", 1, [{ body: "x" }])
      expect((await verify({ directory: place })).problems).toEqual([])
      await runelog.append("a", 2, [{ body: "y" }])
      await runelog.close()
      expect(await verify({ directory: place })).toMatchObject({ entries: 2, problems: [] })
    } finally {
      rmSync(place, { recursive: true, force: true })
    }
  })

  it("is not there where there is none", async () => {
    expect(await errorOf(verify({ directory: "/nothing", disk: makeDiskMemory() }))).toEqual(
      new DataMissing({ path: "/nothing" })
    )
  })
})

describe("a fault of a segment", () => {
  it("is named with its place: header, frames, order, end", async () => {
    const { files, firstIds } = await closedFiles()
    const [, second] = firstIds
    const path = segmentPath("a", second!)
    const content = files.get(path)!
    const newer = Buffer.from(content)
    newer.writeUInt16LE(7, 12)
    newer.writeUInt32LE(crc32c(newer, 12, 128, 0), 8)
    expect(await reasonsOf(files, { [path]: newer })).toContain("format version 7 is not known")
    expect(await reasonsOf(files, { [path]: content.subarray(0, 100) })).toContain("the segment header is cut short")
    expect(await reasonsOf(files, { [path]: files.get(segmentPath("a", 1)) })).toContain(
      "the segment starts at event 1"
    )
    expect((await reportOf(files, { [path]: flipBit(content, 163 * 8) })).problems).toMatchObject([
      { file: path, log: "a", offset: 128, reason: "checksum mismatch" }
    ])
    expect(await reasonsOf(files, { [segmentPath("a", 1)]: undefined })).toContain(
      `events 1 to ${second! - 1} are missing`
    )
    expect(await reasonsOf(files, { [path]: undefined })).toContain("the file is missing, its index is there")
    const doubled = segmentPath("a", second! - 1)
    expect((await reasonsOf(files, { [doubled]: content })).join()).toContain(
      `events from ${second! - 1} on are also in the next segment`
    )
    const other = await reasonsOf(files, { "/data/runelog/b/0000000000000001.seg": files.get(segmentPath("a", 1)) })
    expect(other).toContain('the segment belongs to log "a"')
  })

  it("is a seal that says something else, or cannot be read", async () => {
    const { files } = await closedFiles()
    const path = segmentPath("a", 1)
    const content = Buffer.from(files.get(path)!)
    const at = content.lastIndexOf('{"frames"') - FRAME_HEADER_BYTES
    const seal = parseSeal(content.toString("utf8", at + FRAME_HEADER_BYTES))!
    const place = { eventId: Number(content.readBigUInt64LE(at + 24)), previousCrc: content.readUInt32LE(at + 20) }
    const withSeal = (changed: typeof seal): Buffer =>
      Buffer.concat([content.subarray(0, at), encodeSealFrame(changed, place)])
    const reasons = (changed: Partial<typeof seal>) => reasonsOf(files, { [path]: withSeal({ ...seal, ...changed }) })
    expect((await reasons({ frames: 3 })).join()).toContain("frames where the seal counts 3")
    expect(await reasons({ sha256: "00".repeat(32) })).toContain("the digest does not match")
    expect(await reasons({ headCrc: 1 })).toContain("the seal names another last frame")
    expect(await reasons({ previousSha256: "11".repeat(32) })).toContain("the seal does not continue the one before it")
    const unreadable = bytesOf(Buffer.alloc(FRAME_HEADER_BYTES + 300, " "))
    sealFrame(unreadable, 0, 300, { flags: 0, kind: frameKind.seal, family: 0, stream: 0, ...place })
    expect(await reasonsOf(files, { [path]: Buffer.concat([content.subarray(0, at), unreadable.buffer]) })).toContain(
      "the seal cannot be read"
    )
  })

  it("is an end inside a batch, or before what its index promises", async () => {
    const { files, firstIds } = await closedFiles()
    const path = segmentPath("a", firstIds.at(-1)!)
    const content = Buffer.from(files.get(path)!)
    expect((await reasonsOf(files, { [path]: content.subarray(0, 128) })).join()).toMatch(/bytes up to \d+ are missing/)
    const bytes = bytesOf(Buffer.from(content))
    const length = bytes.view.getUint32(128 + 8, true)
    const fields = {
      kind: 0,
      family: content[128 + 15]!,
      stream: 0,
      eventId: firstIds.at(-1)!,
      previousCrc: content.readUInt32LE(128 + 20)
    }
    sealFrame(bytes, 128, length, { ...fields, flags: flag.segmentFirst | flag.batchContinues })
    const cut = bytes.buffer.subarray(0, 128 + FRAME_HEADER_BYTES + length)
    const index = indexPath("a", firstIds.at(-1)!)
    expect(await reasonsOf(files, { [path]: cut, [index]: undefined })).toContain("the file ends inside a batch")
  })
})

describe("what a stop without warning leaves", () => {
  it("is noted, not blamed: torn ends, unfinished seals and files, stale and torn indexes", async () => {
    const files = await openFiles()
    const path = segmentPath("a", 1)
    const torn = await reportOf(files, { [path]: Buffer.concat([files.get(path)!, Buffer.from("RUNE torn")]) })
    expect(torn.problems).toEqual([])
    expect(torn.notes.map(({ text }) => text).join()).toContain("the journal has what is at byte")
    const lost = await reportOf(files, { [segmentPath("b", 1)]: Buffer.alloc(50) })
    expect(lost.problems).toEqual([])
    const { files: closed, firstIds } = await closedFiles()
    const first = Buffer.from(closed.get(segmentPath("a", 1))!)
    const sealAt = first.lastIndexOf('{"frames"') - FRAME_HEADER_BYTES
    const unfinished = await reportOf(closed, {
      [segmentPath("a", 1)]: first.subarray(0, sealAt + 20),
      [indexPath("a", 1)]: undefined
    })
    expect(unfinished.problems).toEqual([])
    expect(unfinished.notes.map(({ text }) => text)).toEqual([
      `a seal at byte ${sealAt} was never finished`,
      "the segment before it lost its seal; it is made again"
    ])
    const index = indexPath("a", firstIds[1]!)
    const content = decodeIndex(Buffer.from(closed.get(index)!))!
    const lie = encodeIndex({
      ...content,
      index: { ...content.index, offsets: content.index.offsets.map((offset) => offset + 1) }
    })
    const notes = await reportOf(closed, {
      [index]: lie,
      [indexPath("a", 1)]: Buffer.from("torn"),
      [indexPath("a", 9999)]: Buffer.from("torn"),
      [`${path}.tmp`]: Buffer.from("half"),
      "/data/meta.tmp": Buffer.from("half"),
      [`${journalPath(9)}.tmp`]: Buffer.from("half"),
      "/data/quarantine/a-1.seg.5.cut": Buffer.from("cut")
    })
    expect(notes.problems).toEqual([])
    expect(notes.notes).toHaveLength(7)
  })

  it("is a batch that was never finished, and a removal that was not", async () => {
    const files = await openFiles()
    const journal = Buffer.from(files.get(journalPath())!)
    let last = page
    for (let at = page; at < journal.length; at += page)
      if (readBatchHeader(bytesOf(journal), at) !== undefined) last = at
    const torn = await reportOf(files, { [journalPath()]: flipBit(journal, (last + 80) * 8) })
    expect(torn).toMatchObject({ problems: [], batches: 4 })
    expect(torn.notes[0]!.text).toContain("was never finished")
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: { segmentWriteBytes: 1024 * KIB } })
    await fill(runelog, "gone", 1, 3)
    await runelog.checkpoint()
    const before = await snapshotOf(disk)
    await runelog.remove("gone")
    const removed = await snapshotOf(disk)
    expect(await reportOf(removed)).toMatchObject({ logs: 0, problems: [] })
    const stale = await reportOf(removed, { [segmentPath("gone", 1)]: before.get(segmentPath("gone", 1)) })
    expect(stale.notes.map(({ text }) => text)).toContain(
      "the next start finishes the removal of what the log was before"
    )
    await runelog.append("gone", 1, [entryOf(1)])
    expect(await reportOf(await snapshotOf(disk))).toMatchObject({ logs: 1, problems: [] })
  })
})

describe("segments that a checkpoint was writing when the power went", () => {
  /** Segments are written, but the sync that would let the journal forget their events never comes back. */
  const halfWritten = async (): Promise<Snapshot> => {
    const disk = makeDiskMemory()
    const isLog = (path: string) => path.startsWith(`${directory}/runelog/`)
    const syncDirectory = (path: string) => (isLog(path) ? new Promise<void>(() => {}) : disk.syncDirectory(path))
    const runelog = await openSmall({ disk: withCalls(disk, { syncDirectory }), limits })
    await fill(runelog, "a", 1, 30)
    void runelog.checkpoint()
    await settle()
    return snapshotOf(disk)
  }

  const inspectedOf = async (files: Snapshot) => {
    const eventIds: Array<number> = []
    const inspect = (): Inspection => {
      eventIds.length = 0
      const log = () => (event: InspectedEvent) => {
        eventIds.push(event.eventId)
        return []
      }
      return { ...attentive, log }
    }
    const { problems } = await verify({ directory, disk: await diskOf(files), inspect })
    return { eventIds, problems }
  }

  it("show the inspector every event once and in order, whichever of them are missing", async () => {
    const files = await halfWritten()
    const segments = [...files.keys()].filter((path) => path.endsWith(".seg"))
    expect(segments.length).toBeGreaterThanOrEqual(3)
    const everyId = Array.from({ length: 30 }, (_, at) => at + 1)
    for (let missing = 0; missing < 2 ** segments.length; missing++) {
      const gone = segments.filter((_, at) => missing & (1 << at))
      const left = withFiles(files, Object.fromEntries(gone.map((path) => [path, undefined])))
      expect(await inspectedOf(left), gone.join()).toEqual({ eventIds: everyId, problems: [] })
      const reopened = await openSmall({ disk: await diskOf(left), limits })
      expect(
        (await contentOf(reopened, "a")).frames.map(({ eventId }) => eventId),
        gone.join()
      ).toEqual(everyId)
    }
  })
})

describe("the border between segments and journal", () => {
  const laid = async (lay: (runelog: Runelog) => Promise<void>): Promise<Snapshot> => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: { segmentWriteBytes: 1024 * KIB } })
    await lay(runelog)
    return snapshotOf(disk)
  }

  it("is sound behind a seal, and inside a segment that was thinned since", async () => {
    const sealed = await laid(async (runelog) => {
      await fill(runelog, "a", 1, 5)
      await runelog.checkpoint()
      await runelog.seal("a")
      await fill(runelog, "a", 6, 8)
    })
    expect(await reportOf(sealed)).toMatchObject({ problems: [], sealed: 1, batches: 3 })
    const thinned = await laid(async (runelog) => {
      await fill(runelog, "a", 1, 2)
      await runelog.checkpoint()
      for (const eventId of [3, 4, 5]) {
        const role = eventId < 5 ? ("delta" as const) : ("supersedes" as const)
        await runelog.append("a", eventId, [{ body: "x", role, stream: 1 }])
      }
      await runelog.seal("a")
    })
    expect(await reportOf(thinned)).toMatchObject({ problems: [], sealed: 1, batches: 3, thinnedEvents: 2 })
  })

  it("is not judged where the segment before it says nothing", async () => {
    const files = await openFiles()
    const path = segmentPath("a", 1)
    expect((await reportOf(files, { [path]: flipBit(files.get(path)!, 100 * 8) })).problems).toMatchObject([
      { file: path, offset: 0 }
    ])
  })
})

describe("a fault of the journal", () => {
  it("is a hole, a file of another size, version or directory, or none at all", async () => {
    const files = await openFiles()
    const journal = Buffer.from(files.get(journalPath())!)
    expect(await reasonsOf(files, { [journalPath()]: journal.subarray(0, 5 * page) })).toHaveLength(1)
    const emptied = await diskOf(files)
    await emptied.remove(journalPath())
    expect((await verify({ directory, disk: emptied })).problems).toMatchObject([
      { reason: "there is no journal file" }
    ])
    const newer = Buffer.from(journal)
    newer.writeUInt16LE(3, 12)
    newer.writeUInt32LE(crc32c(newer, 12, 64, 0), 8)
    expect((await reasonsOf(files, { [journalPath()]: newer })).join()).toContain("format version 3")
    expect((await reasonsOf(files, { "/data/journal/notes": Buffer.from("x") })).join()).toContain(
      "not a file of the runelog"
    )
    const withoutDirectory = new Map([...files].filter(([path]) => !path.includes("/journal/")))
    expect(await reasonsOf(withoutDirectory, {})).toEqual(["the directory is missing"])
  })

  it("is a batch that is cut off between two looks at it", async () => {
    const disk = await diskOf(await openFiles())
    let opens = 0
    const cutting = withCalls(disk, {
      open: async (path, mode) => {
        const file = await disk.open(path, mode)
        // The batches are found in the whole file; it is shorter when their frames are read.
        return path === journalPath() && opens++ % 6 > 0 ? { ...file, size: async () => page + 10 } : file
      }
    })
    const { problems } = await verify({ directory, disk: cutting })
    expect(problems).toHaveLength(5)
    expect(problems[0]).toMatchObject({ file: journalPath(), reason: "the batch is cut short" })
  })

  it("is a group or frame that cannot be, though every checksum holds", async () => {
    const files = await openFiles()
    const reasons = async (change: (payload: Buffer) => number | undefined) =>
      (await reasonsOf(files, { [journalPath()]: withPayload(files, change) })).join()
    const frame = GROUP_HEADER_BYTES + 1
    expect(await reasons(() => 5)).toContain("the groups of the batch do not fill it")
    expect(await reasons(() => 0)).toContain("the groups of the batch do not fill it")
    expect(await reasons((payload) => void payload.writeUInt8(9, 8))).toContain(
      "unknown group kind in batch 11: a newer build wrote it"
    )
    expect(await reasons((payload) => void payload.writeUInt32LE(4, 4))).toContain("1 frames where 4 are announced")
    expect(await reasons((payload) => void payload.fill(0, frame, frame + 4))).toContain("not a frame")
    const reseal = (payload: Buffer, change: { flags?: number; eventId?: number; previousCrc?: number }): undefined => {
      const bytes = bytesOf(payload)
      const at = frame
      sealFrame(bytes, at, bytes.view.getUint32(at + 8, true), {
        flags: payload[at + 13]!,
        kind: 0,
        family: payload[at + 15]!,
        stream: 0,
        eventId: Number(payload.readBigUInt64LE(at + 24)),
        previousCrc: payload.readUInt32LE(at + 20),
        ...change
      })
    }
    expect(await reasons((payload) => reseal(payload, { flags: flag.batchContinues }))).toContain(
      "the group ends inside a batch"
    )
    expect(await reasons((payload) => reseal(payload, { eventId: 77 }))).toContain("event id 77 where 2 belongs")
    expect(await reasons((payload) => reseal(payload, { previousCrc: 1 }))).toContain(
      "the chain to the frame before is broken"
    )
    expect(await reasons((payload) => reseal(payload, { flags: flag.segmentFirst }))).toContain(
      "the chain to the frame before is broken"
    )
  })

  it("is one that does not continue its log", async () => {
    const files = await openFiles()
    const path = segmentPath("a", 1)
    expect(await reasonsOf(files, { [path]: undefined })).toContain(
      "events 1 to 5 are missing before the journal goes on"
    )
    const other = makeDiskMemory()
    const runelog = await openSmall({ disk: other, limits: { segmentWriteBytes: 1024 * KIB } })
    for (let id = 1; id <= 5; id++) await runelog.append("a", id, [{ ...entryOf(id), stream: 9 }])
    await runelog.checkpoint()
    const foreign = (await snapshotOf(other)).get(path)!
    expect(await reasonsOf(files, { [path]: foreign })).toContain("the journal does not continue the log at event 6")
  })
})

describe("a fault of the directory", () => {
  it("is a meta that is missing or rotten, a foreign log, damage on record", async () => {
    const { files } = await closedFiles()
    const meta = Buffer.from(files.get("/data/meta")!)
    expect(await reasonsOf(files, { "/data/meta": undefined })).toContain("the file is missing")
    expect(await reasonsOf(files, { "/data/meta": Buffer.alloc(8192) })).toContain("neither slot is intact")
    for (const slot of [0, 4096]) {
      meta.writeUInt32LE(5, slot + 12)
      meta.writeUInt32LE(crc32c(meta.subarray(slot), 12, 96, 0), slot + 8)
    }
    expect((await reasonsOf(files, { "/data/meta": meta })).join()).toContain("format version 5")
    expect(await reasonsOf(files, { "/data/runelog/file": Buffer.from("x") })).toContain("not a log of the runelog")
    expect(await reasonsOf(files, { "/data/runelog/a/notes": Buffer.from("x") })).toContain("not a file of the runelog")
    const inside = await diskOf(files)
    await inside.makeDirectory(segmentPath("a", 7))
    expect((await verify({ directory, disk: inside })).problems).toMatchObject([
      { file: segmentPath("a", 7), log: "a", reason: "not a file of the runelog" }
    ])
    expect((await reportOf(files, { "/data/quarantine/a.json": Buffer.from("{}") })).problems).toMatchObject([
      { log: "a" }
    ])
    const bare = new Map([["/data/meta", withoutManifest(files).get("/data/meta")!]])
    expect((await reportOf(bare)).problems).toEqual([])
  })
})

describe("verify beside a writer", () => {
  it("finds nothing that is not there, however often it looks", async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits: { segmentBytes: 600, journalFilesMax: 2 } })
    let stop = false
    const writing = (async () => {
      for (let id = 1; !stop; id++)
        await runelog.append("a", id, [
          { ...entryOf(id), ...(id % 3 === 0 ? { role: "supersedes" as const } : { role: "delta" as const }) }
        ])
    })()
    for (let look = 0; look < 40; look++) expect((await verify({ directory, disk })).problems).toEqual([])
    stop = true
    await writing
    await runelog.close()
  })

  it("looks again when a file goes away under it, and in the end says what it saw", async () => {
    const { files } = await closedFiles()
    const disk = await diskOf(files)
    let failures = 2
    const vanishing = withCalls(disk, {
      open: async (path, mode) => {
        if (path.endsWith(".seg") && failures-- > 0) throw Object.assign(new Error("gone"), { code: "ENOENT" })
        return disk.open(path, mode)
      }
    })
    expect((await verify({ directory, disk: vanishing })).problems).toEqual([])
    failures = Number.POSITIVE_INFINITY
    expect(await errorOf(verify({ directory, disk: vanishing }))).toBeInstanceOf(DiskFailed)
    const broken = withCalls(disk, { list: () => Promise.reject(systemError("EIO", "scandir", directory)) })
    expect(await errorOf(verify({ directory, disk: broken }))).toBeInstanceOf(DiskFailed)
    const unreadable = withCalls(disk, {
      open: (path, mode) =>
        path === "/data/meta" ? Promise.reject(systemError("EIO", "open", path)) : disk.open(path, mode)
    })
    expect(await errorOf(verify({ directory, disk: unreadable }))).toBeInstanceOf(DiskFailed)
    let looks = 0
    const changing = withCalls(disk, {
      list: async (path) => {
        const found = await disk.list(path)
        return path.endsWith("/runelog")
          ? [...found, { name: `foreign file ${looks++}`, kind: "file" as const }]
          : found
      }
    })
    expect((await verify({ directory, disk: changing })).problems).toHaveLength(1)
    expect(looks).toBe(4)
  })
})

describe("a report", () => {
  it("lists no more than it can hold and says so", () => {
    const findings = new Findings()
    for (let at = 0; at < FINDINGS_MAX + 3; at++) {
      findings.problem({ file: "f", offset: at, reason: "r" })
      findings.note({ file: "f", text: "t" })
    }
    const report = findings.report("/d")
    expect(report.problems).toHaveLength(FINDINGS_MAX)
    expect(report.notes.at(-1)).toEqual({ file: "/d", text: "6 further findings are not listed" })
  })
})
