// SQLite through node:sqlite, write-ahead log, synchronous=FULL: the strongest thing one would otherwise use. Keys
// are integers and records are appended beside their index, which is as little work as SQLite can be given.
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { nothing, repeat, type Subject } from "./sampling.ts"
import { body, conversationsKeyed, recordsBefore } from "./settings.ts"

export type Keying = "keyed" | "sequence"

export const openSqlite = (path: string): DatabaseSync => {
  const database = new DatabaseSync(path)
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
  return database
}

const schemas: Readonly<Record<Keying, string>> = {
  // WITHOUT ROWID is 3–5 times slower here: each record then lies on a page of its conversation.
  keyed: "CREATE TABLE rune (conversation INTEGER, seq INTEGER, body BLOB, PRIMARY KEY (conversation, seq))",
  sequence: "CREATE TABLE rune (seq INTEGER PRIMARY KEY, body BLOB)"
}

/** Inserts the next record, to the conversations in turn; `transaction` wraps what must be durable together. */
export const makeInserter = (database: DatabaseSync, keying: Keying): (() => void) => {
  database.exec(schemas[keying])
  const insert = database.prepare(`INSERT INTO rune VALUES (${keying === "keyed" ? "?, ?, ?" : "?, ?"})`)
  let count = 0
  return () => {
    const conversation = count % conversationsKeyed
    const seq = Math.floor(count / conversationsKeyed) + 1
    count += 1
    if (keying === "keyed") insert.run(conversation, seq, body)
    else insert.run(count, body)
  }
}

export const transaction = (database: DatabaseSync, rows: number, insert: () => void): void => {
  database.exec("BEGIN")
  for (let row = 0; row < rows; row++) insert()
  database.exec("COMMIT")
}

const keyingText: Readonly<Record<Keying, string>> = {
  keyed: "keyed over 1,000 conversations",
  sequence: "one sequence"
}

export const sqliteName = (rows: number, keying: Keying): string =>
  `SQLite WAL FULL, ${rows} row${rows === 1 ? "" : "s"} a transaction, ${keyingText[keying]}`

export const makeSqlite = (directory: string, rows: number, keying: Keying): Subject => {
  let opened: { readonly database: DatabaseSync; readonly insert: () => void } | undefined
  return {
    name: sqliteName(rows, keying),
    prepare: async () => {
      const database = openSqlite(join(directory, `sqlite-${keying}-${rows}`))
      const insert = makeInserter(database, keying)
      transaction(database, conversationsKeyed * recordsBefore, insert)
      opened = { database, insert }
    },
    sample: (seconds) => {
      const { database, insert } = opened!
      return repeat(seconds, () => {
        if (rows === 1) insert()
        else transaction(database, rows, insert)
        return rows
      })
    },
    settle: nothing,
    close: async () => opened?.database.close()
  }
}
