// The rooms of a server as layers, each with its options from the settings. A test replaces one of them and leaves the
// others as they are; what depends on what is in Serve.
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CommandRunner } from "../autonomy/CommandRunner.ts"
import { helperNames, helperTools } from "../autonomy/HelperTools.ts"
import { worktreeJanitor } from "../autonomy/WorktreeJanitor.ts"
import { DataDirectory } from "../config/DataDirectory.ts"
import { prepareDemoAnywhere } from "../config/DemoGoal.ts"
import { descriptorLimit, descriptorPlan } from "../config/Descriptors.ts"
import { openFile, removeFile, sharedDirectory, trustCheck } from "../config/HookFiles.ts"
import { readToken, tokenAdministration } from "../config/LocalServer.ts"
import { worktreeFiles } from "../config/WorktreeFiles.ts"
import type { CallGates } from "../contract/CallGates.ts"
import { KnownSecrets } from "../contract/KnownSecrets.ts"
import type { ClientTools } from "../contract/RemoteTools.ts"
import { ConversationService } from "../conversation/ConversationService.ts"
import { snapshotShape } from "../conversation/SnapshotStore.ts"
import * as OutsideAgents from "../harness/OutsideAgents.ts"
import { ServerHooks } from "../hook/HookService.ts"
import { ServerRules } from "../policy/PolicyFile.ts"
import { AgentPrompts } from "../prompt/AgentPrompts.ts"
import { ModelProviders } from "../provider/Registry.ts"
import { Processes, Sandbox, Workspaces } from "../sandbox/Sandbox.ts"
import { namedToken } from "../server/Auth.ts"
import { defaultHost, defaultPort, Listener } from "../server/Listener.ts"
import { TokenAdministration } from "../server/operations/Context.ts"
import * as Log from "../server/telemetry/Log.ts"
import * as Telemetry from "../server/telemetry/Telemetry.ts"
import * as Store from "../store/Store.ts"
import { BuiltinToolSet } from "../tool/builtin/BuiltinToolSet.ts"
import { Checkpoints } from "../tool/checkpoint/Checkpoints.ts"
import { McpServers } from "../tool/mcp/McpServers.ts"
import { RemoteToolSource, ToolRouter } from "../tool/ToolService.ts"
import type { AgentOptions, ServeOptions } from "./ServeOptions.ts"

const placeOf = ({ dataDirectory, environment: { homeDirectory: home, variables } }: AgentOptions) => ({
  ...{ dataDirectory, home, variables },
  path: variables["PATH"] ?? ""
})

/** What this machine offers: the sandbox that was found, processes in it, directories to work in. */
export const machineRoom = (options: AgentOptions) => {
  const place = placeOf(options)
  return Processes.layer(place).pipe(
    Layer.provideMerge(Sandbox.layer({ ...place, ...options.sandbox })),
    Layer.provideMerge(Workspaces.layer(place))
  )
}

/** Everything that agents work with, and what decides about it. */
export const agentRooms = (options: AgentOptions) => {
  const { dataDirectory, instructions, mcpServers, returnWithinMs, version } = options
  const place = placeOf(options)
  return ToolRouter.layer(helperTools).pipe(
    Layer.provideMerge(RemoteToolSource.layer({ reserved: helperNames, returnWithinMs })),
    Layer.provideMerge(McpServers.layer({ servers: mcpServers, variables: place.variables, version })),
    Layer.provideMerge(hooksOf(options)),
    Layer.provideMerge(AgentPrompts.layer({ ...place, instructions })),
    Layer.provideMerge(Checkpoints.layer(place)),
    Layer.provideMerge(BuiltinToolSet.layer(place)),
    Layer.provideMerge(CommandRunner.layer),
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
      const { door, host = defaultHost, hostNames, origins, page, port = defaultPort, tokens = [], version } = options
      const { connectionsMax, socketsMax } = descriptorPlan(descriptorLimit())
      const named = tokens.map((one) => namedToken(one.name, one.role, one.token))
      return Listener.layer({
        ...{ host, port, version, connectionsMax, socketsMax },
        ...(hostNames === undefined ? {} : { hostNames }),
        ...(origins === undefined ? {} : { origins }),
        ...(page === undefined ? {} : { page }),
        prepareDemo: prepareDemoAnywhere,
        ...door,
        tokens: [namedToken("local", "admin", token), ...named]
      })
    })
  )

/** Follow what becomes durable: hooks that are told, worktrees that are cleared away. */
const followersOf = ({ dataDirectory }: ServeOptions) =>
  Layer.merge(ServerHooks.listener, worktreeJanitor(worktreeFiles(dataDirectory)))

/** What the rest of the graph finds in the rooms of agents, whatever they are made of. */
type AgentServices =
  | ToolRouter
  | ClientTools
  | ServerHooks
  | CallGates
  | AgentPrompts
  | CommandRunner
  | Checkpoints
  | ServerRules

export interface Rooms extends Omit<ReturnType<typeof makeRooms>, "agents"> {
  readonly agents: Layer.Layer<AgentServices, never, Layer.Services<ReturnType<typeof agentRooms>>>
}

export const roomsOf = (options: ServeOptions): Rooms => makeRooms(options)

const makeRooms = (options: ServeOptions) => {
  const { dataDirectory, disk, isAdministered, llmRetryGoalMs, llmRetryMs, logLevel, runtime, secrets = [] } = options
  const { logFilesMax: openFilesMax } = descriptorPlan(descriptorLimit())
  return {
    log: Log.layer({
      level: logLevel,
      writeLine: options.writeLine,
      collector: Telemetry.collectorOf(options, "logs")
    }),
    directory: DataDirectory.layer(options),
    secrets: Layer.unwrap(
      Effect.map(DataDirectory, ({ token }) => KnownSecrets.layer([...secrets, token, readToken(dataDirectory)]))
    ),
    administration: Layer.succeed(
      TokenAdministration,
      isAdministered === true ? tokenAdministration(dataDirectory) : undefined
    ),
    telemetry: Telemetry.layer(options),
    store: Store.layer({
      directory: dataDirectory,
      snapshotShape,
      runelog: { limits: { openFilesMax } },
      ...(disk === undefined ? {} : { disk })
    }),
    providers: ModelProviders.layer(options),
    machine: machineRoom(options),
    agents: agentRooms(options),
    conversations: ConversationService.layer({ ...runtime, limitDefaults: { llmRetryMs, llmRetryGoalMs } }),
    outside: OutsideAgents.layer,
    followers: followersOf(options),
    listener: listenerOf(options)
  }
}
