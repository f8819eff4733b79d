// Reads of the large log: all of it by pages, and single runes by random cursor, beside the plain file and SQLite.
// Everything is in the page cache, for all alike.
import { readdirSync } from "node:fs"
import { type FileHandle, open } from "node:fs/promises"
import { join } from "node:path"
import type { DatabaseSync, StatementSync } from "node:sqlite"
import { Runelog } from "#runelog/Runelog.ts"
import { limits } from "#runelog/RunelogLimits.ts"
import { largeLogName, segmentDirectory } from "./largeLog.ts"
import { nothing, repeat, type Subject } from "./sampling.ts"
import { makeInserter, openSqlite, transaction } from "./sqlite.ts"

/** A page of one record and its neighbors. */
const POINT_PAGE_BYTES = 4096
const SQLITE_PAGE_ROWS = 1_000

export const readNames = {
  scan: "runelog, scan by pages of 256 KiB",
  point: "runelog, read at a random cursor, page of 4 KiB",
  fileScan: "plain file, read in pieces of 256 KiB",
  filePoint: "plain file, read of one record at a random place",
  sqliteScan: "SQLite, iterate over all rows",
  sqlitePages: "SQLite, pages of 1,000 rows",
  sqlitePoint: "SQLite, select of one row by key"
} as const

export interface ReadOptions {
  /** Of the large log. */
  readonly directory: string
  readonly runes: number
  /** Bytes of one rune with its frame. */
  readonly frameBytes: number
  readonly scratch: string
}

const randomEvent = (runes: number): number => Math.floor(Math.random() * runes)

const makeRunelogReads = (options: ReadOptions): ReadonlyArray<Subject> => {
  let log: Runelog | undefined
  let after = 0
  const scanPage = async (): Promise<number> => {
    const page = await log!.read(largeLogName, { after })
    after = page.next === page.head ? 0 : page.next
    return page.frames.length
  }
  const readPoint = async (): Promise<number> => {
    const wanted = randomEvent(options.runes)
    const page = await log!.read(largeLogName, { after: wanted, bytesMax: POINT_PAGE_BYTES })
    if (page.frames[0]?.eventId !== wanted + 1) throw new Error(`event ${wanted + 1} was not read`)
    return 1
  }
  const openLog = async (): Promise<void> => {
    log ??= await Runelog.open({ directory: options.directory })
  }
  const closeLog = async (): Promise<void> => log?.close()
  return [
    { name: readNames.scan, prepare: openLog, sample: (s) => repeat(s, scanPage), settle: nothing, close: closeLog },
    { name: readNames.point, prepare: openLog, sample: (s) => repeat(s, readPoint), settle: nothing, close: nothing }
  ]
}

const makeFileReads = (options: ReadOptions): ReadonlyArray<Subject> => {
  const buffer = Buffer.alloc(limits.pageBytes)
  let file: FileHandle | undefined
  let size = 0
  let at = 0
  const openFile = async (): Promise<void> => {
    const folder = segmentDirectory(options.directory)
    const [first] = readdirSync(folder).filter((name) => name.endsWith(".seg"))
    file ??= await open(join(folder, first!), "r")
    size = (await file.stat()).size
  }
  // Items are runes' worth of bytes, so that the rates of all rows mean the same.
  const readPiece = async (): Promise<number> => {
    const { bytesRead } = await file!.read(buffer, 0, buffer.length, at)
    at = at + bytesRead >= size ? 0 : at + bytesRead
    return bytesRead / options.frameBytes
  }
  const readPoint = async (): Promise<number> => {
    const { frameBytes } = options
    await file!.read(buffer, 0, frameBytes, Math.floor(Math.random() * (size - frameBytes)))
    return 1
  }
  const closeFile = async (): Promise<void> => file?.close()
  return [
    {
      name: readNames.fileScan,
      prepare: openFile,
      sample: (s) => repeat(s, readPiece),
      settle: nothing,
      close: closeFile
    },
    {
      name: readNames.filePoint,
      prepare: openFile,
      sample: (s) => repeat(s, readPoint),
      settle: nothing,
      close: nothing
    }
  ]
}

interface SqliteReader {
  readonly database: DatabaseSync
  readonly all: StatementSync
  readonly page: StatementSync
  readonly one: StatementSync
}

const openSqliteReader = (options: ReadOptions): SqliteReader => {
  const database = openSqlite(join(options.scratch, "sqlite-read"))
  const insert = makeInserter(database, "sequence")
  for (let rows = 0; rows < options.runes; rows += 10_000) {
    transaction(database, Math.min(10_000, options.runes - rows), insert)
  }
  return {
    database,
    all: database.prepare("SELECT seq, body FROM rune"),
    page: database.prepare(`SELECT seq, body FROM rune WHERE seq > ? LIMIT ${SQLITE_PAGE_ROWS}`),
    one: database.prepare("SELECT body FROM rune WHERE seq = ?")
  }
}

const makeSqliteReads = (options: ReadOptions): ReadonlyArray<Subject> => {
  let reader: SqliteReader | undefined
  let rows: Iterator<unknown> | undefined
  let after = 0
  const openReader = async (): Promise<void> => {
    reader ??= openSqliteReader(options)
  }
  const iterate = (): number => {
    rows ??= reader!.all.iterate()
    for (let row = 0; row < SQLITE_PAGE_ROWS; row++) {
      if (rows.next().done === true) {
        rows = undefined
        return row
      }
    }
    return SQLITE_PAGE_ROWS
  }
  const readPageOfRows = (): number => {
    const { length } = reader!.page.all(after)
    after = length < SQLITE_PAGE_ROWS ? 0 : after + length
    return length
  }
  const readPoint = (): number => {
    if (reader!.one.get(randomEvent(options.runes) + 1) === undefined) throw new Error("a row was not read")
    return 1
  }
  const base = { prepare: openReader, settle: nothing, close: nothing }
  return [
    {
      ...base,
      name: readNames.sqliteScan,
      sample: (s) => repeat(s, iterate),
      close: async () => reader?.database.close()
    },
    { ...base, name: readNames.sqlitePages, sample: (s) => repeat(s, readPageOfRows) },
    { ...base, name: readNames.sqlitePoint, sample: (s) => repeat(s, readPoint) }
  ]
}

export const makeReads = (options: ReadOptions): ReadonlyArray<Subject> => [
  ...makeRunelogReads(options),
  ...makeFileReads(options),
  ...makeSqliteReads(options)
]
