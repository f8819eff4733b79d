// What people bring to a server: hooks, MCP servers, and tools that clients run. Put together of the processes that the
// tools have, and wired to the conversations once these are there.

import type { Environment } from "../config/Environment.ts"
import { openFile, removeFile, sharedDirectory, trustCheck } from "../config/HookFiles.ts"
import type { NoticeBus } from "../contract/DurableNotices.ts"
import type { Log } from "../contract/ServerLog.ts"
import type { Conversations } from "../conversation/Conversations.ts"
import type { HookPort } from "../hook/HookPort.ts"
import { type Hooks, makeHooks } from "../hook/Hooks.ts"
import type { ProcessPort } from "../sandbox/process/ProcessPort.ts"
import type { PromptGate } from "../server/operations/Context.ts"
import { McpTools } from "../tool/mcp/McpTools.ts"
import { globalServers } from "../tool/mcp/Settings.ts"
import { RemoteToolRegistry } from "../tool/remote/RemoteToolRegistry.ts"
import type { ToolSource } from "../tool/Tool.ts"
import type { BeforeCall } from "../tool/ToolPort.ts"

export interface ExtensionsOptions {
  readonly dataDirectory: string
  readonly environment: Environment
  readonly version: string
  /** `mcp_servers` of the settings, as it was written. */
  readonly mcpServers?: unknown
  readonly log: Pick<Log, "write">
  /** How long a client that runs tools may be away. */
  readonly returnWithinMs?: number
}

/** What extensions are made of. */
export interface ExtensionParts {
  /** What became durable. */
  readonly notices?: NoticeBus | undefined
  readonly processes: ProcessPort
  /** The operating system holds what those processes run. */
  readonly isContained: boolean
  /** Names that belong to the server's own tools. */
  readonly isBuiltin: (name: string) => boolean
}

export interface Extensions {
  readonly sources: ReadonlyArray<ToolSource>
  readonly beforeCall: BeforeCall
  readonly hooks: HookPort
  readonly remoteTools: RemoteToolRegistry
  readonly beforePrompt: PromptGate
  readonly attach: (conversations: Conversations) => void
  readonly close: () => Promise<void>
}

const hooksOf = (
  { dataDirectory, environment, log }: ExtensionsOptions,
  { isContained, processes }: ExtensionParts
): Hooks =>
  makeHooks({
    dataDirectory,
    open: openFile,
    isTrusted: trustCheck(dataDirectory),
    isContained,
    programs: processes,
    variable: (name) => environment.variables[name],
    discard: removeFile,
    sharedDirectory,
    onTrouble: (conversationId, message) =>
      log.write("warn", "a hook went wrong", { conversation_id: conversationId, message })
  })

const mcpOf = (
  { environment, log, mcpServers, version }: ExtensionsOptions,
  { isContained, processes }: ExtensionParts
): McpTools =>
  new McpTools({
    servers: globalServers(mcpServers, (name) => environment.variables[name]),
    processes,
    isContained,
    version,
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    onTrouble: ({ conversationId, message, server }) =>
      log.write("warn", "an MCP server went wrong", {
        server,
        message,
        ...(conversationId === undefined ? {} : { conversation_id: conversationId })
      })
  })

export const makeExtensions = (options: ExtensionsOptions, parts: ExtensionParts): Extensions => {
  const hooks = hooksOf(options, parts)
  const mcp = mcpOf(options, parts)
  const { returnWithinMs } = options
  parts.notices?.subscribe({ name: "hooks", appended: (_conversationId, runes) => hooks.notice(runes) })
  parts.notices?.subscribe({
    name: "MCP servers",
    appended: (conversationId, runes) => {
      if (runes.some(({ kind }) => kind === "session.closing")) mcp.forget(conversationId)
    }
  })
  const remoteTools = new RemoteToolRegistry({
    isReserved: parts.isBuiltin,
    ...(returnWithinMs === undefined ? {} : { returnWithinMs })
  })
  return {
    sources: [mcp, remoteTools],
    beforeCall: hooks.preToolUse,
    hooks: hooks.port,
    remoteTools,
    beforePrompt: hooks.beforePrompt,
    attach: (conversations) => hooks.attach(conversations),
    close: async () => {
      remoteTools.close()
      await Promise.all([hooks.close(), mcp.close()])
    }
  }
}
