// The catalogue: listing, searching and finding unfinished work among many conversations without opening their logs.
// It follows the logs, a moment behind, and is never trusted over them: rows are folded from durable runes, whatever is
// missing, old or in doubt is folded again, and a database that cannot be used is set aside and filled anew.
import type { Disk } from "#runelog/Disk.ts"
import type { AnyRune } from "../rune/Rune.ts"
import { type CheckOptions, type CheckReport, checkCatalog } from "./CatalogCheck.ts"
import { CatalogDatabase, type Folded, isUnusable, MEMORY, type OpenState } from "./CatalogDatabase.ts"
import { foldRow, moveHead } from "./CatalogFold.ts"
import { type ListPage, type ListRequest, listRows } from "./CatalogList.ts"
import { CatalogPending, type Pending } from "./CatalogPending.ts"
import { type CatalogRow, emptyRow, type RowState, rowOf } from "./CatalogRow.ts"
import { removeIfThere } from "./Files.ts"
import { isExpired, mergeOutcome, noteOutcome, type Outcome } from "./Idempotency.ts"
import { limits } from "./Limits.ts"
import type { RunePage } from "./Page.ts"

/** Where the truth is. */
export interface CatalogSource {
  /** Every conversation, in the log or archived. */
  readonly conversations: () => Promise<Iterable<string>>
  /** The newest durable event, 0 when there is no such conversation. */
  readonly head: (conversationId: string) => Promise<number>
  readonly pages: (conversationId: string, after: number) => AsyncIterable<RunePage>
  /** The row that an archive carries, if the conversation is archived and the row can be used. */
  readonly archivedRow: (conversationId: string) => Promise<RowState | undefined>
}

export interface CatalogFault {
  readonly path: string
  readonly reason: string
  /** Where an unusable database was moved. */
  readonly movedTo?: string
}

export interface CatalogOptions {
  readonly source: CatalogSource
  readonly disk: Disk
  /** The database file, or `:memory:`. */
  readonly path: string
  /** Tells this data directory from others: a catalogue of another one is not used. */
  readonly directoryId: string
  readonly nowMs?: () => number
  readonly flushMs?: number
  readonly onFault?: (fault: CatalogFault) => void
}

const SLICE_ROWS = 1000

export class Catalog {
  private readonly options: CatalogOptions
  private database: CatalogDatabase
  /** How the database was found. */
  readonly openState: OpenState
  private readonly pending = new CatalogPending()
  private readonly resident = new Map<string, Folded>()
  private readonly outcomes = new Map<string, Outcome>()
  private timer: NodeJS.Timeout | undefined
  private flushing: Promise<void> | undefined
  private refilling: Promise<void> | undefined
  private closed = false
  private stopped = false
  /** It is known to have a true row of every conversation, or to be about to. */
  private complete: boolean

  private constructor(options: CatalogOptions, database: CatalogDatabase, openState: OpenState) {
    this.options = options
    this.database = database
    this.openState = openState
    this.complete = openState === "clean"
  }

  static async open(options: CatalogOptions): Promise<Catalog> {
    await ensureFile(options)
    try {
      const { catalog, state } = CatalogDatabase.open(options.path, options.directoryId)
      return new Catalog(options, catalog, state)
    } catch (error) {
      await setAside(options, error)
      await ensureFile(options)
      const { catalog } = CatalogDatabase.open(options.path, options.directoryId)
      return new Catalog(options, catalog, "fresh")
    }
  }

  /** Takes note of durable runes; nobody waits for what follows from it. */
  observe(conversationId: string, runes: ReadonlyArray<AnyRune>): void {
    if (runes.length === 0 || this.closed) return
    for (const rune of runes) if (rune.idempotency_key !== undefined) noteOutcome(this.outcomes, rune)
    this.pending.add(conversationId, runes)
    this.arm()
  }

  /** The conversation has changed in a way that nobody told: its row follows from the log. */
  doubt(conversationId: string): void {
    if (this.closed) return
    this.pending.doubt(conversationId)
    this.resident.delete(conversationId)
    this.arm()
  }

  /** What the catalogue has; what became durable in the last moments may be missing unless it is flushed first. */
  list(request: ListRequest = {}): ListPage {
    return this.guarded(() => listRows(this.database, request))
  }

  get(conversationId: string): CatalogRow | undefined {
    const found = this.resident.get(conversationId) ?? this.guarded(() => this.database.load(conversationId))
    return found === undefined ? undefined : rowOf(found.row, found.damaged)
  }

  /** Conversations that a restart has to go on with, the newest first. */
  unfinished(): ReadonlyArray<string> {
    return this.guarded(() => this.database.unfinished())
  }

  /** Conversations in which something happened at or after a time, the newest first. */
  changedSince(sinceMs: number): ReadonlyArray<string> {
    return this.guarded(() => this.database.changedSince(sinceMs))
  }

  /** Every conversation in a state, for housekeeping; others get their turn in between. */
  async *inState(state: CatalogRow["state"]): AsyncGenerator<string> {
    for (let after = ""; ; ) {
      const slice = this.guarded(() => this.database.inState(state, after, SLICE_ROWS))
      yield* slice
      const last = slice[slice.length - 1]
      if (last === undefined) return
      after = last
      await nextTurn()
    }
  }

  count(): number {
    return this.guarded(() => this.database.count())
  }

  /** What became of a command with this key, in any conversation; nothing when it is new or was forgotten. */
  outcome(key: string): Outcome | undefined {
    const stored = this.guarded(() => this.database.outcome(key))
    const fresh = this.outcomes.get(key)
    const outcome = fresh === undefined ? stored : mergeOutcome(stored, fresh)
    return outcome === undefined || isExpired(outcome, this.nowMs) ? undefined : outcome
  }

  /** Resolves when everything observed before the call is in the database, or was found not to go in. */
  async flush(): Promise<void> {
    while (this.flushing !== undefined) await this.flushing
    if (this.closed || (this.pending.size === 0 && this.outcomes.size === 0)) return
    this.disarm()
    this.flushing = this.flushAll().finally(() => {
      this.flushing = undefined
      if (this.pending.size > 0) this.arm()
    })
    await this.flushing
  }

  /** Compares the catalogue with the logs and folds what differs. */
  async check(options: CheckOptions): Promise<CheckReport> {
    const { source } = this.options
    const suffices = options.only === "all" || (options.only === "presence" && this.openState !== "unclean")
    const report = await checkCatalog(
      {
        conversations: source.conversations,
        head: source.head,
        known: (conversationId) => this.get(conversationId)?.last_event_id,
        rows: (after, count) => this.guarded(() => this.database.heads(after, count)),
        doubt: (conversationId) => this.doubt(conversationId),
        flush: () => this.flush(),
        doubted: () => this.pending.size,
        isClosed: () => this.stopped
      },
      options
    )
    if (suffices && !this.stopped) this.complete = true
    return report
  }

  /** Ends a check that is under way; the next start looks again. */
  stop(): void {
    this.stopped = true
  }

  /** Writes what waits and closes the database, marked as complete. */
  async close(): Promise<void> {
    await this.refilling
    await this.flush()
    if (this.closed) return
    this.closed = true
    this.disarm()
    this.database.close({ clean: this.pending.size === 0 && this.complete })
  }

  private async flushAll(): Promise<void> {
    const due = this.pending.conversations()
    for (let at = 0; at < due.length; at += limits.catalogSliceRows) {
      const slice = due.slice(at, at + limits.catalogSliceRows)
      if (!(await this.attempt(() => this.flushSlice(slice)))) {
        for (const conversationId of slice) this.doubt(conversationId)
        return
      }
      await nextTurn()
    }
    await this.attempt(async () => this.writeOutcomes())
    this.evict()
  }

  private async flushSlice(conversationIds: ReadonlyArray<string>): Promise<void> {
    const rows = await this.advanceAll(conversationIds)
    this.transaction(() => {
      for (const [conversationId, folded] of rows) {
        if (folded === undefined) this.database.remove(conversationId)
        else this.database.save(folded)
      }
    })
  }

  private async advanceAll(conversationIds: ReadonlyArray<string>): Promise<Map<string, Folded | undefined>> {
    const rows = new Map<string, Folded | undefined>()
    let next = 0
    const lane = async (): Promise<void> => {
      for (let at = next++; at < conversationIds.length; at = next++) {
        const conversationId = conversationIds[at]!
        const pending = this.pending.take(conversationId)
        if (pending !== undefined) rows.set(conversationId, await this.advance(conversationId, pending))
      }
    }
    await Promise.all(Array.from({ length: limits.catalogReaders }, lane))
    return rows
  }

  /** The row with what is pending folded in, read from the log where something is missing; nothing when it is gone. */
  private async advance(conversationId: string, pending: Pending): Promise<Folded | undefined> {
    const known = this.resident.get(conversationId) ?? this.guarded(() => this.database.load(conversationId))
    const start = known ?? { row: emptyRow(conversationId), damaged: undefined }
    const follows = !pending.behind && pending.firstEventId === start.row.last_event_id + 1
    const folded = follows ? foldPending(start, pending) : await this.foldLog(conversationId, start.row)
    this.resident.delete(conversationId)
    if (folded !== undefined) this.resident.set(conversationId, folded)
    return folded
  }

  /** Folds on from what the row knows, or from the beginning where that cannot be right. */
  private async foldLog(conversationId: string, from: RowState): Promise<Folded | undefined> {
    const { source } = this.options
    let row = from
    try {
      const head = await source.head(conversationId)
      if (head === 0) return undefined
      const isPrefix = from.last_event_id > 0 && from.last_event_id <= head
      if (!isPrefix) row = (await source.archivedRow(conversationId)) ?? emptyRow(conversationId)
      for await (const page of source.pages(conversationId, row.last_event_id)) this.foldPage(row, page)
      return { row, damaged: undefined }
    } catch (error) {
      return { row, damaged: messageOf(error) }
    }
  }

  private foldPage(row: RowState, page: RunePage): void {
    for (const rune of page.runes) {
      foldRow(row, rune)
      if (rune.idempotency_key !== undefined) noteOutcome(this.outcomes, rune)
    }
    // A page may end in a gap.
    moveHead(row, { event_id: page.next, ts_ms: row.updated_ms })
  }

  private writeOutcomes(): void {
    const outcomes = [...this.outcomes.values()]
    this.transaction(() => {
      for (const outcome of outcomes) this.database.saveOutcome(outcome)
      this.database.forgetOutcomes(this.nowMs - limits.idempotencyTtlMs)
    })
    for (const outcome of outcomes) if (this.outcomes.get(outcome.key) === outcome) this.outcomes.delete(outcome.key)
  }

  private evict(): void {
    for (const conversationId of this.resident.keys()) {
      if (this.resident.size <= limits.catalogResidentRows) return
      this.resident.delete(conversationId)
    }
  }

  private transaction(body: () => void): void {
    this.guarded(() => this.database.transaction(body))
  }

  /** False when it failed, which is reported; what was to be written is tried again later. */
  private async attempt(body: () => Promise<void>): Promise<boolean> {
    try {
      await body()
      return true
    } catch (error) {
      this.options.onFault?.({ path: this.options.path, reason: messageOf(error) })
      return false
    }
  }

  /** Asks the database. When its file turns out to be damaged, a new one is filled beside everything else. */
  private guarded<A>(body: () => A): A {
    try {
      return body()
    } catch (error) {
      if (isUnusable(error)) this.startRefill(error)
      throw error
    }
  }

  private startRefill(error: unknown): void {
    if (this.refilling !== undefined || this.closed) return
    this.refilling = this.attempt(() => this.refill(error)).then(() => {
      this.refilling = undefined
    })
  }

  /** The database is damaged: it is set aside, and a new one is filled from the logs. */
  private async refill(error: unknown): Promise<void> {
    const { directoryId, path } = this.options
    await nextTurn()
    this.database.close({ clean: false })
    await setAside(this.options, error)
    await ensureFile(this.options)
    this.database = CatalogDatabase.open(path, directoryId).catalog
    this.resident.clear()
    this.complete = false
    await this.check({ only: "all" })
  }

  private arm(): void {
    if (this.timer !== undefined || this.flushing !== undefined || this.closed) return
    this.timer = setTimeout(() => void this.flush(), this.options.flushMs ?? limits.catalogFlushMs)
    this.timer.unref()
  }

  private disarm(): void {
    clearTimeout(this.timer)
    this.timer = undefined
  }

  private get nowMs(): number {
    return (this.options.nowMs ?? Date.now)()
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const foldPending = ({ damaged, row }: Folded, pending: Pending): Folded => {
  for (const rune of pending.runes) foldRow(row, rune)
  moveHead(row, { event_id: pending.lastEventId, ts_ms: pending.lastMs })
  return { row, damaged }
}

/** SQLite would make the file readable for everybody; the disk makes it its owner's. */
const ensureFile = async ({ disk, path }: CatalogOptions): Promise<void> => {
  if (path === MEMORY || (await disk.exists(path))) return
  await (await disk.open(path, "create")).close()
}

/** Moves a database that cannot be used out of the way, with what belongs to it. */
const setAside = async ({ disk, onFault, path }: CatalogOptions, error: unknown): Promise<void> => {
  if (path === MEMORY) throw error
  let movedTo = `${path}.old`
  for (let attempt = 2; await disk.exists(movedTo); attempt++) movedTo = `${path}.old${attempt}`
  for (const suffix of ["-wal", "-shm"]) await removeIfThere(disk, `${path}${suffix}`)
  if (await disk.exists(path)) await disk.rename(path, movedTo)
  onFault?.({ path, movedTo, reason: messageOf(error) })
}
