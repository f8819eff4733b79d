// What agents are told about where they work, put together of the tools, the sandbox and the policy of a server.
import { join } from "node:path"
import type { Environment } from "../config/Environment.ts"
import type { InstructionSettings } from "../config/InstructionSettings.ts"
import type { AgentState, ConversationState } from "../machine/State.ts"
import { workspaceOf } from "../machine/view/Select.ts"
import { evaluate } from "../policy/Evaluate.ts"
import { makeGitState } from "../prompt/GitState.ts"
import type { PromptPort } from "../prompt/PromptPort.ts"
import { makePrompts } from "../prompt/Prompts.ts"
import type { AgentId } from "../rune/Ids.ts"
import type { SecretMask } from "../rune/Secrets.ts"
import type { ProcessPort } from "../sandbox/process/ProcessPort.ts"
import type { SandboxPort } from "../sandbox/SandboxPort.ts"
import type { WorkspaceCheck } from "../sandbox/WorkspaceCheck.ts"
import { Git } from "../tool/builtin/git/Git.ts"
import { accessOf, type Input, type Tool } from "../tool/Tool.ts"

export interface InstructionOptions {
  readonly dataDirectory: string
  readonly environment: Environment
  /** What must not stand in anything that agents are told. */
  readonly secrets?: SecretMask
  /** The user's own instruction file, and whether those of projects are told; both, unless told. */
  readonly instructions?: InstructionSettings
  /** Told when what an agent should have been told could not be put together. */
  readonly onPromptTrouble?: (error: unknown) => void
}

export interface PromptParts {
  readonly sandbox: SandboxPort
  readonly processes: ProcessPort
  /** The server's own tools. */
  readonly tools: ReadonlyArray<Tool>
  readonly rules: () => ReadonlyArray<unknown>
  readonly check: WorkspaceCheck
}

const pathsOf = (tool: Tool | undefined, input: unknown): ReadonlyArray<string> => {
  const isInput = typeof input === "object" && input !== null && !Array.isArray(input)
  if (tool === undefined || !isInput) return []
  const { reads = [], writes = [] } = accessOf(tool, input as Input) ?? {}
  return [...writes, ...reads].filter((path) => typeof path === "string" && !path.includes("\0"))
}

/** Paths of calls that were answered; what was refused has touched nothing. */
const touchedBy =
  (tools: ReadonlyArray<Tool>) =>
  (agent: AgentState): ReadonlyArray<string> =>
    agent.transcript.toReversed().flatMap((item) => {
      if (item.type !== "assistant") return []
      const done = item.calls.filter((call) => call.result?.status === "success").toReversed()
      return done.flatMap((call) =>
        pathsOf(
          tools.find((tool) => tool.name === call.tool_name),
          call.arguments
        )
      )
    })

/** The same question as for `read_file`: an instruction file opens nothing that the agent could not open unasked. */
const mayRead =
  ({ check, rules }: PromptParts) =>
  (state: ConversationState, agentId: AgentId, path: string): boolean => {
    const { policy, unsafe_workspace = false } = state.session.config
    const workspace = workspaceOf(state, agentId)
    if (check({ workspace, unsafe_workspace }) !== undefined) return false
    const { verdict } = evaluate({
      tool_name: "read_file",
      mutating: false,
      effect_class: "pure",
      provenance: "builtin",
      approval: "by_policy",
      contained: true,
      access: { reads: [path] },
      arguments_hash: "",
      mode: policy?.mode ?? "auto",
      rules: [...(policy?.rules ?? []), ...rules()],
      grants: state.grants,
      workspace,
      now_ms: state.last_ms
    })
    return verdict === "allow"
  }

/** Where the user's own file lies unless the settings say otherwise. */
const usualFile = ({ environment: { homeDirectory, variables } }: InstructionOptions): string =>
  join(variables["XDG_CONFIG_HOME"] || join(homeDirectory, ".config"), "echs", "AGENTS.md")

const today = (): string => {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  return `${new Intl.DateTimeFormat("en-CA", { dateStyle: "short" }).format(new Date())} (${timeZone})`
}

export const assemblePrompts = (options: InstructionOptions, parts: PromptParts): PromptPort => {
  const { dataDirectory, environment, instructions = {}, onPromptTrouble, secrets } = options
  const { contained, level } = parts.sandbox
  const { project = true, user = usualFile(options) } = instructions
  return makePrompts({
    place: { platform: `${process.platform} ${process.arch}`, level, contained },
    day: today,
    userFile: user ?? undefined,
    project,
    ownDirectories: [dataDirectory],
    touched: touchedBy(parts.tools),
    mayRead: mayRead(parts),
    gitState: makeGitState(new Git({ processes: parts.processes, home: environment.homeDirectory }), { contained }),
    ...(secrets === undefined ? {} : { mask: (text: string) => secrets.text(text) }),
    ...(onPromptTrouble === undefined ? {} : { onTrouble: onPromptTrouble })
  })
}
