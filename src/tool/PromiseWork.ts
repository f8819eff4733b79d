// A call whose work is a promise, as the tools that read files and start programs have it.
import * as Effect from "effect/Effect"
import { settled } from "../contract/Settled.ts"
import type { SignalContext, ToolContext, ToolOutcome } from "./ToolPort.ts"

/** What the work comes to when it is interrupted is told; rejections are defects. */
export const promisedOutcome = (
  context: ToolContext,
  work: (context: SignalContext) => Promise<ToolOutcome>
): Effect.Effect<ToolOutcome> =>
  Effect.orDie(settled((signal) => work({ ...context, signal }), context.interruptedWith))
