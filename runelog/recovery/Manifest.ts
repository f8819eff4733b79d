// Which logs there must be, and how far each reaches: the file `manifest.<generation>`, appended to whenever the journal
// is about to forget events, so that manifest and journal together know of everything that was acknowledged. `meta`
// says which generation counts, how long it is and what it ends in; what lies behind that was never relied on.
// It also keeps items of others: names of files that must be there, each with a value.
import { crc32c } from "../Crc32c.ts"
import type { Disk, DiskFile } from "../disk/Disk.ts"
import { type Bytes, bytesOf } from "../Frame.ts"
import { FormatUnsupported, JournalCorrupt, syncFailed } from "../RunelogErrors.ts"
import { KIB } from "../RunelogLimits.ts"
import { getU64, setU64 } from "../U64.ts"
import type { ManifestPlace, MetaChange, MetaFile } from "./MetaFile.ts"

/** The newest event of a log and the checksum of its frame as it was appended. Head 0: it is there, its end is not known. */
export interface LogHead {
  readonly head: number
  readonly crc: number
}

/** What is to be recorded; `undefined` for what is gone. */
export interface ManifestChange {
  readonly logs?: ReadonlyMap<string, LogHead | undefined>
  readonly items?: ReadonlyMap<string, string | undefined>
}

export interface ManifestContent {
  readonly logs: Map<string, LogHead>
  readonly items: Map<string, string>
}

const kind = { log: 1, logGone: 2, item: 3, itemGone: 4 } as const
const RECORD_HEADER_BYTES = 20
const at = { crc: 0, kind: 4, name: 5, value: 6, head: 8, headCrc: 16 } as const

/** Marks a manifest that could not be read: it stays until somebody has seen it. */
export const DAMAGED_SUFFIX = ".damaged"

export const manifestName = (generation: number): string => `manifest.${generation}`
export const generationOf = (name: string): number | undefined => {
  const found = /^manifest\.([1-9][0-9]{0,9})$/.exec(name)?.[1]
  return found === undefined ? undefined : Number(found)
}

interface ManifestRecord {
  readonly kind: number
  readonly name: string
  readonly value: string
  readonly head: LogHead
}

const NO_HEAD: LogHead = { head: 0, crc: 0 }

const recordsOf = ({ items, logs }: ManifestChange): Array<ManifestRecord> => {
  const records: Array<ManifestRecord> = []
  for (const [name, head] of logs ?? [])
    records.push({ kind: head === undefined ? kind.logGone : kind.log, name, value: "", head: head ?? NO_HEAD })
  for (const [name, value] of items ?? [])
    records.push({
      kind: value === undefined ? kind.itemGone : kind.item,
      name,
      value: value ?? "",
      head: NO_HEAD
    })
  return records
}

const encodeRecords = (records: ReadonlyArray<ManifestRecord>, crc: number): { buffer: Buffer; crc: number } => {
  const length = records.reduce((sum, { name, value }) => sum + RECORD_HEADER_BYTES + name.length + value.length, 0)
  const { buffer, view } = bytesOf(Buffer.alloc(length))
  let start = 0
  let chained = crc
  for (const record of records) {
    const end = start + RECORD_HEADER_BYTES + record.name.length + record.value.length
    view.setUint8(start + at.kind, record.kind)
    view.setUint8(start + at.name, record.name.length)
    view.setUint16(start + at.value, record.value.length, true)
    setU64(view, start + at.head, record.head.head)
    view.setUint32(start + at.headCrc, record.head.crc, true)
    buffer.write(`${record.name}${record.value}`, start + RECORD_HEADER_BYTES, "latin1")
    chained = crc32c(buffer, start + at.kind, end, chained)
    view.setUint32(start + at.crc, chained, true)
    start = end
  }
  return { buffer, crc: chained }
}

const applyRecord = ({ items, logs }: ManifestContent, record: ManifestRecord): void => {
  if (record.kind === kind.log) logs.set(record.name, record.head)
  if (record.kind === kind.logGone) logs.delete(record.name)
  if (record.kind === kind.item) items.set(record.name, record.value)
  if (record.kind === kind.itemGone) items.delete(record.name)
}

/** What the record of the same thing takes, as it is now. */
const bytesNow = ({ items, logs }: ManifestContent, { kind: which, name }: ManifestRecord): number => {
  const isLog = which === kind.log || which === kind.logGone
  const value = isLog ? (logs.has(name) ? "" : undefined) : items.get(name)
  return value === undefined ? 0 : RECORD_HEADER_BYTES + name.length + value.length
}

/** Applies every record; returns the offset of the first one that is not whole, or the checksum of the last. */
const decodeRecords = (
  { buffer, view }: Bytes,
  content: ManifestContent
): { readonly fault: number } | { readonly unknown: number } | { readonly crc: number } => {
  let crc = 0
  for (let start = 0; start < buffer.length; ) {
    if (start + RECORD_HEADER_BYTES > buffer.length) return { fault: start }
    const name = start + RECORD_HEADER_BYTES
    const value = name + view.getUint8(start + at.name)
    const end = value + view.getUint16(start + at.value, true)
    if (end > buffer.length) return { fault: start }
    crc = crc32c(buffer, start + at.kind, end, crc)
    if (crc !== view.getUint32(start + at.crc, true)) return { fault: start }
    if (view.getUint8(start + at.kind) > kind.itemGone) return { unknown: view.getUint8(start + at.kind) }
    applyRecord(content, {
      kind: view.getUint8(start + at.kind),
      name: buffer.toString("latin1", name, value),
      value: buffer.toString("latin1", value, end),
      head: { head: getU64(view, start + at.head), crc: view.getUint32(start + at.headCrc, true) }
    })
    start = end
  }
  return { crc }
}

/** What the manifest says, up to where `meta` vouches for it; throws when it is not all there, or not known. */
export const readManifest = async (disk: Disk, directory: string, place: ManifestPlace): Promise<ManifestContent> => {
  const content: ManifestContent = { logs: new Map(), items: new Map() }
  if (place.generation === 0) return content
  const path = `${directory}/${manifestName(place.generation)}`
  const damaged = (offset: number, reason: string) => new JournalCorrupt({ file: path, offset, reason })
  if (!(await disk.exists(path))) throw damaged(0, "the file is missing")
  const file = await disk.open(path, "read")
  const bytes = bytesOf(Buffer.alloc(place.bytes))
  const read = await file.read(bytes.buffer, 0, place.bytes, 0).finally(() => file.close())
  if (read < place.bytes) throw damaged(read, `bytes up to ${place.bytes} are missing`)
  const decoded = decodeRecords(bytes, content)
  if ("fault" in decoded) throw damaged(decoded.fault, "the record does not match its checksum")
  // A newer build knows what it means; to pass over it could hide a loss.
  if ("unknown" in decoded)
    throw new FormatUnsupported({ file: path, version: decoded.unknown, supported: kind.itemGone })
  if (decoded.crc !== place.crc) throw damaged(0, "the file does not end in what meta says")
  return content
}

/** What is wrong with the end of a log, if it is not where the manifest says. */
export const headFault = (
  expected: LogHead | undefined,
  found: { readonly head: number; readonly crc: number }
): string | undefined => {
  if (expected === undefined || expected.head === 0) return undefined
  if (found.head === 0) return "the log is missing, the manifest knows of it"
  if (found.head < expected.head) {
    return `events ${found.head + 1} to ${expected.head} are missing, the manifest knows of them`
  }
  if (found.head === expected.head && found.crc !== expected.crc) {
    return `event ${found.head} is not the one that the manifest knows of`
  }
  return undefined
}

export interface ManifestOptions {
  readonly disk: Disk
  readonly directory: string
  readonly meta: MetaFile
  /** Why what was recorded cannot be read. */
  readonly fault?: JournalCorrupt
}

/** A file is written anew once it is this much longer than what it says. */
const WASTE_BYTES = 256 * KIB

export class Manifest {
  private readonly options: ManifestOptions
  private readonly content: ManifestContent
  private file: DiskFile | undefined
  private writing: Promise<void> = Promise.resolve()
  /** A change of meta failed, which may be on the disk all the same: what it names must not be touched. */
  private isDoubtful = false
  /** What a file takes that says only what is true now. */
  private liveBytes: number

  constructor(options: ManifestOptions, content: ManifestContent) {
    this.options = options
    this.content = content
    this.liveBytes = recordsOf(content).reduce((bytes, record) => bytes + bytesNow(content, record), 0)
  }

  /** What is recorded of a log; nothing when no such log has to be there. */
  head(log: string): LogHead | undefined {
    return this.content.logs.get(log)
  }

  get items(): ReadonlyMap<string, string> {
    return this.content.items
  }

  /** Puts a manifest aside that cannot be read: what has to be there follows from what is there, from now on. */
  async replaceDamaged(): Promise<void> {
    const { directory, disk, fault, meta } = this.options
    if (fault === undefined) return
    const path = this.path(meta.state.manifest.generation)
    if (await disk.exists(path)) await disk.rename(path, `${path}${DAMAGED_SUFFIX}`)
    else await (await disk.open(`${path}${DAMAGED_SUFFIX}`, "create")).close()
    await disk.syncDirectory(directory).catch(syncFailed(directory))
    await meta.update({ manifest: { generation: 0, bytes: 0, crc: 0 } })
  }

  /** Resolves when the change is durable, and with it the change of meta, which may rest on it. */
  record(change: ManifestChange, meta: MetaChange = {}): Promise<void> {
    const written = this.writing.then(() => this.write(change, meta))
    this.writing = written.catch(() => undefined)
    return written
  }

  private async write(change: ManifestChange, meta: MetaChange): Promise<void> {
    if (this.isDoubtful) await this.settleDoubt()
    const place = this.options.meta.state.manifest
    const records = recordsOf(change)
    const isWasteful = place.bytes > WASTE_BYTES && place.bytes > 2 * this.liveBytes
    const next =
      place.generation === 0 || isWasteful ? await this.rewrite(place, records) : await this.append(place, records)
    this.isDoubtful = true
    await this.options.meta.update({ ...meta, manifest: next })
    this.isDoubtful = false
    for (const record of records) this.apply(record)
    if (next.generation !== place.generation && place.generation > 0) await this.drop(place.generation)
  }

  /** Makes durable that what meta said before its last change still counts; what that change named is free then. */
  private async settleDoubt(): Promise<void> {
    await this.options.meta.update({})
    this.isDoubtful = false
    await this.closeFile()
  }

  private apply(record: ManifestRecord): void {
    this.liveBytes -= bytesNow(this.content, record)
    applyRecord(this.content, record)
    this.liveBytes += bytesNow(this.content, record)
  }

  private async append(place: ManifestPlace, records: ReadonlyArray<ManifestRecord>): Promise<ManifestPlace> {
    if (records.length === 0) return place
    const path = this.path(place.generation)
    this.file ??= await this.options.disk.open(path, "write")
    const { buffer, crc } = encodeRecords(records, place.crc)
    await this.file.write(buffer, 0, buffer.length, place.bytes)
    await this.file.sync().catch(syncFailed(path))
    return { ...place, bytes: place.bytes + buffer.length, crc }
  }

  /** Everything that is true, in a new file that nobody relies on before meta names it. */
  private async rewrite(place: ManifestPlace, records: ReadonlyArray<ManifestRecord>): Promise<ManifestPlace> {
    const { directory, disk } = this.options
    const generation = place.generation + 1
    const path = this.path(generation)
    if (await disk.exists(path)) await disk.remove(path)
    const file = await disk.open(path, "create")
    try {
      const { buffer, crc } = encodeRecords([...recordsOf(this.content), ...records], 0)
      await file.write(buffer, 0, buffer.length, 0)
      await file.sync().catch(syncFailed(path))
      await disk.syncDirectory(directory).catch(syncFailed(directory))
      await this.file?.close()
      this.file = file
      return { generation, bytes: buffer.length, crc }
    } catch (error) {
      await file.close()
      throw error
    }
  }

  private async drop(generation: number): Promise<void> {
    const path = this.path(generation)
    // Left behind it does no harm: the next start removes it.
    await this.options.disk.remove(path).catch(() => undefined)
  }

  private path(generation: number): string {
    return `${this.options.directory}/${manifestName(generation)}`
  }

  async close(): Promise<void> {
    await this.writing
    await this.closeFile()
  }

  private async closeFile(): Promise<void> {
    await this.file?.close()
    this.file = undefined
  }
}
