// Every number of MCP servers, in one table.

const KIB = 1024
const MIB = 1024 * KIB

export const mcpLimits = {
  /** Servers of one conversation, the global ones included. */
  serversPerConversationMax: 16,
  serverNameCharsMax: 24,
  /** What the providers accept as the name of a function. */
  nameCharsMax: 64,
  /** Tools of one server; the others are left out, and the log of the server says so. */
  toolsPerServerMax: 128,
  /** Names of tools that are left out, kept for whoever is told of them. */
  leftOutNamesMax: 20,
  /** Pages of one list; a list that goes on is cut there. */
  pagesMax: 100,
  descriptionCharsMax: 4 * KIB,
  schemaCharsMax: 64 * KIB,
  /** A longer message ends the connection. */
  messageBytesMax: 8 * MIB,
  /** What is said per second beyond this waits in the pipe of the server. */
  messagesPerSecondMax: 1_000,
  bytesPerSecondMax: 32 * MIB,
  /** Lines in a row that are no message before the connection is ended; servers do print to the wrong stream. */
  malformedMax: 100,
  /** Requests of the server that may be under way; one more is refused. */
  serverRequestsMax: 16,
  /** The end of what the server said on standard error, kept for the one who has to find out. */
  errorTailChars: 2 * KIB,
  /** Until a server has started and told its tools, unless its settings say otherwise. */
  startWithinMs: 20_000,
  startWithinMsMax: 300_000,
  /** What a model call waits for a server beyond that: for its process to be there, and for its list. */
  readyGraceMs: 2_000,
  listWithinMs: 20_000,
  /** Connecting again waits this long at first, then twice as long each time, up to the last. */
  backoffFirstMs: 250,
  backoffMaxMs: 30_000,
  /** A connection that nobody used for this long is closed; the next use opens it again. */
  idleMs: 600_000,
  /** Connections at once; one more closes the one that is idle for longest, or fails where none is. */
  connectionsMax: 64,
  /** Servers of conversations that are remembered with their tools; the one unused for longest is forgotten. */
  remembered: 1_024,
  /** Output of a call that is text; the router keeps what does not fit inline beside the log. */
  outputCharsMax: 4 * MIB,
  /** Progress told per second and call; what is told more often is passed over. */
  progressEveryMs: 100,
  questionCharsMax: 8 * KIB,
  /** Levels of what a server says; what is nested deeper is not looked at. */
  depthMax: 128,
  closeWithinMs: 2_000
} as const
