// The journal: a ring of zero-filled files that batches are written to before anyone is told they are
// durable. Owns placement, growth and recycling. A file is reused only when every frame in it is in a
// synced segment; a new one is filled and synced before it takes its first batch.
import type { Disk, DiskFile } from "../disk/Disk.ts"
import type { Limits } from "../RunelogLimits.ts"
import { BATCH_HEADER_BYTES, encodeJournalFileHeader, JOURNAL_PAGE_BYTES } from "./JournalBatch.ts"

export interface JournalFile {
  readonly name: string
  readonly path: string
  readonly file: DiskFile
  readonly bytes: number
  /** Highest sequence written to it since it was last free. */
  lastSequence: number
}

export interface Placement {
  readonly journal: JournalFile
  readonly position: number
}

const NO_HEADER = Buffer.alloc(BATCH_HEADER_BYTES)
const ZERO_CHUNK_BYTES = 256 * 1024

export const journalFileName = (number: number): string => `${String(number).padStart(8, "0")}.jnl`
export const isJournalFileName = (name: string): boolean => /^\d{8}\.jnl$/.test(name)
export const isJournalLeftover = (name: string): boolean => /^\d{8}\.jnl\.tmp$/.test(name)

export interface JournalOptions {
  readonly disk: Disk
  readonly directory: string
  readonly directoryId: string
  readonly limits: Limits
}

export class Journal {
  private readonly options: JournalOptions
  private readonly used: Array<JournalFile> = []
  private readonly free: Array<JournalFile> = []
  /** Files of another size with batches that are needed: they are removed, not used again. */
  private readonly odd: Array<JournalFile> = []
  private current: JournalFile | undefined
  private position = JOURNAL_PAGE_BYTES
  private nextNumber = 1
  private growing: Promise<void> | undefined

  constructor(options: JournalOptions) {
    this.options = options
  }

  /** Takes over a file that recovery found and emptied of meaning. */
  adopt(journal: JournalFile): void {
    this.free.push(journal)
    this.avoid(journal.name)
  }

  /** Takes over a file with batches that are still needed. */
  adoptUsed(journal: JournalFile): void {
    const isUsable = journal.bytes === this.options.limits.journalFileBytes
    if (isUsable) this.used.push(journal)
    else this.odd.push(journal)
    this.avoid(journal.name)
  }

  /** Goes on in a file that was taken over, behind its last batch. */
  resume(name: string, position: number): void {
    const journal = this.used.find((used) => used.name === name)
    if (journal === undefined) return
    this.current = journal
    this.position = position
  }

  /** No file is made under this name: there is one, whether it is used or about to be removed. */
  avoid(name: string): void {
    this.nextNumber = Math.max(this.nextNumber, Number.parseInt(name, 10) + 1)
  }

  /** Files with batches that may still be needed, the current one included. */
  get usedFiles(): number {
    return this.used.length
  }

  get files(): number {
    return this.used.length + this.free.length
  }

  /** Room for batches that may not touch the reserve, in the files at hand. */
  private roomBehind(position: number): number {
    const here = this.current === undefined ? 0 : this.current.bytes - position
    return this.free.reduce((sum, journal) => sum + journal.bytes - JOURNAL_PAGE_BYTES, here)
  }

  /** Where a batch of `bytes` (whole pages) goes, or nothing while there is no room for it. */
  place(bytes: number, options: { readonly mayUseReserve: boolean }): Placement | undefined {
    const fitsHere = this.current !== undefined && this.position + bytes <= this.current.bytes
    const next = fitsHere ? this.current : this.free[0]
    if (next === undefined || JOURNAL_PAGE_BYTES + bytes > next.bytes) return undefined
    const position = fitsHere ? this.position : JOURNAL_PAGE_BYTES
    const left = fitsHere ? this.roomBehind(position + bytes) : this.roomBehind(this.current?.bytes ?? 0) - bytes
    if (!options.mayUseReserve && left < this.options.limits.reserveBytes) return undefined
    if (!fitsHere) this.switchTo(next)
    this.position = position + bytes
    return { journal: next, position }
  }

  private switchTo(next: JournalFile): void {
    this.free.shift()
    this.used.push(next)
    this.current = next
  }

  /** Gives back the room of the batch that was placed last. Some of it may have been written: it must not come back after a crash. */
  retract({ journal, position }: Placement): void {
    journal.file.writeNow(NO_HEADER, 0, NO_HEADER.length, position)
    journal.file.syncNow()
    this.position = position
  }

  /** The newest sequence whose batch lies in a file that is no longer written to; 0 when there is none. */
  get checkpointTarget(): number {
    return this.used.reduce(
      (target, journal) => (journal === this.current ? target : Math.max(target, journal.lastSequence)),
      0
    )
  }

  /** The newest sequences of the files with needed batches below `sequence`, in order: each frees a file. */
  targetsBelow(sequence: number): ReadonlyArray<number> {
    const targets = this.used.map(({ lastSequence }) => lastSequence).filter((target) => target < sequence)
    return targets.sort((left, right) => left - right)
  }

  /** Another file should be made: the current one is half full and no free one waits. */
  get wantsGrowth(): boolean {
    const { limits } = this.options
    const halfFull = this.current === undefined || this.position * 2 > this.current.bytes
    return halfFull && this.free.length === 0 && this.files < limits.journalFilesMax && this.growing === undefined
  }

  /** Frees the files that hold only batches below `floor`; the current one starts over. */
  recycle(floor: number): void {
    for (const journal of [...this.used]) {
      if (journal.lastSequence >= floor) continue
      if (journal === this.current) {
        this.position = JOURNAL_PAGE_BYTES
      } else {
        this.used.splice(this.used.indexOf(journal), 1)
        this.free.push(journal)
      }
    }
  }

  /** Removes the files of another size that hold only batches below `floor`. */
  async removeOdd(floor: number): Promise<void> {
    const { disk } = this.options
    const isFree = ({ lastSequence }: JournalFile): boolean => lastSequence < floor
    // Looked for anew each time: two checkpoints may be at it.
    for (let at = this.odd.findIndex(isFree); at >= 0; at = this.odd.findIndex(isFree)) {
      const [journal] = this.odd.splice(at, 1)
      await journal!.file.close()
      await disk.remove(journal!.path)
    }
  }

  /** Makes one more file, filled and durable; rejects when the disk cannot hold it. */
  grow(): Promise<void> {
    this.growing ??= this.create().finally(() => {
      this.growing = undefined
    })
    return this.growing
  }

  private async create(): Promise<void> {
    const { disk, directory, limits } = this.options
    const name = journalFileName(this.nextNumber)
    const path = `${directory}/${name}`
    const temporary = `${path}.tmp`
    if (await disk.exists(temporary)) await disk.remove(temporary)
    const file = await disk.open(temporary, "create")
    try {
      await this.fill(file)
      await file.sync()
      await disk.rename(temporary, path)
      await disk.syncDirectory(directory)
    } catch (error) {
      await file.close()
      await disk.remove(temporary).catch(() => undefined)
      throw error
    }
    this.adopt({ name, path, file, bytes: limits.journalFileBytes, lastSequence: 0 })
  }

  private async fill(file: DiskFile): Promise<void> {
    const { directoryId, limits } = this.options
    const zeros = Buffer.alloc(Math.min(ZERO_CHUNK_BYTES, limits.journalFileBytes))
    for (let position = 0; position < limits.journalFileBytes; position += zeros.length) {
      await file.write(zeros, 0, Math.min(zeros.length, limits.journalFileBytes - position), position)
    }
    const header = encodeJournalFileHeader({ directoryId, bytes: limits.journalFileBytes })
    await file.write(header, 0, header.length, 0)
  }

  async close(): Promise<void> {
    await this.growing?.catch(() => undefined)
    for (const journal of [...this.used, ...this.free, ...this.odd]) await journal.file.close()
  }
}
