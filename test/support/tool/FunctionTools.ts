// Tools that are functions of this process, for tests. They run without a sandbox, and say so.
import * as Effect from "effect/Effect"
import type { ToolFacts } from "#src/machine/Command.ts"
import { errorInfo } from "#src/machine/ErrorTable.ts"
import type { CallState, ConversationState } from "#src/machine/State.ts"
import { promisedOutcome } from "#src/tool/PromiseWork.ts"
import type { Authorization, SignalContext, ToolOutcome, ToolPort } from "#src/tool/ToolPort.ts"

export interface FunctionTool extends ToolFacts {
  readonly name: string
  readonly description: string
  readonly parameters: { readonly [key: string]: unknown }
  /** Asks a person before it runs. */
  readonly approval?: "ask"
  readonly run: (input: Readonly<Record<string, unknown>>, context: SignalContext) => Promise<ToolOutcome | string>
}

const inProcess = { level: "in_process" } as const

const asOutcome = (result: ToolOutcome | string): ToolOutcome =>
  typeof result === "string" ? { status: "success", output: result } : result

const unknownTool = ({ tool_name: name }: CallState) => errorInfo("unknown_tool", `there is no tool ${name}`)

const ask = (tool: FunctionTool, call: CallState): Authorization => ({
  _tag: "Ask",
  policy_reason: `${tool.name} asks before it runs`,
  shown_as: { title: tool.name, detail: JSON.stringify(call.arguments) },
  choices: ["once", "session"]
})

/** A person has allowed this tool for the rest of the conversation. Time is that of the log. */
const isGranted = (state: ConversationState, call: CallState): boolean =>
  state.grants.some(
    (grant) =>
      grant.tool_name === call.tool_name &&
      grant.scope === "session" &&
      (grant.expires_ms === null || grant.expires_ms > state.last_ms)
  )

export const functionTools = (tools: ReadonlyArray<FunctionTool>): ToolPort => {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  const authorize = (state: ConversationState, call: CallState): Authorization => {
    const tool = byName.get(call.tool_name)
    if (tool === undefined) return { _tag: "Reject", error: unknownTool(call) }
    const mustAsk = tool.approval === "ask" && !isGranted(state, call)
    return mustAsk ? ask(tool, call) : { _tag: "Allow", sandbox: inProcess }
  }
  return {
    describe: () => tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
    facts: (_state, _agentId, toolName) => byName.get(toolName),
    authorize: (state, call) => Effect.sync(() => authorize(state, call)),
    sandbox: () => inProcess,
    run: (_state, call, context) => {
      const tool = byName.get(call.tool_name)
      if (tool === undefined) return Effect.succeed({ status: "error", error: unknownTool(call) })
      const input = call.arguments as Readonly<Record<string, unknown>>
      return promisedOutcome(context, async (signaled) => asOutcome(await tool.run(input, signaled)))
    }
  }
}
