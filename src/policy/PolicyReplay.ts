// A new policy on what was asked in the past: every recorded call is put to it again, and its verdict stands beside what
// happened then. Nothing runs, and nothing is read but the runes.

import type { Access } from "../contract/ToolAccess.ts"
import { evolve } from "../machine/evolve/Evolve.ts"
import { type ConversationState, emptyConversation } from "../machine/State.ts"
import { workspaceOf } from "../machine/view/Select.ts"
import type { ConversationId } from "../rune/Ids.ts"
import { type AnyRune, isKnown, type RuneOf } from "../rune/Rune.ts"
import { evaluate, rulingFor } from "./Evaluate.ts"
import type { PolicyDocument } from "./PolicyFile.ts"
import type { PolicyQuestion, PolicyVerdict } from "./PolicyPort.ts"

/** What became of a call. `ran`: nobody was asked. */
export type Happened = "ran" | "approved" | "denied" | "denied_by_policy" | "expired" | "waiting" | "not_run"

/** What the new policy would change. */
export type Change = "blocked" | "asked" | "let_run" | "same"

export interface ReplayedCall {
  readonly conversation_id: string
  readonly event_id: number
  readonly ts_ms: number
  readonly call_id: string
  readonly agent_id: string | null
  readonly tool_name: string
  readonly arguments: unknown
  readonly happened: Happened
  readonly would: PolicyVerdict["verdict"]
  readonly reason: string
  readonly change: Change
  /** The rule that applies to it, counted from 0; null where none does. */
  readonly rule: number | null
}

/** What is known of tools by their names; nothing of those that are not ours. */
export interface KnownTool {
  readonly approval?: "always" | "never"
  readonly sandboxed?: boolean
  readonly access: (input: Readonly<Record<string, unknown>>) => Access
}

export type KnownTools = (name: string) => KnownTool | undefined

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const provenances = ["builtin", "mcp", "remote", "custom"] as const

const accessOf = (tool: ReturnType<KnownTools>, value: unknown): Access => {
  try {
    return tool?.access((value ?? {}) as Readonly<Record<string, unknown>>) ?? {}
  } catch {
    return {}
  }
}

const questionOf = (
  state: ConversationState,
  { agent_id, payload, ts_ms }: RuneOf<"tool.call">,
  policy: PolicyDocument,
  tools: KnownTools
): PolicyQuestion => {
  const tool = tools(payload.tool_name)
  const provenance =
    provenances.find((one) => one === payload.provenance) ?? (tool === undefined ? "custom" : "builtin")
  return {
    tool_name: payload.tool_name,
    mutating: payload.mutating,
    effect_class: payload.effect_class,
    provenance,
    approval: tool?.approval ?? "by_policy",
    // Where the sandbox is missing every effect is asked about, whatever the policy: nothing to compare.
    contained: true,
    access: accessOf(tool, payload.arguments),
    arguments_hash: payload.arguments_hash,
    mode: policy.mode ?? state.session.config.policy?.mode ?? "auto",
    rules: [...policy.rules, ...policy.learnt],
    grants: state.grants,
    workspace: workspaceOf(state, agent_id ?? null),
    now_ms: ts_ms
  }
}

const isRun = (happened: Happened): boolean => happened === "ran" || happened === "approved"

export const changeOf = (happened: Happened, would: PolicyVerdict["verdict"]): Change => {
  if (would === "deny") return isRun(happened) ? "blocked" : "same"
  if (would === "ask") return happened === "ran" || happened === "denied_by_policy" ? "asked" : "same"
  return happened === "ran" ? "same" : "let_run"
}

const happenedNext = (happened: Happened, rune: AnyRune): Happened => {
  if (!isKnown(rune)) return happened
  switch (rune.kind) {
    case "tool.approval_requested":
      return "waiting"
    case "tool.approved":
      return "approved"
    case "tool.denied":
      return rune.payload.approver === "policy" ? "denied_by_policy" : "denied"
    case "tool.started":
      return happened === "not_run" ? "ran" : happened
    case "tool.result":
      if (happened !== "waiting") return happened
      return rune.payload.status === "timeout" ? "expired" : "not_run"
    default:
      return happened
  }
}

const callIdOf = (rune: AnyRune): string | undefined => {
  const { call_id: id } = rune.payload as { readonly call_id?: unknown }
  return rune.kind.startsWith("tool.") && typeof id === "string" ? id : undefined
}

/** Calls that never had a chance (no such tool, arguments that were none) say nothing about a policy. */
const isJudged = ({ happened }: ReplayedCall): boolean => happened !== "not_run"

/** Puts every call of a conversation to the policy, in their order. */
export class PolicyReplay {
  private readonly conversationId: string
  private readonly policy: PolicyDocument
  private readonly tools: KnownTools
  private state: ConversationState
  private readonly calls = new Map<string, Mutable<ReplayedCall>>()

  constructor(conversationId: string, policy: PolicyDocument, tools: KnownTools) {
    this.conversationId = conversationId
    this.policy = policy
    this.tools = tools
    this.state = emptyConversation(conversationId as ConversationId)
  }

  /** Takes the next rune. */
  add(rune: AnyRune): void {
    if (isKnown(rune) && rune.kind === "tool.call") this.ask(rune)
    const call = this.calls.get(callIdOf(rune) ?? "")
    if (call !== undefined) call.happened = happenedNext(call.happened, rune)
    this.state = evolve(this.state, rune)
  }

  private ask(rune: RuneOf<"tool.call">): void {
    const question = questionOf(this.state, rune, this.policy, this.tools)
    const verdict = evaluate(question)
    const { arguments: value, call_id, tool_name } = rune.payload
    this.calls.set(call_id, {
      conversation_id: this.conversationId,
      event_id: rune.event_id,
      ts_ms: rune.ts_ms,
      call_id,
      agent_id: rune.agent_id ?? null,
      tool_name,
      arguments: value,
      happened: "not_run",
      would: verdict.verdict,
      reason: verdict.reason,
      change: "same",
      rule: rulingFor(question).index ?? null
    })
  }

  /** Permissions that people gave for longer, as they are at the end. */
  get grants(): ConversationState["grants"] {
    return this.state.grants
  }

  finish(): ReadonlyArray<ReplayedCall> {
    return [...this.calls.values()]
      .filter(isJudged)
      .map((call) => ({ ...call, change: changeOf(call.happened, call.would) }))
  }
}
