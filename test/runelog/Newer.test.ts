// Goal: what a newer build wrote is neither skipped nor cut: the log is read-only with the reason, every byte stays where it
// is, and the build that understands it finds everything. Method: frames, segments and batches of an unknown version or
// kind with good checksums, at the end, in the middle and in the journal, on a disk in memory.
// Verifies: G4, INV-CRC-VALID
import { describe, expect, it } from "vitest"
import { crc32c } from "#runelog/Crc32c.ts"
import { bytesOf, checkFrame, FRAME_HEADER_BYTES, frameBytes } from "#runelog/Frame.ts"
import { BATCH_HEADER_BYTES, JOURNAL_PAGE_BYTES } from "#runelog/journal/JournalBatch.ts"
import { FormatUnsupported, JournalCorrupt, LogDamaged } from "#runelog/RunelogErrors.ts"
import { PACKED_VERSION, SEGMENT_HEADER_BYTES } from "#runelog/segment/Segment.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import {
  contentOf,
  directory,
  errorOf,
  fill,
  journalPath,
  openSmall,
  readFileOf,
  segmentPath,
  writeFileOf
} from "./Fixture.ts"

const VERSION_AT = 12
const KIND_AT = 14

/** Where the frames of a segment begin. */
const framesIn = (segment: Buffer): ReadonlyArray<number> => {
  const { view } = bytesOf(segment)
  const starts: Array<number> = []
  for (let at = SEGMENT_HEADER_BYTES; at + FRAME_HEADER_BYTES <= segment.length; at += frameBytes(view, at))
    starts.push(at)
  return starts
}

/** Changes a byte of the frame at `start` and makes its checksum good again. */
const changed = (file: Buffer, start: number, at: number, value: number): void => {
  const { view } = bytesOf(file)
  file[start + at] = value
  view.setUint32(start + 4, crc32c(file, start + 8, start + frameBytes(view, start), 0), true)
}

const closed = async (events: number) => {
  const disk = makeDiskMemory()
  const runelog = await openSmall({ disk, limits: { segmentBytes: 1024 * 1024 } })
  await fill(runelog, "a", 1, events)
  await runelog.close()
  const path = segmentPath("a", 1)
  return { disk, path, segment: await readFileOf(disk, path) }
}

const cases = [
  ["version", VERSION_AT, 2, "unknown frame version"],
  ["kind", KIND_AT, 9, "unknown frame kind"]
] as const

describe("a frame of an unknown", () => {
  it.each(cases)("%s at the end is kept, and ends what can be read", async (_what, at, value, reason) => {
    for (const withIndex of [true, false]) {
      const { disk, path, segment } = await closed(9)
      const last = framesIn(segment).at(-1)!
      changed(segment, last, at, value)
      expect(checkFrame(bytesOf(segment), last, segment.length)).toBe(reason)
      await disk.remove(path)
      await writeFileOf(disk, path, segment)
      if (!withIndex) await disk.remove(path.replace(/seg$/, "idx"))
      const runelog = await openSmall({ disk })
      const { frames } = await contentOf(runelog, "a")
      expect(frames.length).toBe(8)
      const refusal = await errorOf(runelog.append("a", 9, [{ body: "over it" }]))
      expect(refusal).toBeInstanceOf(LogDamaged)
      expect(refusal).toMatchObject({ reason, offset: last, file: path })
      expect(await runelog.refusal("a")).toBe(refusal)
      await fill(runelog, "b", 1, 3)
      await runelog.close()
      expect((await readFileOf(disk, path)).equals(segment)).toBe(true)
      // No damage is on record: the build that understands the frame goes on with it.
      expect(await disk.exists(`${directory}/quarantine`)).toBe(false)
    }
  })

  it.each(cases)("%s in the middle is told to whoever reads up to it", async (_what, at, value, reason) => {
    const { disk, path, segment } = await closed(9)
    changed(segment, framesIn(segment)[4]!, at, value)
    await disk.remove(path)
    await writeFileOf(disk, path, segment)
    const found: Array<LogDamaged> = []
    const runelog = await openSmall({ disk, onDamage: (damage) => found.push(damage) })
    const told: Array<string> = []
    runelog.watchAll((log) => told.push(log))
    const { error, frames } = await contentOf(runelog, "a")
    expect(frames.length).toBe(4)
    expect(error).toMatchObject({ reason })
    expect(found).toMatchObject([{ log: "a", reason }])
    expect(told).toEqual(["a"])
    expect(await errorOf(runelog.append("a", 10, [{ body: "x" }]))).toBe(found[0])
    await runelog.close()
    expect((await readFileOf(disk, path)).equals(segment)).toBe(true)
    expect(await disk.exists(`${directory}/quarantine`)).toBe(false)
  })

  it.each([...cases, ["group", -1, 7, "unknown group kind"]] as const)(
    "%s in the journal opens the directory read-only, and the journal stays",
    async (_what, at, value, reason) => {
      const disk = makeDiskMemory()
      const writer = await openSmall({ disk })
      await fill(writer, "a", 1, 3)
      const copy = makeDiskMemory()
      for (const path of [`${directory}/meta`, journalPath()]) {
        await copy.makeDirectory(path.slice(0, path.lastIndexOf("/")))
        await writeFileOf(copy, path, await readFileOf(disk, path))
      }
      const journal = await readFileOf(copy, journalPath())
      rewriteBatch(journal, 3 * JOURNAL_PAGE_BYTES, at, value)
      await copy.remove(journalPath())
      await writeFileOf(copy, journalPath(), journal)
      const runelog = await openSmall({ disk: copy })
      expect(runelog.readOnly).toBeInstanceOf(JournalCorrupt)
      expect(runelog.readOnly).toMatchObject({ reason: expect.stringContaining(reason) })
      expect(await errorOf(runelog.append("a", 3, [{ body: "x" }]))).toBe(runelog.readOnly)
      expect(await runelog.refusal("a")).toBe(runelog.readOnly)
      expect((await contentOf(runelog, "a")).frames.length).toBe(2)
      await runelog.close()
      expect((await readFileOf(copy, journalPath())).equals(journal)).toBe(true)
    }
  )
})

/** Changes the first frame, or the group, of the batch at `start`, and makes all of its checksums good again. */
const rewriteBatch = (journal: Buffer, start: number, at: number, value: number): void => {
  const { view } = bytesOf(journal)
  expect(journal.toString("latin1", start, start + 4)).toBe("BTCH")
  const payload = start + BATCH_HEADER_BYTES
  const frame = payload + 10 + view.getUint8(payload + 9)
  if (at < 0) view.setUint8(payload + 8, value)
  else changed(journal, frame, at, value)
  view.setUint32(start + 12, crc32c(journal, payload, payload + view.getUint32(start + 8, true), 0), true)
  view.setUint32(start + 4, crc32c(journal, start + 8, payload, 0), true)
}

describe("a segment of an unknown version", () => {
  const newer = (segment: Buffer): Buffer => {
    const file = Buffer.from(segment)
    const { view } = bytesOf(file)
    view.setUint16(12, PACKED_VERSION + 1, true)
    view.setUint32(8, crc32c(file, 12, SEGMENT_HEADER_BYTES, 0), true)
    return file
  }

  it("leaves what lies before it readable, and nothing is cut or recorded", async () => {
    const disk = makeDiskMemory()
    const writer = await openSmall({ disk, limits: { segmentBytes: 300 } })
    await fill(writer, "a", 1, 9)
    await writer.close()
    const names = (await disk.list(`${directory}/runelog/a`))
      .map(({ name }) => name)
      .filter((name) => name.endsWith("seg"))
    expect(names.length).toBeGreaterThan(1)
    const path = `${directory}/runelog/a/${names.at(-1)}`
    const file = newer(await readFileOf(disk, path))
    await disk.remove(path)
    await writeFileOf(disk, path, file)
    const runelog = await openSmall({ disk, limits: { segmentBytes: 300 } })
    expect((await contentOf(runelog, "a")).frames.length).toBeGreaterThan(0)
    const refusal = await errorOf(runelog.append("a", (await runelog.head("a")) + 1, [{ body: "x" }]))
    expect(refusal).toMatchObject({
      _tag: "LogDamaged",
      reason: expect.stringContaining(`format version ${PACKED_VERSION + 1}`)
    })
    await runelog.close()
    expect((await readFileOf(disk, path)).equals(file)).toBe(true)
    expect(await disk.exists(`${directory}/quarantine`)).toBe(false)
  })

  it("that the journal goes on behind keeps the directory closed, untouched", async () => {
    const { disk, path, segment } = await closed(5)
    const writer = await openSmall({ disk })
    await fill(writer, "a", 6, 7)
    const copy = makeDiskMemory()
    for (const name of [`${directory}/meta`, journalPath(), path]) {
      await copy.makeDirectory(name.slice(0, name.lastIndexOf("/")))
      await writeFileOf(copy, name, name === path ? newer(segment) : await readFileOf(disk, name))
    }
    const journal = await readFileOf(copy, journalPath())
    expect(await errorOf(openSmall({ disk: copy }))).toBeInstanceOf(FormatUnsupported)
    expect((await readFileOf(copy, journalPath())).equals(journal)).toBe(true)
    expect((await readFileOf(copy, path)).equals(newer(segment))).toBe(true)
  })
})
