// Every number the store enforces, in one place. Tests read them from here.

export const KIB = 1024
export const MIB = 1024 * 1024

export const limits = {
  /** Appends of one conversation that wait for room at once; beyond them the answer is Busy. */
  waitingAppendsMax: 4096,
  /** A batch that ends in a terminal rune may use the reserve of a full disk only up to this size. */
  terminalBytesMax: 64 * KIB,
  /** Default page of a reader. */
  pageBytes: 256 * KIB,

  /** Outputs and attachments above this become blobs. */
  offloadBytes: 64 * KIB,
  /** What stays in the rune of an output that became a blob: its beginning. */
  previewBytes: 8 * KIB,
  blobBytesMax: 256 * MIB,
  /** All blobs together; beyond it outputs of tools are no longer kept whole. What a rune names is kept in any case. */
  keptBytesMax: 16 * 1024 * MIB,
  /** Most that one range read of a blob returns. */
  blobPageBytes: MIB,
  /** Blobs whose digest was checked and is not checked again. */
  verifiedBlobsMax: 10_000,

  /** Larger states are not written as snapshots. */
  snapshotBytesMax: 16 * MIB,
  /** Snapshots kept per conversation, newest first. */
  snapshotsKept: 2,

  listItemsMax: 200,
  listItemsDefault: 50,
  /** Longer texts are cut in the catalog. */
  titleCharsMax: 200,
  labelsMax: 64,
  labelCharsMax: 128,
  queryCharsMax: 200,
  /** Catalog rows are written this long after a change, all that are due together. */
  catalogFlushMs: 200,
  /** Between two writes of one row by itself; somebody who asks for a list does not wait for it. */
  catalogRowEveryMs: 1_000,
  /** Files of a damaged catalog that are replaced in a row; then it is kept in memory until the next start. */
  catalogFilesMax: 3,
  /** Rows written in one go, so that nothing else waits long. */
  catalogSliceRows: 128,
  /** Runes that wait to be folded; beyond them the catalog reads from the log instead. */
  catalogPendingRunes: 50_000,
  /** Folded rows kept in memory; beyond them the oldest unchanged ones are read again when needed. */
  catalogResidentRows: 1024,
  /** Conversations that a crash touched whose rows are put right before the store is open; of more, all of them after. */
  suspectsAtOpenMax: 1000,
  /** Logs that are read at once while the catalog catches up. */
  catalogReaders: 4,
  /** Agents and their inputs that the fold of a row remembers, and open calls; the oldest go first. */
  rowItemsMax: 512,
  rowCallsMax: 32_768,

  /** Frames are compressed in blocks of about this size: a reader inflates one block, not the archive. */
  archiveBlockBytes: MIB,
  archiveLevel: 9,
  /** The description of an archive's blocks; more than a hundred thousand of them fit. */
  archiveManifestBytesMax: 16 * MIB,
  /** Archives kept open for readers that go on, and inflated blocks kept of each. */
  archiveReadersMax: 16,
  archiveBlocksCached: 2,

  importBytesMax: 1024 * MIB,
  importRunesMax: 1_000_000
} as const
