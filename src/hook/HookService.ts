// Hooks as services: what a turn goes through, who has a say before calls and messages, and the listener that tells hooks
// what has happened. Where a server has none, `none` takes their place.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CallGates } from "../contract/CallGates.ts"
import { ConversationAccess } from "../contract/ConversationAccess.ts"
import { DurableNotices } from "../contract/DurableNotices.ts"
import { ServerLog } from "../contract/ServerLog.ts"
import { noHooks } from "./HookPort.ts"
import { type Hooks, type HooksOptions, makeHooks } from "./Hooks.ts"

export class ServerHooks extends Context.Service<
  ServerHooks,
  /** The port is for turns; without a lifecycle nobody is told what has happened. */
  Pick<Hooks, "port"> & Partial<Pick<Hooks, "lifecycle">>
>()("echs/ServerHooks") {
  static readonly layer = (
    options: Omit<HooksOptions, "onTrouble">
  ): Layer.Layer<ServerHooks | CallGates, never, ServerLog> =>
    Layer.effectContext(
      Effect.map(ServerLog, (log) => {
        const onTrouble = (conversation_id: string, message: string): void =>
          log.write("warn", "a hook went wrong", { conversation_id, message })
        const { beforePrompt, preToolUse: beforeCall, ...hooks } = makeHooks({ ...options, onTrouble })
        return Context.make(ServerHooks, hooks).pipe(Context.add(CallGates, { beforeCall, beforePrompt }))
      })
    )

  static readonly none: Layer.Layer<ServerHooks | CallGates> = Layer.merge(
    Layer.succeed(ServerHooks, { port: noHooks }),
    CallGates.none
  )

  /** Tells hooks what has happened, for as long as the scope is open. */
  static readonly listener: Layer.Layer<never, never, ServerHooks | ConversationAccess | DurableNotices> =
    Layer.effectDiscard(
      Effect.gen(function* () {
        const { lifecycle } = yield* ServerHooks
        const conversations = yield* ConversationAccess
        if (lifecycle === undefined) return
        const telling = yield* lifecycle(conversations)
        yield* DurableNotices.listen({ name: "hooks", appended: (_conversationId, runes) => telling.notice(runes) })
      })
    )
}
