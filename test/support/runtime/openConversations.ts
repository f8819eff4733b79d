// Conversations in the hands of a test or a benchmark: with a scope of their own, which `close` ends.
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Runner } from "#src/autonomy/GoalContext.ts"
import { makeGoals } from "#src/autonomy/Goals.ts"
import type { Conversations } from "#src/conversation/Conversations.ts"
import { makeConversations, type RuntimeOptions } from "#src/conversation/Runtime.ts"

export type OpenConversations = Conversations & { readonly close: () => Promise<void> }

export interface OpenOptions extends Omit<RuntimeOptions, "goals"> {
  /** Runs what shows whether a task of a goal is done. */
  readonly runner?: Runner
}

export const openConversations = ({ runner, ...options }: OpenOptions): OpenConversations => {
  const goals = makeGoals({ runner, nowMs: options.clock.nowMs })
  const making = makeConversations({ ...options, goals })
  const conversations = Effect.runSync(Scope.provide(making, Scope.makeUnsafe()))
  return Object.assign(conversations, { close: () => Effect.runPromise(conversations.stop) })
}
