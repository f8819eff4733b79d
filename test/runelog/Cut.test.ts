// Goal: wherever a log ends, what is left of it is a prefix without a gap, whole batches only, and nothing is thrown away
// (experiment 5). Method: two segments of 64 KiB together, cut at every byte; a directory of equal logs in memory, each
// cut at another byte, is opened at once. Where batches end is computed from what was appended, not from what the
// engine says.
// Verifies: G2, G3, INV-CRC-VALID, INV-SEGMENT-CONTIGUOUS
import { beforeAll, describe, expect, it } from "vitest"
import { FRAME_HEADER_BYTES } from "#runelog/Frame.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { LogDamaged, LogUnknown, SegmentCorrupt } from "#runelog/RunelogErrors.ts"
import { KIB } from "#runelog/RunelogLimits.ts"
import { SEGMENT_HEADER_BYTES } from "#runelog/segment/Segment.ts"
import { count, reportCount } from "../support/counts.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import {
  type Content,
  contentOf,
  directory,
  diskOf,
  errorOf,
  openSmall,
  type Snapshot,
  segmentPath,
  snapshotOf,
  withFiles,
  withoutManifest
} from "./Fixture.ts"

const limits = {
  segmentBytes: 33_000,
  journalFileBytes: 16 * KIB,
  reserveBytes: 0,
  journalFilesMax: 1,
  pageBytes: 16 * KIB
}
const bytes = 65_536
const names = Array.from({ length: 32 }, (_, at) => `log-${String(at).padStart(2, "0")}`)

interface Batch {
  readonly end: number
  readonly lastEventId: number
}

/** Ends of batches in the first and in the second segment, as offsets in their files. */
const batches: readonly [Array<Batch>, Array<Batch>] = [[], []]
const bodies: Array<string> = []
/** The first event of the second segment. */
let second = 0
/** As a clean close leaves them. */
let files: Snapshot
/** As they are before the first segment is sealed: no seal, no index. */
let unsealed: Snapshot

const nextEntries = (): ReadonlyArray<{ readonly body: string }> =>
  Array.from({ length: 1 + (bodies.length % 3) }, (_, at) => ({
    body: `${bodies.length + at + 1}:${"x".repeat(240 + ((bodies.length + at) % 170))}`
  }))

const build = async (runelog: Runelog): Promise<void> => {
  let [segment, offset]: [0 | 1, number] = [0, SEGMENT_HEADER_BYTES]
  while (segment === 0 || offset < bytes - batches[0].at(-1)!.end) {
    const entries = nextEntries()
    if (segment === 0 && offset >= limits.segmentBytes) {
      ;[segment, offset, second] = [1, SEGMENT_HEADER_BYTES, bodies.length + 1]
    }
    await Promise.all(names.map((name) => runelog.append(name, bodies.length + 1, entries)))
    for (const { body } of entries) {
      bodies.push(body)
      offset += FRAME_HEADER_BYTES + body.length
    }
    batches[segment].push({ end: offset, lastEventId: bodies.length })
  }
}

beforeAll(async () => {
  const disk = makeDiskMemory()
  const runelog = await openSmall({ disk, limits })
  await build(runelog)
  await runelog.close()
  files = await snapshotOf(disk)
  const changes: Record<string, Uint8Array | undefined> = {}
  for (const path of files.keys()) if (path.endsWith(".idx")) changes[path] = undefined
  for (const name of names) {
    const path = segmentPath(name, 1)
    changes[path] = files.get(path)!.subarray(0, batches[0].at(-1)!.end)
  }
  unsealed = withoutManifest(withFiles(files, changes))
})

const lastBefore = (list: ReadonlyArray<Batch>, offset: number): Batch | undefined =>
  list.findLast(({ end }) => end <= offset)

const expectBodies = ({ frames }: Content, lastEventId: number): void => {
  if (frames.length !== lastEventId) expect(frames.length).toBe(lastEventId)
  for (const [at, { body, eventId }] of frames.entries()) {
    const isRight = eventId === at + 1 && body.toString("latin1") === bodies[at]
    if (!isRight) expect({ eventId, body: body.toString("latin1") }).toEqual({ eventId: at + 1, body: bodies[at] })
  }
}

interface Cut {
  readonly name: string
  /** How much of the log is there. */
  readonly at: number
}

/** The files of a log of which only so many bytes were written. */
const filesAt = ({ name, at }: Cut): Record<string, Uint8Array | undefined> => {
  const [first, last] = [segmentPath(name, 1), segmentPath(name, second)]
  const firstBytes = unsealed.get(first)!.length
  return at <= firstBytes
    ? { [first]: unsealed.get(first)!.subarray(0, at), [last]: undefined }
    : { [last]: unsealed.get(last)!.subarray(0, at - firstBytes) }
}

/** Returns whether something was cut off. */
const expectPrefix = async (runelog: Runelog, { name, at }: Cut): Promise<boolean> => {
  const firstBytes = batches[0].at(-1)!.end
  const inFirst = at <= firstBytes
  const cutBytes = inFirst ? at : at - firstBytes
  const good = lastBefore(batches[inFirst ? 0 : 1], cutBytes)
  const head = good?.lastEventId ?? (inFirst ? 0 : second - 1)
  const content = await contentOf(runelog, name)
  expectBodies(content, head)
  if (head === 0) expect(content.error).toBeInstanceOf(LogUnknown)
  else if (content.error !== undefined) throw content.error
  if (at % 64 === 0) {
    await runelog.append(name, head + 1, [{ body: "goes on" }])
    const after = await contentOf(runelog, name, { after: head })
    expect(after.frames.map(({ body }) => body.toString())).toEqual(["goes on"])
  }
  return cutBytes !== good?.end && cutBytes !== 0 && cutBytes !== SEGMENT_HEADER_BYTES
}

const expectPrefixes = async (from: number): Promise<number> => {
  const cuts = names.map((name, index) => ({ name, at: from + index }))
  const disk = await diskOf(withFiles(unsealed, Object.assign({}, ...cuts.map(filesAt))))
  const runelog = await openSmall({ disk, limits })
  const expected: Array<string> = []
  for (const cut of cuts) if (await expectPrefix(runelog, cut)) expected.push(cut.name)
  const kept = (await disk.exists(`${directory}/quarantine`)) ? await disk.list(`${directory}/quarantine`) : []
  expect(kept.map(({ name }) => name.slice(0, 6))).toEqual(expected)
  return cuts.length
}

/** The file cut short under an index that knows better, everything else in place. */
const expectDamage = async (which: 0 | 1, from: number, step: number): Promise<number> => {
  const end = batches[which].at(-1)!.end
  const cuts = names.map((name, index) => ({ name, at: from + index * step })).filter(({ at }) => at < end)
  const pathOf = (name: string): string => segmentPath(name, which === 0 ? 1 : second)
  const changes = cuts.map(({ name, at }) => [pathOf(name), files.get(pathOf(name))!.subarray(0, at)] as const)
  const runelog = await openSmall({ disk: await diskOf(withFiles(files, Object.fromEntries(changes))), limits })
  for (const { name, at } of cuts) {
    const good = lastBefore(batches[which], at)?.lastEventId ?? (which === 0 ? 0 : second - 1)
    const content = await contentOf(runelog, name)
    expectBodies(content, good)
    expect(content.error).toBeInstanceOf(SegmentCorrupt)
    expect(content.error).toMatchObject({ log: name, file: pathOf(name) })
    expect((content.error as SegmentCorrupt).offset).toBeLessThanOrEqual(at)
    expect(await errorOf(runelog.append(name, good + 1, [{ body: "no" }]))).toBeInstanceOf(LogDamaged)
  }
  return cuts.length
}

describe("a log of two segments", () => {
  it("is a prefix without a gap wherever it ends", { timeout: 600_000 }, async () => {
    let cuts = 0
    for (let from = 0; from < bytes; from += names.length) cuts += await expectPrefixes(from)
    expect(cuts).toBe(bytes)
    reportCount("bytes at which a log was cut", cuts)
  })

  it("names the file and the place when it is shorter than its index says", { timeout: 600_000 }, async () => {
    const step = count("cuts under an index", { fast: 16, soak: 1 })
    let cuts = 0
    for (const which of [0, 1] as const) {
      const end = batches[which].at(-1)!.end
      for (let from = 0; from < end; from += step * names.length) cuts += await expectDamage(which, from, step)
    }
    reportCount("bytes at which a log was cut under its index", cuts)
  })
})
