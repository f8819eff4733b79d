/**
 * Failures that say nothing about the work: the provider, the policy, the repository. They cost no
 * attempt; the goal waits for a person with the question that has to be answered.
 */
import type { SuspendCause } from "../../rune/kinds/plan.ts"

const causes: Readonly<Record<string, SuspendCause>> = {
  rate_limited: "provider",
  quota_exceeded: "provider",
  overloaded: "provider",
  server_error: "provider",
  authentication: "provider",
  timeout: "provider",
  connection: "provider",
  circuit_open: "provider",
  queue_full: "provider",
  invalid_request: "provider",
  evidence_denied: "policy",
  merge_conflict: "merge",
  merge_failed: "merge",
  worktree_failed: "workspace"
}

/** What a person has to see to, if it is not the work that failed. */
export const causeOf = (code: string | undefined): SuspendCause | undefined =>
  code !== undefined && Object.hasOwn(causes, code) ? causes[code] : undefined

const advice: { readonly [Cause in SuspendCause]: string } = {
  provider: "fix the key, the quota or the provider, then resume the goal",
  budget: "raise the budget with budget.set, or cancel the goal",
  policy: "allow it in the policy and resume the goal, or cancel it",
  merge: "make the working directory mergeable, then resume the goal",
  workspace: "fix the workspace, then resume the goal"
}

/** The question to the person, in one sentence. */
export const questionOf = (cause: SuspendCause, what: string, message: string): string =>
  `${what}: ${message}; ${advice[cause]}`
