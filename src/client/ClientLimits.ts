/** Limits of a client, one table. Whatever is full says so, or is asked for again from the cursor. */

export const clientLimits = {
  /** Until a socket is open and has answered hello. */
  connectWithinMs: 10_000,
  /** Calls that may wait for their answer; one more fails with `busy`. */
  callsWaitingMax: 256,
  /** How often a call that was answered `busy` is made again. */
  busyRetriesMax: 5,
  /** Frames that may wait for a slow reader; beyond, the subscription is given up and resumed from its cursor. */
  feedFramesMax: 2_048,
  /** The same in characters. */
  feedCharsMax: 4_194_304,
  /** Conversations whose place a tail of everything remembers; one more ends it with `limit_exceeded`. */
  cursorsMax: 250_000,
  /** Those of them that a subscription names when it is opened again: about half of the largest message. */
  cursorsNamedMax: 10_000,
  /** Silence after which the server is asked for a sign of life, and how long it has to give one. */
  silenceMs: 30_000,
  probeWithinMs: 10_000,
  /** Calls of this client's tools that are known to have begun; the oldest is forgotten first. */
  toolCallsRemembered: 4_096,
  /** How often the result of a tool is offered while the server does not take it yet. */
  toolAnswerTriesMax: 60,
  /** Between two of them: a server may take a while to stop, and the client to register with the next. */
  toolAnswerPauseMaxMs: 1_000,
  /** First wait before connecting again, and the longest. */
  backoffFirstMs: 50,
  backoffMaxMs: 5_000
} as const
