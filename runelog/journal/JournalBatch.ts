// A journal batch: what one group commit writes (FORMAT.md, "Journal"). A batch starts on a page of its
// own, so that a torn write never touches one that was acknowledged, and carries everything needed to
// tell it from the older batches that a recycled file still holds: sequence, writer nonce and chain.
import { crc32c } from "../Crc32c.ts"
import { type Bytes, bytesOf, FRAME_HEADER_BYTES, frameBytes, unsupportedFault } from "../Frame.ts"
import { getU64, setU64 } from "../U64.ts"

export const JOURNAL_PAGE_BYTES = 4096
export const JOURNAL_VERSION = 1
export const BATCH_HEADER_BYTES = 64
/** Group header without the name: frame bytes, frame count, kind, name length. */
export const GROUP_HEADER_BYTES = 10
const BATCH_MAGIC = 0x48435442 // "BTCH"
const FILE_MAGIC = Buffer.from("ECHSJNL\n", "latin1")

const at = {
  magic: 0,
  headerCrc: 4,
  payloadBytes: 8,
  payloadCrc: 12,
  sequence: 16,
  nonce: 24,
  previousHeaderCrc: 32,
  groups: 36
} as const

export const groupKind = { frames: 0, removal: 1 } as const

export const alignPage = (bytes: number): number => Math.ceil(bytes / JOURNAL_PAGE_BYTES) * JOURNAL_PAGE_BYTES

export interface BatchHeader {
  readonly payloadBytes: number
  readonly payloadCrc: number
  readonly sequence: number
  /** Identifies the writer that wrote the batch; 8 random bytes. */
  readonly nonce: bigint
  readonly previousHeaderCrc: number
  readonly groups: number
}

/** Completes the batch whose payload lies behind the header's place at `start`; returns the header's checksum. */
export const sealBatch = (bytes: Bytes, start: number, header: Omit<BatchHeader, "payloadCrc">): number => {
  const { buffer, view } = bytes
  const payload = start + BATCH_HEADER_BYTES
  buffer.fill(0, start, payload)
  view.setUint32(start + at.magic, BATCH_MAGIC, true)
  view.setUint32(start + at.payloadBytes, header.payloadBytes, true)
  view.setUint32(start + at.payloadCrc, crc32c(buffer, payload, payload + header.payloadBytes, 0), true)
  setU64(view, start + at.sequence, header.sequence)
  view.setBigUint64(start + at.nonce, header.nonce, true)
  view.setUint32(start + at.previousHeaderCrc, header.previousHeaderCrc, true)
  view.setUint32(start + at.groups, header.groups, true)
  const crc = crc32c(buffer, start + at.payloadBytes, payload, 0)
  view.setUint32(start + at.headerCrc, crc, true)
  return crc
}

/** The header at `start`, if the bytes there are one; says nothing of the payload. */
export const readBatchHeader = (
  bytes: Bytes,
  start: number
): (BatchHeader & { readonly headerCrc: number }) | undefined => {
  const { buffer, view } = bytes
  if (start + BATCH_HEADER_BYTES > buffer.length || view.getUint32(start + at.magic, true) !== BATCH_MAGIC)
    return undefined
  const headerCrc = view.getUint32(start + at.headerCrc, true)
  if (crc32c(buffer, start + at.payloadBytes, start + BATCH_HEADER_BYTES, 0) !== headerCrc) return undefined
  return {
    headerCrc,
    payloadBytes: view.getUint32(start + at.payloadBytes, true),
    payloadCrc: view.getUint32(start + at.payloadCrc, true),
    sequence: getU64(view, start + at.sequence),
    nonce: view.getBigUint64(start + at.nonce, true),
    previousHeaderCrc: view.getUint32(start + at.previousHeaderCrc, true),
    groups: view.getUint32(start + at.groups, true)
  }
}

/** Opens a group: its kind and log. Length and count follow with `closeGroup`. Returns where the frames start. */
export const openGroup = (bytes: Bytes, start: number, kind: number, nameBytes: Uint8Array): number => {
  const { buffer, view } = bytes
  view.setUint8(start + 8, kind)
  view.setUint8(start + 9, nameBytes.length)
  const name = start + GROUP_HEADER_BYTES
  for (let index = 0; index < nameBytes.length; index++) buffer[name + index] = nameBytes[index]!
  return name + nameBytes.length
}

export const closeGroup = (bytes: Bytes, start: number, frameBytes: number, frames: number): void => {
  bytes.view.setUint32(start, frameBytes, true)
  bytes.view.setUint32(start + 4, frames, true)
}

export interface GroupAt {
  readonly frameBytes: number
  readonly frames: number
  readonly kind: number
  readonly log: string
  readonly start: number
  readonly end: number
}

/** The groups of a batch whose payload checksum held. */
export const readGroups = (bytes: Bytes, payload: number, groups: number): ReadonlyArray<GroupAt> => {
  const found: Array<GroupAt> = []
  let position = payload
  for (let index = 0; index < groups; index++) {
    const nameBytes = bytes.view.getUint8(position + 9)
    const start = position + GROUP_HEADER_BYTES + nameBytes
    const frameBytes = bytes.view.getUint32(position, true)
    found.push({
      frameBytes,
      frames: bytes.view.getUint32(position + 4, true),
      kind: bytes.view.getUint8(position + 8),
      log: bytes.buffer.toString("latin1", position + GROUP_HEADER_BYTES, start),
      start,
      end: start + frameBytes
    })
    position = start + frameBytes
  }
  return found
}

/** What can be said of the groups of a batch without applying them. */
export interface GroupFacts {
  /** The logs that it removes. */
  readonly removals: ReadonlyArray<string>
  /** What in it only a newer build understands, if anything. */
  readonly unsupported: string | undefined
}

/** Of groups that do not lie in the payload nothing is believed. */
export const groupFacts = (
  bytes: Bytes,
  payload: number,
  { groups, payloadBytes }: Pick<BatchHeader, "groups" | "payloadBytes">
): GroupFacts => {
  const { buffer, view } = bytes
  const removals: Array<string> = []
  let unsupported: string | undefined
  const end = payload + payloadBytes
  let position = payload
  for (let index = 0; index < groups && position + GROUP_HEADER_BYTES <= end; index++) {
    const start = position + GROUP_HEADER_BYTES + view.getUint8(position + 9)
    const next = start + view.getUint32(position, true)
    const kind = view.getUint8(position + 8)
    if (kind === groupKind.removal) {
      removals.push(buffer.toString("latin1", position + GROUP_HEADER_BYTES, start))
    } else {
      unsupported ??=
        kind === groupKind.frames ? unsupportedFrame(view, start, Math.min(next, end)) : "unknown group kind"
    }
    position = next
  }
  return { removals, unsupported }
}

const unsupportedFrame = (view: DataView, from: number, end: number): string | undefined => {
  for (let at = from; at + FRAME_HEADER_BYTES <= end; at += frameBytes(view, at)) {
    const fault = unsupportedFault(view, at)
    if (fault !== undefined) return fault
  }
  return undefined
}

export interface JournalFileHeader {
  readonly version: number
  readonly directoryId: string
  /** Length of the file, which it has from its creation on. */
  readonly bytes: number
}

export const encodeJournalFileHeader = (header: Omit<JournalFileHeader, "version">): Buffer => {
  const bytes = bytesOf(Buffer.alloc(JOURNAL_PAGE_BYTES))
  FILE_MAGIC.copy(bytes.buffer)
  bytes.view.setUint16(12, JOURNAL_VERSION, true)
  bytes.buffer.write(header.directoryId, 16, "latin1")
  setU64(bytes.view, 48, header.bytes)
  bytes.view.setUint32(8, crc32c(bytes.buffer, 12, BATCH_HEADER_BYTES, 0), true)
  return bytes.buffer
}

export type DecodedJournalFileHeader =
  | ({ readonly _tag: "Header" } & JournalFileHeader)
  | { readonly _tag: "Fault"; readonly reason: string }

export const decodeJournalFileHeader = (buffer: Buffer): DecodedJournalFileHeader => {
  if (buffer.length < BATCH_HEADER_BYTES) return { _tag: "Fault", reason: "the journal header is cut short" }
  if (FILE_MAGIC.compare(buffer, 0, FILE_MAGIC.length) !== 0) return { _tag: "Fault", reason: "not a journal file" }
  const { view } = bytesOf(buffer)
  if (crc32c(buffer, 12, BATCH_HEADER_BYTES, 0) !== view.getUint32(8, true)) {
    return { _tag: "Fault", reason: "journal header checksum mismatch" }
  }
  const directoryId = buffer.toString("latin1", 16, 48)
  return { _tag: "Header", version: view.getUint16(12, true), directoryId, bytes: getU64(view, 48) }
}
