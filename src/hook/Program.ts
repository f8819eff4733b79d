// Running the command of a hook: in the workspace, with an environment of a few known names, told on its standard input
// what happened, ended with all it started when its time is over.
import type { AgentId } from "../rune/Ids.ts"
import type { HookReach, HookScene } from "./Definition.ts"
import { hookLimits } from "./HookLimits.ts"

/** What hooks need of whatever runs programs. */
export interface ProgramPort {
  /** Rejects only when the program could not be started at all. */
  readonly run: (request: {
    readonly argv: ReadonlyArray<string>
    readonly directory: string
    readonly writable: ReadonlyArray<string>
    readonly network: boolean
    readonly environment: Readonly<Record<string, string>>
    readonly stdin: string
    readonly outputCharsMax: number
    readonly signal: AbortSignal
  }) => Promise<ProgramEnded>
}

export interface ProgramEnded {
  readonly exit_code: number | null
  readonly signal: string | null
  readonly aborted: boolean
  readonly stdout: string
  readonly stderr: string
  readonly output: string
  readonly overflow?: { readonly path: string }
}

export interface ProgramOptions {
  readonly programs: ProgramPort
  /** The value of a variable of the server. */
  readonly variable: (name: string) => string | undefined
  /** Removes a file that a program's output left behind. */
  readonly discard: (path: string) => void
}

export interface HookCommand {
  readonly name: string
  readonly argv: ReadonlyArray<string>
  readonly reach: HookReach
  readonly workspace: string
  readonly told: unknown
  readonly environment?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

const known = (options: ProgramOptions, names: ReadonlyArray<string>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = options.variable(name)
      return value === undefined ? [] : [[name, value]]
    })
  )

/** Runs the command to its end. */
export const runProgram = async (options: ProgramOptions, command: HookCommand): Promise<ProgramEnded> => {
  const { argv, environment = {}, name, reach, signal, told, workspace } = command
  const ended = await options.programs.run({
    argv,
    directory: workspace,
    writable: [workspace],
    network: reach.network,
    environment: { ...known(options, reach.environment), ECHS_HOOK_NAME: name, ...environment },
    stdin: `${JSON.stringify(told)}\n`,
    outputCharsMax: hookLimits.outputCharsMax,
    signal
  })
  // What a hook prints is for people; beyond what is kept nobody reads it.
  if (ended.overflow !== undefined) options.discard(ended.overflow.path)
  return ended
}

/** What every hook finds in its environment about where it runs. */
export const placeEnvironment = (state: HookScene, agentId: AgentId | null): Readonly<Record<string, string>> => ({
  ECHS_CONVERSATION_ID: state.conversation_id,
  ...(agentId === null ? {} : { ECHS_AGENT_ID: agentId }),
  // Hooks written for Claude Code find their project by this name.
  CLAUDE_PROJECT_DIR: state.session.config.workspace ?? ""
})
