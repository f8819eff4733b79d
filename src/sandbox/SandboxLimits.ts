// How much a command may use, one table. What the kernel counts for one process holds for each process alone; the sum
// over all of them is bounded by their number, by the size of the private file systems and by the disk reserve.

const MIB = 1_048_576

export const sandboxLimits = {
  /** Processes and threads of one sandbox. */
  processesMax: 512,
  /** Writable memory of one process. */
  memoryBytesMax: 4_096 * MIB,
  fileBytesMax: 2_048 * MIB,
  openFilesMax: 1_024,
  /** Seconds on a processor, of one process. */
  processorSecondsMax: 3_600,
  /** Private temporary directory, private home and shared memory, each. */
  temporaryBytesMax: 512 * MIB,
  /** A directory that hides another holds nothing. */
  hiddenBytesMax: 4_096,
  /** Submodules of a repository with the directories that lead to them, and its worktrees: each is protected alone. */
  submodulesMax: 64,
  worktreesMax: 64,
  /** Of a file that says where a repository lies, or of its settings, when they are read for that. */
  gitFileBytesMax: 65_536,
  /** Sockets of services that are hidden one by one, beyond the directories that hold most of them. */
  socketsMax: 128,
  /** Files of the system that are looked at for those that are not for everybody; directories beyond them are hidden. */
  searchedMax: 200_000,
  /** How long a look holds at least, and how many times as long as it took. */
  searchAgainMs: 60_000,
  searchRest: 30,
  /** Paths that are hidden for this; where there are more, the directories around them are. */
  privatesMax: 128,
  /** What the sandbox says about itself when it could not be made. */
  complaintBytesMax: 4_096,
  /** Roots of one request. */
  rootsMax: 16,
  probeTimeoutMs: 10_000
} as const

/** Commands inside are the first to go when memory runs out. */
export const outOfMemoryScore = 1_000
