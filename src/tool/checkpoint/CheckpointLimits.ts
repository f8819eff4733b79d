// Every limit of checkpoints, in one table.

export const checkpointLimits = {
  /** A larger file is left out, and never changed by a restore. */
  fileKibMax: 10_240,
  /** New and changed files that one checkpoint takes up; beyond that there is none. */
  filesMax: 20_000,
  /** The same in a repository, which says itself what is ignored; the first checkpoint of a workspace reads all its files. */
  repositoryFilesMax: 200_000,
  /** All of one run of git. The batch waits for it. */
  timeoutMs: 60_000,
  /** After a failure no further try for this long: the next batch is not held up for the same reason. */
  restAfterFailureMs: 300_000,
  outputCharsMax: 1_048_576,
  /** What a preview shows. */
  previewFilesMax: 500,
  previewPatchBytesMax: 65_536,
  /** Workspaces whose git directories are kept known. */
  placesMax: 256
} as const
