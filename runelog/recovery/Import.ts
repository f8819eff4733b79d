// Logs that arrive whole: sealed segments that were kept elsewhere, or were built from entries. All of it is written,
// synced and checked in a directory of its own; one rename makes it the log. A crash before that rename leaves no
// log, one after it the whole log. Frames that arrive this way never pass through the journal.
import * as Data from "effect/Data"
import type { Entry } from "../commit/Entry.ts"
import type { Disk } from "../disk/Disk.ts"
import { codeOf } from "../disk/DiskFault.ts"
import type { LogState } from "../LogState.ts"
import { asDiskError, LogUnknown, SyncFailed } from "../RunelogErrors.ts"
import type { Limits } from "../RunelogLimits.ts"
import { checkSealedSegment, type SealedContent } from "../segment/SealedSegment.ts"
import { segmentFileName } from "../segment/Segment.ts"
import { type Built, buildSegments } from "./ImportBuild.ts"
import { loadClosedSegment, type OpenLogOptions } from "./OpenLog.ts"

/** There is a log of that name already. */
export class LogExists extends Data.TaggedError("LogExists")<{ readonly log: string }> {
  readonly wireCode = "invalid_state" as const

  override get message() {
    return `there is a log "${this.log}" already`
  }
}

/** The log was to be removed as it was known, and has more events by now. Nothing was removed. */
export class LogWentOn extends Data.TaggedError("LogWentOn")<{
  readonly log: string
  readonly expected: number
  readonly head: number
}> {
  readonly wireCode = "internal" as const

  override get message() {
    return `log "${this.log}" has gone on to event ${this.head}; it was to be removed at ${this.expected}`
  }
}

/** What was to become a log is not one. Nothing of it remains. */
export class ImportRefused extends Data.TaggedError("ImportRefused")<{
  readonly log: string
  /** Which segment, counted from 0. */
  readonly segment: number
  readonly offset: number
  readonly reason: string
}> {
  readonly wireCode = "internal" as const

  override get message() {
    return `segment ${this.segment} cannot become part of log "${this.log}": ${this.reason} (at byte ${this.offset})`
  }
}

/** A sealed segment of a log, to be copied as it is. */
export interface SealedFile {
  readonly firstEventId: number
  readonly lastEventId: number
  readonly bytes: number
  readonly sha256: string
  /** Reads up to `length` bytes at `position`; fewer only at the end. */
  readonly read: (position: number, length: number) => Promise<Buffer>
}

/** A copy of a sealed segment; its bytes are taken to the end before the next one is asked for. */
export interface SegmentSource {
  readonly firstEventId: number
  readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
}

export interface Imported {
  readonly head: number
  /** Checksum of the last frame as it was appended. */
  readonly headCrc: number
  /** The newest digest. */
  readonly sha256: string
}

export interface ImportOptions {
  readonly disk: Disk
  /** Where logs live. */
  readonly logsDirectory: string
  /** Where they are put together. */
  readonly importDirectory: string
  readonly limits: Limits
}

export const importDirectory = (directory: string): string => `${directory}/import`

/** The segments of a log that was sealed before, in order. They stay what they are while they are listed. */
export const sealedFiles = (options: OpenLogOptions, log: LogState): Promise<ReadonlyArray<SealedFile>> =>
  log.gate.shared(async () => {
    // It was removed since it was sealed.
    if (log.segments.length === 0) throw new LogUnknown({ log: log.name })
    const found: Array<SealedFile> = []
    for (let at = 0; at < log.segments.length; at++) {
      const isLast = at === log.segments.length - 1
      const segment = isLast ? log.segments[at]! : await loadClosedSegment(options, log, at)
      // Something was appended since the seal; what lies before it is whole.
      if (segment.seal === undefined) break
      found.push(await sealedFile(options, log, at))
    }
    return found
  })

const sealedFile = async ({ files, store }: OpenLogOptions, log: LogState, at: number): Promise<SealedFile> => {
  const { firstEventId, seal } = log.segments[at]!
  const path = store.segmentPath(log.name, { firstEventId })
  const next = log.segments[at + 1]
  return {
    firstEventId,
    lastEventId: next === undefined ? log.durableEventId : next.firstEventId - 1,
    bytes: await files.use(path, (file) => file.size()),
    sha256: seal!.sha256,
    read: (position, length) =>
      log.gate.shared(() =>
        files.use(path, async (file) => {
          const buffer = Buffer.allocUnsafe(length)
          return buffer.subarray(0, await file.read(buffer, 0, length, position))
        })
      )
  }
}

/** Makes copies of sealed segments the log; resolves when that is durable. */
export const importSegments = (
  options: ImportOptions,
  log: string,
  segments: AsyncIterable<SegmentSource>
): Promise<Imported> =>
  install(options, log, (directory) => copySegments({ disk: options.disk, directory, log }, segments))

/** Makes the entries the log, under the ids from 1 on; resolves when that is durable. */
export const importEntries = (options: ImportOptions, log: string, entries: AsyncIterable<Entry>): Promise<Imported> =>
  install(options, log, (directory) =>
    buildSegments({ disk: options.disk, directory, log, limits: options.limits }, guarded(log, entries))
  )

const install = async (
  options: ImportOptions,
  log: string,
  write: (directory: string) => AsyncIterable<Built>
): Promise<Imported> => {
  const { disk } = options
  const temporary = `${options.importDirectory}/${log}`
  const imported = await prepare(disk, log, temporary, write).catch(async (error) => {
    await disk.removeTree(temporary).catch(() => undefined)
    throw asDiskError(error, temporary)
  })
  // An empty directory may be left where the log once was.
  await disk.removeTree(`${options.logsDirectory}/${log}`)
  await disk.rename(temporary, `${options.logsDirectory}/${log}`)
  await syncEntries(disk, options.logsDirectory)
  await syncEntries(disk, options.importDirectory)
  return imported
}

const prepare = async (
  disk: Disk,
  log: string,
  temporary: string,
  write: (directory: string) => AsyncIterable<Built>
): Promise<Imported> => {
  await disk.removeTree(temporary)
  await disk.makeDirectory(temporary)
  const imported = await checkAll(disk, log, write(temporary))
  await disk.syncDirectory(temporary)
  return imported
}

/** From the rename on the log is in use: if it is not known to be durable, nothing on top of it can be. */
const syncEntries = async (disk: Disk, path: string): Promise<void> => {
  try {
    await disk.syncDirectory(path)
  } catch (cause) {
    throw new SyncFailed({ path, cause })
  }
}

/** What a source throws is no failure of this disk, whatever it looks like. */
async function* guarded<A>(log: string, source: AsyncIterable<A> | Iterable<A>): AsyncGenerator<A> {
  try {
    yield* source
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    throw new ImportRefused({ log, segment: 0, offset: 0, reason: (error as Error).message })
  }
}

/** Reads every segment back: what becomes the log is what was checked, not what was meant. */
const checkAll = async (disk: Disk, log: string, written: AsyncIterable<Built>): Promise<Imported> => {
  let last: SealedContent | undefined
  let count = 0
  for await (const { path, bytes } of written) {
    const file = await disk.open(path, "read")
    const place = { log, firstEventId: (last?.lastEventId ?? 0) + 1, previous: last?.seal }
    const checked = await checkSealedSegment(file, bytes, place).finally(() => file.close())
    if (checked._tag === "Fault") {
      throw new ImportRefused({ log, segment: count, offset: checked.offset, reason: checked.reason })
    }
    last = checked.content
    count += 1
  }
  if (last === undefined) throw new ImportRefused({ log, segment: 0, offset: 0, reason: "there is nothing in it" })
  return { head: last.lastEventId, headCrc: last.seal.headCrc, sha256: last.seal.sha256 }
}

interface Target {
  readonly disk: Disk
  readonly directory: string
  readonly log: string
}

async function* copySegments(target: Target, segments: AsyncIterable<SegmentSource>): AsyncGenerator<Built> {
  for await (const { chunks, firstEventId } of guarded(target.log, segments)) {
    const path = `${target.directory}/${segmentFileName(firstEventId)}`
    const file = await target.disk.open(path, "create")
    let bytes = 0
    try {
      for await (const chunk of guarded(target.log, chunks)) {
        await file.write(chunk, 0, chunk.length, bytes)
        bytes += chunk.length
      }
      await file.sync()
    } finally {
      await file.close()
    }
    yield { path, bytes }
  }
}
