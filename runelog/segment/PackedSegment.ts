// A sealed segment in compressed blocks (FORMAT.md, "Packed segment"). What is read from it is the segment as it was,
// byte for byte and at the same offsets, so whoever reads segments need not know. A block that cannot be inflated
// reads as zeros, which no frame is: damage to it is found where damage to frames is.
import { promisify } from "node:util"
import { constants, zstdCompress, zstdCompressSync, zstdDecompress, zstdDecompressSync } from "node:zlib"
import { crc32c } from "../Crc32c.ts"
import type { DiskFile } from "../disk/Disk.ts"
import { bytesOf } from "../Frame.ts"
import { KIB } from "../RunelogLimits.ts"
import { getU64, setU64 } from "../U64.ts"
import { decodeSegmentHeader, encodeSegmentHeader, PACKED_VERSION, SEGMENT_HEADER_BYTES } from "./Segment.ts"

/** Inflated bytes of every block but the last. */
export const PACKED_BLOCK_BYTES = 256 * KIB
/** Blocks whose sizes are believed: more than the largest segment has. */
const BLOCKS_MAX = 1 << 16
const COMPRESSION_LEVEL = 3

/** Behind the segment's header: bytes of the segment, of a block, and how many blocks; then their sizes and a checksum. */
const table = { bytes: SEGMENT_HEADER_BYTES, blockBytes: 136, blocks: 140, sizes: 144 } as const
const SIZE_BYTES = 4
const CRC_BYTES = 4

/** Less than this is done sooner than a thread is reached. */
const POOL_BYTES_MIN = 64 * KIB

const params = { [constants.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL, [constants.ZSTD_c_checksumFlag]: 1 }
const compressInPool = promisify(zstdCompress)
const inflateInPool = promisify(zstdDecompress)

const compress = async (plain: Buffer): Promise<Buffer> =>
  plain.length < POOL_BYTES_MIN ? zstdCompressSync(plain, { params }) : compressInPool(plain, { params })

const inflate = async (stored: Buffer, length: number): Promise<Buffer> => {
  const options = { maxOutputLength: length }
  return length < POOL_BYTES_MIN ? zstdDecompressSync(stored, options) : inflateInPool(stored, options)
}

const tableEnd = (blocks: number): number => table.sizes + blocks * SIZE_BYTES

/** Writes the first `bytes` of a segment as a packed one; returns its size. The caller makes the file durable. */
export const packSegment = async (source: DiskFile, target: DiskFile, bytes: number): Promise<number> => {
  const blocks = Math.ceil(bytes / PACKED_BLOCK_BYTES)
  const head = bytesOf(Buffer.alloc(tableEnd(blocks) + CRC_BYTES))
  let position = head.buffer.length
  for (let block = 0; block < blocks; block++) {
    const at = block * PACKED_BLOCK_BYTES
    const plain = Buffer.alloc(Math.min(PACKED_BLOCK_BYTES, bytes - at))
    await source.read(plain, 0, plain.length, at)
    if (block === 0) putHeader(head.buffer, plain)
    const stored = await compress(plain)
    await target.write(stored, 0, stored.length, position)
    head.view.setUint32(table.sizes + block * SIZE_BYTES, stored.length, true)
    position += stored.length
  }
  setU64(head.view, table.bytes, bytes)
  head.view.setUint32(table.blockBytes, PACKED_BLOCK_BYTES, true)
  head.view.setUint32(table.blocks, blocks, true)
  head.view.setUint32(tableEnd(blocks), crc32c(head.buffer, table.bytes, tableEnd(blocks), 0), true)
  await target.write(head.buffer, 0, head.buffer.length, 0)
  return position
}

/** A build that knows no packed segments must find a version that it does not know, and not damage. */
const putHeader = (head: Buffer, plain: Buffer): void => {
  const decoded = decodeSegmentHeader(plain)
  if (decoded._tag !== "Header") throw new Error("what is to be packed is not a segment")
  encodeSegmentHeader(decoded.header, PACKED_VERSION).buffer.copy(head)
}

/** What a packed file says of itself. */
export interface Packed {
  /** Bytes of the segment that is in it; 0 when that is not known any more. */
  readonly bytes: number
  /** Bytes of the file behind its last block, where nothing belongs: they read as zeros behind the seal. */
  readonly surplusBytes: number
  readonly blockBytes: number
  /** Where each block begins, and where the last one ends. */
  readonly offsets: ReadonlyArray<number>
}

const unreadable: Packed = { bytes: 0, surplusBytes: 0, blockBytes: PACKED_BLOCK_BYTES, offsets: [0] }

/** The table of a packed segment; nothing when the file is not packed. */
export const openPacked = async (file: DiskFile): Promise<Packed | undefined> => {
  const head = bytesOf(Buffer.alloc(table.sizes))
  const read = await file.read(head.buffer, 0, table.sizes, 0)
  const decoded = decodeSegmentHeader(head.buffer.subarray(0, Math.min(read, SEGMENT_HEADER_BYTES)))
  if (decoded._tag !== "Version" || decoded.version !== PACKED_VERSION) return undefined
  const blocks = head.view.getUint32(table.blocks, true)
  if (blocks > BLOCKS_MAX) return unreadable
  const rest = bytesOf(Buffer.alloc(blocks * SIZE_BYTES + CRC_BYTES))
  await file.read(rest.buffer, 0, rest.buffer.length, table.sizes)
  const sizes = rest.buffer.subarray(0, blocks * SIZE_BYTES)
  const crc = crc32c(sizes, 0, sizes.length, crc32c(head.buffer, table.bytes, table.sizes, 0))
  if (crc !== rest.view.getUint32(sizes.length, true)) return unreadable
  const offsets = [tableEnd(blocks) + CRC_BYTES]
  for (let block = 0; block < blocks; block++) {
    offsets.push(offsets[block]! + rest.view.getUint32(block * SIZE_BYTES, true))
  }
  return {
    bytes: getU64(head.view, table.bytes),
    surplusBytes: Math.max((await file.size()) - offsets[blocks]!, 0),
    blockBytes: head.view.getUint32(table.blockBytes, true),
    offsets
  }
}

/** One block as it was; zeros where it cannot be had. */
export const inflateBlock = async (file: DiskFile, packed: Packed, block: number): Promise<Buffer> => {
  const { blockBytes, bytes, offsets } = packed
  const length = Math.min(blockBytes, bytes - block * blockBytes)
  const stored = Buffer.alloc(offsets[block + 1]! - offsets[block]!)
  await file.read(stored, 0, stored.length, offsets[block]!)
  const plain = await inflate(stored, length).catch(() => undefined)
  return plain?.length === length ? plain : Buffer.alloc(length)
}
