// What the policy is asked about a call, and what it may answer. The answer depends on the question alone: no clock, no
// files, so that a new policy can be tried on what was asked in the past.

import type { Access, Provenance } from "../contract/ToolAccess.ts"
import type { EffectClass } from "../rune/kinds/shared.ts"
import type { ApprovalScope, Learns } from "../rune/kinds/tool.ts"

export type PolicyMode = "read_only" | "auto" | "full_access"

/** A permission given earlier, as the log has it. */
export interface Grant {
  readonly tool_name: string
  readonly scope: ApprovalScope
  readonly arguments_hash: string
  readonly expires_ms: number | null
  readonly rule?: unknown
}

export interface PolicyQuestion {
  readonly tool_name: string
  readonly mutating: boolean
  readonly effect_class: EffectClass
  readonly provenance: Provenance
  /** Hash of what a tool that is not ours says it is; nothing where that is not known any more, as in the past. */
  readonly definition?: string
  readonly approval: "always" | "never" | "by_policy"
  /** The operating system holds what it runs; where nothing does, every effect is asked about. */
  readonly contained: boolean
  readonly access: Access
  readonly arguments_hash: string
  readonly mode: PolicyMode
  /** Rules of the conversation and of the server, as they were configured; the first that applies decides. */
  readonly rules: ReadonlyArray<unknown>
  readonly grants: ReadonlyArray<Grant>
  readonly workspace: string | undefined
  readonly now_ms: number
}

export type PolicyVerdict =
  | { readonly verdict: "allow"; readonly reason: string; readonly network: boolean }
  | {
      readonly verdict: "ask"
      readonly reason: string
      readonly network: boolean
      readonly choices: ReadonlyArray<ApprovalScope>
      /** What "allow for this session" and "always allow this" would be written down as. */
      readonly learns?: Learns
    }
  | { readonly verdict: "deny"; readonly reason: string }

export type Evaluate = (question: PolicyQuestion) => PolicyVerdict
