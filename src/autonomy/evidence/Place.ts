// Where a check is made, on which files, and what comes of it.
import type { ConversationState } from "../../machine/State.ts"
import type { AgentId } from "../../rune/Ids.ts"
import type { Evidence, EvidenceSpec } from "../../rune/kinds/evidence.ts"
import type { FileChange } from "../../rune/kinds/plan.ts"
import { limits } from "../GoalLimits.ts"

export interface Place {
  readonly state: ConversationState
  /** Whose task it is; nobody's when the goal as a whole is checked. */
  readonly agentId: AgentId | null
  /** The workspace itself, and where the check runs: there, in a worktree, or in a clean copy. */
  readonly workspace: string
  readonly directory: string
  /** The state of the files in that directory. */
  readonly tree: string | undefined
  /** What changed from the beginning of the goal to that state; nothing when it cannot be told. */
  readonly changes: () => Promise<ReadonlyArray<FileChange> | undefined>
  /** What a check found before the work. */
  readonly baseline: (spec: EvidenceSpec) => Pick<Evidence, "passed" | "value"> | undefined
  /** This is the run before the work. */
  readonly isBaseline?: boolean
  /** A person gave the command, and with it a yes. */
  readonly isPersons?: boolean
  readonly signal: AbortSignal
}

export type Found = Omit<Evidence, "spec">

export const cut = (text: string, max: number = limits.evidenceDetailCharsMax): string =>
  text.length <= max ? text : `…${text.slice(text.length - max).toWellFormed()}`

export const passedIf = (passed: boolean, detail: string): Found => ({ passed, detail: cut(detail) })

export const failed = (detail: string): Found => passedIf(false, detail)
