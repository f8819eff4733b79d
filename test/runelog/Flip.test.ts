// Goal: a bit that changes on the disk is found, and never gives a wrong entry (experiment 6). Method: every 16th bit of
// two segments (all of them in soak), and of the journal of a directory that was not closed; all bits of meta and
// of an index. What must come back is computed from what was appended.
// Verifies: G3, INV-CRC-VALID, INV-RUNE-IMMUTABLE
import { beforeAll, describe, expect, it } from "vitest"
import { FRAME_HEADER_BYTES } from "#runelog/Frame.ts"
import { BATCH_HEADER_BYTES, GROUP_HEADER_BYTES, JOURNAL_PAGE_BYTES } from "#runelog/journal/JournalBatch.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { JournalCorrupt } from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { count, reportCount } from "../support/counts.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import {
  bodiesOf,
  contentOf,
  directory,
  diskOf,
  errorOf,
  flipBit,
  indexPath,
  journalPath,
  openSmall,
  type Snapshot,
  segmentPath,
  snapshotOf,
  withFiles
} from "./Fixture.ts"

const timeout = 600_000
const names = Array.from({ length: 32 }, (_, at) => `log-${String(at).padStart(2, "0")}`)
const limits = {
  segmentBytes: 33_000,
  journalFileBytes: 16 * KIB,
  reserveBytes: 0,
  journalFilesMax: 1,
  pageBytes: 16 * KIB
}

/** Nothing is written to segments before the journal has to make room. */
const journalLimits = { ...limits, journalFileBytes: 64 * KIB, segmentWriteBytes: 1024 * KIB }

describe("a bit that changes in a segment", () => {
  let files: Snapshot
  let second = 0
  const bodies: Array<string> = []

  beforeAll(async () => {
    const disk = makeDiskMemory()
    const runelog = await openSmall({ disk, limits })
    for (let bytes = 0; bytes < 65_300; bytes += 320) {
      const body = `${bodies.length + 1}:${"y".repeat(284)}`
      bodies.push(body)
      await Promise.all(names.map((name) => runelog.append(name, bodies.length, [{ body }])))
    }
    await runelog.close()
    files = await snapshotOf(disk)
    const segments = (await disk.list(`${directory}/runelog/log-00`)).filter(({ name }) => name.endsWith(".seg"))
    expect(segments).toHaveLength(2)
    second = Number.parseInt(segments[1]!.name, 10)
  })

  const expectFound = async (firstEventId: number, bits: ReadonlyArray<number>): Promise<void> => {
    const flips = bits.map((bit, at) => ({ bit, name: names[at]!, path: segmentPath(names[at]!, firstEventId) }))
    const changes = flips.map(({ bit, path }) => [path, flipBit(files.get(path)!, bit)])
    const damaged = withFiles(files, Object.fromEntries(changes))
    const report = await verify({ directory, disk: await diskOf(damaged) })
    const runelog = await openSmall({ disk: await diskOf(damaged), limits })
    for (const { bit, name, path } of flips) {
      const problems = report.problems.filter(({ log }) => log === name)
      if (problems.length !== 1) expect({ bit, problems }).toEqual({ bit, problems: [expect.anything()] })
      expect(problems[0]).toMatchObject({ file: path })
      expect(problems[0]!.offset).toBeLessThanOrEqual(bit >>> 3)
      const content = await contentOf(runelog, name)
      const found = bodiesOf(content)
      if (found.some((body, at) => body !== bodies[at])) expect({ bit, found }).toEqual({ bit, found: bodies })
      // A seal says nothing of its own that a reader would miss.
      if (content.error === undefined) expect(found).toHaveLength(bodies.length)
      else expect(content.error).toMatchObject({ _tag: "SegmentCorrupt", log: name, file: path })
    }
  }

  it("is found by verify with its place, and gives no wrong entry", { timeout }, async () => {
    const step = count("flipped bits", { fast: 16, soak: 1 })
    let flips = 0
    for (const firstEventId of [1, second]) {
      const bits = files.get(segmentPath("log-00", firstEventId))!.length * 8
      for (let from = 0; from < bits; from += step * names.length) {
        const group = names.map((_, at) => from + at * step).filter((bit) => bit < bits)
        await expectFound(firstEventId, group)
        flips += group.length
      }
    }
    reportCount("bits flipped in segments", flips)
  })

  it("does no harm in an index", { timeout }, async () => {
    const path = indexPath("log-00", 1)
    const bits = files.get(path)!.length * 8
    const single = new Map([...files].filter(([name]) => !/log-(?!00)/.test(name)))
    for (let bit = 0; bit < bits; bit++) {
      const disk = await diskOf(withFiles(single, { [path]: flipBit(files.get(path)!, bit) }))
      const runelog = await openSmall({ disk, limits })
      const content = await contentOf(runelog, "log-00", { bytesMax: 100 * KIB })
      expect(content.error).toBeUndefined()
      expect(content.frames).toHaveLength(bodies.length)
    }
    reportCount("bits flipped in an index", bits)
  })
})

interface Commit {
  readonly offset: number
  /** Where header and payload end. */
  readonly end: number
  /** The heads of the logs once it is applied. */
  readonly heads: Readonly<Record<string, number>>
}

/** A directory as a killed process leaves it: everything acknowledged is in the journal, one batch per append. */
const unclean = async (): Promise<{ readonly files: Snapshot; readonly commits: ReadonlyArray<Commit> }> => {
  const disk = makeDiskMemory()
  const runelog = await openSmall({ disk, limits: journalLimits })
  const commits: Array<Commit> = []
  let heads: Readonly<Record<string, number>> = { a: 0, b: 0 }
  let offset = JOURNAL_PAGE_BYTES
  for (let at = 0; at < 9; at++) {
    const log = at % 3 === 1 ? "b" : "a"
    const entries = Array.from({ length: 1 + (at % 2) }, (_, index) => ({
      body: `${heads[log]! + index + 1}:${"z".repeat(at === 4 ? 4500 : 700)}`
    }))
    await runelog.append(log, heads[log]! + 1, entries)
    heads = { ...heads, [log]: heads[log]! + entries.length }
    const payload = entries.reduce((sum, { body }) => sum + FRAME_HEADER_BYTES + body.length, GROUP_HEADER_BYTES + 1)
    const end = offset + BATCH_HEADER_BYTES + payload
    commits.push({ offset, end, heads })
    offset = Math.ceil(end / JOURNAL_PAGE_BYTES) * JOURNAL_PAGE_BYTES
  }
  // The process is gone: what it had in memory is not in the copy.
  return { files: await snapshotOf(disk), commits }
}

const expectHeads = async (runelog: Runelog, heads: Readonly<Record<string, number>>): Promise<void> => {
  for (const [log, head] of Object.entries(heads)) {
    expect(await runelog.head(log)).toBe(head)
    const content = head === 0 ? undefined : await contentOf(runelog, log)
    const ids = (content?.frames ?? []).map(({ body }) => Number.parseInt(body.toString(), 10))
    expect(ids).toEqual(Array.from({ length: head }, (_, at) => at + 1))
  }
}

describe("a bit that changes in the journal of a directory that was not closed", () => {
  it("is found, or was never acknowledged, and gives no wrong entry", { timeout }, async () => {
    const { commits, files } = await unclean()
    const path = journalPath()
    const journal = files.get(path)!
    const all = commits.at(-1)!.heads
    const none = { a: 0, b: 0 }
    const step = count("flipped bits of a journal", { fast: 67, soak: 1 })
    let flips = 0
    for (let bit = 0; bit < journal.length * 8; bit += step) {
      const byte = bit >>> 3
      const hit = commits.findIndex(({ end, offset }) => byte >= offset && byte < end)
      const isHeader = byte < BATCH_HEADER_BYTES
      if (byte > commits.at(-1)!.end + 2 * JOURNAL_PAGE_BYTES) break
      const runelog = await openSmall({
        disk: await diskOf(withFiles(files, { [path]: flipBit(journal, bit) })),
        limits: journalLimits
      })
      const isDamage = isHeader || (hit >= 0 && hit < commits.length - 1)
      expect(runelog.readOnly !== undefined, `bit ${bit}`).toBe(isDamage)
      if (isDamage) {
        expect(runelog.readOnly).toMatchObject({ _tag: "JournalCorrupt", file: path })
        expect(await errorOf(runelog.append("a", 1, [{ body: "no" }]))).toBeInstanceOf(JournalCorrupt)
      }
      await expectHeads(runelog, hit < 0 ? all : (commits[hit - 1]?.heads ?? none))
      flips += 1
    }
    reportCount("bits flipped in a journal", flips)
  })

  it("is found wherever the file is cut", { timeout }, async () => {
    const { commits, files } = await unclean()
    const path = journalPath()
    const journal = files.get(path)!
    const step = count("cuts of a journal", { fast: 64, soak: 1 })
    let cuts = 0
    for (let cut = 0; cut < journal.length; cut += step) {
      const disk = await diskOf(withFiles(files, { [path]: journal.subarray(0, cut) }))
      const runelog = await openSmall({ disk, limits: journalLimits })
      expect(runelog.readOnly).toMatchObject({ _tag: "JournalCorrupt", file: path })
      await expectHeads(runelog, commits.findLast(({ end }) => end <= cut)?.heads ?? { a: 0, b: 0 })
      cuts += 1
    }
    reportCount("bytes at which a journal was cut", cuts)
  })
})

describe("a bit that changes in meta", () => {
  const metaPath = `${directory}/meta`
  const used = 96
  const slotBytes = 4096

  const bitsOf = (slot: number): ReadonlyArray<number> =>
    Array.from({ length: used * 8 }, (_, bit) => slot * slotBytes * 8 + bit)

  it("loses nothing, closed or not", { timeout }, async () => {
    const open = await unclean()
    const closedDisk = await diskOf(open.files)
    await (await openSmall({ disk: closedDisk, limits: journalLimits })).close()
    const closed = await snapshotOf(closedDisk)
    let flips = 0
    for (const files of [open.files, closed]) {
      for (const bit of [...bitsOf(0), ...bitsOf(1)]) {
        const disk = await diskOf(withFiles(files, { [metaPath]: flipBit(files.get(metaPath)!, bit) }))
        const runelog = await openSmall({ disk, limits: journalLimits })
        expect(runelog.readOnly).toBeUndefined()
        await expectHeads(runelog, open.commits.at(-1)!.heads)
        flips += 1
      }
    }
    reportCount("bits flipped in meta", flips)
  })

  it("is refused when both slots are hit", async () => {
    const { files } = await unclean()
    const meta = flipBit(flipBit(files.get(metaPath)!, 100), slotBytes * 8 + 100)
    const error = await errorOf(openSmall({ disk: await diskOf(withFiles(files, { [metaPath]: meta })), limits }))
    expect(error).toBeInstanceOf(JournalCorrupt)
    expect(error).toMatchObject({ file: metaPath, offset: 0, reason: "neither slot is intact" })
  })
})

it("takes nothing for granted: an unharmed copy is sound", async () => {
  const { files } = await unclean()
  const report = await verify({ directory, disk: await diskOf(files) })
  expect(report).toMatchObject({ problems: [], batches: 9, logs: 2, segments: 0 })
})
