/** Limits of the door, one table. `hello` tells them to the client; tests read them from here. */

export const limits = {
  /** Largest message of a client. */
  messageBytesMax: 1_048_576,
  /** Deepest nesting of a client's JSON. */
  messageDepthMax: 64,
  /** Longest id of a request. */
  idCharsMax: 256,
  connectionsMax: 10_000,
  subscriptionsPerConnectionMax: 1_024,
  /** Requests of one connection that may wait for their answer. */
  requestsInFlightMax: 256,
  /** Requests a second of one connection: more than a server answers, so that it only stops who never stops. */
  operationsPerSecondMax: 20_000,
  /** Malformed messages in a row before the connection is closed. */
  malformedMax: 16,
  /** Before hello: how long a socket has, how long it may then take to say goodbye, and what it may send. */
  helloWithinMs: 4_500,
  helloGoodbyeMs: 250,
  helloBytesMax: 4_096,
  ticketValidMs: 30_000,
  ticketsMax: 1_024,
  /** How long a browser stays signed in after its last visit. */
  sessionValidMs: 604_800_000,
  /** Bytes of a socket that may wait for the reader before it gets no more. */
  socketBytesMax: 262_144,
  /** A reader that takes nothing for this long is closed; it resumes from its cursor. */
  stalledMs: 30_000,
  pingEveryMs: 20_000,
  /** One page of runes on its way to one reader. */
  pageBytes: 65_536,
  /** One page of a blob on its way to one reader. */
  blobPageBytes: 262_144,
  /** A rune that comes this long after the one before is not kept waiting for company. */
  pauseMs: 2,
  /** One page on its way to a reader that catches up. */
  catchUpPageBytes: 262_144,
  /** Pages of that size that are under way at once, to all readers together; beyond them, ordinary ones. */
  catchUpBuffersMax: 64,
  /** Buffers of such pages that are kept for the next reader. */
  catchUpBuffersIdleMax: 8,
  /** Pages a topic keeps for readers that catch up side by side. */
  pagesKeptPerTopic: 4,
  /** Pages in a row that bring nothing although there is more; one more ends the subscription. */
  emptyPagesMax: 8,
  /** From being stamped to being durable, a rune takes less than this. */
  stampedWithinMs: 1_000,
  /** Conversations that one follower of everything catches up with side by side. */
  followAllLanes: 8,
  /** How often a conversation that cannot be read is tried for a follower of everything before it is told. */
  followAllTriesMax: 4,
  /** The pause before the second try; each one after that is five times as long. */
  followAllRetryMs: 100,
  /** A conversation that has been quiet this long costs a follower of everything nothing. */
  followAllQuietMs: 30_000,
  /** Changes of what waits for a person that are kept for a reader whose socket is full; one more closes it. */
  attentionMissedMax: 10_000,
  /** How long a reader that was closed may take to say goodbye. */
  closeWithinMs: 5_000,
  /** Runes of one answer over HTTP. */
  httpRunesMax: 10_000,
  /** Event streams over HTTP at once. */
  eventStreamsMax: 1_000,
  /** Spans of traces that have begun, and that wait to be delivered. */
  openSpansMax: 10_000,
  finishedSpansMax: 4_096,
  tracesEveryMs: 2_000,
  tracesAfterTurnMs: 50,
  tracesWithinMs: 5_000,
  /** Between two batches of metrics or log lines for a collector. */
  otlpEveryMs: 5_000,
  /** Lines of the log for a collector in that time; more are dropped. */
  otlpLinesMax: 10_000,
  listMax: 200,
  /** The longest stretch of time that figures are asked for. */
  windowMsMax: 31 * 24 * 60 * 60 * 1000,
  /** How long the answer to a client's result of a tool waits for it to be on disk. */
  resultDurableWithinMs: 10_000,
  /** Sockets of any kind at once; more are not accepted. Half of what the process may open, where that is less. */
  socketsMax: 12_000,
  /** Of these, sockets of those who have not said who they are: at most a quarter; beyond them the oldest is closed. */
  unknownSocketsMax: 3_000,
  /** The headers of a request: how long they may take, how often that is looked at, and how large they may be. */
  headersWithinMs: 9_000,
  headersCheckedEveryMs: 500,
  headersBytesMax: 16_384,
  requestWithinMs: 60_000,
  /** Everything a stop may take: answers, commits, delivery, goodbyes. */
  drainMs: 10_000,
  /** After that, what still runs is left behind. */
  exitWithinMs: 1_000,
  /** An event loop that does nothing else for this long is reported, with where it is; looked at this often. */
  blockedMs: 2_000,
  watchdogTickMs: 250,
  /** How long the main thread has to say where it is. */
  watchdogStackMs: 1_000,
  answerWithinMs: 2_000,
  deliverWithinMs: 2_000,
  goodbyeMs: 1_000
} as const
