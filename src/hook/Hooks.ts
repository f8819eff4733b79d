// All of hooks as one: what a turn goes through, what is asked before a call and before a message, and what is told
// afterwards. Everything they touch (files, programs, variables) is given to them.
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { HookFiles, type HookFilesOptions } from "./HookFiles.ts"
import type { HookPort } from "./HookPort.ts"
import { type HookConversations, HookLifecycle } from "./Lifecycle.ts"
import { HookPipelines } from "./Pipeline.ts"
import { PostTools } from "./PostTools.ts"
import { PreHooks } from "./PreHooks.ts"
import type { ProgramOptions } from "./Program.ts"

export interface HooksOptions extends HookFilesOptions, ProgramOptions {
  /** What a workspace shares with others, by one name for all of them. */
  readonly sharedDirectory: (workspace: string) => string
  readonly onTrouble: (conversationId: string, message: string) => void
}

export interface Hooks {
  /** For the turn engine. */
  readonly port: HookPort
  /** For whoever decides about calls. */
  readonly preToolUse: PreHooks["preToolUse"]
  /** For the door, before a message is taken. */
  readonly beforePrompt: PreHooks["beforePrompt"]
  /** Hooks that are told when something has happened in these conversations. */
  readonly lifecycle: (conversations: HookConversations) => Effect.Effect<HookLifecycle, never, Scope.Scope>
}

export const makeHooks = (options: HooksOptions): Hooks => {
  const library = new HookFiles(options)
  const gate = new PreHooks(library, options)
  const pipelines = new HookPipelines()
  const enter: NonNullable<HookPort["enter"]> = ({ conversation_id, workspace }) =>
    pipelines.take({ conversation_id, directory: options.sharedDirectory(workspace) })
  return {
    port: new PostTools(library, options, enter),
    preToolUse: gate.preToolUse,
    beforePrompt: gate.beforePrompt,
    lifecycle: (conversations) => HookLifecycle.make({ ...options, library, conversations, enter })
  }
}
