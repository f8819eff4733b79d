// Disks that break one promise on purpose. A durability test that still passes over one of these proves nothing.
import type { Disk, DiskFile } from "../../../runelog/disk/Disk.ts"

// Written out because a disk may be an instance of a class, whose methods a spread would lose.
const forward = (disk: Disk): Disk => ({
  open: (path, mode) => disk.open(path, mode),
  makeDirectory: (path) => disk.makeDirectory(path),
  list: (path) => disk.list(path),
  rename: (from, to) => disk.rename(from, to),
  remove: (path) => disk.remove(path),
  removeTree: (path) => disk.removeTree(path),
  exists: (path) => disk.exists(path),
  syncDirectory: (path) => disk.syncDirectory(path),
  lock: (directory) => disk.lock(directory)
})

const withoutFileSync = (file: DiskFile): DiskFile => ({
  read: (target, offset, length, position) => file.read(target, offset, length, position),
  write: (source, offset, length, position) => file.write(source, offset, length, position),
  writeNow: (source, offset, length, position) => file.writeNow(source, offset, length, position),
  sync: async () => {},
  syncNow: () => {},
  truncate: (length) => file.truncate(length),
  size: () => file.size(),
  close: () => file.close()
})

/** Syncs of files report success and do nothing. */
export const withoutSync = (disk: Disk): Disk => ({
  ...forward(disk),
  open: async (path, mode) => withoutFileSync(await disk.open(path, mode))
})

/** Syncs of directories report success and do nothing. */
export const withoutDirectorySync = (disk: Disk): Disk => ({ ...forward(disk), syncDirectory: async () => {} })
