// Every number the engine enforces, in one place. Tests read them from here.

export const KIB = 1024
export const MIB = 1024 * 1024

export const limits = {
  /** Largest body of one frame. */
  bodyBytesMax: MIB,
  /** Largest atomic batch: frames with their headers. */
  batchBytesMax: 4 * MIB,
  /** Most frames in one atomic batch. */
  batchFramesMax: 4096,
  /** Longest log name. */
  nameBytesMax: 64,
  /** A segment is closed once it holds this many bytes. */
  segmentBytes: 64 * MIB,
  /** One journal file, zero-filled before its first use. */
  journalFileBytes: 32 * MIB,
  /** Most journal files; beyond them appenders wait for a checkpoint. */
  journalFilesMax: 16,
  /** Journal room that only appends marked `terminal` may use. */
  reserveBytes: MIB,
  /** Encoded but not yet durable bytes; beyond them `append` answers Busy and `ready` says when to go on. */
  inFlightBytesMax: 16 * MIB,
  /** A batch of this size does not wait for the end of the turn: the disk works on it while the next one is filled. */
  earlyCommitBytes: 768 * KIB,
  /** Durable frames held in memory until they are written to segments. */
  pendingBytesMax: 64 * MIB,
  /** A log's pending frames are written to its segment from this size on. */
  segmentWriteBytes: 512 * KIB,
  /** Sparse index: one entry at least every so many frames or bytes. */
  indexEveryFrames: 256,
  indexEveryBytes: 64 * KIB,
  /** Open descriptors the engine keeps for segments. */
  openFilesMax: 1024,
  /** Pauses before work is tried again for which no file could be opened: the first, doubled up to the longest. */
  reopenAfterMsMin: 50,
  reopenAfterMsMax: 5_000,
  /** The same for a seal that found no room. */
  sealAfterMsMin: 1_000,
  sealAfterMsMax: 60_000,
  /** A sealed segment of a log at rest is packed if that saves as much: a block of a common file system. */
  packSavedBytesMin: 4 * KIB,
  /** Log states kept in memory while idle. */
  residentLogsMax: 20_000,
  /** Logs that a start after a crash brings into their segments before it is open; of more, each when it is asked for. */
  startLogsMax: 64,
  /** Logs that a close brings into their segments; with more it leaves them to the journal, and to the next start. */
  closeLogsMax: 1024,
  /** Default page of a reader. */
  pageBytes: 256 * KIB
} as const

export type Limits = { readonly [K in keyof typeof limits]: number }
