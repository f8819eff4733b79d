// Runs a tool, or a call of a port, as the turn engine does: a signal interrupts it, and what it told at its end is what it
// came to. Rejects when the runner breaks, or when an interrupted run has nothing to tell.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { CallState, ConversationState } from "#src/machine/State.ts"
import type { ShownAs } from "#src/rune/kinds/tool.ts"
import type { Input, Tool } from "#src/tool/Tool.ts"
import type { ToolContext, ToolOutcome, ToolPort } from "#src/tool/ToolPort.ts"

/** The context of a call in a test: a signal, and as much of the rest as the tool looks at. */
export type TestContext = Omit<ToolContext, "interruptedWith"> & { readonly signal?: AbortSignal }

const ended = async (
  run: (context: ToolContext) => Effect.Effect<ToolOutcome>,
  { signal, ...context }: TestContext
): Promise<ToolOutcome> => {
  let last: ToolOutcome | undefined
  const interruptedWith = (outcome: ToolOutcome): void => {
    last = outcome
  }
  const options = signal === undefined ? {} : { signal }
  const exit = await Effect.runPromiseExit(run({ ...context, interruptedWith }), options)
  if (Exit.isSuccess(exit)) return exit.value
  if (last !== undefined) return last
  throw Cause.squash(exit.cause)
}

export const runTool = (tool: Pick<Tool, "run">, input: Input, context: TestContext): Promise<ToolOutcome> =>
  ended((given) => tool.run(input, given), context)

/** What a person is shown of a call. */
export const previewOf = (tool: Pick<Tool, "preview">, ...call: Parameters<Tool["preview"]>): Promise<ShownAs> =>
  Effect.runPromise(tool.preview(...call))

export const runCall = (
  port: Pick<ToolPort, "run">,
  state: ConversationState,
  call: CallState,
  context: TestContext
): Promise<ToolOutcome> => ended((given) => port.run(state, call, given), context)

export const authorizeCall = (port: Pick<ToolPort, "authorize">, ...call: Parameters<ToolPort["authorize"]>) =>
  Effect.runPromise(port.authorize(...call))
