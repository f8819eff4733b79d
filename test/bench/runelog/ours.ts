// The runelog as it is used: everything on, default limits. A row with many conversations is sampled over whole
// checkpoint cycles where time allows, since a rate between two checkpoints would be a rate that nobody gets.
import { join } from "node:path"
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import { Runelog } from "#runelog/Runelog.ts"
import { Busy, EventIdOutOfOrder } from "#runelog/RunelogErrors.ts"
import { appendWhenReady } from "./appendWhenReady.ts"
import { drive, type Sample, type Subject, timed } from "./sampling.ts"
import { body, recordsBefore } from "./settings.ts"

const entries = [{ body }]
/** A sample lasts until this many checkpoints ended in it, from the end of one to the end of another, … */
const CHECKPOINTS_MIN = 1
/** … but takes no longer than this many times the length that was asked for. */
const STRETCH_MAX = 10

/** The disk of this machine, and how often `meta` was written: once per checkpoint. */
const makeCountingDisk = (): { readonly disk: Disk; readonly metaWrites: () => number } => {
  const disk = makeDiskNode()
  let metaWrites = 0
  const counting = (file: DiskFile): DiskFile => ({
    read: (...args) => file.read(...args),
    write: (...args) => {
      metaWrites += 1
      return file.write(...args)
    },
    writeNow: (...args) => file.writeNow(...args),
    sync: () => file.sync(),
    syncNow: () => file.syncNow(),
    truncate: (length) => file.truncate(length),
    size: () => file.size(),
    close: () => file.close()
  })
  const open: Disk["open"] = async (path, mode) => {
    const file = await disk.open(path, mode)
    return /\/meta(\.tmp)?$/.test(path) ? counting(file) : file
  }
  return { disk: { ...disk, open }, metaWrites: () => metaWrites }
}

/** Hands out appends to conversations in turn, and ids in the order in which the log takes them. */
class Writers {
  private readonly log: Runelog
  private readonly names: ReadonlyArray<string>
  private readonly nextIds: Array<number>
  private readonly triedAt: Array<number> = []
  private readonly triedId: Array<number> = []
  private turn = 0
  busy = 0

  constructor(log: Runelog, names: ReadonlyArray<string>) {
    this.log = log
    this.names = names
    this.nextIds = names.map(() => 1)
  }

  readonly append = (appender: number): Promise<void> => {
    const at = this.turn
    this.turn = at + 1 === this.names.length ? 0 : at + 1
    const eventId = this.nextIds[at]!
    this.nextIds[at] = eventId + 1
    this.triedAt[appender] = at
    this.triedId[appender] = eventId
    return this.log.append(this.names[at]!, eventId, entries)
  }

  /** A refused append leaves its id to the next one; what was tried behind it comes back out of order. */
  readonly retry = async (error: unknown, appender: number): Promise<void> => {
    const at = this.triedAt[appender]!
    if (error instanceof EventIdOutOfOrder) {
      this.nextIds[at] = error.expected
    } else if (error instanceof Busy) {
      this.busy += 1
      this.nextIds[at] = Math.min(this.nextIds[at]!, this.triedId[appender]!)
      await this.log.ready()
    } else {
      throw error
    }
  }

  /** Gives every conversation its first records in one append each, so that files exist and are open. */
  async begin(): Promise<void> {
    const batch = Array.from({ length: recordsBefore }, () => entries[0]!)
    for (let from = 0; from < this.names.length; from += 500) {
      const some = this.names.slice(from, from + 500)
      await Promise.all(some.map((name) => appendWhenReady(this.log, name, 1, batch)))
    }
    this.nextIds.fill(batch.length + 1)
    await this.log.checkpoint()
  }
}

/** One data directory with a number of conversations; rows that differ only in outstanding appends share it. */
export class Ours {
  readonly conversations: number
  private readonly directory: string
  private readonly counting = makeCountingDisk()
  private opened: { readonly log: Runelog; readonly writers: Writers } | undefined

  constructor(directory: string, conversations: number) {
    this.directory = join(directory, `runelog-${conversations}`)
    this.conversations = conversations
  }

  /** How often an append was answered Busy and tried again. */
  get busy(): number {
    return this.opened?.writers.busy ?? 0
  }

  private async open(): Promise<void> {
    if (this.opened !== undefined) return
    const log = await Runelog.open({ directory: this.directory, disk: this.counting.disk })
    const names = Array.from({ length: this.conversations }, (_, index) => `conv_${String(index).padStart(8, "0")}`)
    const writers = new Writers(log, names)
    await writers.begin()
    this.opened = { log, writers }
  }

  private sample(outstanding: number, seconds: number): Promise<Sample> {
    const { writers } = this.opened!
    const { metaWrites } = this.counting
    const wanted = this.conversations > 1 ? metaWrites() + CHECKPOINTS_MIN : 0
    return timed((latency, startedMs) => {
      const endMs = startedMs + seconds * 1000
      const lastMs = startedMs + seconds * 1000 * STRETCH_MAX
      const isOver = (nowMs: number): boolean => nowMs >= endMs && (nowMs >= lastMs || metaWrites() >= wanted)
      return drive({ outstanding, append: writers.append, retry: writers.retry, isOver }, latency)
    }, metaWrites)
  }

  subject(outstanding: number): Subject {
    return {
      name: oursName(outstanding, this.conversations),
      prepare: () => this.open(),
      sample: (seconds) => this.sample(outstanding, seconds),
      settle: async () => this.opened?.log.checkpoint(),
      close: async () => this.opened?.log.close()
    }
  }
}

const thousands = (value: number): string => value.toLocaleString("en-US")

export const oursName = (outstanding: number, conversations: number): string =>
  `runelog, ${outstanding} outstanding, ${thousands(conversations)} conversation${conversations === 1 ? "" : "s"}`
