// The `.idx` file beside a segment: its sparse index and how far it is known to be durable. Derived data:
// missing, old or torn, it only costs a scan. It is written after the sync it speaks of, so where it is
// intact and the segment is shorter than it says, acknowledged frames are gone.
import { crc32c } from "../Crc32c.ts"
import { bytesOf } from "../Frame.ts"
import { emptyIndex, type SparseIndex } from "../LogState.ts"
import { getU64, setU64 } from "../U64.ts"

const MAGIC = Buffer.from("ECHSIDX\n", "latin1")
const VERSION = 1
const HEADER_BYTES = 32
const ENTRY_BYTES = 20

export interface IndexContent {
  readonly index: SparseIndex
  /** The segment was synced up to here, its seal included. */
  readonly durableBytes: number
}

/** Where an entry lies in the file. */
const indexEntryOffset = (entry: number): number => HEADER_BYTES + entry * ENTRY_BYTES

export const encodeIndex = (content: IndexContent): Buffer => {
  const { ids, offsets, crcs } = content.index
  const bytes = bytesOf(Buffer.alloc(indexEntryOffset(ids.length)))
  MAGIC.copy(bytes.buffer)
  bytes.view.setUint32(12, VERSION, true)
  bytes.view.setUint32(16, ids.length, true)
  setU64(bytes.view, 24, content.durableBytes)
  for (let entry = 0; entry < ids.length; entry++) {
    const start = indexEntryOffset(entry)
    setU64(bytes.view, start, ids[entry]!)
    setU64(bytes.view, start + 8, offsets[entry]!)
    bytes.view.setUint32(start + 16, crcs[entry]!, true)
  }
  bytes.view.setUint32(8, crc32c(bytes.buffer, 12, bytes.buffer.length, 0), true)
  return bytes.buffer
}

/** The content, or nothing when the bytes are not an intact index of this version. */
export const decodeIndex = (buffer: Buffer): IndexContent | undefined => {
  if (buffer.length < HEADER_BYTES || MAGIC.compare(buffer, 0, MAGIC.length) !== 0) return undefined
  const { view } = bytesOf(buffer)
  const entries = view.getUint32(16, true)
  const length = indexEntryOffset(entries)
  if (view.getUint32(12, true) !== VERSION || length > buffer.length) return undefined
  if (crc32c(buffer, 12, length, 0) !== view.getUint32(8, true)) return undefined
  const index = emptyIndex()
  for (let entry = 0; entry < entries; entry++) {
    const start = indexEntryOffset(entry)
    index.ids.push(getU64(view, start))
    index.offsets.push(getU64(view, start + 8))
    index.crcs.push(view.getUint32(start + 16, true))
  }
  return { index, durableBytes: getU64(view, 24) }
}
