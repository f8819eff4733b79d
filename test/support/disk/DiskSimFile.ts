// What of one simulated file is on the platter: its synced contents, and in order every sector write and change of
// length since. On a crash each sector is found in any of the states it went through, independent of its neighbors;
// the length is found in any of the values it took; one sector may be garbled in the bytes that were being written.
// Synced bytes that were not overwritten always stay: a sector write does not harm the bytes beside it (what SQLite
// calls powersafe overwrite), unless the disk was made with `garble: "sector"`.

import type { Random } from "./DiskSimRandom.ts"
import { type Contents, resizeFile, writeFile } from "./DiskTree.ts"

export const sectorBytes = 512

/** How far garbage reaches in the sector that was under way: the bytes being written, or all of it. */
export type Garble = "written" | "sector"

/** A change counts as written once its call has returned; a sync that started earlier does not cover it. */
export interface Ticket {
  settled: boolean
  /** A failed sync marks pages clean without having written them: no later sync covers them. */
  abandoned: boolean
}

export const newTicket = (): Ticket => ({ settled: false, abandoned: false })

interface SectorWrite {
  readonly kind: "sector"
  readonly sector: number
  readonly position: number
  readonly bytes: Uint8Array
  readonly ticket: Ticket
}

/** A write or an extension lets the file reach at least `size`; only a truncation makes it shorter. */
interface LengthChange {
  readonly kind: "grow" | "cut"
  readonly size: number
  readonly ticket: Ticket
}

type FileChange = SectorWrite | LengthChange

const copyContents = (contents: Contents): Contents => ({
  bytes: contents.bytes.slice(0, contents.size),
  size: contents.size
})

const splitSectors = (source: Uint8Array, position: number, ticket: Ticket): Array<SectorWrite> => {
  // A copy of its own: `slice` of a Buffer would share the caller's memory, which is reused after the call.
  const bytes = new Uint8Array(source)
  const writes: Array<SectorWrite> = []
  for (let from = 0; from < bytes.length; ) {
    const sector = Math.floor((position + from) / sectorBytes)
    const to = Math.min(bytes.length, (sector + 1) * sectorBytes - position)
    writes.push({ kind: "sector", sector, position: position + from, bytes: bytes.subarray(from, to), ticket })
    from = to
  }
  return writes
}

const isSectorWrite = (change: FileChange): change is SectorWrite => change.kind === "sector"

const lengthAfter = (size: number, change: LengthChange): number =>
  change.kind === "cut" ? change.size : Math.max(size, change.size)

const apply = (contents: Contents, change: FileChange): void => {
  if (change.kind === "sector") writeFile(contents, change.bytes, change.position)
  else resizeFile(contents, lengthAfter(contents.size, change))
}

/** The writes that reached the platter: of each sector a number of the first ones, for they get there in order. */
const drawKept = (writes: ReadonlyMap<number, ReadonlyArray<SectorWrite>>, random: Random): ReadonlySet<FileChange> => {
  const style = random.below(8)
  const chance = style === 0 ? 0 : random.next()
  const kept = new Set<FileChange>()
  for (const ofSector of writes.values()) {
    const drawn = random.next() < chance ? 1 + random.below(ofSector.length) : 0
    for (const write of ofSector.slice(0, style === 1 ? ofSector.length : drawn)) kept.add(write)
  }
  return kept
}

export class DiskSimFile {
  readonly #durable: Contents
  #changes: Array<FileChange> = []

  constructor(durable: Contents) {
    this.#durable = copyContents(durable)
  }

  /** Notes a write that is about to change `live`. */
  noteWrite(live: Contents, source: Uint8Array, position: number, ticket: Ticket): void {
    for (const write of splitSectors(source, position, ticket)) this.#changes.push(write)
    const end = position + source.length
    if (source.length > 0 && end > live.size) this.#changes.push({ kind: "grow", size: end, ticket })
  }

  /** Notes a change of length that is about to happen to `live`. */
  noteTruncate(live: Contents, size: number, ticket: Ticket): void {
    // The kernel clears the rest of the last sector in memory, and that page is written like any other.
    const rest = Math.min(live.size, Math.ceil(size / sectorBytes) * sectorBytes) - size
    if (rest > 0) this.#changes.push(...splitSectors(new Uint8Array(rest), size, ticket))
    this.#changes.push({ kind: size < live.size ? "cut" : "grow", size, ticket })
  }

  /** The changes that a sync starting now has to bring to the platter. */
  covered(): ReadonlySet<object> {
    return new Set(this.#changes.filter(({ ticket }) => ticket.settled && !ticket.abandoned))
  }

  flush(covered: ReadonlySet<object>): void {
    const dirty = new Set<number>()
    for (const change of this.#changes) if (change.kind === "sector" && covered.has(change)) dirty.add(change.sector)
    const isFlushed = (change: FileChange): boolean =>
      covered.has(change) || (change.kind === "sector" && change.ticket.abandoned && dirty.has(change.sector))
    for (const change of this.#changes) if (isFlushed(change)) apply(this.#durable, change)
    this.#changes = this.#changes.filter((change) => !isFlushed(change))
  }

  abandon(covered: ReadonlySet<object>): void {
    for (const change of this.#changes) if (covered.has(change)) change.ticket.abandoned = true
  }

  /** What is found after the power comes back. */
  survivor(random: Random, garble: Garble): Contents {
    const lengths = this.#changes.filter((change) => change.kind !== "sector")
    const lengthsKept = new Set<FileChange>(lengths.slice(0, random.below(lengths.length + 1)))
    const changes = this.#reachable(lengthsKept)
    const writes = Map.groupBy(changes.filter(isSectorWrite), ({ sector }) => sector)
    const kept = drawKept(writes, random)
    const result = copyContents(this.#durable)
    let size = result.size
    for (const change of changes) {
      if (change.kind !== "sector") size = lengthAfter(size, change)
      if (change.kind === "cut" || kept.has(change)) apply(result, change)
    }
    if (writes.size > 0 && random.next() < 0.5) garbleOne(result, [...writes.values()], { random, garble })
    resizeFile(result, size)
    return result
  }

  // Sectors behind a cut that did not reach the platter still belong to the old data: what was written there
  // afterwards went to other sectors, to which nothing leads.
  #reachable(lengthsKept: ReadonlySet<FileChange>): Array<FileChange> {
    let lostFrom = Number.POSITIVE_INFINITY
    return this.#changes.filter((change) => {
      if (change.kind === "sector") return change.sector < lostFrom
      if (lengthsKept.has(change)) return true
      if (change.kind === "cut") lostFrom = Math.min(lostFrom, Math.ceil(change.size / sectorBytes))
      return false
    })
  }
}

/** Leaves one sector half written: a part of what was under way, then noise. */
const garbleOne = (
  contents: Contents,
  sectors: ReadonlyArray<ReadonlyArray<SectorWrite>>,
  options: { readonly random: Random; readonly garble: Garble }
): void => {
  const { random, garble } = options
  const writes = sectors[random.below(sectors.length)]!
  const write = writes[random.below(writes.length)]!
  const start = write.position + random.below(write.bytes.length)
  const end = garble === "sector" ? (write.sector + 1) * sectorBytes : write.position + write.bytes.length
  const torn = write.bytes.slice(0, start - write.position)
  writeFile(contents, torn, write.position)
  writeFile(
    contents,
    Uint8Array.from({ length: end - start }, () => random.below(256)),
    start
  )
}
