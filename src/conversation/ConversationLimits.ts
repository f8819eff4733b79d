// Every number of the conversation layer, in one table.

const KIB = 1024

export const limits = {
  /** Commands of clients to one conversation that may wait for the disk; more are refused as busy. */
  mailboxMax: 1024,
  /** When a client that was refused as busy may try again. */
  busyRetryMs: 50,
  /** Largest rune a client's command may cause. Smaller than the next, so that what it queues can be started. */
  clientRuneBytesMax: 768 * KIB,
  /** Largest rune, in bytes of JSON: the largest body of a frame. */
  runeBytesMax: 1024 * KIB,
  /** Largest batch of runes of one command: what the log takes, less room for the headers of its frames. */
  batchBytesMax: 3584 * KIB,
  /** Conversations in memory without need; more leave, the longest unused first. */
  residentMax: 10_000,
  /** Conversations whose runes are counted for the figures of a stretch of time. */
  windowConversationsMax: 1_000,
  /** Models and workspaces that the figures of a stretch of time list. */
  windowSharesMax: 20,
  /** Conversations and runes that a policy is tried on, the newest first; no further conversation is begun beyond either. */
  replayConversationsMax: 500,
  replayRunesMax: 200_000,
  /** Calls that a trial of a policy lists, and permissions that a list shows. */
  replayedCallsMax: 200,
  grantsShownMax: 500,
  /** How many more conversations than have to go are looked at when some have to go. */
  evictionLooks: 64,
  /** A conversation without work leaves memory after this long without use. */
  idleAfterMs: 600_000,
  /** A snapshot is due when the log has grown by this many runes, and by this share, since the last one. */
  snapshotEveryRunes: 256,
  snapshotGrowth: 0.5,
  /** Whatever its share, this much growth makes one due, and a rune more for so many characters of the last one. */
  snapshotTailRunes: 4096,
  snapshotCharsPerRune: KIB,
  /** In the midst of an answer, whose deltas will be dropped, this many times as much. */
  snapshotMidAnswer: 8,
  /** Transcripts of at least so much JSON are packed in snapshots, in pieces of about this size. */
  packCharsMin: 256 * KIB,
  /** What must have been written to a log since it was last thinned for that to pay again; one that is closed always is. */
  thinBytesMin: 256 * KIB,
  /** Conversations that wait to be thinned; more are thinned when they are next at rest. */
  thinningMax: 10_000,
  /** Conversations that are loaded side by side after a restart. */
  recoveryLanes: 16,
  /** Pauses before a conversation whose log refused runes is read again to go on; the last one repeats. */
  reloadAfterMs: [1_000, 5_000, 30_000],
  /** Fibers that are listed; more are counted. */
  fibersListedMax: 2_000,
  /** Longest reason a suspension gives. */
  reasonCharsMax: 500
} as const
