// The tools of all MCP servers, as a source: for every conversation its own connections, so that nothing of one reaches
// another. A tool is called `server__tool`. What a server says about its tools decides how carefully they are repeated,
// but not that they are harmless: that takes the word of whoever configured it.

import { statSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname } from "node:path"
import * as Effect from "effect/Effect"
import { type Cancel, every } from "../../contract/Timers.ts"
import type { ConversationState } from "../../machine/State.ts"
import { workspaceOf } from "../../machine/view/Select.ts"
import type { AgentId } from "../../rune/Ids.ts"
import type { EffectClass } from "../../rune/kinds/shared.ts"
import type { ProcessPort } from "../../sandbox/process/ProcessPort.ts"
import { promisedOutcome } from "../PromiseWork.ts"
import type { Tool, ToolSource } from "../Tool.ts"
import type { LeftOutTools } from "../ToolPort.ts"
import { McpConnection } from "./Connection.ts"
import { questionName } from "./Elicitation.ts"
import { McpError } from "./McpErrors.ts"
import { mcpLimits } from "./McpLimits.ts"
import { offeredName, serverIn } from "./Names.ts"
import { conversationServers, type McpServerSettings, type ParsedServer } from "./Settings.ts"
import { openStdio } from "./Stdio.ts"
import { openHttp } from "./StreamableHttp.ts"
import type { McpToolInfo } from "./ToolList.ts"
import type { OpenTransport } from "./Transport.ts"

export interface McpOptions {
  /** Servers that every conversation has. */
  readonly servers: ReadonlyArray<ParsedServer>
  readonly processes: Pick<ProcessPort, "start">
  /** The operating system holds what those processes run. */
  readonly isContained: boolean
  readonly version: string
  readonly nowMs: () => number
  readonly monotonicMs: () => number
  readonly onTrouble: (trouble: {
    readonly server: string
    readonly conversationId?: string
    readonly message: string
  }) => void
  readonly idleMs?: number
}

const effectClassOf = ({ idempotent, readOnly }: McpToolInfo): EffectClass =>
  readOnly ? "pure" : idempotent ? "idempotent" : "effect"

/** What is assumed of a tool while its server is away. */
const unknownTool = (name: string): McpToolInfo => ({
  name,
  title: undefined,
  description: "",
  inputSchema: { type: "object" },
  readOnly: false,
  idempotent: false
})

/** A question of a server, so that whoever decides about calls knows it. It is never run by name. */
const questionTool = (server: string): Tool => ({
  name: questionName(server),
  description: "",
  parameters: { type: "object" },
  effect_class: "pure",
  mutating: false,
  provenance: "mcp",
  approval: "always",
  access: () => ({}),
  preview: () => Effect.succeed({ title: `the MCP server ${server} asks` }),
  run: () =>
    Effect.succeed({
      status: "error",
      error: {
        code: "unknown_tool",
        message: "questions are asked by the server itself",
        retryable: false,
        source: "tool"
      }
    })
})

const unfitReason = `more than ${mcpLimits.toolsPerServerMax} or not described as a tool has to be`

/** How a server is reached, without what it is told in secret. */
const reachText = ({ reach }: McpServerSettings): string =>
  reach.type === "http" ? withoutUser(reach.url) : JSON.stringify(reach.argv)

const withoutUser = (url: string): string => {
  const { host, pathname, protocol } = new URL(url)
  return `${protocol}//${host}${pathname}`
}

/** A program is not alone in its directory: it needs what lies beside it. */
const directoryOf = (path: string): string =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? path : dirname(path)

export class McpTools implements ToolSource {
  private readonly options: McpOptions
  private readonly own: ReadonlyArray<McpServerSettings>
  private readonly connections = new Map<string, McpConnection>()
  private readonly parsed = new WeakMap<object, ReadonlyArray<McpServerSettings>>()
  private readonly stopSweeping: Cancel
  private isClosed = false

  constructor(options: McpOptions) {
    this.options = options
    this.own = this.sound(options.servers)
    const idleMs = options.idleMs ?? mcpLimits.idleMs
    this.stopSweeping = every(Math.max(50, idleMs / 4), () => this.sweep(idleMs))
  }

  private sound(servers: ReadonlyArray<ParsedServer>, conversationId?: string): ReadonlyArray<McpServerSettings> {
    const of = conversationId === undefined ? {} : { conversationId }
    return servers.flatMap((server) => {
      if (server._tag === "Server") return [server.server]
      this.options.onTrouble({ server: server.name, message: `it is not used: ${server.reason}`, ...of })
      return []
    })
  }

  /** The servers of a conversation that may be used: what it starts itself has to be held, unless it may do everything. */
  private serversOf(state: ConversationState): ReadonlyArray<McpServerSettings> {
    const all = this.configuredFor(state)
    if (this.options.isContained || state.session.config.policy?.mode === "full_access") return all
    return all.filter((one) => one.reach.type === "http" || this.own.includes(one))
  }

  /** Its own come before the global ones of the same name. */
  private configuredFor(state: ConversationState): ReadonlyArray<McpServerSettings> {
    const { tools } = state.session.config
    if (tools === undefined) return this.own
    const known = this.parsed.get(tools)
    if (known !== undefined) return known
    const ofConversation = this.sound(conversationServers(tools), state.conversation_id)
    const names = new Set(ofConversation.map(({ name }) => name))
    const all = [...ofConversation, ...this.own.filter(({ name }) => !names.has(name))]
    const unique = all.filter((one, at) => all.findIndex(({ name }) => name === one.name) === at)
    const servers = unique.slice(0, mcpLimits.serversPerConversationMax)
    this.parsed.set(tools, servers)
    return servers
  }

  private connectionOf(state: ConversationState, settings: McpServerSettings): McpConnection {
    const { conversation_id: conversationId } = state
    const key = `${conversationId} ${settings.key}`
    const known = this.connections.get(key)
    this.connections.delete(key)
    const workspace = workspaceOf(state, state.session.root_agent_id)
    const { monotonicMs, nowMs, onTrouble, version } = this.options
    const connection =
      known ??
      new McpConnection({
        settings,
        workspace,
        version,
        nowMs,
        monotonicMs,
        open: this.transportOf(settings, workspace),
        admit: () => this.admit(),
        onTrouble: (message) => onTrouble({ server: settings.name, conversationId, message })
      })
    this.connections.set(key, connection)
    if (this.connections.size > mcpLimits.remembered) this.forgetOne()
    return connection
  }

  private transportOf({ reach }: McpServerSettings, workspace: string | undefined): OpenTransport {
    const { monotonicMs, processes } = this.options
    if (reach.type === "http") return (listener) => openHttp({ ...reach, monotonicMs }, listener)
    const { argv, environment, network } = reach
    const readable = reach.readable.map(directoryOf)
    const directory = workspace ?? tmpdir()
    const writable = workspace === undefined ? [] : [workspace]
    return (listener) =>
      openStdio({ processes, argv, directory, writable, readable, network, environment, monotonicMs }, listener)
  }

  /** Room for one more connection: the one that is idle for longest makes it. */
  private admit(): void {
    if (this.isClosed) throw new McpError("mcp_unavailable", "the server is stopping")
    const open = [...this.connections.values()].filter(({ isOpen }) => isOpen)
    // The one that asks counts as open already.
    if (open.length <= mcpLimits.connectionsMax) return
    const idle = open.filter(({ calls }) => calls === 0).sort((left, right) => left.usedMs - right.usedMs)[0]
    if (idle === undefined) throw new McpError("mcp_too_many", `${mcpLimits.connectionsMax} MCP servers are in use`)
    void idle.rest()
  }

  private forgetOne(): void {
    for (const [key, connection] of this.connections) {
      if (connection.calls > 0) continue
      this.connections.delete(key)
      void connection.close()
      return
    }
  }

  private sweep(idleMs: number): void {
    const beforeMs = this.options.monotonicMs() - idleMs
    for (const connection of this.connections.values())
      if (connection.isOpen && connection.calls === 0 && connection.usedMs < beforeMs) void connection.rest()
  }

  readonly ready = (state: ConversationState, _agentId: AgentId): Effect.Effect<void> =>
    Effect.forEach(
      this.serversOf(state),
      (settings) => Effect.promise((signal) => this.connectionOf(state, settings).ready(signal)),
      { concurrency: "unbounded", discard: true }
    )

  readonly tools = (state: ConversationState): ReadonlyArray<Tool> =>
    this.serversOf(state).flatMap((settings) => {
      const connection = this.connectionOf(state, settings)
      return (connection.tools ?? []).map((info) => this.toolOf(connection, info))
    })

  readonly leftOut = (state: ConversationState): ReadonlyArray<LeftOutTools> =>
    this.serversOf(state).flatMap((settings) => {
      const { count, names } = this.connectionOf(state, settings).leftOut
      return count === 0 ? [] : [{ origin: `the MCP server ${settings.name}`, count, names, reason: unfitReason }]
    })

  readonly find = (state: ConversationState, _agentId: AgentId, name: string): Tool | undefined => {
    const server = serverIn(name)
    const settings = this.serversOf(state).find((one) => one.name === server)
    if (settings === undefined) return undefined
    if (name === questionName(settings.name)) return questionTool(settings.name)
    const connection = this.connectionOf(state, settings)
    const info = connection.tools?.find((one) => offeredName(settings.name, one.name) === name)
    if (info !== undefined) return this.toolOf(connection, info)
    // After a restart a call may go on before its server has told its tools again.
    return connection.tools === undefined ? this.toolOf(connection, unknownTool(name), name) : undefined
  }

  private toolOf(connection: McpConnection, info: McpToolInfo, offered?: string): Tool {
    const { settings } = connection
    const name = offered ?? offeredName(settings.name, info.name)
    return {
      name,
      description: info.description === "" ? (info.title ?? info.name) : info.description,
      parameters: info.inputSchema,
      effect_class: effectClassOf(info),
      mutating: !(settings.trustsAnnotations && info.readOnly),
      provenance: "mcp",
      origin: `the MCP server ${settings.name}, ${reachText(settings)}`,
      ...(offered === undefined ? {} : { isUnknown: true }),
      ...(settings.timeoutMs === undefined ? {} : { timeout_ms: settings.timeoutMs }),
      access: () => ({}),
      preview: (input) =>
        Effect.succeed({
          title: `${info.title ?? info.name} of the MCP server ${settings.name}`,
          detail: JSON.stringify(input, null, 2)
        }),
      run: (input, context) =>
        promisedOutcome(context, (signaled) =>
          connection.call({ name, effect_class: effectClassOf(info) }, input, signaled)
        )
    }
  }

  /** The conversation is over: its servers end. */
  forget(conversationId: string): void {
    for (const [key, connection] of this.connections) {
      if (!key.startsWith(`${conversationId} `)) continue
      this.connections.delete(key)
      void connection.close()
    }
  }

  async close(): Promise<void> {
    this.isClosed = true
    this.stopSweeping()
    const all = [...this.connections.values()]
    this.connections.clear()
    await Promise.all(all.map((connection) => connection.close()))
  }
}
