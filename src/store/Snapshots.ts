// Folded state as of an event, so that opening a conversation need not read all of its log. Disposable: one that is
// missing, torn, altered or of another shape is reported and ignored, and the log is read instead. Each is tied to its
// event by a checksum, so that one of events that the log never took is not taken for its state later. The newest good
// one wins. What is in the value is the caller's business.
import { hash } from "node:crypto"
import { promisify } from "node:util"
import { constants, zstdCompress, zstdDecompress } from "node:zlib"
import type { Disk } from "#runelog/disk/Disk.ts"
import { asDiskError } from "#runelog/RunelogErrors.ts"
import { ensureDirectory, isMissing, readWhole, removeIfThere, replaceFile } from "./Files.ts"
import { limits } from "./StoreLimits.ts"

export interface Snapshot {
  /** The last event folded into it. */
  readonly eventId: number
  readonly value: unknown
  /** SHA-256 of the value's JSON text, in hex. */
  readonly sha256: string
}

export type SnapshotFault =
  | "unreadable"
  | "hash_mismatch"
  | "other_shape"
  | "beyond_head"
  | "too_large"
  /** The log has another event at its place, or none. */
  | "other_event"
  | "not_durable"

/** A snapshot that was not used, or not written. */
export interface SnapshotReport {
  readonly conversationId: string
  readonly file: string
  readonly fault: SnapshotFault
}

export interface SnapshotsOptions {
  readonly disk: Disk
  /** `<data>/snapshots`. */
  readonly directory: string
  /** Names the shape of the values: a snapshot of another shape is not used. */
  readonly shape: string
  /** The checksum of what the log holds as this event; nothing when it is not durable, or was dropped as superseded. */
  readonly eventSum: (conversationId: string, eventId: number) => Promise<number | undefined>
  readonly onReport?: (report: SnapshotReport) => void
  readonly bytesMax?: number
}

export type SaveOutcome =
  | { readonly _tag: "Saved"; readonly bytes: number; readonly sha256: string }
  | { readonly _tag: "TooLarge"; readonly bytes: number; readonly bytesMax: number }
  /** The log does not hold the event: a snapshot of it would be of something that never was. */
  | { readonly _tag: "NotDurable" }

interface Header {
  readonly shape: string
  readonly conversation_id: string
  readonly event_id: number
  /** Of the event in the log. */
  readonly event_sum: number
  readonly sha256: string
}

const NAME_DIGITS = 16
/** Snapshots are written often and read rarely: speed before size. */
const LEVEL = 1
const compress = promisify(zstdCompress)
const inflate = promisify(zstdDecompress)

const fileName = (eventId: number): string => `${String(eventId).padStart(NAME_DIGITS, "0")}.snap`
const eventIdOf = (name: string): number | undefined => {
  const match = /^(\d{16})\.snap$/.exec(name)
  return match === null ? undefined : Number(match[1])
}

export class Snapshots {
  private readonly options: SnapshotsOptions
  private readonly bytesMax: number

  constructor(options: SnapshotsOptions) {
    this.options = options
    this.bytesMax = options.bytesMax ?? limits.snapshotBytesMax
  }

  /** Writes the state as of `eventId`, as it is when this is called. Older ones beyond the number kept are removed. */
  async save(conversationId: string, eventId: number, value: unknown): Promise<SaveOutcome> {
    const text = JSON.stringify(value)
    const bytes = Buffer.byteLength(text)
    const path = this.path(conversationId, eventId)
    if (bytes > this.bytesMax) {
      this.report(conversationId, path, "too_large")
      return { _tag: "TooLarge", bytes, bytesMax: this.bytesMax }
    }
    const eventSum = await this.options.eventSum(conversationId, eventId)
    if (eventSum === undefined) {
      this.report(conversationId, path, "not_durable")
      return { _tag: "NotDurable" }
    }
    const sha256 = hash("sha256", text, "hex")
    const header: Header = {
      shape: this.options.shape,
      conversation_id: conversationId,
      event_id: eventId,
      event_sum: eventSum,
      sha256
    }
    const body = await compress(text, { params: { [constants.ZSTD_c_compressionLevel]: LEVEL } })
    const content = Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), body])
    try {
      await ensureDirectory(this.options.disk, this.directory(conversationId))
      await replaceFile(this.options.disk, path, content)
    } catch (error) {
      throw asDiskError(error, path)
    }
    await this.prune(conversationId)
    return { _tag: "Saved", bytes: content.length, sha256 }
  }

  /** The newest good snapshot that is not newer than the log. */
  async load(conversationId: string, options: { readonly head: number }): Promise<Snapshot | undefined> {
    for (const eventId of (await this.list(conversationId)).reverse()) {
      const path = this.path(conversationId, eventId)
      const found = eventId > options.head ? "beyond_head" : await this.read(conversationId, eventId)
      if (typeof found !== "string") return found
      this.report(conversationId, path, found)
    }
    return undefined
  }

  /** Forgets all snapshots of a conversation; costs nothing but time. */
  remove(conversationId: string): Promise<void> {
    return this.options.disk.removeTree(this.directory(conversationId))
  }

  /** Event ids of the snapshots there are, oldest first. */
  async list(conversationId: string): Promise<Array<number>> {
    try {
      const entries = await this.options.disk.list(this.directory(conversationId))
      return entries.flatMap(({ name }) => eventIdOf(name) ?? [])
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  }

  private async read(conversationId: string, eventId: number): Promise<Snapshot | SnapshotFault> {
    const content = await readWhole(this.options.disk, this.path(conversationId, eventId), this.bytesMax * 2)
    if (content === undefined) return "unreadable"
    const end = content.indexOf(0x0a)
    const header = parseHeader(content.subarray(0, end))
    if (end < 0 || header === undefined) return "unreadable"
    const isOurs = header.conversation_id === conversationId && header.event_id === eventId
    if (header.shape !== this.options.shape || !isOurs) return "other_shape"
    const text = await this.inflate(content.subarray(end + 1))
    if (text === undefined) return "unreadable"
    if (hash("sha256", text, "hex") !== header.sha256) return "hash_mismatch"
    if ((await this.options.eventSum(conversationId, eventId)) !== header.event_sum) return "other_event"
    // The digest holds, so this is the JSON that was written.
    return { eventId, value: JSON.parse(text.toString("utf8")), sha256: header.sha256 }
  }

  private async inflate(body: Buffer): Promise<Buffer | undefined> {
    try {
      return await inflate(body, { maxOutputLength: this.bytesMax })
    } catch {
      return undefined
    }
  }

  private async prune(conversationId: string): Promise<void> {
    const ids = await this.list(conversationId)
    for (const eventId of ids.slice(0, Math.max(0, ids.length - limits.snapshotsKept))) {
      await removeIfThere(this.options.disk, this.path(conversationId, eventId))
    }
  }

  private directory(conversationId: string): string {
    return `${this.options.directory}/${conversationId}`
  }

  private path(conversationId: string, eventId: number): string {
    return `${this.directory(conversationId)}/${fileName(eventId)}`
  }

  private report(conversationId: string, file: string, fault: SnapshotFault): void {
    this.options.onReport?.({ conversationId, file, fault })
  }
}

const parseHeader = (line: Buffer): Header | undefined => {
  try {
    const header = JSON.parse(line.toString("utf8")) as Partial<Header> | null
    return typeof header?.sha256 === "string" ? (header as Header) : undefined
  } catch {
    return undefined
  }
}

export const snapshotsIn = (dataDirectory: string): string => `${dataDirectory}/snapshots`

/** Forgets all snapshots of a conversation that has left the log. */
export const removeSnapshots = (disk: Disk, dataDirectory: string, conversationId: string): Promise<void> =>
  disk.removeTree(`${snapshotsIn(dataDirectory)}/${conversationId}`)
