// What the door needs of the place where tools of clients are kept and their calls wait.
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { ConversationState } from "../machine/State.ts"
import type { AnswerOf } from "../wire/Operations.ts"

export type RegistryAnswer<Ok> =
  | ({ readonly _tag: "Ok" } & Ok)
  | {
      readonly _tag: "Refused"
      readonly code: "bad_request" | "invalid_state" | "limit_exceeded" | "unauthorized"
      readonly message: string
    }

interface Owner {
  readonly principal: string
  readonly connection: object
}

export interface RemoteResult {
  readonly status: "success" | "error"
  readonly output: string
}

/** Where tools of clients are kept, and their calls wait. */
export interface RemoteTools {
  readonly register: (
    conversationId: string,
    owner: Owner,
    tools: ReadonlyArray<unknown>,
    /** The calls of the conversation that have no result. */
    open: ReadonlyArray<Pick<ConversationState["calls"][number], "call_id" | "tool_name" | "origin">>
  ) => RegistryAnswer<{ readonly tools: ReadonlyArray<string>; readonly waiting: AnswerOf<"tool.register">["waiting"] }>
  readonly result: (
    conversationId: string,
    owner: Owner,
    call: ConversationState["calls"][number],
    result: RemoteResult
  ) => RegistryAnswer<object>
  /** The same for the same result; it goes on record with the outcome. */
  readonly answerHash: (result: RemoteResult) => string
  readonly gone: (connection: object) => void
}

/** Tools that clients run; nothing where a server takes none. */
export class ClientTools extends Context.Service<ClientTools, RemoteTools | undefined>()("echs/ClientTools") {
  static readonly none: Layer.Layer<ClientTools> = Layer.succeed(ClientTools, undefined)
}
