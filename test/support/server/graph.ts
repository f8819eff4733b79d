// The graph of a server for tests: the real rooms, on a port that is free, with scripted models and a quiet log. Whoever
// needs another room replaces it; the others stay what `echs serve` runs.
import { homedir } from "node:os"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CommandRunner } from "#src/autonomy/CommandRunner.ts"
import { type BlobPort, OutputBlobs } from "#src/contract/Blobs.ts"
import { CallGates } from "#src/contract/CallGates.ts"
import { DurableNotices } from "#src/contract/DurableNotices.ts"
import { KnownSecrets } from "#src/contract/KnownSecrets.ts"
import { ClientTools } from "#src/contract/RemoteTools.ts"
import { SandboxFacts } from "#src/contract/ServerFacts.ts"
import { ServerLog } from "#src/contract/ServerLog.ts"
import { type HookPort, noHooks } from "#src/hook/HookPort.ts"
import { ServerHooks } from "#src/hook/HookService.ts"
import { agentRooms, machineRoom, type Rooms } from "#src/main/Rooms.ts"
import { startServer } from "#src/main/Serve.ts"
import type { AgentOptions, RunningServer, ServeOptions } from "#src/main/ServeOptions.ts"
import { ServerRules } from "#src/policy/PolicyFile.ts"
import { AgentPrompts } from "#src/prompt/AgentPrompts.ts"
import { Processes, Sandbox, Workspaces } from "#src/sandbox/Sandbox.ts"
import { Checkpoints } from "#src/tool/checkpoint/Checkpoints.ts"
import type { ToolPort } from "#src/tool/ToolPort.ts"
import { ToolRouter } from "#src/tool/ToolService.ts"
import { functionTools } from "../tool/FunctionTools.ts"

export const testVersion = "0.0.0-test"

export const testEnvironment = (variables: Readonly<Record<string, string>> = {}): ServeOptions["environment"] => ({
  variables: { PATH: process.env["PATH"] ?? "", ...variables },
  homeDirectory: homedir()
})

const nothingRuns = (): Promise<never> => Promise.reject(new Error("nothing runs here"))

const bareMachine: Rooms["machine"] = Layer.mergeAll(
  Layer.succeed(Sandbox, {
    ...{ level: "none", contained: false, detail: "a test runs no commands", limits: [] },
    prepare: () => {
      throw new Error("nothing runs here")
    }
  }),
  Layer.succeed(Processes, { run: nothingRuns, start: nothingRuns, close: async () => undefined }),
  Workspaces.any,
  SandboxFacts.none
)

/** Agents with these tools and nothing else: no sandbox, no hooks, no rules, and every directory may be worked in. */
export const bareRooms = (
  parts: { readonly tools?: ToolPort; readonly hooks?: HookPort } = {}
): Pick<Rooms, "machine" | "agents"> => ({
  machine: bareMachine,
  agents: Layer.mergeAll(
    Layer.succeed(ToolRouter, parts.tools ?? functionTools([])),
    ClientTools.none,
    Layer.succeed(ServerHooks, { port: parts.hooks ?? noHooks }),
    CallGates.none,
    AgentPrompts.none,
    CommandRunner.none,
    Checkpoints.none,
    ServerRules.none
  )
})

export type TestOptions = Partial<ServeOptions> & Pick<ServeOptions, "dataDirectory">

/** Starts a server of these rooms; the lines of its log go nowhere unless told. */
export const startTestServer = (options: TestOptions, replaced: Partial<Rooms> = {}): Promise<RunningServer> =>
  startServer(
    {
      port: 0,
      version: testVersion,
      environment: testEnvironment(),
      writeLine: () => undefined,
      ...options
    },
    replaced
  )

const silent = Layer.succeed(ServerLog, { level: "error", write: () => undefined })

/** Uses the tools of a server without one. */
export const withTools = <A>(
  options: Omit<AgentOptions, "version">,
  blobs: BlobPort,
  use: (tools: ToolPort) => Promise<A> | A
): Promise<A> => {
  const given = { version: testVersion, ...options }
  const rooms = agentRooms(given).pipe(
    Layer.provide([
      machineRoom(given),
      Layer.succeed(OutputBlobs, blobs),
      KnownSecrets.layer([]),
      DurableNotices.layer
    ]),
    Layer.provide(silent)
  )
  const program = Effect.flatMap(ToolRouter, (tools) => Effect.promise(async () => use(tools)))
  return Effect.runPromise(Effect.provide(program, rooms))
}
