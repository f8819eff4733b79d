// Lets calls of a disk take turns of the event loop, by chance from a seed, before they begin and before their end is
// known: without it a simulated disk finishes all background work between two commits, and no race would ever be seen.
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { turn } from "./turns.ts"

export interface JitterOptions {
  readonly chance: () => number
  /** The share of calls that are delayed. */
  readonly share: number
}

type Delay = <A>(call: () => Promise<A>) => Promise<A>

const delaying = ({ chance, share }: JitterOptions): Delay => {
  const pause = async (): Promise<void> => {
    while (chance() < share) await turn()
  }
  return async (call) => {
    await pause()
    const result = await call()
    await pause()
    return result
  }
}

const jitterFile = (file: DiskFile, delay: Delay): DiskFile => ({
  read: (target, offset, length, position) => delay(() => file.read(target, offset, length, position)),
  write: (source, offset, length, position) => delay(() => file.write(source, offset, length, position)),
  writeNow: (source, offset, length, position) => file.writeNow(source, offset, length, position),
  sync: () => delay(() => file.sync()),
  syncNow: () => file.syncNow(),
  truncate: (length) => delay(() => file.truncate(length)),
  size: () => delay(() => file.size()),
  close: () => delay(() => file.close())
})

export const withJitter = (disk: Disk, options: JitterOptions): Disk => {
  const delay = delaying(options)
  return {
    open: async (path, mode) => jitterFile(await delay(() => disk.open(path, mode)), delay),
    makeDirectory: (path) => delay(() => disk.makeDirectory(path)),
    list: (path) => delay(() => disk.list(path)),
    rename: (from, to) => delay(() => disk.rename(from, to)),
    remove: (path) => delay(() => disk.remove(path)),
    removeTree: (path) => delay(() => disk.removeTree(path)),
    exists: (path) => delay(() => disk.exists(path)),
    syncDirectory: (path) => delay(() => disk.syncDirectory(path)),
    lock: (directory) => delay(() => disk.lock(directory))
  }
}
