// Every number of tools that clients run, in one table.

const KIB = 1024

export const remoteLimits = {
  /** Tools that one conversation may have of its clients; one more is refused. */
  toolsPerConversationMax: 128,
  /** What the providers accept as the name of a function. */
  nameCharsMax: 64,
  descriptionCharsMax: 4 * KIB,
  schemaCharsMax: 64 * KIB,
  timeoutMsMax: 3_600_000,
  /** Conversations with tools of clients; one more is refused. */
  conversationsMax: 10_000,
  /** A client that is gone this long does not come back: its tools go, and its calls end. */
  returnWithinMs: 30_000,
  /** Results that came before their call began to wait; the oldest goes first. */
  earlyMax: 256,
  /** Calls whose result was taken, known until it is on record; the oldest goes first. */
  takenMax: 4_096
} as const
