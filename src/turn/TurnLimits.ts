// Every number the turn engine works with, in one table.

const KIB = 1024

export const limits = {
  /** Text of a stream becomes a rune at multiples of this, the first piece at once… */
  deltaEveryMs: 50,
  /** …or when this much has come; no rune holds more. */
  deltaCharsMax: 4096,
  /** Delta runes of one stream that may be on their way to the disk; beyond them the stream is held back. */
  deltasInFlightMax: 64,
  /** Text and reasoning of one answer, in bytes of JSON: what one rune can still hold when the turn ends there. */
  answerBytesMax: 896 * KIB,
  /** Progress runes of one call; later output shows in the result only. */
  progressRunesMax: 2_000,
  /** Output of a tool that is kept in its result; the rest becomes a blob where there is room for one. */
  outputCharsMax: 64 * KIB,
  /** Output of a hook that is kept. */
  hookOutputCharsMax: 16 * KIB,
  /** Tools that are named where some could not be offered, and how much of each name. */
  leftOutNamesMax: 20,
  leftOutNameCharsMax: 80,
  /** Longest error text taken over from a tool or hook. */
  errorCharsMax: 2_000,
  /** How long a tool or hook may take to wind up after its time is over. */
  windUpMs: 2_000,
  /** How long a tool or hook may outlive its own limit before its turn is ended as stuck. */
  stuckGraceMs: 15_000,
  /** A call that is held because its provider is down is judged anew this often. */
  heldLookMs: 300_000,
  /** Longest time a timer can be set for. */
  timerMsMax: 2_147_483_647,
  /** Whoever waits for a time that is on record looks at the wall clock this often: it may have been set. */
  clockLookMs: 1_000,
  /** Share of a model's context that may be filled before the oldest part is summed up. */
  compactAt: 0.8,
  /** Share of the context that one message may fill; of a longer one the request has the beginning and the end. */
  messageShare: 0.4,
  /** Share of the context that is kept word for word when it is. */
  compactKeep: 0.3,
  /** Characters that count as a token where the size of a kept part is chosen. */
  charsPerToken: 3,
  /** Longest summary that is taken from a model, and the share of the context that it may fill. */
  summaryCharsMax: 24_000,
  summaryShare: 0.2,
  /** Share of the context that a request for a summary may fill. */
  summaryAt: 0.9,
  /** Requests in which one part is summed up; what is older has to do with its stand-in. */
  summaryPiecesMax: 64,
  /** How often summaries of pieces are summed up in their turn before they are cut to fit. */
  summaryLevelsMax: 2,
  /** A model with less room than this for a piece is not asked for a summary. */
  summaryPieceTokensMin: 64,
  /** The summary of a piece may have this much, however short the piece. */
  summaryPieceCharsMin: 200,
  /** Share of a request for a summary that the descriptions of tools may take; beyond it calls are told as text. */
  summaryToolsShare: 0.5,
  /** Share of its room that a piece of a long text takes: wrapping and escapes need the rest. */
  chunkShare: 0.75,
  /** Shares of a stand-in for the summary before it, and of the rest for calls. */
  standInEarlierShare: 0.6,
  standInCallShare: 0.6
} as const
