// The only way the engine reaches storage. Three implementations exist: DiskNode (the real thing),
// DiskMemory (no persistence) and DiskSim (a disk that crashes on command); one conformance suite
// runs over all of them. Every method rejects with the system's error, `code` included; giving those
// errors a meaning (full, poisoned, missing) is the caller's work.

export type OpenMode =
  /** The file must exist; writing fails. */
  | "read"
  /** The file must exist. */
  | "write"
  /** The file is created; it must not exist yet. Its directory entry is durable only after `syncDirectory`. */
  | "create"

export interface DiskFile {
  /** Reads up to `length` bytes at `position` into `target[offset…]`; returns how many, fewer only at the end of the file. */
  readonly read: (target: Uint8Array, offset: number, length: number, position: number) => Promise<number>
  /** Writes all of `source[offset…offset+length)` at `position`, extending the file if needed. Not durable until a sync. */
  readonly write: (source: Uint8Array, offset: number, length: number, position: number) => Promise<void>
  /** As `write`, on the calling thread: the commit path copies into the page cache and cannot afford a thread hop. */
  readonly writeNow: (source: Uint8Array, offset: number, length: number, position: number) => void
  /** Resolves once everything written to this file, its size included, is on stable storage. */
  readonly sync: () => Promise<void>
  /** As `sync`, on the calling thread. */
  readonly syncNow: () => void
  readonly truncate: (length: number) => Promise<void>
  readonly size: () => Promise<number>
  readonly close: () => Promise<void>
}

export interface DiskLock {
  readonly release: () => Promise<void>
}

/** Who holds a directory, as far as the lock file says. */
export interface LockOwner {
  readonly pid: number
  readonly startTicks: string
  readonly bootId: string
}

export type LockOutcome =
  | { readonly _tag: "Acquired"; readonly lock: DiskLock }
  | { readonly _tag: "Held"; readonly owner: LockOwner | undefined }

export interface DirectoryEntry {
  readonly name: string
  readonly kind: "file" | "directory" | "other"
}

export interface Disk {
  readonly open: (path: string, mode: OpenMode) => Promise<DiskFile>
  /** Creates the directory and its missing parents; an existing one is fine. Resolves with the topmost directory created, if any. */
  readonly makeDirectory: (path: string) => Promise<string | undefined>
  /** Entries sorted by name. */
  readonly list: (path: string) => Promise<ReadonlyArray<DirectoryEntry>>
  readonly rename: (from: string, to: string) => Promise<void>
  readonly remove: (path: string) => Promise<void>
  /** Removes a directory and all below it; a missing one is fine. */
  readonly removeTree: (path: string) => Promise<void>
  readonly exists: (path: string) => Promise<boolean>
  /** Makes creations, renames and removals of the directory's own entries durable. */
  readonly syncDirectory: (path: string) => Promise<void>
  /** Takes the one-writer lock of a directory. It is released by `release` or by the death of the holder, never by time. */
  readonly lock: (directory: string) => Promise<LockOutcome>
}
