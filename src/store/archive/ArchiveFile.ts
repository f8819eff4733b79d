// The file of an archived conversation: its sealed segments, byte for byte, in compressed blocks that can be inflated one
// by one, and a manifest at the end that says where they are. Owns the bytes; docs/decisions/0010-archive-format.md
// says why they are as they are. What a reader gets was checked against the digests that the seals carry.
import { promisify } from "node:util"
import { constants, zstdCompress, zstdDecompress } from "node:zlib"
import { crc32c } from "#runelog/Crc32c.ts"
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { bytesOf, FRAME_BODY_BYTES_MAX, FRAME_HEADER_BYTES, frameBytes, frameEventId } from "#runelog/Frame.ts"
import type { SealedFile } from "#runelog/recovery/Import.ts"
import { SEGMENT_HEADER_BYTES } from "#runelog/segment/Segment.ts"
import { ROW_FORMAT, type RowState } from "../catalog/CatalogRow.ts"
import { withFile } from "../Files.ts"
import { ArchiveDamaged, ArchiveUnsupported } from "../StoreErrors.ts"
import { limits } from "../StoreLimits.ts"

export const ARCHIVE_VERSION = 1
const MAGIC = Buffer.from("ECHSARC\n", "latin1")
const HEADER_BYTES = 16
const FOOTER_BYTES = 16

export interface ArchiveBlock {
  /** Inflated. */
  readonly bytes: number
  readonly stored: number
  /** The first event in it. */
  readonly first_event_id: number
}

export interface ArchiveSegment {
  readonly first_event_id: number
  readonly last_event_id: number
  readonly bytes: number
  readonly sha256: string
  readonly blocks: ReadonlyArray<ArchiveBlock>
}

export interface Manifest {
  readonly conversation_id: string
  readonly head: number
  /** The newest seal's digest: it covers every byte of every segment. */
  readonly sha256: string
  readonly segments: ReadonlyArray<ArchiveSegment>
  /** What the catalog shows, so that it can be filled again without inflating anything. */
  readonly row: RowState
}

const compress = promisify(zstdCompress)
const inflateZstd = promisify(zstdDecompress)
const params = { [constants.ZSTD_c_compressionLevel]: limits.archiveLevel, [constants.ZSTD_c_checksumFlag]: 1 }

/** Writes header, blocks, manifest and footer; the caller makes the file durable. */
export class ArchiveWriter {
  private readonly file: DiskFile
  private position = 0

  constructor(file: DiskFile) {
    this.file = file
  }

  async begin(): Promise<void> {
    const header = Buffer.alloc(HEADER_BYTES)
    MAGIC.copy(header)
    header.writeUInt32LE(ARCHIVE_VERSION, 8)
    header.writeUInt32LE(crc32c(header, 0, 12, 0), 12)
    await this.put(header)
  }

  /** Compresses one segment, cutting only between frames. */
  async segment(source: SealedFile): Promise<ArchiveSegment> {
    const blocks: Array<ArchiveBlock> = []
    for (let position = 0; position < source.bytes; ) {
      const { bytes, firstEventId } = await cutBlock(source, position)
      blocks.push(await this.block(bytes, firstEventId))
      position += bytes.length
    }
    return {
      first_event_id: source.firstEventId,
      last_event_id: source.lastEventId,
      bytes: source.bytes,
      sha256: source.sha256,
      blocks
    }
  }

  private async block(bytes: Buffer, firstEventId: number): Promise<ArchiveBlock> {
    const stored = await compress(bytes, { params })
    await this.put(stored)
    return { bytes: bytes.length, stored: stored.length, first_event_id: firstEventId }
  }

  async finish(manifest: Manifest): Promise<void> {
    const body = Buffer.from(JSON.stringify(manifest))
    await this.put(body)
    const footer = Buffer.alloc(FOOTER_BYTES)
    footer.writeUInt32LE(body.length, 0)
    footer.writeUInt32LE(crc32c(body, 0, body.length, 0), 4)
    MAGIC.copy(footer, 8)
    await this.put(footer)
  }

  private async put(bytes: Uint8Array): Promise<void> {
    await this.file.write(bytes, 0, bytes.length, this.position)
    this.position += bytes.length
  }
}

interface Cut {
  readonly bytes: Buffer
  readonly firstEventId: number
}

const FRAME_BYTES_MAX = FRAME_HEADER_BYTES + FRAME_BODY_BYTES_MAX

/** As many whole frames from `position` on as make a block, and always one; the segment's header goes with the first. */
const cutBlock = async (source: SealedFile, position: number): Promise<Cut> => {
  const start = position === 0 ? SEGMENT_HEADER_BYTES : 0
  const seen = bytesOf(await source.read(position, limits.archiveBlockBytes))
  const isFrame = seen.buffer.length >= start + FRAME_HEADER_BYTES && frameBytes(seen.view, start) <= FRAME_BYTES_MAX
  if (!isFrame) throw new Error(`no frame at byte ${position + start} of a sealed segment`)
  const firstEnd = start + frameBytes(seen.view, start)
  const { buffer, view } = firstEnd <= seen.buffer.length ? seen : bytesOf(await source.read(position, firstEnd))
  if (buffer.length < firstEnd)
    throw new Error(`the frame at byte ${position + start} of a sealed segment is cut short`)
  let end = firstEnd
  while (end + FRAME_HEADER_BYTES <= buffer.length && end + frameBytes(view, end) <= buffer.length) {
    end += frameBytes(view, end)
  }
  return { bytes: buffer.subarray(0, end), firstEventId: frameEventId(view, start) }
}

/** What a file says of itself; checked for form, not yet for truth. */
export const readManifest = async (disk: Disk, path: string, conversationId: string): Promise<Manifest> => {
  const damaged = (reason: string) => new ArchiveDamaged({ conversationId, file: path, reason })
  return withFile(disk, path, async (file) => {
    const size = await file.size()
    if (size < HEADER_BYTES + FOOTER_BYTES) throw damaged("it is cut short")
    const header = await readExactly(file, 0, HEADER_BYTES)
    if (!header.subarray(0, 8).equals(MAGIC)) throw damaged("it is not an archive")
    if (crc32c(header, 0, 12, 0) !== header.readUInt32LE(12)) throw damaged("header checksum mismatch")
    const version = header.readUInt32LE(8)
    if (version !== ARCHIVE_VERSION) throw new ArchiveUnsupported({ file: path, version, supported: ARCHIVE_VERSION })
    const footer = await readExactly(file, size - FOOTER_BYTES, FOOTER_BYTES)
    const bytes = footer.readUInt32LE(0)
    const isWhole = footer.subarray(8).equals(MAGIC) && bytes <= size - HEADER_BYTES - FOOTER_BYTES
    if (!isWhole || bytes > limits.archiveManifestBytesMax) throw damaged("its end is missing")
    const body = await readExactly(file, size - FOOTER_BYTES - bytes, bytes)
    if (crc32c(body, 0, bytes, 0) !== footer.readUInt32LE(4)) throw damaged("manifest checksum mismatch")
    // The checksum holds, so this is the manifest that was written.
    const manifest = JSON.parse(body.toString("utf8")) as Manifest
    if (manifest.conversation_id !== conversationId) throw damaged(`it belongs to ${manifest.conversation_id}`)
    return manifest
  })
}

/** The catalog's row in a manifest, unless it was folded by another version of the fold. */
export const rowIn = (manifest: Manifest): RowState | undefined =>
  manifest.row.format === ROW_FORMAT ? manifest.row : undefined

export const readExactly = async (file: DiskFile, position: number, length: number): Promise<Buffer> => {
  const buffer = Buffer.alloc(length)
  await file.read(buffer, 0, length, position)
  return buffer
}

export interface PlacedBlock extends ArchiveBlock {
  /** Where its compressed bytes start in the file. */
  readonly position: number
  readonly segment: number
  /** Where its bytes start in the segment. */
  readonly offset: number
}

/** The blocks of all segments in the order in which they lie in the file. */
export const placeBlocks = (manifest: Manifest): ReadonlyArray<PlacedBlock> => {
  const placed: Array<PlacedBlock> = []
  let position = HEADER_BYTES
  for (const [segment, { blocks }] of manifest.segments.entries()) {
    let offset = 0
    for (const block of blocks) {
      placed.push({ ...block, position, segment, offset })
      position += block.stored
      offset += block.bytes
    }
  }
  return placed
}

/** The bytes of a block; nothing when they cannot be inflated to what the manifest says. */
export const inflateBlock = async (file: DiskFile, block: PlacedBlock): Promise<Buffer | undefined> => {
  const stored = await readExactly(file, block.position, block.stored)
  try {
    const bytes = await inflateZstd(stored, { maxOutputLength: block.bytes })
    return bytes.length === block.bytes ? bytes : undefined
  } catch {
    return undefined
  }
}
