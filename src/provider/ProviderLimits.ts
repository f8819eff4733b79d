// Every number the provider layer enforces, in one place. Tests read them from here.

export const limits = {
  /** Whole model call, from the request to its terminal event. A healthy answer may take long: silence ends a call sooner. */
  callMs: 3_600_000,
  /** Longest silence before the first byte of an answer. */
  firstEventMs: 120_000,
  /** Longest silence of a stream that has begun to answer. Any byte counts, keep-alives included. */
  idleMs: 60_000,
  /** Text, reasoning and tool arguments of one answer together, in UTF-16 code units. */
  answerCharsMax: 16 * 1024 * 1024,
  /** Arguments of one tool call; beyond them the call is delivered as not executable. */
  argumentsCharsMax: 1024 * 1024,
  /** How much of arguments that cannot be executed is kept for the record. */
  unusableArgumentsCharsKept: 4096,
  /** Nesting of tool arguments. */
  argumentsDepthMax: 64,
  /** Events of one stream that wait for their consumer; beyond them the provider is held back. */
  eventsBufferedMax: 256,
  /** Tool calls in one answer; the rest is dropped and the answer marked malformed. */
  toolCallsMax: 256,
  /** Tools in one request: more are refused by providers, and with them every turn. */
  toolsMax: 128,
  /** Sizes of models that were learned from their refusals; the one learned longest ago goes first. */
  learnedModelsMax: 1_024,
  /** No model is taken for smaller than this. */
  contextTokensLeast: 1_024,
  /** Share of a refused request that a model is taken to have room for, where its refusal names no number. */
  refusedShare: 0.8,
  /** What an image is taken for, in tokens: the most that providers make of one they have scaled down. */
  imageTokens: 1_600,
  /** A document: bytes of a page, tokens of a page, and pages that are counted at most. */
  documentPageBytes: 50 * 1024,
  documentPageTokens: 2_500,
  documentPagesMax: 100,
  /** Images and documents of one request, newest first; older ones are only named. */
  attachmentsMax: 20,
  attachmentBytesMax: 22 * 1024 * 1024,
  /** Output a call may produce when neither the request nor the catalog says. */
  outputTokensDefault: 32_000,
  outputTokensUnknownModel: 8192,
  /** Longest error text taken over from a provider. */
  errorMessageCharsMax: 2000,
  /** Share of the delay that is added at random, so that many agents do not come back at once. */
  retryJitter: 0.25,
  /** Failures in a row, of so many conversations at least, that open the circuit of a provider. */
  breakerFailures: 5,
  breakerSources: 2,
  /** First pause of an open circuit; doubles with every failed probe. */
  breakerOpenMs: 5_000,
  breakerOpenMsMax: 120_000,
  /** Calls that are held look this often whether it is their turn, which comes to one after the other at this distance. */
  breakerLookMs: 250,
  breakerTryEveryMs: 1_000,
  /** Calls in flight per provider; further ones wait in order. */
  concurrentCalls: 64,
  /** Calls waiting per provider; one more is refused with `queue_full`. */
  waitingCallsMax: 4096,
  /** How long a connection may take to end after its terminal event before it is cut. */
  drainMs: 1000,
  /** Largest scenario file of the scripted provider. */
  scenarioCharsMax: 4 * 1024 * 1024
} as const
