// The catalog: listing, searching and finding unfinished work among many conversations without opening their logs.
// It follows the logs, a moment behind, and is never trusted over them: rows are folded from durable runes, whatever is
// missing, old or in doubt is folded again, and a database that cannot be used is set aside and filled anew. Nothing that
// happens to it stops anybody: who asks meanwhile gets what there is, and is told that it is being rebuilt.

import type { Disk } from "#runelog/disk/Disk.ts"
import { after, type Cancel } from "../../contract/Timers.ts"
import { elementAt } from "../../rune/Elements.ts"
import type { AnyRune } from "../../rune/Rune.ts"
import type { RunePage } from "../runes/Page.ts"
import { ListInvalid } from "../StoreErrors.ts"
import { limits } from "../StoreLimits.ts"
import { type CheckOptions, type CheckReport, checkCatalog } from "./CatalogCheck.ts"
import type { CatalogDatabase, Folded, OpenState } from "./CatalogDatabase.ts"
import { foldRow, moveHead } from "./CatalogFold.ts"
import { type CatalogFault, CatalogHandle, messageOf } from "./CatalogHandle.ts"
import { type ListPage, type ListRequest, listRows } from "./CatalogList.ts"
import { CatalogPending, type Pending } from "./CatalogPending.ts"
import { type CatalogRow, emptyRow, type RowState, rowOf } from "./CatalogRow.ts"

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

export type { CatalogFault } from "./CatalogHandle.ts"

export interface CatalogOptions {
  readonly source: CatalogSource
  readonly disk: Disk
  /** The database file, or `:memory:`. */
  readonly path: string
  /** Tells this data directory from others: a catalog of another one is not used. */
  readonly directoryId: string
  readonly flushMs?: number
  readonly rowEveryMs?: number
  readonly monotonicMs?: () => number
  readonly onFault?: (fault: CatalogFault) => void
}

const SLICE_ROWS = 1000

export class Catalog {
  private readonly options: CatalogOptions
  private readonly handle: CatalogHandle
  private readonly pending = new CatalogPending()
  private readonly resident = new Map<string, Folded>()
  /** When rows were written, of those written lately. */
  private readonly written = new Map<string, number>()
  private cancelFlush: Cancel | undefined
  private flushing: Promise<void> | undefined
  private refilling: Promise<void> | undefined
  private closed = false
  private stopped = false
  /** It is known to have a true row of every conversation, or to be about to. */
  private complete = false
  /** It was empty and is being filled from the logs. */
  private rebuilding = false

  private constructor(options: CatalogOptions, open: (onReplaced: () => void) => CatalogHandle) {
    this.options = options
    this.handle = open(() => this.replaced())
    this.complete = this.openState === "clean"
    this.rebuilding = this.openState === "fresh"
  }

  static async open(options: CatalogOptions): Promise<Catalog> {
    let onReplaced = (): void => undefined
    const handle = await CatalogHandle.open({ ...options, onReplaced: () => onReplaced() })
    return new Catalog(options, (listener) => {
      onReplaced = listener
      return handle
    })
  }

  /** How the database was found. */
  get openState(): OpenState {
    return this.handle.openState
  }

  /** Rows may be behind their logs until the next check of all: lists say so. */
  markBehind(): void {
    this.complete = false
    this.rebuilding = true
  }

  /** Takes note of durable runes; nobody waits for what follows from it. */
  observe(conversationId: string, runes: ReadonlyArray<AnyRune>): void {
    if (runes.length === 0 || this.closed) return
    this.pending.add(conversationId, runes)
    if (this.pending.growth(conversationId) === undefined) this.arm()
  }

  /** The conversation has changed in a way that nobody told: its row follows from the log. */
  doubt(conversationId: string): void {
    if (this.closed) return
    this.pending.doubt(conversationId)
    this.resident.delete(conversationId)
    this.arm()
  }

  /** What the catalog has; what became durable in the last moments may be missing unless it is flushed first. */
  list(request: ListRequest = {}): ListPage {
    const page = this.asked((database) => listRows(database, request), { items: [] })
    const items = page.items.map((row) => this.grown(row))
    return { ...page, items, ...(this.rebuilding ? { rebuilding: true as const } : {}) }
  }

  /** The row with the head that fragments have moved since it was written. */
  private grown(row: CatalogRow): CatalogRow {
    const growth = this.pending.growth(row.conversation_id)
    if (growth === undefined || growth.firstEventId !== row.last_event_id + 1) return row
    const { lastEventId, lastMs } = growth
    return { ...row, last_event_id: lastEventId, updated_ms: Math.max(row.updated_ms, lastMs) }
  }

  get(conversationId: string): CatalogRow | undefined {
    const found = this.load(conversationId)
    return found === undefined ? undefined : this.grown(rowOf(found.row, found.damaged))
  }

  private load(conversationId: string): Folded | undefined {
    return this.resident.get(conversationId) ?? this.asked((database) => database.load(conversationId), undefined)
  }

  /** Conversations that a restart has to go on with, the newest first. */
  unfinished(): ReadonlyArray<string> {
    return this.asked((database) => database.unfinished(), [])
  }

  /** Conversations that need a person, the newest first. */
  needing(): ReadonlyArray<string> {
    return this.asked((database) => database.needing(), [])
  }

  /** Conversations in which something happened at or after a time, the newest first. */
  changedSince(sinceMs: number): ReadonlyArray<string> {
    const grown = this.pending.grownSince(sinceMs)
    const changed = this.asked((database) => database.changedSince(sinceMs), [])
    return grown.length === 0 ? changed : [...new Set([...grown, ...changed])]
  }

  /** Every conversation in a state, for housekeeping; others get their turn in between. */
  async *inState(state: CatalogRow["state"]): AsyncGenerator<string> {
    for (let after = ""; ; ) {
      const slice = this.asked((database) => database.inState(state, after, SLICE_ROWS), [])
      yield* slice
      const last = slice[slice.length - 1]
      if (last === undefined) return
      after = last
      await nextTurn()
    }
  }

  count(): number {
    return this.asked((database) => database.count(), 0)
  }

  /** Resolves when everything observed before the call is shown by lists, or was found not to go in. */
  async flush(): Promise<void> {
    await this.flushNow("changed")
  }

  private async flushNow(which: "due" | "changed" | "all"): Promise<void> {
    while (this.flushing !== undefined) await this.flushing
    if (this.closed || this.pending.size === 0) return
    this.disarm()
    const changed = this.pending.conversations(which === "all" ? "all" : "changed")
    const due = which === "due" ? changed.filter((conversationId) => this.isDue(conversationId)) : changed
    this.flushing = this.flushAll(due).finally(() => {
      this.flushing = undefined
      if (this.pending.conversations("changed").length > 0) this.arm()
    })
    await this.flushing
  }

  /** A row that changes all the time is written now and then. */
  private isDue(conversationId: string): boolean {
    const writtenMs = this.written.get(conversationId)
    return writtenMs === undefined || this.monotonicMs - writtenMs >= this.rowEveryMs
  }

  /** Compares the catalog with the logs and folds what differs. */
  async check(options: CheckOptions): Promise<CheckReport> {
    const { source } = this.options
    const database = this.handle.current
    const suffices = options.only === "all" || (options.only === "presence" && this.openState !== "unclean")
    const report = await checkCatalog(
      {
        conversations: source.conversations,
        head: source.head,
        known: (conversationId) => this.get(conversationId)?.last_event_id,
        rows: (after, count) => this.asked((database) => database.heads(after, count), []),
        doubt: (conversationId) => this.doubt(conversationId),
        flush: () => this.flush(),
        doubted: () => this.pending.size,
        isClosed: () => this.stopped
      },
      options
    )
    // What was compared may since have been replaced.
    if (suffices && !this.stopped && this.handle.isSame(database)) {
      this.complete = true
      this.rebuilding = false
    }
    return report
  }

  /** Ends a check that is under way; the next start looks again. */
  stop(): void {
    this.stopped = true
  }

  /** Writes what waits and closes the database, marked as complete. */
  async close(): Promise<void> {
    await this.refilling
    await this.flushNow("all")
    if (this.closed) return
    this.closed = true
    this.disarm()
    this.handle.close({ clean: this.pending.size === 0 && this.complete })
  }

  private async flushAll(due: ReadonlyArray<string>): Promise<void> {
    for (let at = 0; at < due.length; at += limits.catalogSliceRows) {
      const slice = due.slice(at, at + limits.catalogSliceRows)
      if (!(await this.attempt(() => this.flushSlice(slice)))) {
        for (const conversationId of slice) this.doubt(conversationId)
        return
      }
      await nextTurn()
    }
    this.evict()
  }

  private async flushSlice(conversationIds: ReadonlyArray<string>): Promise<void> {
    const rows = await this.advanceAll(conversationIds)
    this.transaction((database) => {
      for (const [conversationId, folded] of rows) {
        if (folded === undefined) database.remove(conversationId)
        else database.save(folded)
      }
    })
    const nowMs = this.monotonicMs
    for (const conversationId of rows.keys()) {
      // Behind all others, so that the oldest come first.
      this.written.delete(conversationId)
      this.written.set(conversationId, nowMs)
    }
  }

  private async advanceAll(conversationIds: ReadonlyArray<string>): Promise<Map<string, Folded | undefined>> {
    const rows = new Map<string, Folded | undefined>()
    let next = 0
    const lane = async (): Promise<void> => {
      for (let at = next++; at < conversationIds.length; at = next++) {
        const conversationId = elementAt(conversationIds, at)
        const pending = this.pending.take(conversationId)
        if (pending !== undefined) rows.set(conversationId, await this.advance(conversationId, pending))
      }
    }
    await Promise.all(Array.from({ length: limits.catalogReaders }, lane))
    return rows
  }

  /** The row with what is pending folded in, read from the log where something is missing; nothing when it is gone. */
  private async advance(conversationId: string, pending: Pending): Promise<Folded | undefined> {
    const start = this.load(conversationId) ?? { row: emptyRow(conversationId), damaged: undefined }
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
    for (const rune of page.runes) foldRow(row, rune)
    // A page may end in a gap.
    moveHead(row, { event_id: page.next, ts_ms: row.updated_ms })
  }

  private evict(): void {
    const nowMs = this.monotonicMs
    for (const [conversationId, writtenMs] of this.written) {
      if (nowMs - writtenMs < this.rowEveryMs) break
      this.written.delete(conversationId)
    }
    for (const conversationId of this.resident.keys()) {
      if (this.resident.size <= limits.catalogResidentRows) return
      this.resident.delete(conversationId)
    }
  }

  private transaction(body: (database: CatalogDatabase) => void): void {
    this.handle.use((database) => database.transaction(() => body(database)))
  }

  /** False when it failed, which is reported; what was to be written is tried again later. */
  private async attempt(body: () => Promise<void>): Promise<boolean> {
    try {
      await body()
      return true
    } catch (error) {
      this.handle.report(error)
      return false
    }
  }

  /** Asks the database. What it cannot say at this moment is left out; it follows from the logs in any case. */
  private asked<A>(body: (database: CatalogDatabase) => A, otherwise: A): A {
    try {
      return this.handle.use(body)
    } catch (error) {
      if (error instanceof ListInvalid) throw error
      this.handle.report(error)
      return otherwise
    }
  }

  /** What the database held is gone: it is filled from the logs, beside everything else. */
  private replaced(): void {
    this.resident.clear()
    this.complete = false
    this.rebuilding = true
    if (this.refilling !== undefined || this.closed) return
    this.refilling = this.attempt(() => this.refill()).then(() => {
      this.refilling = undefined
    })
  }

  private async refill(): Promise<void> {
    await nextTurn()
    for (let files = 1; this.handle.isReplaced; files++) {
      while (this.flushing !== undefined) await this.flushing
      // A disk that spoils one file after the other gets no more of them.
      await this.handle.renew(files <= limits.catalogFilesMax ? "file" : "memory")
      this.resident.clear()
      await this.check({ only: "all" })
    }
  }

  private arm(): void {
    if (this.cancelFlush !== undefined || this.flushing !== undefined || this.closed) return
    this.cancelFlush = after(this.options.flushMs ?? limits.catalogFlushMs, () => void this.flushNow("due"))
  }

  private disarm(): void {
    this.cancelFlush?.()
    this.cancelFlush = undefined
  }

  private get rowEveryMs(): number {
    return this.options.rowEveryMs ?? limits.catalogRowEveryMs
  }

  private get monotonicMs(): number {
    return (this.options.monotonicMs ?? performance.now.bind(performance))()
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const foldPending = ({ damaged, row }: Folded, pending: Pending): Folded => {
  for (const rune of pending.runes) foldRow(row, rune)
  moveHead(row, { event_id: pending.lastEventId, ts_ms: pending.lastMs })
  return { row, damaged }
}
