// Conversations in the hands of a test or a benchmark: with a scope of their own, which `close` ends.
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Conversations } from "#src/conversation/Conversations.ts"
import { makeConversations, type RuntimeOptions } from "#src/conversation/Runtime.ts"

export type OpenConversations = Conversations & { readonly close: () => Promise<void> }

export const openConversations = (options: RuntimeOptions): OpenConversations => {
  const conversations = Effect.runSync(Scope.provide(makeConversations(options), Scope.makeUnsafe()))
  return Object.assign(conversations, { close: () => Effect.runPromise(conversations.stop) })
}
