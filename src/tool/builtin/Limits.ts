// Limits of the built-in tools, one table. What does not fit is cut, and the result says so.

export const builtinLimits = {
  readBytesMax: 262_144,
  writeBytesMax: 1_048_576,
  listEntriesMax: 1_000,
  /** Output of a command that is kept: the beginning and the end, each half of this. */
  outputCharsMax: 131_072,
  commandTimeoutMs: 120_000,
  commandCharsMax: 32_768,
  /** Between asking a command to end and making it. */
  killAfterMs: 1_000
} as const
