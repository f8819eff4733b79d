// Every limit of the policy, in one table.

export const policyLimits = {
  /** A longer command line is not parsed: a person reads it. */
  commandCharsMax: 32_768,
  commandWordsMax: 1024,
  /** Rules of one policy; more are refused. */
  rulesMax: 512,
  /** Characters of one pattern or reason in a rule. */
  ruleTextCharsMax: 4096,
  /** Patterns in one list of a rule. */
  ruleListMax: 256,
  /** Permissions learnt for the whole server; the oldest give way. No more than a list of rules may have. */
  learntMax: 512,
  /** A policy file that is larger is refused. */
  fileBytesMax: 1_048_576
} as const
