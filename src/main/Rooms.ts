// The rooms of a server as layers, each with its options from the settings. A test replaces one of them and leaves the
// others as they are; what depends on what is in Serve.
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CommandRunner } from "../autonomy/CommandRunner.ts"
import { helperNames, helperTools } from "../autonomy/HelperTools.ts"
import { worktreeJanitor } from "../autonomy/WorktreeJanitor.ts"
import { DataDirectory } from "../config/DataDirectory.ts"
import { descriptorLimit, descriptorPlan } from "../config/Descriptors.ts"
import type { Environment } from "../config/Environment.ts"
import { openFile, removeFile, sharedDirectory, trustCheck } from "../config/HookFiles.ts"
import type { InstructionSettings } from "../config/InstructionSettings.ts"
import { readToken, tokenAdministration } from "../config/LocalServer.ts"
import { readWorktrees, writeWorktrees } from "../config/WorktreeFiles.ts"
import type { OutputBlobs } from "../contract/Blobs.ts"
import type { CallGates } from "../contract/CallGates.ts"
import type { DurableNotices } from "../contract/DurableNotices.ts"
import { KnownSecrets } from "../contract/KnownSecrets.ts"
import type { ClientTools } from "../contract/RemoteTools.ts"
import type { SandboxFacts } from "../contract/ServerFacts.ts"
import type { LogLevel, ServerLog } from "../contract/ServerLog.ts"
import { type ConversationOptions, ConversationService } from "../conversation/ConversationService.ts"
import { snapshotShape } from "../conversation/SnapshotStore.ts"
import { ServerHooks } from "../hook/HookService.ts"
import { ServerRules } from "../policy/PolicyFile.ts"
import { AgentPrompts } from "../prompt/AgentPrompts.ts"
import { ModelProviders, type ProvidersOptions } from "../provider/Registry.ts"
import { Processes, Sandbox, Workspaces } from "../sandbox/Sandbox.ts"
import { namedToken } from "../server/Auth.ts"
import { Listener, type ListenerOptions } from "../server/Listener.ts"
import { TokenAdministration } from "../server/operations/Context.ts"
import * as Log from "../server/telemetry/Log.ts"
import * as Traces from "../server/telemetry/TracesLayer.ts"
import * as Store from "../store/Store.ts"
import { BuiltinToolSet } from "../tool/builtin/BuiltinToolSet.ts"
import { McpServers } from "../tool/mcp/McpServers.ts"
import { RemoteToolSource, ToolRouter } from "../tool/ToolService.ts"
import type { Role } from "../wire/Operations.ts"

/** What the tools, hooks and prompts of agents are made of. */
export interface AgentOptions {
  readonly dataDirectory: string
  readonly environment: Environment
  readonly version: string
  /** What commands find besides what they need, and what they never find. */
  readonly sandbox?: { readonly readable: ReadonlyArray<string>; readonly hidden: ReadonlyArray<string> }
  /** `mcp_servers` of the settings, as it was written. */
  readonly mcpServers?: unknown
  readonly instructions?: InstructionSettings
  /** How long a client that runs tools may be away. */
  readonly returnWithinMs?: number
}

export interface ServeOptions extends AgentOptions, ProvidersOptions {
  /** Where the log, snapshots, blobs and archives are kept; the machine's own disk unless told. */
  readonly disk?: Store.StoreOptions["disk"]
  readonly host?: string
  /** 4600 unless told; 0 picks one. */
  readonly port?: number
  /** Used instead of the token file. */
  readonly token?: string
  /** More tokens, with their own names and roles. */
  readonly tokens?: ReadonlyArray<{ readonly name: string; readonly role: Role; readonly token: string }>
  readonly hostNames?: ReadonlyArray<string>
  /** Pages of others that may use this server from a browser. */
  readonly origins?: ReadonlyArray<string>
  /** How long new conversations wait out an outage, in a turn and while a goal is pursued, unless they say so. */
  readonly llmRetryMs?: number | undefined
  readonly llmRetryGoalMs?: number | undefined
  /** What must not stand in anything that agents see, besides the token. */
  readonly secrets?: ReadonlyArray<string>
  readonly runtime?: Omit<ConversationOptions, "limitDefaults">
  readonly door?: Partial<Omit<ListenerOptions, "host" | "port" | "tokens" | "version" | "hostNames" | "origins">>
  /** An admin may change the named tokens of the data directory and ask for a stop. */
  readonly isAdministered?: boolean
  /** How long a stop may take before it leaves behind what hangs. */
  readonly drainMs?: number
  readonly logLevel?: LogLevel
  readonly writeLine?: (line: string) => void
  /** Where traces go, if anywhere: the base address of an OTLP collector. */
  readonly otlpEndpoint?: string
}

export const defaultHost = "127.0.0.1"
const defaultPort = 4600

/** Everything that agents work with, and what decides about it. */
export const agentRooms = (options: AgentOptions) => {
  const { dataDirectory, environment, instructions, mcpServers, returnWithinMs, sandbox = {}, version } = options
  const { homeDirectory: home, variables } = environment
  const place = { dataDirectory, home, variables, path: variables["PATH"] ?? "" }
  return ToolRouter.layer(helperTools).pipe(
    Layer.provideMerge(RemoteToolSource.layer({ reserved: helperNames, returnWithinMs })),
    Layer.provideMerge(McpServers.layer({ servers: mcpServers, variables, version })),
    Layer.provideMerge(hooksOf(options)),
    Layer.provideMerge(AgentPrompts.layer({ ...place, instructions })),
    Layer.provideMerge(BuiltinToolSet.layer(place)),
    Layer.provideMerge(CommandRunner.layer),
    Layer.provideMerge(Processes.layer(place)),
    Layer.provideMerge(Sandbox.layer({ ...place, ...sandbox })),
    Layer.provideMerge(Workspaces.layer({ home })),
    Layer.provideMerge(ServerRules.layer(join(dataDirectory, "policy.json")))
  )
}

const hooksOf = ({ dataDirectory, environment }: AgentOptions) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { contained: isContained } = yield* Sandbox
      return ServerHooks.layer({
        dataDirectory,
        open: openFile,
        isTrusted: trustCheck(dataDirectory),
        isContained,
        programs: yield* Processes,
        variable: (name) => environment.variables[name],
        discard: removeFile,
        sharedDirectory
      })
    })
  )

const listenerOf = (options: ServeOptions) =>
  Layer.unwrap(
    Effect.map(DataDirectory, ({ token }) => {
      const { door, host = defaultHost, hostNames, origins, port = defaultPort, tokens = [], version } = options
      const { connectionsMax, socketsMax } = descriptorPlan(descriptorLimit())
      const named = tokens.map((one) => namedToken(one.name, one.role, one.token))
      return Listener.layer({
        ...{ host, port, version, connectionsMax, socketsMax },
        ...(hostNames === undefined ? {} : { hostNames }),
        ...(origins === undefined ? {} : { origins }),
        ...door,
        tokens: [namedToken("local", "admin", token), ...named]
      })
    })
  )

/** Follow what becomes durable: hooks that are told, worktrees that are cleared away. */
const followersOf = ({ dataDirectory }: ServeOptions) =>
  Layer.merge(
    ServerHooks.listener,
    worktreeJanitor({
      read: () => readWorktrees(dataDirectory),
      write: (goals) => writeWorktrees(dataDirectory, goals)
    })
  )

/** What every other room finds in the rooms of agents, whatever they are made of. */
type AgentServices =
  | ToolRouter
  | ClientTools
  | ServerHooks
  | CallGates
  | AgentPrompts
  | CommandRunner
  | Workspaces
  | SandboxFacts
  | ServerRules

export interface Rooms extends Omit<ReturnType<typeof makeRooms>, "agents"> {
  readonly agents: Layer.Layer<AgentServices, never, OutputBlobs | DurableNotices | ServerLog | KnownSecrets>
}

export const roomsOf = (options: ServeOptions): Rooms => makeRooms(options)

const makeRooms = (options: ServeOptions) => {
  const { dataDirectory, disk, isAdministered, llmRetryGoalMs, llmRetryMs, logLevel, runtime, secrets = [] } = options
  const { logFilesMax: openFilesMax } = descriptorPlan(descriptorLimit())
  return {
    log: Log.layer({ level: logLevel, writeLine: options.writeLine }),
    directory: DataDirectory.layer(options),
    secrets: Layer.unwrap(
      Effect.map(DataDirectory, ({ token }) => KnownSecrets.layer([...secrets, token, readToken(dataDirectory)]))
    ),
    administration: Layer.succeed(
      TokenAdministration,
      isAdministered === true ? tokenAdministration(dataDirectory) : undefined
    ),
    traces: Traces.layer(options),
    store: Store.layer({
      directory: dataDirectory,
      snapshotShape,
      runelog: { limits: { openFilesMax } },
      ...(disk === undefined ? {} : { disk })
    }),
    providers: ModelProviders.layer(options),
    agents: agentRooms(options),
    conversations: ConversationService.layer({ ...runtime, limitDefaults: { llmRetryMs, llmRetryGoalMs } }),
    followers: followersOf(options),
    listener: listenerOf(options)
  }
}
