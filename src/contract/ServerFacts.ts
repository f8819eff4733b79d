// What the server says about the parts behind it: which models there are, and how the store stands. Providers and the
// store offer it, operations and the listener show it.
import * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import type { AnswerOf } from "../wire/Operations.ts"

export class ModelFacts extends Context.Service<
  ModelFacts,
  {
    /** Used where a conversation names none. */
    readonly defaultModel: () => string
    /** What a model can be shown. */
    readonly sight: (model: string) => { readonly images: boolean; readonly files: boolean }
  }
>()("echs/ModelFacts") {}

export class StoreFacts extends Context.Service<
  StoreFacts,
  {
    /** Why no rune of any conversation is taken now; nothing when they are. */
    readonly writeRefusal: () => string | undefined
    readonly figures: () => Readonly<Record<string, number>>
  }
>()("echs/StoreFacts") {}

/** What holds commands, in words; nothing on a server without them. */
export class SandboxFacts extends Context.Service<SandboxFacts, AnswerOf<"server.info">["sandbox"]>()(
  "echs/SandboxFacts"
) {
  static readonly none: Layer.Layer<SandboxFacts> = Layer.succeed(SandboxFacts, null)
}
