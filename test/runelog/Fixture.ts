// What the tests of the engine share: small limits, directories in memory that can be copied and damaged, and whole
// logs read page by page.

import { crc32c } from "#runelog/Crc32c.ts"
import type { Entry } from "#runelog/commit/Entry.ts"
import type { Disk } from "#runelog/disk/Disk.ts"
import type { RunelogOptions } from "#runelog/Options.ts"
import type { Later } from "#runelog/Retry.ts"
import { Runelog } from "#runelog/Runelog.ts"
import { KIB, type Limits } from "#runelog/RunelogLimits.ts"
import type { Frame, ReadFilter } from "#runelog/segment/Reader.ts"
import { segmentFileName } from "#runelog/segment/Segment.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"

export const directory = "/data"

/** Small enough that a few entries fill a segment, a few batches a journal file. */
export const smallLimits: Partial<Limits> = {
  journalFileBytes: 64 * KIB,
  reserveBytes: 4 * KIB,
  segmentBytes: 4 * KIB,
  segmentWriteBytes: KIB,
  indexEveryFrames: 4,
  indexEveryBytes: KIB,
  pageBytes: 2 * KIB
}

export const randomHex = (bytes: number): string => "5a".repeat(bytes)

export type MemoryOptions = Omit<Partial<RunelogOptions>, "directory">

/** A runelog with small limits and no chance in it, on a new disk unless one is given. */
export const openSmall = (options: MemoryOptions = {}): Promise<Runelog> =>
  Runelog.open({
    directory,
    disk: makeDiskMemory(),
    nowMs: () => 0,
    randomHex,
    sync: "inline",
    ...options,
    limits: { ...smallLimits, ...options.limits }
  })

export const segmentPath = (log: string, firstEventId: number): string =>
  `${directory}/runelog/${log}/${segmentFileName(firstEventId)}`

export const indexPath = (log: string, firstEventId: number): string =>
  segmentPath(log, firstEventId).replace(/seg$/, "idx")

export const journalPath = (number = 1): string => `${directory}/journal/${String(number).padStart(8, "0")}.jnl`

/** An entry that tells its event id, of a length that depends on it. */
export const entryOf = (eventId: number, padding = eventId % 50): Entry => ({
  body: `event ${eventId} ${"·".repeat(padding)}`,
  family: eventId % 4
})

/** Appends entries one by one, as `entryOf` makes them. */
export const fill = async (runelog: Runelog, log: string, from: number, to: number): Promise<void> => {
  for (let eventId = from; eventId <= to; eventId++) await runelog.append(log, eventId, [entryOf(eventId)])
}

export interface Content {
  readonly frames: ReadonlyArray<Frame>
  /** What the reading ended with, if not with the head. */
  readonly error: unknown
}

/** Reads from a cursor to the head, or to the first error. */
export const contentOf = async (
  runelog: Runelog,
  log: string,
  options: { readonly after?: number; readonly bytesMax?: number; readonly filter?: ReadFilter } = {}
): Promise<Content> => {
  const frames: Array<Frame> = []
  let after = options.after ?? 0
  try {
    for (;;) {
      const page = await runelog.read(log, { ...options, after })
      frames.push(...page.frames)
      if (page.next === after) return { frames, error: undefined }
      after = page.next
    }
  } catch (error) {
    return { frames, error }
  }
}

export const bodiesOf = ({ frames }: Content): ReadonlyArray<string> => frames.map(({ body }) => body.toString("utf8"))

/** What a promise is rejected with; fails the test when it is not. */
export const errorOf = async (promise: Promise<unknown>): Promise<unknown> => {
  let value: unknown
  try {
    value = await promise
  } catch (error) {
    return error
  }
  throw new Error(`there was no error but ${String(value)}`)
}

/** Files by path. */
export type Snapshot = ReadonlyMap<string, Uint8Array>

export const readFileOf = async (disk: Disk, path: string): Promise<Buffer> => {
  const file = await disk.open(path, "read")
  const buffer = Buffer.alloc(await file.size())
  await file.read(buffer, 0, buffer.length, 0)
  await file.close()
  return buffer
}

/** Replaces the content of a file, or makes it. */
export const writeFileOf = async (disk: Disk, path: string, content: Uint8Array): Promise<void> => {
  const file = await disk.open(path, (await disk.exists(path)) ? "write" : "create")
  await file.truncate(content.length)
  await file.write(content, 0, content.length, 0)
  await file.close()
}

export const snapshotOf = async (disk: Disk, from: string = directory): Promise<Map<string, Uint8Array>> => {
  const files = new Map<string, Uint8Array>()
  for (const { kind, name } of await disk.list(from)) {
    const path = `${from}/${name}`
    if (kind === "file") files.set(path, await readFileOf(disk, path))
    else for (const [below, content] of await snapshotOf(disk, path)) files.set(below, content)
  }
  return files
}

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf("/"))

export const diskOf = async (files: Snapshot): Promise<Disk> => {
  const disk = makeDiskMemory()
  for (const parent of new Set([...files.keys()].map(parentOf))) await disk.makeDirectory(parent)
  for (const [path, content] of files) {
    const file = await disk.open(path, "create")
    file.writeNow(content, 0, content.length, 0)
  }
  return disk
}

/** A copy of the files with some of them replaced or, where undefined, left out. */
export const withFiles = (files: Snapshot, changes: Readonly<Record<string, Uint8Array | undefined>>): Snapshot => {
  const changed = new Map(files)
  for (const [path, content] of Object.entries(changes)) {
    if (content === undefined) changed.delete(path)
    else changed.set(path, content)
  }
  return changed
}

/** A copy with one bit changed; bits count from the lowest of the first byte. */
export const flipBit = (content: Uint8Array, bit: number): Buffer => {
  const copy = Buffer.from(content)
  copy[bit >>> 3]! ^= 1 << (bit & 7)
  return copy
}

/** A disk that differs from another in a few calls. */
/** The same files as a writer left them that knew no manifest: nothing promises more than indexes do. */
export const withoutManifest = (files: Snapshot): Snapshot => {
  const left = new Map([...files].filter(([path]) => !path.startsWith(`${directory}/manifest.`)))
  const meta = Buffer.from(files.get(`${directory}/meta`)!)
  for (const slot of [0, 4096]) {
    meta.fill(0, slot + 80, slot + 96)
    meta.writeUInt32LE(crc32c(meta.subarray(slot), 12, 96, 0), slot + 8)
  }
  return left.set(`${directory}/meta`, meta)
}

export const withCalls = (disk: Disk, calls: Partial<Disk>): Disk => ({
  open: (path, mode) => disk.open(path, mode),
  makeDirectory: (path) => disk.makeDirectory(path),
  list: (path) => disk.list(path),
  rename: (from, to) => disk.rename(from, to),
  remove: (path) => disk.remove(path),
  removeTree: (path) => disk.removeTree(path),
  exists: (path) => disk.exists(path),
  syncDirectory: (path) => disk.syncDirectory(path),
  lock: (path) => disk.lock(path),
  ...calls
})

/** Lets everything run that waits for a turn of the event loop and not for a timer. */
export const settle = async (): Promise<void> => {
  for (let turns = 0; turns < 100; turns++) await new Promise<void>((resolve) => setImmediate(resolve))
}

/** Timers that a test fires: what is planned, and with which pauses. */
export const manualTimers = () => {
  const planned = new Set<() => void>()
  const delays: Array<number> = []
  const later: Later = (delayMs, run) => {
    delays.push(delayMs)
    planned.add(run)
    return () => void planned.delete(run)
  }
  const fire = async (): Promise<void> => {
    for (const run of [...planned]) {
      planned.delete(run)
      run()
    }
    await settle()
  }
  return {
    later,
    fire,
    delays,
    get pending() {
      return planned.size
    }
  }
}
