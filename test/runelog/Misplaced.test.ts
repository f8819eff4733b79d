// Goal: frames and segments that are whole but stand in the wrong place are found, every time (experiment 7). Method:
// random changes of a log's files by hand: frames and segments swapped, doubled, removed, taken from another log, or from
// an earlier life of the same one. All of them keep their checksums; only their place is wrong.
// Verifies: G3, INV-CRC-VALID, INV-SEGMENT-CONTIGUOUS, INV-EVENTID-MONOTONIC
import { beforeAll, describe, expect, it } from "vitest"
import { bytesOf, frameBytes } from "#runelog/Frame.ts"
import type { Runelog } from "#runelog/Runelog.ts"
import { SegmentCorrupt } from "#runelog/RunelogErrors.ts"
import { SEGMENT_HEADER_BYTES } from "#runelog/segment/Segment.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { count, reportCount } from "../support/counts.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import {
  contentOf,
  directory,
  diskOf,
  openSmall,
  type Snapshot,
  segmentPath,
  snapshotOf,
  withFiles
} from "./Fixture.ts"

const events = 60
const bodyOf = (life: string, eventId: number): string =>
  `${life} ${String(eventId).padStart(4, "0")} ${"b".repeat(150)}`

const write = async (runelog: Runelog, log: string, life: string): Promise<void> => {
  for (let eventId = 1; eventId <= events; eventId++) {
    const role = eventId % 7 === 0 ? ("supersedes" as const) : eventId % 3 === 0 ? ("delta" as const) : undefined
    await runelog.append(log, eventId, [{ body: bodyOf(life, eventId), ...(role && { role }) }])
  }
}

type Frames = ReadonlyArray<Buffer>

interface Parsed {
  readonly header: Buffer
  readonly frames: Frames
}

const parse = (content: Uint8Array): Parsed => {
  const { buffer, view } = bytesOf(Buffer.from(content))
  const frames: Array<Buffer> = []
  for (let at = SEGMENT_HEADER_BYTES; at < buffer.length; at += frameBytes(view, at)) {
    frames.push(buffer.subarray(at, at + frameBytes(view, at)))
  }
  return { header: buffer.subarray(0, SEGMENT_HEADER_BYTES), frames }
}

const join = ({ header, frames }: Parsed): Buffer => Buffer.concat([header, ...frames])

/** The log that is changed, a log beside it, and what the first one was before it was removed and written anew. */
let files: Snapshot
let before: Snapshot
let firstIds: ReadonlyArray<number>

beforeAll(async () => {
  const disk = makeDiskMemory()
  const limits = { segmentBytes: 2500 }
  const first = await openSmall({ disk, limits })
  await write(first, "log", "old")
  await first.close()
  before = await snapshotOf(disk)
  const second = await openSmall({ disk, limits })
  await second.remove("log")
  await write(second, "log", "new")
  await write(second, "other", "oth")
  await second.close()
  files = await snapshotOf(disk)
  const names = await disk.list(`${directory}/runelog/log`)
  firstIds = names.filter(({ name }) => name.endsWith(".seg")).map(({ name }) => Number.parseInt(name, 10))
  expect(firstIds.length).toBeGreaterThan(3)
})

type Changes = Record<string, Uint8Array | undefined>
type Chance = () => number

const pick = <A>(chance: Chance, values: ReadonlyArray<A>): A => values[Math.floor(chance() * values.length)]!

const pathOf = (firstEventId: number): string => segmentPath("log", firstEventId)
const parsed = (from: Snapshot, path: string): Parsed => parse(from.get(path)!)
const anyId = (chance: Chance): number => pick(chance, firstIds)
const anyFrame = (chance: Chance, { frames }: Parsed): number => Math.floor(chance() * frames.length)

/** Changes the frames of one segment of the log. */
const inSegment =
  (change: (frames: Array<Buffer>, chance: Chance, firstEventId: number) => void) =>
  (chance: Chance): Changes => {
    const firstEventId = anyId(chance)
    const segment = parsed(files, pathOf(firstEventId))
    const frames = [...segment.frames]
    change(frames, chance, firstEventId)
    return { [pathOf(firstEventId)]: join({ ...segment, frames }) }
  }

const frameOf = (from: Snapshot, path: string, chance: Chance): Buffer => {
  const segment = parsed(from, path)
  return segment.frames[anyFrame(chance, segment)]!
}

const at = (frames: ReadonlyArray<Buffer>, chance: Chance): number => Math.floor(chance() * frames.length)

const mutations: Readonly<Record<string, (chance: Chance) => Changes>> = {
  "two frames swapped": inSegment((frames, chance) => {
    const [left, right] = [at(frames, chance), at(frames, chance)]
    ;[frames[left], frames[right]] = [frames[right]!, frames[left]!]
  }),
  "a frame doubled": inSegment((frames, chance) => {
    const index = at(frames, chance)
    frames.splice(index, 0, frames[index]!)
  }),
  "a frame removed": inSegment((frames, chance) => void frames.splice(at(frames, chance), 1)),
  "several frames removed": inSegment((frames, chance) => {
    const index = at(frames, chance)
    frames.splice(index, 1 + at(frames.slice(index), chance))
  }),
  "a frame of another log in place of its own": inSegment((frames, chance, firstEventId) => {
    const other = parsed(files, segmentPath("other", firstEventId)).frames
    const index = at(frames, chance)
    frames[index] = other[Math.min(index, other.length - 1)]!
  }),
  "a frame of an earlier life in place of its own": inSegment((frames, chance, firstEventId) => {
    const old = parsed(before, pathOf(firstEventId)).frames
    // The very first frame is chained to a header that says the same in every life: only the second gives it away.
    const index = Math.max(at(frames, chance), firstEventId === 1 ? 1 : 0)
    frames[index] = old[Math.min(index, old.length - 1)]!
  }),
  "a frame of another log added": inSegment((frames, chance) => {
    frames.splice(at(frames, chance), 0, frameOf(files, segmentPath("other", anyId(chance)), chance))
  }),
  "a frame of another segment added": inSegment((frames, chance) => {
    frames.splice(at(frames, chance), 0, frameOf(files, pathOf(anyId(chance)), chance))
  }),
  "the frames in reverse": inSegment((frames) => void frames.reverse()),
  "all frames twice": inSegment((frames) => void frames.push(...frames)),
  "the end of an earlier life": inSegment((frames, chance, firstEventId) => {
    const index = at(frames, chance)
    frames.splice(index, frames.length, ...parsed(before, pathOf(firstEventId)).frames.slice(index))
  }),
  "the header of another log": (chance) => {
    const id = anyId(chance)
    const { header } = parsed(files, segmentPath("other", id))
    return { [pathOf(id)]: join({ ...parsed(files, pathOf(id)), header }) }
  },
  "the header of an earlier life": (chance) => {
    const id = firstIds[1 + Math.floor(chance() * (firstIds.length - 1))]!
    return { [pathOf(id)]: join({ ...parsed(files, pathOf(id)), header: parsed(before, pathOf(id)).header }) }
  },
  "a segment of another log": (chance) => {
    const id = anyId(chance)
    return { [pathOf(id)]: files.get(segmentPath("other", id)) }
  },
  "a segment of an earlier life": (chance) => {
    const id = anyId(chance)
    return { [pathOf(id)]: before.get(pathOf(id)) }
  },
  "a segment of an earlier life with its index": (chance) => {
    const id = anyId(chance)
    const index = pathOf(id).replace(/seg$/, "idx")
    return { [pathOf(id)]: before.get(pathOf(id)), [index]: before.get(index) }
  },
  "two segments swapped": (chance) => {
    const [left, right] = [anyId(chance), anyId(chance)]
    return { [pathOf(left)]: files.get(pathOf(right)), [pathOf(right)]: files.get(pathOf(left)) }
  },
  "a segment removed": (chance) => ({ [pathOf(anyId(chance))]: undefined }),
  "a segment twice, under another name": (chance) => {
    const id = anyId(chance)
    return { [pathOf(id + 1 + Math.floor(chance() * 3))]: files.get(pathOf(id)) }
  },
  "a segment without its seal": (chance) => {
    const id = firstIds[Math.floor(chance() * (firstIds.length - 1))]!
    const segment = parsed(files, pathOf(id))
    return { [pathOf(id)]: join({ ...segment, frames: segment.frames.slice(0, -1) }) }
  }
}

const isChange = (changes: Changes): boolean =>
  Object.entries(changes).some(([path, content]) => !Buffer.from(content ?? []).equals(files.get(path) ?? Buffer.of()))

const expectFound = async (what: string, changes: Changes): Promise<void> => {
  const changed = withFiles(files, changes)
  const { problems } = await verify({ directory, disk: await diskOf(changed) })
  const own = problems.filter(({ file, log, offset }) => log === "log" && file.includes("/log/") && offset >= 0)
  expect(own.length, what).toBeGreaterThan(0)
  expect(own.length, what).toBe(problems.length)
  const runelog = await openSmall({ disk: await diskOf(changed), limits: { segmentBytes: 2500 } })
  const { error, frames } = await contentOf(runelog, "log")
  let expected = 1
  for (const frame of frames) {
    expect(frame.eventId, what).toBe(expected)
    if (frame.kind === "entry") expect(frame.body.toString(), what).toBe(bodyOf("new", frame.eventId))
    expected = frame.lastEventId + 1
  }
  if (error === undefined) expect(expected, what).toBe(events + 1)
  else expect(error, what).toBeInstanceOf(SegmentCorrupt)
}

describe("frames and segments in the wrong place", () => {
  it("are found every time, and give no wrong entry", { timeout: 600_000 }, async () => {
    const seed = seedFor("misplaced frames and segments")
    const chance = randomFrom(seed)
    const wanted = count("misplaced frames and segments", { fast: 2_000, soak: 100_000 })
    let done = 0
    while (done < wanted) {
      const [what, mutate] = pick(chance, Object.entries(mutations))
      const changes = mutate(chance)
      if (!isChange(changes)) continue
      await expectFound(`${what} (SEED=${seed}, number ${done})`, changes)
      done += 1
    }
    reportCount("misplaced frames and segments", done)
  })

  it.each(Object.entries(mutations))("are found: %s", async (what, mutate) => {
    const chance = randomFrom(7)
    let changes = mutate(chance)
    while (!isChange(changes)) changes = mutate(chance)
    await expectFound(what, changes)
  })

  it("are not found where there are none", async () => {
    const report = await verify({ directory, disk: await diskOf(files) })
    expect(report.problems).toEqual([])
    expect(report.sealed).toBe(2 * (firstIds.length - 1))
    expect(report.thinnedEvents).toBeGreaterThan(0)
  })
})
