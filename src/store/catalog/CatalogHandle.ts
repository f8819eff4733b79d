// The catalog's database, whatever becomes of its file. One that cannot be used, at the start or under way, is replaced
// at once by an empty one in memory, so that nobody who asks is refused; then it is set aside, and a new file takes its
// place, or none where the disk allows none. Whoever owns the handle fills it again.
import type { Disk } from "#runelog/disk/Disk.ts"
import { removeIfThere } from "../Files.ts"
import { ListInvalid } from "../StoreErrors.ts"
import { CatalogDatabase, isTransient, MEMORY, type OpenState } from "./CatalogDatabase.ts"

export interface CatalogFault {
  readonly path: string
  readonly reason: string
  /** Where an unusable database was moved. */
  readonly movedTo?: string
}

export interface HandleOptions {
  readonly disk: Disk
  /** The database file, or `:memory:`. */
  readonly path: string
  readonly directoryId: string
  readonly onFault?: (fault: CatalogFault) => void
  /** An empty database has taken the place of the one there was. */
  readonly onReplaced: () => void
}

export class CatalogHandle {
  private readonly options: HandleOptions
  private database: CatalogDatabase
  /** What has to be set aside. */
  private damaged: { readonly database: CatalogDatabase; readonly error: unknown } | undefined
  /** How the database was found. */
  readonly openState: OpenState

  private constructor(options: HandleOptions, database: CatalogDatabase, openState: OpenState) {
    this.options = options
    this.database = database
    this.openState = openState
  }

  static async open(options: HandleOptions): Promise<CatalogHandle> {
    const { directoryId, path } = options
    try {
      await ensureFile(options)
      const { catalog, state } = CatalogDatabase.open(path, directoryId)
      return new CatalogHandle(options, catalog, state)
    } catch (error) {
      return new CatalogHandle(options, await openAnew(options, error), "fresh")
    }
  }

  /** Asks the database. One that turns out to be unusable is replaced, and the new one is asked. */
  use<A>(body: (database: CatalogDatabase) => A): A {
    try {
      return body(this.database)
    } catch (error) {
      if (error instanceof ListInvalid || isTransient(error)) throw error
      this.replace(error)
      return body(this.database)
    }
  }

  private replace(error: unknown): void {
    const { directoryId } = this.options
    if (this.damaged === undefined) this.damaged = { database: this.database, error }
    else quietly(() => this.database.close({ clean: false }))
    this.database = CatalogDatabase.open(MEMORY, directoryId).catalog
    this.options.onReplaced()
  }

  /** An empty database in memory stands in for a damaged one. */
  get isReplaced(): boolean {
    return this.damaged !== undefined
  }

  get current(): CatalogDatabase {
    return this.database
  }

  /** The database is still this one, and stays. */
  isSame(database: CatalogDatabase): boolean {
    return this.database === database && !this.isReplaced
  }

  /** Sets the damaged file aside and goes on with a new one; what was filled in meanwhile is not in it. */
  async renew(place: "file" | "memory"): Promise<void> {
    const { damaged } = this
    this.damaged = undefined
    if (damaged === undefined) return
    quietly(() => damaged.database.close({ clean: false }))
    if (place === "memory") return
    const fresh = await openAnew(this.options, damaged.error)
    quietly(() => this.database.close({ clean: false }))
    this.database = fresh
  }

  close(options: { readonly clean: boolean }): void {
    const fault = quietly(() => this.database.close(options))
    if (fault !== undefined) this.report(fault)
  }

  report(error: unknown): void {
    this.options.onFault?.({ path: this.options.path, reason: messageOf(error) })
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Runs what may fail without harm; returns how it failed. */
const quietly = (body: () => void): unknown => {
  try {
    return body()
  } catch (error) {
    return error
  }
}

/** A new database in place of one that cannot be used; in memory where the disk gives no file. */
const openAnew = async (options: HandleOptions, error: unknown): Promise<CatalogDatabase> => {
  const { directoryId, onFault, path } = options
  try {
    const movedTo = await setAside(options)
    onFault?.({ path, reason: messageOf(error), ...(movedTo === undefined ? {} : { movedTo }) })
    await ensureFile(options)
    return CatalogDatabase.open(path, directoryId).catalog
  } catch (second) {
    onFault?.({ path, reason: `it is kept in memory until the next start: ${messageOf(second)}` })
    return CatalogDatabase.open(MEMORY, directoryId).catalog
  }
}

/** SQLite would make the file readable for everybody; the disk makes it its owner's. */
const ensureFile = async ({ disk, path }: HandleOptions): Promise<void> => {
  if (path === MEMORY || (await disk.exists(path))) return
  await (await disk.open(path, "create")).close()
}

/** Moves a database that cannot be used out of the way, with what belongs to it. */
const setAside = async ({ disk, path }: HandleOptions): Promise<string | undefined> => {
  if (path === MEMORY) return undefined
  let movedTo = `${path}.old`
  for (let attempt = 2; await disk.exists(movedTo); attempt++) movedTo = `${path}.old${attempt}`
  for (const suffix of ["-wal", "-shm"]) await removeIfThere(disk, `${path}${suffix}`)
  if (!(await disk.exists(path))) return undefined
  await disk.rename(path, movedTo)
  return movedTo
}
