// Limits of the built-in tools, one table. What does not fit is cut or refused, and the result says which.

const KIB = 1024
const MIB = 1024 * KIB

export const builtinLimits = {
  /** Parts of a path, and links followed on the way, before it is refused. */
  pathPartsMax: 256,
  linksMax: 40,

  /** Lines and characters that one reading returns; the result says where to go on. */
  readLinesMax: 2_000,
  readCharsMax: 56 * KIB,
  readChunkBytes: 64 * KIB,
  /** Beyond this, lines that are not shown are not counted either. */
  countBytesMax: 32 * MIB,
  /** How much of a file is looked at to tell text from other bytes. */
  sniffBytes: 8 * KIB,

  /** A file that is written or edited. */
  writeBytesMax: 8 * MIB,
  editBytesMax: 8 * MIB,
  /** Places that are named when an anchor is ambiguous. */
  placesToldMax: 10,

  listEntriesMax: 1_000,
  /** Entries looked at before a listing or a search gives up. */
  walkEntriesMax: 200_000,
  walkDepthMax: 64,
  ignoreBytesMax: 256 * KIB,

  searchMatchesMax: 500,
  searchMatchesDefault: 100,
  searchLineCharsMax: 400,
  searchFileBytesMax: 16 * MIB,
  searchContextMax: 10,
  searchPatternCharsMax: 4_096,

  patchCharsMax: 1 * MIB,
  patchFilesMax: 200,
  /** Lines of a file that are compared for a diff; a longer one is shown as one block. */
  diffLinesMax: 20_000,
  /** Differences after which a diff stops looking for the shortest form. */
  diffEditsMax: 2_000,

  gitOutputCharsMax: 56 * KIB,
  gitPathsMax: 500,
  commitMessageCharsMax: 64 * KIB,

  fileTimeoutMs: 60_000,
  searchTimeoutMs: 60_000,
  gitTimeoutMs: 120_000
} as const
