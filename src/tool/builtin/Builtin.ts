// The tools every conversation has: list, read, write, and a shell command. Reading runs unasked; what changes something
// is asked about in mode `auto`, refused in `read_only`, and runs in `full_access`.
import type { ToolFacts } from "../../machine/Command.ts"
import type { CallState, ConversationState } from "../../machine/State.ts"
import type { SandboxInfo, ShownAs } from "../../rune/kinds/tool.ts"
import type { Authorization, ToolContext, ToolOutcome, ToolPort } from "../Port.ts"
import { makeCommand } from "./Command.ts"
import { toolError } from "./Errors.ts"
import { listFiles, readTextFile, writeTextFile } from "./Files.ts"
import { builtinLimits } from "./Limits.ts"

type Input = Readonly<Record<string, unknown>>

interface BuiltinTool extends ToolFacts {
  readonly description: string
  readonly parameters: { readonly [key: string]: unknown }
  readonly shownAs: (input: Input) => { readonly title: string; readonly detail: string }
  readonly sandbox: (roots: ReadonlyArray<string>) => SandboxInfo
  readonly run: (input: Input, context: ToolContext) => Promise<ToolOutcome>
}

const text = (description: string) => ({ type: "string", description })
const takes = (properties: Readonly<Record<string, unknown>>, required: ReadonlyArray<string>) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false
})

/** Held to the workspace by checks of every path, without help of the operating system. */
const byPath = (roots: ReadonlyArray<string>): SandboxInfo => ({ level: "path_checks", network: false, roots })
const reading = {
  effect_class: "pure",
  mutating: false,
  timeout_ms: 30_000,
  provenance: "builtin",
  sandbox: byPath
} as const
const aPath = text("path inside the workspace")

const toolsOf = (environment: Readonly<Record<string, string>>): Readonly<Record<string, BuiltinTool>> => ({
  list_files: {
    ...reading,
    description: "Lists the names in a directory of the workspace.",
    parameters: takes({ path: aPath }, []),
    shownAs: ({ path }) => ({ title: "list files", detail: String(path ?? ".") }),
    run: listFiles
  },
  read_file: {
    ...reading,
    description: "Reads a text file of the workspace.",
    parameters: takes({ path: aPath }, ["path"]),
    shownAs: ({ path }) => ({ title: "read a file", detail: String(path) }),
    run: readTextFile
  },
  write_file: {
    effect_class: "idempotent",
    mutating: true,
    timeout_ms: 30_000,
    provenance: "builtin",
    description: "Writes a text file of the workspace, in place of what is there.",
    parameters: takes({ path: aPath, content: text("the whole new content") }, ["path", "content"]),
    shownAs: ({ content, path }) => ({ title: `write ${String(path)}`, detail: String(content) }),
    sandbox: byPath,
    run: writeTextFile
  },
  bash: {
    effect_class: "effect",
    mutating: true,
    timeout_ms: builtinLimits.commandTimeoutMs,
    provenance: "builtin",
    description: "Runs a shell command in the workspace directory and returns what it prints.",
    parameters: takes({ command: text("the command line") }, ["command"]),
    shownAs: ({ command }) => ({ title: "run a command, without a sandbox", detail: String(command) }),
    sandbox: () => ({ level: "none", network: true }),
    run: makeCommand(environment)
  }
})

const isGranted = (state: ConversationState, call: CallState): boolean =>
  state.grants.some(
    (grant) =>
      grant.tool_name === call.tool_name &&
      grant.scope === "session" &&
      (grant.expires_ms === null || grant.expires_ms > state.last_ms)
  )

const rootsOf = (state: ConversationState): ReadonlyArray<string> =>
  state.session.config.workspace === undefined ? [] : [state.session.config.workspace]

const shown = (tool: BuiltinTool, state: ConversationState, call: CallState): ShownAs => {
  const { workspace } = state.session.config
  const { network, roots } = tool.sandbox(rootsOf(state))
  return {
    ...tool.shownAs((call.arguments ?? {}) as Input),
    ...(workspace === undefined ? {} : { workspace }),
    ...(roots === undefined ? {} : { roots }),
    ...(network === undefined ? {} : { network })
  }
}

const authorizeTool = (tool: BuiltinTool, state: ConversationState, call: CallState): Authorization => {
  const mode = state.session.config.policy?.mode ?? "auto"
  const allow: Authorization = { _tag: "Allow", sandbox: tool.sandbox(rootsOf(state)) }
  if (!tool.mutating || mode === "full_access") return allow
  if (mode === "read_only")
    return { _tag: "Deny", reason: `the policy of this conversation is read_only: ${call.tool_name} changes things` }
  if (isGranted(state, call)) return allow
  return {
    _tag: "Ask",
    policy_reason: `${call.tool_name} changes things, and the policy is auto`,
    shown_as: shown(tool, state, call),
    choices: ["once", "session"]
  }
}

export interface BuiltinOptions {
  /** What commands find in their environment. */
  readonly environment: Readonly<Record<string, string>>
}

export const builtinTools = ({ environment }: BuiltinOptions): ToolPort => {
  const tools = toolsOf(environment)
  const find = (name: string): BuiltinTool | undefined => (Object.hasOwn(tools, name) ? tools[name] : undefined)
  const unknown = (name: string) => toolError("unknown_tool", `there is no tool ${name}`)
  return {
    describe: () =>
      Object.entries(tools).map(([name, { description, parameters }]) => ({ name, description, parameters })),
    facts: (_state, _agentId, name) => find(name),
    authorize: (state, call) => {
      const tool = find(call.tool_name)
      return tool === undefined ? { _tag: "Reject", error: unknown(call.tool_name) } : authorizeTool(tool, state, call)
    },
    sandbox: (state, call) => find(call.tool_name)?.sandbox(rootsOf(state)) ?? { level: "none" },
    run: async (_state, call, context) => {
      const tool = find(call.tool_name)
      return tool === undefined
        ? { status: "error", error: unknown(call.tool_name) }
        : tool.run((call.arguments ?? {}) as Input, context)
    }
  }
}
