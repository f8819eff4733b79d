// One life of a connection to one MCP server: hello, its tools, calls, and what it says meanwhile. Everything it does
// belongs to one conversation, so what it asks in the course of a call is asked there.
import { pathToFileURL } from "node:url"
import type { Input } from "../Tool.ts"
import type { SignalContext } from "../ToolPort.ts"
import { elicit } from "./Elicitation.ts"
import { McpError } from "./McpErrors.ts"
import { mcpLimits } from "./McpLimits.ts"
import { isObject, type Json } from "./Message.ts"
import { Peer } from "./Peer.ts"
import type { McpServerSettings } from "./Settings.ts"
import { noTools, readTools, type ToolList } from "./ToolList.ts"
import type { OpenTransport } from "./Transport.ts"

/** Newest first: the first is asked for, any of them is spoken. */
export const protocolVersions = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const

export interface SessionOptions {
  readonly settings: McpServerSettings
  readonly open: OpenTransport
  readonly workspace: string | undefined
  readonly version: string
  readonly nowMs: () => number
  readonly monotonicMs: () => number
  /** The list of tools has changed. */
  readonly onChanged: () => void
  readonly onClosed: (reason: string) => void
}

interface Running {
  readonly context: SignalContext
  questions: number
  toldMs: number
}

export class Session {
  private readonly options: SessionOptions
  private readonly running = new Map<number, Running>()
  private peer: Peer | undefined
  private hasTools = false

  private constructor(options: SessionOptions) {
    this.options = options
  }

  /** Resolves when the server has said hello; rejects with McpError. */
  static async open(options: SessionOptions): Promise<Session> {
    const session = new Session(options)
    session.peer = await Peer.open(options.open, {
      onRequest: (method, params, signal) => session.answer(method, params, signal),
      onNotification: (method, params) => session.hear(method, params),
      onClosed: options.onClosed
    })
    try {
      await session.hello(session.peer)
      return session
    } catch (error) {
      // Whoever waits for the server learns at once that it is of no use; ending it may take a moment.
      void session.close()
      throw error
    }
  }

  private async hello(peer: Peer): Promise<void> {
    const { settings, version } = this.options
    const hello = {
      protocolVersion: protocolVersions[0],
      capabilities: { elicitation: {}, roots: {} },
      clientInfo: { name: "echs", version }
    }
    const answer = await peer.request("initialize", hello, { timeoutMs: settings.startWithinMs })
    const { capabilities, protocolVersion } = answer
    const agreed = protocolVersions.find((one) => one === protocolVersion)
    if (agreed === undefined)
      throw new McpError("mcp_protocol_error", `it speaks version ${String(protocolVersion).slice(0, 40)}`)
    this.hasTools = isObject(capabilities) && capabilities["tools"] !== undefined
    peer.agreed(agreed)
    await peer.notify("notifications/initialized", {})
  }

  get calls(): number {
    return this.running.size
  }

  private get open(): Peer {
    if (this.peer === undefined) throw new McpError("mcp_unavailable", "it is not connected")
    return this.peer
  }

  async tools(): Promise<ToolList> {
    if (!this.hasTools) return noTools
    const timeoutMs = mcpLimits.listWithinMs
    const page = (cursor: string | undefined): Promise<Json> =>
      this.open.request("tools/list", cursor === undefined ? {} : { cursor }, { timeoutMs })
    return readTools(page, this.options.settings.isWanted)
  }

  /** One call; rejects with McpError when there is no result of it. */
  async call(tool: string, input: Input, context: SignalContext): Promise<Json> {
    let id = 0
    const onId = (given: number): void => {
      id = given
      this.running.set(given, { context, questions: 0, toldMs: Number.NEGATIVE_INFINITY })
    }
    try {
      const progressToken = context.call_id
      const params = { name: tool, arguments: input, _meta: { progressToken } }
      return await this.open.request("tools/call", params, { signal: context.signal, onId })
    } finally {
      this.running.delete(id)
    }
  }

  private hear(method: string, params: Json): void {
    if (method === "notifications/tools/list_changed") this.options.onChanged()
    else if (method === "notifications/progress") this.tellProgress(params)
  }

  private tellProgress({ message, progress, progressToken, total }: Json): void {
    const running = [...this.running.values()].find(({ context }) => context.call_id === progressToken)
    const nowMs = this.options.monotonicMs()
    if (running === undefined || nowMs - running.toldMs < mcpLimits.progressEveryMs) return
    running.toldMs = nowMs
    const done = typeof progress === "number" ? String(progress) : ""
    const share = typeof total === "number" ? `${done}/${total}` : done
    const text = typeof message === "string" ? `${share} ${message.slice(0, 500)}` : share
    running.context.progress("status", `${text.toWellFormed()}\n`)
  }

  private answer(method: string, params: Json, signal: AbortSignal): Promise<Json> | undefined {
    switch (method) {
      case "ping":
        return Promise.resolve({})
      case "roots/list":
        return Promise.resolve({ roots: this.roots() })
      case "elicitation/create":
        return this.ask(params, signal)
      default:
        return undefined
    }
  }

  private roots(): ReadonlyArray<Json> {
    const { workspace } = this.options
    return workspace === undefined ? [] : [{ uri: pathToFileURL(workspace).href, name: "workspace" }]
  }

  /** Nothing says in the course of which call a question is asked: the newest is taken for it. */
  private async ask(params: Json, signal: AbortSignal): Promise<Json> {
    const running = [...this.running.values()].at(-1)
    if (running === undefined) return { action: "decline" }
    const { context } = running
    running.questions += 1
    const ordinal = running.questions
    const { settings, nowMs } = this.options
    const either = AbortSignal.any([signal, context.signal])
    return elicit({ server: settings.name, params, context, ordinal, signal: either, nowMs })
  }

  async close(): Promise<void> {
    await this.peer?.close()
  }
}
