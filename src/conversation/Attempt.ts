// A promise of this room as an effect: a rejection that carries its code is a failure, everything else a defect.
import * as Effect from "effect/Effect"
import type { WireFailure } from "../contract/WireFailure.ts"
import { failureOf } from "./ConversationErrors.ts"

export const attempt = <A>(run: (signal: AbortSignal) => Promise<A>): Effect.Effect<A, WireFailure> =>
  Effect.catch(Effect.tryPromise({ try: run, catch: (error) => error }), (error) => {
    const failure = failureOf(error)
    return failure === undefined ? Effect.die(error) : Effect.fail(failure)
  })
