// Every number of the pursuit of goals, in one table; those that the machine needs are in its own.

const KIB = 1024

export const limits = {
  /** A plan of this many tasks is refused: it is a list, not a plan. */
  tasksMax: 1_000,
  taskTextCharsMax: 16 * KIB,
  evidencePerTaskMax: 16,
  dependenciesMax: 64,
  /** Findings of one review; more say the same. */
  findingsMax: 64,
  findingCharsMax: 4 * KIB,
  /** Problems with a plan or a review that are told at once. */
  problemsMax: 12,
  /** A server under test answers after this long at most. */
  httpWaitMs: 20_000,
  /** One check may take this long. */
  evidenceTimeoutMs: 600_000,
  evidenceOutputCharsMax: 16 * KIB,
  /** Kept of what a check printed, and of all checks that are made together: they are told in one prompt. */
  evidenceDetailCharsMax: 2_000,
  evidenceDetailsCharsMax: 64 * KIB,
  /** Checks of earlier reviews that a review makes again; those that were reached first come first. */
  evidenceKeptMax: 4_096,
  /** Checks that passed once and fail now, told to whoever plans anew. */
  regressionsShownMax: 16,
  /** Checks of a review whose culprit is looked for, and tasks that are looked at for each. */
  regressionsTracedMax: 4,
  traceTasksMax: 8,
  /** Files named as a reason to doubt a check. */
  suspectsShownMax: 10,
  /** Shown to a worker of what those before it said. */
  resultShownCharsMax: 500,
  reportBytesMax: 4 * 1024 * KIB,
  /** The longest that one timer runs; longer waits are several. */
  timerMsMax: 86_400_000,
  /** Goals whose worktrees a server looks after, also across a restart; the oldest are forgotten first. */
  goalsRememberedMax: 1_000,
  /** Directories whose git settings are remembered, so that they are looked at in the same start as used. */
  settingsRememberedMax: 256,
  gitTimeoutMs: 120_000,
  gitOutputCharsMax: 1024 * KIB,
  /** Files that a listing of a workspace without git remembers. */
  listedFilesMax: 2_000,
  /** Files named in the summary of a goal, and in its record. */
  changesShownMax: 20,
  changesKeptMax: 200,
  /** What each worker, and the critic, may use unless the goal says otherwise. */
  agentBudget: { tokens: 4_000_000, tool_calls: 500 },
  /** Agents that agents may spawn: how deep, and how many at once by each. */
  spawnDepthMax: 4,
  childrenMax: 8,
  waitMsDefault: 300_000,
  waitMsMax: 3_600_000,
  answerCharsMax: 16 * KIB
} as const
