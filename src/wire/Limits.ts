/** Limits of the door, one table. `hello` tells them to the client; tests read them from here. */

export const limits = {
  /** Largest message of a client. */
  messageBytesMax: 1_048_576,
  /** Deepest nesting of a client's JSON. */
  messageDepthMax: 64,
  connectionsMax: 10_000,
  subscriptionsPerConnectionMax: 1_024,
  /** Requests of one connection that may wait for their answer. */
  requestsInFlightMax: 256,
  /** Requests a second of one connection, over a second's burst. */
  operationsPerSecondMax: 500,
  /** Malformed messages in a row before the connection is closed. */
  malformedMax: 16,
  helloWithinMs: 5_000,
  ticketValidMs: 30_000,
  ticketsMax: 1_024,
  /** Bytes of a socket that may wait for the reader before it gets no more. */
  socketBytesMax: 1_048_576,
  /** A reader that takes nothing for this long is closed; it resumes from its cursor. */
  stalledMs: 30_000,
  pingEveryMs: 20_000,
  /** One page of runes on its way to one reader. */
  pageBytes: 65_536,
  listMax: 200,
  drainMs: 10_000
} as const
