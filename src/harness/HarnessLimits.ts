// Limits of the part that holds outside agents.
export const harnessLimits = {
  /** Body of one hook. */
  hookBytesMax: 4 * 1024 * 1024,
  /** Body of one export of telemetry, as sent and after it was unpacked. */
  otlpBytesMax: 4 * 1024 * 1024,
  otlpUnpackedBytesMax: 16 * 1024 * 1024,
  /** Records taken of one export; the rest is counted and dropped. */
  otlpRecordsMax: 10_000,
  otlpDepthMax: 16,
  /** What is kept of a prompt, a message, a description of a call. */
  promptCharsMax: 16_384,
  messageCharsMax: 65_536,
  detailCharsMax: 2_000,
  nameCharsMax: 200,
  /** Tool calls, messages and prompts of one session that are remembered. */
  rememberedMax: 2_000,
  /** A program that is spoken to is connected to again after this long; what it does not ask again within this is over. */
  reconnectMs: 500,
  askedAgainMs: 5_000,
  /** One message of a program that speaks a protocol. */
  messageBytesMax: 16 * 1024 * 1024,
  /** A hook that waits for a person is answered "nothing to say" after this long: the dialog of the agent stays. */
  permissionWaitMs: 10 * 60_000,
  /** Signals of one agent that wait to be written; whoever brings more waits. */
  signalsMax: 1_000,
  /** Outside agents attached at once. */
  agentsMax: 200,
  /** A file of the spool that cannot be read is set aside; the files looked at in one pass. */
  spoolFilesMax: 1_000,
  spoolCheckMs: 1_000,
  /** What the terminal says must stand this long without a hook before it is believed. */
  terminalDebounceMs: 700,
  /** A program that says nothing of itself is idle after this long without output. */
  silenceMs: 2_000,
  /** Part of the end of a transcript that is read. */
  transcriptTailBytes: 256 * 1024,
  /** Output that one viewer may be behind before it is sent away. */
  viewerBytesMax: 8 * 1024 * 1024,
  viewersMax: 16,
  /** One frame between a holder and its clients. */
  frameBytesMax: 4 * 1024 * 1024,
  scrollbackLines: 2_000,
  /** The holder stays this long after its program has ended, for those who still want to know how. */
  holderLingersMs: 5_000,
  /** After the hang-up a program has this long before it is killed. */
  killAfterMs: 5_000,
  inputBytesMax: 256 * 1024,
  inputsQueuedMax: 32
} as const
