// Every number the turn engine works with, in one table.

export const limits = {
  /** Text of a stream becomes a rune at most this often… */
  deltaEveryMs: 50,
  /** …or when this much has come. */
  deltaCharsMax: 4096,
  /** Delta runes of one stream that may be on their way to the disk; beyond them the stream is held back. */
  deltasInFlightMax: 64,
  /** Progress runes of one call; later output shows in the result only. */
  progressRunesMax: 2_000,
  /** Output of a tool that is kept in its result. */
  outputCharsMax: 64 * 1024,
  /** How long a model call, tool or hook may outlive its own limit before its turn is ended as stuck. */
  stuckGraceMs: 15_000,
  /** Share of a model's context that may be filled before the oldest part is summed up. */
  compactAt: 0.8,
  /** Share of the context that is kept word for word when it is. */
  compactKeep: 0.3,
  /** Characters that count as a token where nobody counts better. */
  charsPerToken: 4,
  /** Longest summary that is taken from a model. */
  summaryCharsMax: 24_000
} as const
