// What agents are told about where they work, as a service: put together of the tools, the sandbox and the policy of a
// server.
import { join } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { KnownSecrets } from "../contract/KnownSecrets.ts"
import { describeError, ServerLog } from "../contract/ServerLog.ts"
import type { AgentState, ConversationState } from "../machine/State.ts"
import { workspaceOf } from "../machine/view/Select.ts"
import { evaluate } from "../policy/Evaluate.ts"
import { ServerRules } from "../policy/PolicyFile.ts"
import type { AgentId } from "../rune/Ids.ts"
import { Processes, Sandbox, Workspaces } from "../sandbox/Sandbox.ts"
import type { WorkspaceCheck } from "../sandbox/WorkspaceCheck.ts"
import { BuiltinToolSet } from "../tool/builtin/BuiltinToolSet.ts"
import { Git } from "../tool/builtin/git/Git.ts"
import { accessOf, type Input, type Tool } from "../tool/Tool.ts"
import { makeGitState } from "./GitState.ts"
import type { PromptPort } from "./PromptPort.ts"
import { makePrompts } from "./Prompts.ts"

export interface AgentPromptsOptions {
  readonly dataDirectory: string
  readonly home: string
  readonly variables: Readonly<Record<string, string | undefined>>
  /** The user's own instruction file, and whether those of projects are told; both, unless told. */
  readonly instructions?: { readonly user?: string | null; readonly project?: boolean } | undefined
}

interface ReadRules {
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
  ({ check, rules }: ReadRules) =>
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
const usualFile = ({ home, variables }: AgentPromptsOptions): string =>
  join(variables["XDG_CONFIG_HOME"] || join(home, ".config"), "echs", "AGENTS.md")

const today = (): string => {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
  return `${new Intl.DateTimeFormat("en-CA", { dateStyle: "short" }).format(new Date())} (${timeZone})`
}

type PromptParts = Sandbox | Processes | Workspaces | BuiltinToolSet | ServerRules | KnownSecrets | ServerLog

const assemble = Effect.fnUntraced(function* (options: AgentPromptsOptions) {
  const { dataDirectory, home, instructions = {} } = options
  const { contained, level } = yield* Sandbox
  const processes = yield* Processes
  const secrets = yield* KnownSecrets
  const log = yield* ServerLog
  const { project = true, user = usualFile(options) } = instructions
  return makePrompts({
    place: { platform: `${process.platform} ${process.arch}`, level, contained },
    day: today,
    userFile: user ?? undefined,
    project,
    ownDirectories: [dataDirectory],
    touched: touchedBy(yield* BuiltinToolSet),
    mayRead: mayRead({ rules: (yield* ServerRules).current, check: (yield* Workspaces).check }),
    gitState: makeGitState(new Git({ processes, home }), { contained }),
    mask: (text) => secrets.text(text),
    onTrouble: (error) => log.write("warn", "an agent was not told where it works", { cause: describeError(error) })
  })
})

export class AgentPrompts extends Context.Service<AgentPrompts, PromptPort>()("echs/AgentPrompts") {
  static readonly layer = (options: AgentPromptsOptions): Layer.Layer<AgentPrompts, never, PromptParts> =>
    Layer.effect(AgentPrompts, assemble(options))

  /** Agents are told nothing. */
  static readonly none: Layer.Layer<AgentPrompts> = Layer.succeed(AgentPrompts, { news: async () => undefined })
}
