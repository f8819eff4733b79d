// The MCP servers of the settings, and the tools they offer, as a service.
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { DurableNotices } from "../../contract/DurableNotices.ts"
import { ServerLog } from "../../contract/ServerLog.ts"
import { Processes, Sandbox } from "../../sandbox/Sandbox.ts"
import { McpTools } from "./McpTools.ts"
import { globalServers } from "./Settings.ts"

export interface McpServersOptions {
  /** `mcp_servers` of the settings, as it was written. */
  readonly servers: unknown
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly version: string
}

export class McpServers extends Context.Service<McpServers, McpTools>()("echs/McpServers") {
  static readonly layer = (
    options: McpServersOptions
  ): Layer.Layer<McpServers, never, Processes | Sandbox | ServerLog | DurableNotices> =>
    Layer.effect(
      McpServers,
      Effect.gen(function* () {
        const log = yield* ServerLog
        const parts = {
          servers: globalServers(options.servers, (name) => options.variables[name]),
          processes: yield* Processes,
          isContained: (yield* Sandbox).contained,
          version: options.version
        }
        const mcp = yield* Effect.acquireRelease(
          Effect.sync(() => new McpTools({ ...parts, ...clocks, onTrouble: troubles(log) })),
          (servers) => Effect.promise(() => servers.close())
        )
        yield* DurableNotices.listen({
          name: "MCP servers",
          appended: (conversationId, runes) => {
            if (runes.some(({ kind }) => kind === "session.closing")) mcp.forget(conversationId)
          }
        })
        return mcp
      })
    )
}

const clocks = { nowMs: () => Date.now(), monotonicMs: () => performance.now() }

const troubles =
  (log: ServerLog["Service"]): ConstructorParameters<typeof McpTools>[0]["onTrouble"] =>
  ({ conversationId, message, server }) =>
    log.write("warn", "an MCP server went wrong", {
      server,
      message,
      ...(conversationId === undefined ? {} : { conversation_id: conversationId })
    })
