// Logs whose newest frames are in the journal and in no segment, and of which memory holds nothing but where those frames
// lie: after a start they are not opened before somebody asks for them, and small ones leave the memory this way. As
// long as a log is here, the journal is needed from its first group on.

import { type Extent, isQuiet, type LogState } from "../LogState.ts"
import type { JournalFile } from "./Journal.ts"

/** Frames of one log in one batch of the journal. */
export interface JournalGroup {
  readonly journal: JournalFile
  /** Where the frames start in the file, and how many bytes they take. */
  readonly position: number
  readonly bytes: number
  readonly firstEventId: number
  readonly lastEventId: number
  /** The batch that holds them. */
  readonly sequence: number
}

/** A log with more groups or bytes is written to its segment: to come back it would have to read too much. */
const GROUPS_MAX = 16
const BYTES_MAX = 64 * 1024

export class JournalLogs {
  private readonly logs = new Map<string, Array<JournalGroup>>()

  /** The batch of the newest removal of each name that the journal holds one of. */
  private readonly removals = new Map<string, number>()

  get size(): number {
    return this.logs.size
  }

  has(log: string): boolean {
    return this.logs.has(log)
  }

  names(): Iterable<string> {
    return this.logs.keys()
  }

  /** In the order they were written; none when the log is not here. */
  groups(log: string): ReadonlyArray<JournalGroup> {
    return this.logs.get(log) ?? []
  }

  add(log: string, group: JournalGroup): void {
    const groups = this.logs.get(log)
    if (groups === undefined) this.logs.set(log, [group])
    else groups.push(group)
  }

  delete(log: string): void {
    this.logs.delete(log)
  }

  noteRemoval(log: string, sequence: number): void {
    this.removals.set(log, sequence)
  }

  /** The journal holds a removal of a log of this name, which the next start applies again. */
  removes(log: string): boolean {
    return this.removals.has(log)
  }

  /** Batches below `floor` are not applied any more. */
  forgetRemovals(floor: number): void {
    for (const [log, sequence] of this.removals) if (sequence < floor) this.removals.delete(log)
  }

  /** The newest event of a log that the journal holds from its first event on; nothing when only its files can tell. */
  head(log: string): number | undefined {
    const groups = this.groups(log)
    let next = 1
    for (const { firstEventId, lastEventId } of groups) {
      if (firstEventId !== next) return undefined
      next = lastEventId + 1
    }
    return groups.length === 0 ? undefined : next - 1
  }

  /** The logs with frames in batches up to this one, those that hold back the journal longest first. */
  upTo(sequence: number): ReadonlyArray<string> {
    const firsts = [...this.logs].map(([name, groups]) => ({ name, first: groups[0]!.sequence }))
    const due = firsts.filter(({ first }) => first <= sequence).sort((left, right) => left.first - right.first)
    return due.map(({ name }) => name)
  }

  /** The oldest batch that is needed. */
  get lowestSequence(): number {
    let lowest = Number.POSITIVE_INFINITY
    for (const [first] of this.logs.values()) lowest = Math.min(lowest, first!.sequence)
    return lowest
  }

  /** Remembers where the pending frames of a log lie, if they are all that no segment has and are few. */
  take(log: LogState): boolean {
    const groups = groupsOf(log)
    if (groups === undefined) return false
    this.logs.set(log.name, groups)
    return true
  }
}

const groupsOf = (log: LogState): Array<JournalGroup> | undefined => {
  const { pending } = log
  if (pending.length > GROUPS_MAX || log.pendingBytes > BYTES_MAX || !isQuiet(log)) return undefined
  // Frames that were written and not synced are in no extent any more.
  if (pending[0]?.sequence !== log.unsyncedSequence || log.segments.some(({ unsynced }) => unsynced)) return undefined
  const groups: Array<JournalGroup> = []
  for (const extent of pending) {
    if (extent.journal === undefined) return undefined
    groups.push(groupOf(extent, extent.journal))
  }
  return groups
}

const groupOf = (extent: Extent, journal: JournalFile): JournalGroup => ({
  journal,
  position: extent.journalPosition,
  bytes: extent.end - extent.start,
  firstEventId: extent.firstEventId,
  lastEventId: extent.lastEventId,
  sequence: extent.sequence
})
