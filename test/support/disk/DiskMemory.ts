// A disk that keeps nothing: for tests that do not care about crashes and for throw-away logs. Same answers and
// error codes as the real one; sync and syncDirectory have nothing to do.
import type { Disk, DiskFile } from "../../../runelog/disk/Disk.ts"
import { DiskHandle, LockTable } from "./DiskHandle.ts"
import { DiskTree, resizeFile, writeFile } from "./DiskTree.ts"

const openFile = (handle: DiskHandle): DiskFile => {
  const writeNow: DiskFile["writeNow"] = (source, offset, length, position) =>
    writeFile(handle.node, handle.sourceOf(source, offset, length, position), position)
  return {
    read: async (target, offset, length, position) => handle.read(target, offset, length, position),
    write: async (source, offset, length, position) => writeNow(source, offset, length, position),
    writeNow,
    sync: async () => handle.checkOpen("fdatasync"),
    syncNow: () => handle.checkOpen("fdatasync"),
    truncate: async (length) => {
      handle.checkTruncate(length)
      resizeFile(handle.node, length)
    },
    size: async () => handle.size(),
    close: async () => handle.close()
  }
}

/** An empty disk with a root directory. Locks are held per disk. */
export const makeDiskMemory = (): Disk => {
  const tree = new DiskTree()
  const locks = new LockTable()
  return {
    open: async (path, mode) => openFile(new DiskHandle(tree.open(path, mode), path, mode)),
    makeDirectory: async (path) => tree.makeDirectory(path),
    list: async (path) => tree.list(path),
    rename: async (from, to) => tree.rename(from, to),
    remove: async (path) => tree.remove(path),
    removeTree: async (path) => tree.removeTree(path),
    exists: async (path) => tree.exists(path),
    syncDirectory: async (path) => void tree.directory(path, "fsync"),
    lock: async (directory) => locks.take(tree.directory(directory, "lock").id)
  }
}
