// Limits of commands and shell sessions, one table. What does not fit is refused or cut, and the result says so.

const KIB = 1_024
const minuteMs = 60_000

export const shellLimits = {
  commandCharsMax: 64 * KIB,
  inputCharsMax: 256 * KIB,
  /** Output that is kept inline, head and tail. */
  outputCharsMax: 48 * KIB,
  /** How long a command may take when it does not say. */
  commandMs: 2 * minuteMs,
  commandMsMax: 10 * minuteMs,
  /** How long a session is waited for when the call does not say; the command goes on afterwards. */
  waitMs: 10_000,
  /** Output that pauses this long after some input is taken for an answer. */
  quietMs: 250,
  /** Between the end of a command and the end of what it printed, which comes another way. */
  settleMs: 20,
  /** Output of a session that is read in one stretch of time. */
  paceMs: 100,
  paceBytesMax: 1_048_576,
  sessionsPerConversationMax: 8,
  sessionsMax: 64,
  /** A session that nobody uses is ended. */
  sessionIdleMs: 30 * minuteMs,
  nameCharsMax: 64,
  /** Processes that a listing shows. */
  listedProcessesMax: 20
} as const
