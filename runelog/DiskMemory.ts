// A disk that keeps nothing: for tests that do not care about crashes and for throw-away logs. Same answers and
// error codes as the real one; sync and syncDirectory have nothing to do.
import type { Disk, DiskFile, LockOutcome, OpenMode } from "./Disk.ts"
import { checkPosition, checkRange, systemError } from "./DiskFault.ts"
import { DiskTree, type FileNode, readFile, resizeFile, writeFile } from "./DiskTree.ts"

const openFile = (node: FileNode, path: string, mode: OpenMode): DiskFile => {
  let closed = false
  const check = (syscall: string): void => {
    if (closed) throw systemError("EBADF", syscall, path)
  }
  const writeNow: DiskFile["writeNow"] = (source, offset, length, position) => {
    check("write")
    if (mode === "read") throw systemError("EBADF", "write", path)
    checkRange(source, offset, length, position)
    writeFile(node, source.subarray(offset, offset + length), position)
  }
  return {
    read: async (target, offset, length, position) => {
      check("read")
      return readFile(node, target, { offset, length, position })
    },
    write: async (source, offset, length, position) => writeNow(source, offset, length, position),
    writeNow,
    sync: async () => check("fdatasync"),
    syncNow: () => check("fdatasync"),
    truncate: async (length) => {
      check("ftruncate")
      if (mode === "read") throw systemError("EINVAL", "ftruncate", path)
      checkPosition(length)
      resizeFile(node, length)
    },
    size: async () => {
      check("fstat")
      return node.size
    },
    close: async () => {
      closed = true
    }
  }
}

/** An empty disk with a root directory. Locks are held per disk. */
export const makeDiskMemory = (): Disk => {
  const tree = new DiskTree()
  const locked = new Map<number, object>()
  const lock = (directory: string): LockOutcome => {
    const { id } = tree.directory(directory, "lock")
    if (locked.has(id)) return { _tag: "Held", owner: undefined }
    const holder = {}
    locked.set(id, holder)
    const release = async (): Promise<void> => {
      if (locked.get(id) === holder) locked.delete(id)
    }
    return { _tag: "Acquired", lock: { release } }
  }
  return {
    open: async (path, mode) => openFile(tree.open(path, mode), path, mode),
    makeDirectory: async (path) => tree.makeDirectory(path),
    list: async (path) => tree.list(path),
    rename: async (from, to) => tree.rename(from, to),
    remove: async (path) => tree.remove(path),
    removeTree: async (path) => tree.removeTree(path),
    exists: async (path) => tree.exists(path),
    syncDirectory: async (path) => void tree.directory(path, "fsync"),
    lock: async (directory) => lock(directory)
  }
}
