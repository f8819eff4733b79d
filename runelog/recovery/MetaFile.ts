// The file `meta` at the top of a runelog directory: its format, its identity, and from which batch on the
// journal is needed. Two slots on pages of their own are written in turn, so a torn update leaves the
// other one; the newest intact slot counts.
import { crc32c } from "../Crc32c.ts"
import type { Disk, DiskFile } from "../disk/Disk.ts"
import { bytesOf } from "../Frame.ts"
import { FormatUnsupported, JournalCorrupt, syncFailed } from "../RunelogErrors.ts"
import { getU64, setU64 } from "../U64.ts"

export const META_NAME = "meta"
export const META_VERSION = 1
const MAGIC = Buffer.from("ECHSMETA", "latin1")
const SLOT_BYTES = 4096
const SLOTS = 2
const USED_BYTES = 96
const at = {
  crc: 8,
  version: 12,
  turn: 16,
  floor: 24,
  sequence: 32,
  clean: 40,
  directoryId: 48,
  generation: 80,
  manifestBytes: 84,
  manifestCrc: 92
} as const

/** How far the manifest was relied on. Generation 0: there is none. */
export interface ManifestPlace {
  readonly generation: number
  readonly bytes: number
  /** What it ends in. */
  readonly crc: number
}

export type MetaChange = Partial<Omit<MetaState, "directoryId">>

export interface MetaState {
  /** 32 hex digits; every journal file carries them. */
  readonly directoryId: string
  /** Batches below this sequence are fully in synced segments. */
  readonly floor: number
  /** The highest sequence in use when the slot was written. */
  readonly sequence: number
  /** The writer closed in order: the journal holds nothing that is needed. */
  readonly clean: boolean
  readonly manifest: ManifestPlace
}

const NO_MANIFEST: ManifestPlace = { generation: 0, bytes: 0, crc: 0 }

interface Slot extends MetaState {
  readonly turn: number
}

const encodeSlot = (slot: Slot): Buffer => {
  const bytes = bytesOf(Buffer.alloc(SLOT_BYTES))
  MAGIC.copy(bytes.buffer)
  bytes.view.setUint32(at.version, META_VERSION, true)
  setU64(bytes.view, at.turn, slot.turn)
  setU64(bytes.view, at.floor, slot.floor)
  setU64(bytes.view, at.sequence, slot.sequence)
  bytes.view.setUint8(at.clean, slot.clean ? 1 : 0)
  bytes.buffer.write(slot.directoryId, at.directoryId, "latin1")
  bytes.view.setUint32(at.generation, slot.manifest.generation, true)
  setU64(bytes.view, at.manifestBytes, slot.manifest.bytes)
  bytes.view.setUint32(at.manifestCrc, slot.manifest.crc, true)
  bytes.view.setUint32(at.crc, crc32c(bytes.buffer, at.version, USED_BYTES, 0), true)
  return bytes.buffer
}

type DecodedSlot = Slot | { readonly version: number } | undefined

const decodeSlot = (buffer: Buffer): DecodedSlot => {
  const { view } = bytesOf(buffer)
  if (MAGIC.compare(buffer, 0, MAGIC.length) !== 0) return undefined
  if (crc32c(buffer, at.version, USED_BYTES, 0) !== view.getUint32(at.crc, true)) return undefined
  const version = view.getUint32(at.version, true)
  if (version !== META_VERSION) return { version }
  return {
    turn: getU64(view, at.turn),
    floor: getU64(view, at.floor),
    sequence: getU64(view, at.sequence),
    clean: view.getUint8(at.clean) === 1,
    directoryId: buffer.toString("latin1", at.directoryId, at.directoryId + 32),
    manifest: {
      generation: view.getUint32(at.generation, true),
      bytes: getU64(view, at.manifestBytes),
      crc: view.getUint32(at.manifestCrc, true)
    }
  }
}

const readSlots = async (file: DiskFile, path: string): Promise<Slot> => {
  const found: Array<Slot> = []
  for (let index = 0; index < SLOTS; index++) {
    const buffer = Buffer.alloc(SLOT_BYTES)
    await file.read(buffer, 0, SLOT_BYTES, index * SLOT_BYTES)
    const slot = decodeSlot(buffer)
    if (slot === undefined) continue
    if ("version" in slot) throw new FormatUnsupported({ file: path, version: slot.version, supported: META_VERSION })
    found.push(slot)
  }
  const newest = found.sort((left, right) => right.turn - left.turn)[0]
  if (newest === undefined) throw new JournalCorrupt({ file: path, offset: 0, reason: "neither slot is intact" })
  return newest
}

export class MetaFile {
  private readonly file: DiskFile
  private readonly path: string
  private slot: Slot
  private updating: Promise<void> = Promise.resolve()

  private constructor(file: DiskFile, path: string, slot: Slot) {
    this.file = file
    this.path = path
    this.slot = slot
  }

  /**
   * Opens the file of an existing directory. Of a writer that was killed, the newest slot may be in memory only: it is
   * synced, for the next change takes the place of the other one.
   */
  static async open(disk: Disk, directory: string): Promise<MetaFile> {
    const path = `${directory}/${META_NAME}`
    const file = await disk.open(path, "write")
    try {
      const slot = await readSlots(file, path)
      await file.sync().catch(syncFailed(path))
      return new MetaFile(file, path, slot)
    } catch (error) {
      await file.close()
      throw error
    }
  }

  /** Reads the state without keeping the file open. */
  static async read(disk: Disk, directory: string): Promise<MetaState> {
    const path = `${directory}/${META_NAME}`
    const file = await disk.open(path, "read")
    try {
      return await readSlots(file, path)
    } finally {
      await file.close()
    }
  }

  /** Creates the file of a new directory, durably. */
  static async create(disk: Disk, directory: string, directoryId: string): Promise<MetaFile> {
    const path = `${directory}/${META_NAME}`
    const temporary = `${path}.tmp`
    if (await disk.exists(temporary)) await disk.remove(temporary)
    const file = await disk.open(temporary, "create")
    const slot: Slot = { turn: 1, directoryId, floor: 1, sequence: 0, clean: true, manifest: NO_MANIFEST }
    try {
      const buffer = encodeSlot(slot)
      for (let index = 0; index < SLOTS; index++) await file.write(buffer, 0, SLOT_BYTES, index * SLOT_BYTES)
      await file.sync()
      await disk.rename(temporary, path)
      await disk.syncDirectory(directory)
    } catch (error) {
      await file.close()
      throw error
    }
    return new MetaFile(file, path, slot)
  }

  get state(): MetaState {
    return this.slot
  }

  /** Resolves when the change is durable. */
  update(change: MetaChange): Promise<void> {
    const updating = this.updating.then(() => this.write(change))
    // One that failed for want of room must not fail those that come after it.
    this.updating = updating.catch(() => undefined)
    return updating
  }

  private async write(change: MetaChange): Promise<void> {
    // Two checkpoints beside each other may come in either order; what was freed stays free.
    const floor = Math.max(this.slot.floor, change.floor ?? 0)
    const slot: Slot = { ...this.slot, ...change, floor, turn: this.slot.turn + 1 }
    await this.file.write(encodeSlot(slot), 0, SLOT_BYTES, (slot.turn % SLOTS) * SLOT_BYTES)
    await this.file.sync().catch(syncFailed(this.path))
    this.slot = slot
  }

  async close(): Promise<void> {
    await this.updating
    await this.file.close()
  }
}
