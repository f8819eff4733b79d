// Disks that break the promise of a sync for some paths only: finer than a disk that never syncs, because each sync the
// engine makes must be shown to matter by itself.
import type { Disk } from "#runelog/disk/Disk.ts"
import { withoutDirectorySync, withoutSync } from "../disk/DiskMutant.ts"

/** Files are known by the name they were opened with. */
export const withoutSyncOf =
  (path: RegExp) =>
  (disk: Disk): Disk => ({ ...disk, open: (at, mode) => (path.test(at) ? withoutSync(disk) : disk).open(at, mode) })

export const withoutDirectorySyncOf =
  (path: RegExp) =>
  (disk: Disk): Disk => ({
    ...disk,
    syncDirectory: (at) => (path.test(at) ? withoutDirectorySync(disk) : disk).syncDirectory(at)
  })
