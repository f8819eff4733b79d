/**
 * Every limit of the machines, in one table. Retry counts, delays and timeouts are
 * those of the post-tool-hook design; a conversation may override the named ones.
 */
import type { ConversationConfig } from "../rune/kinds/shared.ts"

export const limits = {
  /** Model calls that failed with an answer begun are tried again this often. */
  maxLlmRetries: 2,
  /** Delays before the first retries of a model call; after them the delay doubles up to the longest. */
  llmRetryDelaysMs: [250, 1000],
  llmRetryDelayMsMax: 60_000,
  /** How long an outage of a provider is waited out: in a turn, and in one that pursues a goal. */
  llmRetryMs: 900_000,
  llmRetryGoalMs: 21_600_000,
  maxToolRetries: 1,
  toolRetryDelayMs: 500,
  maxHookRetries: 0,
  /** A whole answer. A healthy one may take long; silence ends a call sooner. */
  llmTimeoutMs: 3_600_000,
  /** Longest silence before an answer begins, and between its events. */
  llmFirstEventMs: 120_000,
  llmIdleMs: 60_000,
  /** Turns in a row that fail, in one conversation, before it is suspended; 0: however many. */
  errorThreshold: 10,
  toolTimeoutMs: 300_000,
  hookTimeoutMs: 120_000,
  /** 0: a question waits as long as the conversation. */
  approvalTimeoutMs: 0,

  /** Characters that count as a token where nobody has counted: few, so that an estimate errs on the safe side. */
  charsPerToken: 3,

  /** A full queue refuses the message. */
  queuedMessagesMax: 256,
  /** More agents alive at once are refused. */
  agentsAliveMax: 256,
  /** Calls beyond this in one answer get a typed error result and do not run. */
  callsPerResponseMax: 128,
  /** Longer arguments are not kept; the call gets a typed error result. */
  argumentsCharsMax: 1_048_576,
  /** Arguments that nest deeper are refused: nothing downstream needs a stack that deep. */
  argumentsDepthMax: 64,
  /** How much of unreadable arguments is kept for a person to see. */
  argumentsKeptCharsMax: 4096,
  /** A turn that asks the model more often than this ends in an error. */
  modelCallsPerTurnMax: 256,
  /** How much of a running tool's output the state keeps, newest last. */
  progressTailCharsMax: 8192,
  /** `turn.completed` repeats at most this much of the final text. */
  finalOutputCharsMax: 2048,
  /** Keys of commands are remembered for a day; a conversation that would hold more of them takes no further one. */
  idempotencyTtlMs: 86_400_000,
  idempotencyBytesMax: 8 * 1_048_576,
  /** Decisions about calls are remembered for whoever comes second. */
  decisionsMax: 64,
  /** Oldest permissions that outlive their call are dropped first. */
  grantsMax: 256,
  /** Oldest checkpoints are forgotten first. */
  checkpointsMax: 256,
  /** Oldest notices for a human are dropped first. */
  noticesMax: 32,
  noticeCharsMax: 512,
  /** Effects of an agent that are listed; beyond them the oldest of the tool that has the most is only counted. */
  effectsMax: 64,
  /** Kept of the arguments and of the outcome of one, the beginning and the end. */
  effectArgumentsCharsMax: 160,
  effectOutcomeCharsMax: 120,
  /** Runs of an agent that did not go well and can be done again; older ones cannot. */
  failedRunsMax: 16,
  /** Told of a message that did not fit into the context of its model. */
  unfitKeptCharsMax: 400,
  /** Agents whose life is over are remembered up to this many. */
  endedAgentsMax: 64,

  /** Tasks of a plan that run side by side, unless the goal says otherwise. */
  tasksParallel: 3,
  /** A task that fails is tried again until it has been tried this often. */
  taskAttemptsMax: 2,
  /** Reviews of one goal, and new plans that they may ask for. */
  planIterationsMax: 10,
  planReplansMax: 3,
  /** Plans that a person may reject before the goal is given up. */
  planAttemptsMax: 5,
  /** How often a goal may come to a standstill. */
  planBlocksMax: 3,
  /** An agent that ends its turn without the answer it was asked for is asked again this often. */
  remindersMax: 2,
  /** Reviews in a row that saw no check turn green. */
  staleReviewsMax: 3,
  /** Plans, reviews, or calls of a turn that may be refused in a row. */
  refusalsInRowMax: 10,
  /** Tokens that may be spent without a check turning green. */
  tokensWithoutProgressMax: 5_000_000,
  /** The same call with the same outcome, this often in a row, is a loop. */
  sameCallsMax: 6,
  /** Model calls in a row that each needed the context summed up first. */
  compactionsInRowMax: 4,
  /** The same findings this often are a loop, and so is a pair of verdicts that takes turns. */
  sameVerdictsMax: 3,
  verdictsKeptMax: 16,
  /** Checks that ran before the work, of all plans of a goal. */
  baselineMax: 4096,
  /** Attempts at a task that are remembered, and how much of what was found out about each. */
  triesKeptMax: 8,
  /** Words to workers that are remembered with whether they were read. */
  steersKeptMax: 32,
  /** A plan has fewer tasks than this, those that were added included. */
  planTasksMax: 1000,
  tryCharsMax: 1024,
  /** Plans that the server sends back because their checks pass already; the next one is for a person. */
  plansReturnedMax: 1,
  /** Work that conflicts is back with its worker this often before a person is asked; from the second time on alone. */
  mergesAgainMax: 3,
  mergesAloneAfter: 2,
  /** A task whose work broke something is opened again this often; then it is for the critic. */
  reopensMax: 2,
  /** Kept of what a task's worker said at its end, and of its notes. */
  taskResultCharsMax: 4096
} as const

export interface EffectiveLimits {
  /** Set by the conversation: so many retries of a model call, whatever went wrong. */
  readonly maxLlmRetries: number | undefined
  /** Set by the conversation: how long an outage is waited out. */
  readonly llmRetryMs: number | undefined
  /** The same while a goal is pursued, where that differs. */
  readonly llmRetryGoalMs: number | undefined
  readonly maxToolRetries: number
  readonly llmTimeoutMs: number
  readonly llmFirstEventMs: number
  readonly llmIdleMs: number
  readonly toolTimeoutMs: number
  /** 0 means any number. */
  readonly errorThreshold: number
  /** 0 means an approval never expires. */
  readonly approvalTimeoutMs: number
}

export const effectiveLimits = (config: ConversationConfig): EffectiveLimits => ({
  maxLlmRetries: config.limits?.max_llm_retries,
  llmRetryMs: config.limits?.llm_retry_ms,
  llmRetryGoalMs: config.limits?.llm_retry_goal_ms ?? config.limits?.llm_retry_ms,
  maxToolRetries: config.limits?.max_tool_retries ?? limits.maxToolRetries,
  llmTimeoutMs: config.limits?.llm_timeout_ms ?? limits.llmTimeoutMs,
  llmFirstEventMs: config.limits?.llm_first_event_ms ?? limits.llmFirstEventMs,
  llmIdleMs: config.limits?.llm_idle_ms ?? limits.llmIdleMs,
  toolTimeoutMs: config.limits?.tool_timeout_ms ?? limits.toolTimeoutMs,
  errorThreshold: config.limits?.error_threshold ?? limits.errorThreshold,
  approvalTimeoutMs: config.limits?.approval_timeout_ms ?? limits.approvalTimeoutMs
})

/** How long a call may take: what its tool says, and never more than the conversation allows. */
export const callTimeoutMs = (config: ConversationConfig, ownMs: number | null): number => {
  const given = config.limits?.tool_timeout_ms
  return given === undefined ? (ownMs ?? limits.toolTimeoutMs) : Math.min(ownMs ?? given, given)
}

/** What a server has instead of the limits above; what is left out is as it is there. */
export interface RetryDefaults {
  readonly llmRetryMs?: number | undefined
  readonly llmRetryGoalMs?: number | undefined
}

/** The config of a new conversation under the defaults of its server. What it says itself about outages holds alone. */
export const withRetryDefaults = (config: ConversationConfig, defaults: RetryDefaults = {}): ConversationConfig => {
  const { llmRetryGoalMs, llmRetryMs } = defaults
  const isTold = config.limits?.llm_retry_ms !== undefined || config.limits?.llm_retry_goal_ms !== undefined
  if (isTold || (llmRetryMs === undefined && llmRetryGoalMs === undefined)) return config
  const retry = {
    llm_retry_ms: llmRetryMs ?? limits.llmRetryMs,
    llm_retry_goal_ms: llmRetryGoalMs ?? limits.llmRetryGoalMs
  }
  return { ...config, limits: { ...config.limits, ...retry } }
}

/** Delay before the given retry (1 is the first): the listed ones, then twice the one before, up to the longest. */
export const llmRetryDelayMs = (retry: number): number => {
  const { llmRetryDelayMsMax: longest, llmRetryDelaysMs: listed } = limits
  const beyond = retry - listed.length
  return listed[retry - 1] ?? Math.min(longest, (listed.at(-1) ?? longest) * 2 ** Math.min(beyond, 30))
}
