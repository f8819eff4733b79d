// What a file of hooks comes to: hooks that a batch of calls has to go through, and hooks of events. Where a hook comes
// from decides what it may have: a file of the workspace grants itself neither network nor variables of the server.
import type { ConversationState } from "../machine/State.ts"
import type { EffectClass, HookFailurePolicy } from "../rune/kinds/shared.ts"

/** What hooks need of a conversation; it may be one that is only about to be. */
export type HookScene = Pick<ConversationState, "conversation_id"> & {
  readonly session: Pick<ConversationState["session"], "config">
}

export type HookOrigin = "data" | "workspace"

/** What a hook may use beyond the workspace. */
export interface HookReach {
  readonly network: boolean
  /** Names of variables of the server that the hook finds in its environment. */
  readonly environment: ReadonlyArray<string>
}

export type ToolFilter =
  | { readonly type: "any_mutating" }
  | { readonly type: "tool_names"; readonly names: ReadonlySet<string> }

/** A hook in the form of this project: one command for a whole batch. */
export interface BatchHook {
  readonly name: string
  readonly argv: ReadonlyArray<string>
  readonly timeoutMs: number
  readonly failurePolicy: HookFailurePolicy
  readonly filter: ToolFilter
  readonly effectClass: EffectClass
  readonly reach: HookReach
}

export const hookEvents = [
  "PreToolUse",
  "PostToolUse",
  "UserPromptSubmit",
  "SessionStart",
  "SessionEnd",
  "Stop",
  "SubagentStop",
  "Notification"
] as const
export type HookEvent = (typeof hookEvents)[number]

/** A hook in the form of Claude Code: a shell command that is told of an event on its standard input. */
export interface EventHook {
  readonly name: string
  readonly event: HookEvent
  /** Matches everything when there is none. */
  readonly matcher: RegExp | undefined
  readonly command: string
  readonly timeoutMs: number
  readonly reach: HookReach
}

export interface HookSet {
  readonly batch: ReadonlyArray<BatchHook>
  readonly events: ReadonlyArray<EventHook>
}

export const noHookSet: HookSet = { batch: [], events: [] }

export type ParsedHooks =
  | { readonly _tag: "Hooks"; readonly set: HookSet }
  | { readonly _tag: "Invalid"; readonly reason: string }

/** What a file of the workspace is called in the log, so that nobody takes it for the operator's own. */
export const nameIn = (origin: HookOrigin, name: string): string => (origin === "data" ? name : `workspace:${name}`)
