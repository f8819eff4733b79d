// Reads what a journal holds: every intact batch of every file, told apart from the stale ones that recycled
// files still carry. Decides whether what is missing was never acknowledged (the last batch, torn) or
// is damage (a hole before a later batch).
import { crc32c } from "../Crc32c.ts"
import type { Disk, DiskFile } from "../disk/Disk.ts"
import { type Bytes, bytesOf } from "../Frame.ts"
import { ForeignFile, FormatUnsupported, JournalCorrupt } from "../RunelogErrors.ts"
import { isJournalFileName, isJournalLeftover } from "./Journal.ts"
import {
  alignPage,
  BATCH_HEADER_BYTES,
  type BatchHeader,
  decodeJournalFileHeader,
  type GroupFacts,
  groupFacts,
  JOURNAL_PAGE_BYTES,
  JOURNAL_VERSION,
  readBatchHeader
} from "./JournalBatch.ts"

export interface FoundBatch extends BatchHeader {
  readonly headerCrc: number
  readonly name: string
  readonly offset: number
  /** The logs that it removes; known of batches that are whole. */
  readonly removals: ReadonlyArray<string>
  /** What in it only a newer build understands, if anything. */
  readonly unsupported: string | undefined
  /** The file that has it a second time, if one does. */
  readonly copyName: string | undefined
}

export interface FoundFile {
  readonly name: string
  readonly path: string
  readonly bytes: number
}

export interface JournalContent {
  readonly files: ReadonlyArray<FoundFile>
  /** The batches that recovery must apply, in order, without a hole. */
  readonly batches: ReadonlyArray<FoundBatch>
  /** The highest sequence in use. */
  readonly lastSequence: number
  /** Damage: batches behind it are not in `batches`. */
  readonly damage: JournalCorrupt | undefined
  /** The batch behind the last one, whose payload did not reach the disk whole: it was never acknowledged. */
  readonly torn: FoundBatch | undefined
}

export interface JournalScanOptions {
  readonly disk: Disk
  readonly directory: string
  readonly directoryId: string
  /** Batches below it are not needed. */
  readonly floor: number
  /** The writer closed in order: no batch is needed. */
  readonly clean: boolean
  /** The highest sequence that is known to be in use. */
  readonly sequence: number
}

const PIECE_BYTES = 1024 * 1024

export const listJournal = async (
  disk: Disk,
  directory: string
): Promise<{ readonly files: ReadonlyArray<string>; readonly leftovers: ReadonlyArray<string> }> => {
  const files: Array<string> = []
  const leftovers: Array<string> = []
  for (const entry of await disk.list(directory)) {
    if (entry.kind === "file" && isJournalFileName(entry.name)) files.push(entry.name)
    else if (entry.kind === "file" && isJournalLeftover(entry.name)) leftovers.push(entry.name)
    else throw new ForeignFile({ file: `${directory}/${entry.name}` })
  }
  return { files, leftovers }
}

export const scanJournal = async (options: JournalScanOptions): Promise<JournalContent> => {
  const { disk, directory } = options
  const files: Array<FoundFile> = []
  const found: Found = { whole: [], torn: [] }
  const damages: Array<JournalCorrupt> = []
  for (const name of (await listJournal(disk, directory)).files) {
    const path = `${directory}/${name}`
    const file = await disk.open(path, "read")
    try {
      const bytes = await file.size()
      const damage = await checkFileHeader(file, { path, bytes }, options.directoryId)
      if (damage !== undefined) damages.push(damage)
      files.push({ name, path, bytes })
      if (!options.clean) await findBatches(new Piece(file, bytes), { name, floor: options.floor }, found)
    } finally {
      await file.close()
    }
  }
  // One is made before the directory is first marked as in use, and the last is never removed while it is.
  if (files.length === 0 && !options.clean) {
    damages.push(new JournalCorrupt({ file: directory, offset: 0, reason: "there is no journal file" }))
  }
  const known = Math.max(options.sequence, options.floor - 1)
  const lastSequence = found.whole.reduce((last, batch) => Math.max(last, batch.sequence), known)
  const needed = selectNeeded(options, found.whole)
  const next = options.floor + needed.batches.length
  const torn = found.torn.find(({ sequence }) => sequence === next)
  const damage = damages[0] ?? (torn === undefined ? needed.damage : damagedBatch(directory, torn, needed.damage))
  return { files, lastSequence, batches: needed.batches, damage, torn: damage === undefined ? torn : undefined }
}

/** A batch that others follow was once whole; where its header is left, that is the place to name. */
const damagedBatch = (
  directory: string,
  { name, offset, sequence }: FoundBatch,
  hole: JournalCorrupt | undefined
): JournalCorrupt | undefined =>
  hole === undefined
    ? undefined
    : new JournalCorrupt({
        file: `${directory}/${name}`,
        offset,
        reason: `batch ${sequence} does not match its checksum`
      })

/** Batches from the floor on: of the older ones, which recycled files are full of, nothing is needed. */
interface Found {
  readonly whole: Array<FoundBatch>
  /** Batches with a good header and a payload that does not match it. */
  readonly torn: Array<FoundBatch>
}

const checkFileHeader = async (
  file: DiskFile,
  { bytes, path }: { readonly path: string; readonly bytes: number },
  directoryId: string
): Promise<JournalCorrupt | undefined> => {
  const buffer = Buffer.alloc(JOURNAL_PAGE_BYTES)
  const read = await file.read(buffer, 0, buffer.length, 0)
  const header = decodeJournalFileHeader(buffer.subarray(0, read))
  if (header._tag === "Fault") return new JournalCorrupt({ file: path, offset: 0, reason: header.reason })
  if (header.version !== JOURNAL_VERSION)
    throw new FormatUnsupported({ file: path, version: header.version, supported: JOURNAL_VERSION })
  if (header.directoryId !== directoryId) throw new ForeignFile({ file: path })
  if (header.bytes === bytes) return undefined
  const reason = `the file has ${bytes} bytes where it was made with ${header.bytes}`
  return new JournalCorrupt({ file: path, offset: Math.min(bytes, header.bytes), reason })
}

/** A piece of a file that moves along with who reads it: what lies in it is not read again. */
class Piece {
  private readonly file: DiskFile
  readonly fileBytes: number
  bytes: Bytes
  private start = 0
  private end = 0

  constructor(file: DiskFile, fileBytes: number) {
    this.file = file
    this.fileBytes = fileBytes
    this.bytes = bytesOf(Buffer.alloc(Math.min(PIECE_BYTES, fileBytes)))
  }

  /** Most of what is looked at lies in the piece already, and is not worth a promise. Offsets only grow. */
  holds(offset: number, length: number): boolean {
    return offset + length <= this.end
  }

  /** Where a place in the file lies in the piece, which must hold it. */
  place(offset: number): number {
    return offset - this.start
  }

  /** Moves the piece to bytes that the file must have. */
  async move(offset: number, length: number): Promise<void> {
    if (length > this.bytes.buffer.length) this.bytes = bytesOf(Buffer.alloc(length))
    const { buffer } = this.bytes
    const read = await this.file.read(buffer, 0, buffer.length, offset)
    // What was read before must not pass for what is there.
    buffer.fill(0, read)
    this.start = offset
    this.end = offset + buffer.length
  }
}

const NO_FACTS: GroupFacts = { removals: [], unsupported: undefined }

/** Adds every batch of a file from the floor on, wherever it starts. */
const findBatches = async (
  piece: Piece,
  { floor, name }: { readonly name: string; readonly floor: number },
  found: Found
): Promise<void> => {
  let offset = JOURNAL_PAGE_BYTES
  while (offset + BATCH_HEADER_BYTES <= piece.fileBytes) {
    if (!piece.holds(offset, BATCH_HEADER_BYTES)) await piece.move(offset, BATCH_HEADER_BYTES)
    const header = readBatchHeader(piece.bytes, piece.place(offset))
    if (header === undefined) {
      offset += JOURNAL_PAGE_BYTES
      continue
    }
    const bytes = BATCH_HEADER_BYTES + header.payloadBytes
    const fits = offset + bytes <= piece.fileBytes
    if (fits && !piece.holds(offset, bytes)) await piece.move(offset, bytes)
    const isWhole = fits && hasPayload(piece, offset, header)
    if (header.sequence >= floor) {
      const facts = isWhole ? groupFacts(piece.bytes, piece.place(offset) + BATCH_HEADER_BYTES, header) : NO_FACTS
      const batches = isWhole ? found.whole : found.torn
      batches.push({ ...header, name, offset, ...facts, copyName: undefined })
    }
    offset += isWhole ? alignPage(bytes) : JOURNAL_PAGE_BYTES
  }
}

/** Whether the payload of the batch at `offset`, which the piece must hold, is what its header says. */
const hasPayload = (piece: Piece, offset: number, header: BatchHeader): boolean => {
  const payload = piece.place(offset) + BATCH_HEADER_BYTES
  return crc32c(piece.bytes.buffer, payload, payload + header.payloadBytes, 0) === header.payloadCrc
}

/** The payload of a batch, or nothing when the file ends before it does. */
export const readPayload = async (file: DiskFile, offset: number, header: BatchHeader): Promise<Bytes | undefined> => {
  const size = await file.size()
  if (offset + BATCH_HEADER_BYTES + header.payloadBytes > size) return undefined
  const payload = bytesOf(Buffer.allocUnsafe(header.payloadBytes))
  await file.read(payload.buffer, 0, header.payloadBytes, offset + BATCH_HEADER_BYTES)
  return payload
}

/** The batches from the floor on. What is not needed any more was checkpointed before the floor was raised. */
const selectNeeded = (
  options: JournalScanOptions,
  found: ReadonlyArray<FoundBatch>
): { readonly batches: ReadonlyArray<FoundBatch>; readonly damage: JournalCorrupt | undefined } => {
  const sorted = [...found].sort((left, right) => left.sequence - right.sequence)
  const batches: Array<FoundBatch> = []
  for (const batch of sorted) {
    const before = batches[batches.length - 1]
    if (before !== undefined && isCopy(batch, before)) {
      batches[batches.length - 1] = { ...before, copyName: batch.name }
      continue
    }
    const reason = orderFault(batch, before, options.floor + batches.length)
    if (reason !== undefined) {
      const file = `${options.directory}/${batch.name}`
      return { batches, damage: new JournalCorrupt({ file, offset: batch.offset, reason }) }
    }
    batches.push(batch)
  }
  return { batches, damage: undefined }
}

/** An earlier start that was cut short left the last batch a second time: each of the two may be the copy. */
const isCopy = (batch: FoundBatch, before: FoundBatch): boolean =>
  batch.sequence === before.sequence && batch.headerCrc === before.headerCrc && batch.name !== before.name

const orderFault = (batch: FoundBatch, before: FoundBatch | undefined, expected: number): string | undefined => {
  const { sequence } = batch
  if (sequence > expected) return `batch ${expected} is missing before batch ${sequence}`
  if (sequence < expected) return `batch ${sequence} is there twice`
  if (batch.unsupported !== undefined) return `${batch.unsupported} in batch ${sequence}: a newer build wrote it`
  const follows = before === undefined || (batch.previousHeaderCrc === before.headerCrc && batch.nonce === before.nonce)
  return follows ? undefined : `batch ${sequence} does not continue the one before it`
}
