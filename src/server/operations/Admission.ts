// The word of hooks about what a person says, before it is taken: a message and a goal are the same to them. What they
// block ends in an error of the protocol, and nothing was started; what they add is part of what is taken.
import * as Effect from "effect/Effect"
import type { PromptScene } from "../../contract/CallGates.ts"
import { attempt } from "../../conversation/Attempt.ts"
import type { Content } from "../../rune/kinds/shared.ts"
import { CurrentOperation, type Operating } from "./CurrentOperation.ts"
import { InvalidState } from "./OperationErrors.ts"

/** What the hooks of the conversation make of a message. */
export const admitted = (scene: Operating<PromptScene>, content: Content): Operating<Content> =>
  Effect.gen(function* () {
    const { beforePrompt } = yield* CurrentOperation
    if (beforePrompt === undefined) return content
    const place = yield* scene
    const verdict = yield* attempt(() => beforePrompt(place, content))
    if (verdict._tag === "Blocked") return yield* new InvalidState(verdict.reason, { state: "blocked" })
    return verdict.content
  })
