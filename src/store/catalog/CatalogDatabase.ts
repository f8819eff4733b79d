// The catalog's file: one SQLite database with a row per conversation and its labels. Everything in it follows from the logs, so nothing here needs to be careful: a file that is missing, of another
// format, of another directory or damaged is set aside and filled again.

import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite"
import { crc32 } from "node:zlib"
import { type CatalogRow, isUnfinished, ROW_FORMAT, type RowState, rowOf } from "./CatalogRow.ts"

/** Raised when a table changes. */
const SCHEMA_FORMAT = 4
export const MEMORY = ":memory:"

const schema = `
  CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE conversations (
    id INTEGER PRIMARY KEY,
    conversation_id TEXT NOT NULL UNIQUE,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    attention TEXT NOT NULL,
    unfinished INTEGER NOT NULL,
    last_event_id INTEGER NOT NULL,
    damaged TEXT,
    search TEXT NOT NULL,
    fold TEXT NOT NULL
  );
  CREATE INDEX by_created ON conversations (created_ms, conversation_id, search);
  CREATE INDEX by_state ON conversations (state, created_ms, conversation_id, search);
  CREATE INDEX by_updated ON conversations (updated_ms, conversation_id);
  CREATE INDEX by_unfinished ON conversations (updated_ms) WHERE unfinished = 1;
  CREATE INDEX by_attention ON conversations (updated_ms) WHERE attention IN ('awaiting_approval', 'awaiting_input', 'error');
  CREATE VIRTUAL TABLE search USING fts5 (text, content = '', contentless_delete = 1, tokenize = 'trigram');
  CREATE TABLE labels (
    key TEXT NOT NULL, value TEXT NOT NULL, created_ms INTEGER NOT NULL, conversation_id TEXT NOT NULL,
    PRIMARY KEY (conversation_id, key)
  ) WITHOUT ROWID;
  CREATE INDEX by_label ON labels (key, value, created_ms, conversation_id);
  CREATE INDEX by_label_key ON labels (key, created_ms, conversation_id);
`

const columns = [
  "created_ms",
  "updated_ms",
  "state",
  "attention",
  "unfinished",
  "last_event_id",
  "damaged",
  "search",
  "fold"
]
const insertRow = `INSERT INTO conversations (conversation_id, ${columns.join(", ")}) VALUES (?${", ?".repeat(columns.length)})`
const updateRow = `UPDATE conversations SET ${columns.map((column) => `${column} = ?`).join(", ")} WHERE id = ?`

export type OpenState =
  /** Left behind in order by the last writer. */
  | "clean"
  /** The last writer did not close it: rows may be behind the logs. */
  | "unclean"
  /** New, because there was none or none that could be used. */
  | "fresh"

export interface Folded {
  readonly row: RowState
  readonly damaged: string | undefined
}

/** What of a row a search looks at. */
export const searchText = (row: RowState): string => {
  const labels = Object.entries(row.labels).map(([key, value]) => `${key}=${value}`)
  return [row.title, row.conversation_id, ...labels].join("\n").toLowerCase()
}

const SUM_CHARS = 8
const sumOf = (text: string): string => crc32(text).toString(16).padStart(SUM_CHARS, "0")

/** SQLite keeps no checksums of its own: a row carries one, so that a changed byte is not shown as the truth. */
const encodeFold = (row: RowState): string => {
  const text = JSON.stringify(row)
  return `${sumOf(text)}${text}`
}

const decodeFold = (fold: string): RowState => {
  const text = fold.slice(SUM_CHARS)
  if (fold.slice(0, SUM_CHARS) !== sumOf(text)) throw new Error("a row of the catalog does not match its checksum")
  return JSON.parse(text) as RowState
}

const identity = (directoryId: string): string => `${SCHEMA_FORMAT}.${ROW_FORMAT} ${directoryId}`

export class CatalogDatabase {
  readonly database: DatabaseSync
  private readonly statements = new Map<string, StatementSync>()
  private readonly changes = new Map<string, StatementSync>()

  private constructor(database: DatabaseSync) {
    this.database = database
  }

  /** Opens or makes the file; throws when what is there cannot be used. */
  static open(path: string, directoryId: string): { readonly catalog: CatalogDatabase; readonly state: OpenState } {
    const database = new DatabaseSync(path)
    try {
      const catalog = new CatalogDatabase(database)
      return { catalog, state: catalog.begin(directoryId) }
    } catch (error) {
      database.close()
      throw error
    }
  }

  private begin(directoryId: string): OpenState {
    const { database } = this
    database.exec("PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 1000")
    const tables = database.prepare("SELECT count(*) AS count FROM sqlite_schema").get() as { readonly count: number }
    if (tables.count === 0) {
      this.transaction(() => database.exec(schema))
      this.setMeta("identity", identity(directoryId))
    } else if (this.meta("identity") !== identity(directoryId)) {
      throw new Error("the catalog is of another format or directory")
    }
    const clean = this.meta("clean")
    this.mark("no")
    return clean === undefined ? "fresh" : clean === "yes" ? "clean" : "unclean"
  }

  /**
   * Says, durably, whether the rows are complete. Everything else may be lost with the power: derived data costs a
   * catch-up, waiting for the disk would cost everybody.
   */
  private mark(clean: "yes" | "no"): void {
    this.database.exec("PRAGMA synchronous = FULL")
    this.setMeta("clean", clean)
    this.database.exec("PRAGMA synchronous = NORMAL")
  }

  close(options: { readonly clean: boolean }): void {
    if (options.clean) this.mark("yes")
    this.database.close()
  }

  statement(sql: string): StatementSync {
    let statement = this.statements.get(sql)
    if (statement === undefined) {
      statement = this.database.prepare(sql)
      this.statements.set(sql, statement)
    }
    return statement
  }

  /** Changes something. The text index leaves row ids behind that only a big integer can hold. */
  private change(sql: string, ...values: ReadonlyArray<SQLInputValue>): number | bigint {
    let statement = this.changes.get(sql)
    if (statement === undefined) {
      statement = this.database.prepare(sql)
      statement.setReadBigInts(true)
      this.changes.set(sql, statement)
    }
    return statement.run(...values).lastInsertRowid
  }

  transaction(body: () => void): void {
    this.database.exec("BEGIN IMMEDIATE")
    try {
      body()
      this.database.exec("COMMIT")
    } catch (error) {
      if (this.database.isTransaction) this.database.exec("ROLLBACK")
      throw error
    }
  }

  meta(key: string): string | undefined {
    const found = this.statement("SELECT value FROM meta WHERE key = ?").get(key)
    return found?.["value"] as string | undefined
  }

  setMeta(key: string, value: string): void {
    this.change("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", key, value)
  }

  load(conversationId: string): Folded | undefined {
    const found = this.statement("SELECT fold, damaged FROM conversations WHERE conversation_id = ?").get(
      conversationId
    )
    if (found === undefined) return undefined
    const damaged = found["damaged"] as string | null
    return { row: decodeFold(found["fold"] as string), damaged: damaged ?? undefined }
  }

  /** Writes a row, its labels and what a search finds it by; call it inside a transaction. */
  save({ damaged, row }: Folded): void {
    const { conversation_id: conversationId } = row
    const text = searchText(row)
    const before = this.statement("SELECT id, search FROM conversations WHERE conversation_id = ?").get(conversationId)
    const values = [
      row.created_ms,
      row.updated_ms,
      row.view.session,
      row.view.attention,
      isUnfinished(row) ? 1 : 0,
      row.last_event_id,
      damaged ?? null,
      text,
      encodeFold(row)
    ]
    if (before === undefined) {
      const id = this.change(insertRow, conversationId, ...values)
      this.change("INSERT INTO search (rowid, text) VALUES (?, ?)", id, text)
      this.saveLabels(row)
      return
    }
    const id = before["id"] as number
    this.change(updateRow, ...values, id)
    // Most changes touch nothing that is searched, and this index is the costly one.
    if (before["search"] === text) return
    this.change("DELETE FROM search WHERE rowid = ?", id)
    this.change("INSERT INTO search (rowid, text) VALUES (?, ?)", id, text)
    this.saveLabels(row)
  }

  private saveLabels(row: RowState): void {
    const { conversation_id: id, created_ms: createdMs } = row
    this.change("DELETE FROM labels WHERE conversation_id = ?", id)
    for (const [key, value] of Object.entries(row.labels)) {
      this.change(
        "INSERT INTO labels (key, value, created_ms, conversation_id) VALUES (?, ?, ?, ?)",
        key,
        value,
        createdMs,
        id
      )
    }
  }

  remove(conversationId: string): void {
    const found = this.statement("SELECT id FROM conversations WHERE conversation_id = ?").get(conversationId)
    if (found === undefined) return
    this.change("DELETE FROM search WHERE rowid = ?", found["id"] as number)
    this.change("DELETE FROM labels WHERE conversation_id = ?", conversationId)
    this.change("DELETE FROM conversations WHERE conversation_id = ?", conversationId)
  }

  /** The next conversations by id, each with the newest event its row knows of; a slice, so that nobody waits long. */
  heads(after: string, count: number): ReadonlyArray<{ readonly conversationId: string; readonly head: number }> {
    return this.statement(
      "SELECT conversation_id, last_event_id FROM conversations WHERE conversation_id > ? ORDER BY conversation_id LIMIT ?"
    )
      .all(after, count)
      .map((found) => ({ conversationId: found["conversation_id"] as string, head: found["last_event_id"] as number }))
  }

  unfinished(): ReadonlyArray<string> {
    const sql = "SELECT conversation_id FROM conversations WHERE unfinished = 1 ORDER BY updated_ms DESC"
    return this.statement(sql)
      .all()
      .map((found) => found["conversation_id"] as string)
  }

  /** Conversations that need a person, the newest first. */
  needing(): ReadonlyArray<string> {
    const sql =
      "SELECT conversation_id FROM conversations WHERE attention IN ('awaiting_approval', 'awaiting_input', 'error') ORDER BY updated_ms DESC"
    return this.statement(sql)
      .all()
      .map((found) => found["conversation_id"] as string)
  }

  /** Conversations in which something happened at or after a time, the newest first. */
  changedSince(sinceMs: number): ReadonlyArray<string> {
    const sql = "SELECT conversation_id FROM conversations WHERE updated_ms >= ? ORDER BY updated_ms DESC"
    return this.statement(sql)
      .all(sinceMs)
      .map((found) => found["conversation_id"] as string)
  }

  /** The next conversations in a state, by id; a slice, so that nobody waits long. */
  inState(state: string, after: string, count: number): ReadonlyArray<string> {
    const sql =
      "SELECT conversation_id FROM conversations WHERE state = ? AND conversation_id > ? ORDER BY conversation_id LIMIT ?"
    return this.statement(sql)
      .all(state, after, count)
      .map((found) => found["conversation_id"] as string)
  }

  count(): number {
    return Number(this.statement("SELECT count(*) AS count FROM conversations").get()?.["count"] ?? 0)
  }
}

const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
const SQLITE_FULL = 13
const transient = new Set([SQLITE_BUSY, SQLITE_LOCKED, SQLITE_FULL])

/** It may go well the next time. Whatever else a database or a row in it brings about is for good: it follows from the
 * logs again. */
export const isTransient = (error: unknown): boolean => {
  const { errcode } = error as { readonly errcode?: unknown }
  return typeof errcode === "number" && transient.has(errcode & 0xff)
}

/** The row of a database record, as a listing shows it. */
export const shownRow = (fold: string, damaged: string | null): CatalogRow =>
  rowOf(decodeFold(fold), damaged ?? undefined)
