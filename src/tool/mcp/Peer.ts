// One end of a conversation in JSON-RPC: requests find their answers, in time or not at all; what the other side asks
// is answered, a few things at a time. When the transport ends, everything that waits is told so, once.
import { after } from "../../contract/Timers.ts"
import { isDeeperThan } from "../../machine/Canonical.ts"
import { asMcpError, McpError } from "./McpErrors.ts"
import { mcpLimits } from "./McpLimits.ts"
import {
  internalError,
  invalidParams,
  type Json,
  type Message,
  type MessageId,
  methodNotFound,
  rpc
} from "./Message.ts"
import type { OpenTransport, Transport } from "./Transport.ts"

export interface PeerHandlers {
  /** Answers a request of the server; undefined when there is no such method. */
  readonly onRequest: (method: string, params: Json, signal: AbortSignal) => Promise<Json> | undefined
  readonly onNotification: (method: string, params: Json) => void
  readonly onClosed: (reason: string) => void
}

interface Waiting {
  readonly resolve: (result: Json) => void
  readonly reject: (error: McpError) => void
}

export interface RequestOptions {
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Told the id before the request is sent. */
  readonly onId?: (id: number) => void
}

export class Peer {
  private readonly handlers: PeerHandlers
  private readonly waiting = new Map<MessageId, Waiting>()
  private readonly answering = new Map<MessageId, AbortController>()
  private transport: Transport | undefined
  private nextId = 1
  private ended: string | undefined

  private constructor(handlers: PeerHandlers) {
    this.handlers = handlers
  }

  static async open(open: OpenTransport, handlers: PeerHandlers): Promise<Peer> {
    const peer = new Peer(handlers)
    peer.transport = await open({
      onMessage: (message) => peer.receive(message),
      onUnanswered: (id, error) => peer.waiting.get(id)?.reject(error),
      onClosed: (reason) => peer.finish(reason)
    })
    return peer
  }

  /** Why it is over, if it is. */
  get over(): string | undefined {
    return this.ended
  }

  agreed(version: string): void {
    this.transport?.agreed(version)
  }

  async request(method: string, params: Json, options: RequestOptions = {}): Promise<Json> {
    const { onId, signal, timeoutMs } = options
    if (this.ended !== undefined) throw new McpError("mcp_server_gone", this.ended)
    if (signal?.aborted === true) throw new McpError("mcp_cancelled", `${method} was cancelled`)
    const id = this.nextId++
    onId?.(id)
    const answer = Promise.withResolvers<Json>()
    this.waiting.set(id, answer)
    const giveUp = (error: McpError): void => {
      if (!this.waiting.has(id)) return
      answer.reject(error)
      // The first request must not be cancelled.
      if (method !== "initialize") void this.notify("notifications/cancelled", { requestId: id, reason: error.message })
    }
    const onAbort = (): void => giveUp(new McpError("mcp_cancelled", `${method} was cancelled`))
    const late = (): void => giveUp(new McpError("mcp_unavailable", `no answer to ${method} within ${timeoutMs} ms`))
    const cancel = timeoutMs === undefined ? undefined : after(timeoutMs, late)
    signal?.addEventListener("abort", onAbort)
    try {
      // Whoever does not take the request does not answer it either, and may still be waited for in vain.
      this.write(rpc.request(id, method, params)).catch((error: unknown) => {
        const failure = asMcpError(error, "mcp_unavailable")
        answer.reject(failure)
        if (failure.failure === "mcp_session_over") void this.close(failure.message)
      })
      return await answer.promise
    } finally {
      cancel?.()
      signal?.removeEventListener("abort", onAbort)
      this.waiting.delete(id)
    }
  }

  async notify(method: string, params: Json): Promise<void> {
    // What cannot be told to a server that is gone need not be.
    await this.write(rpc.notification(method, params)).catch(() => undefined)
  }

  private async write(message: Json): Promise<void> {
    if (this.transport === undefined) throw new McpError("mcp_unavailable", "it is not connected")
    await this.transport.send(message)
  }

  private receive(message: Message): void {
    switch (message.type) {
      case "result":
        this.waiting.get(message.id)?.resolve(message.result)
        break
      case "error": {
        const told = message.message.slice(0, 2_000).toWellFormed()
        const error = new McpError("mcp_error", told, { rpcCode: message.code })
        if (message.id !== null) this.waiting.get(message.id)?.reject(error)
        break
      }
      case "notification":
        this.hear(message.method, message.params)
        break
      case "request":
        void this.answer(message.id, message.method, message.params)
    }
  }

  private hear(method: string, params: Json): void {
    if (isDeeperThan(params, mcpLimits.depthMax)) return
    if (method === "notifications/cancelled") {
      const { requestId } = params
      this.answering.get(requestId as MessageId)?.abort()
    } else this.handlers.onNotification(method, params)
  }

  private async answer(id: MessageId, method: string, params: Json): Promise<void> {
    const reply = (message: Json): Promise<void> => this.write(message).catch(() => undefined)
    if (this.answering.has(id) || this.answering.size >= mcpLimits.serverRequestsMax)
      return reply(rpc.error(id, internalError, "too many requests are under way"))
    if (isDeeperThan(params, mcpLimits.depthMax))
      return reply(rpc.error(id, invalidParams, `nested deeper than ${mcpLimits.depthMax} levels`))
    const cancel = new AbortController()
    this.answering.set(id, cancel)
    try {
      const work = this.handlers.onRequest(method, params, cancel.signal)
      if (work === undefined) return await reply(rpc.error(id, methodNotFound, `there is no ${method} here`))
      await reply(rpc.result(id, await work))
    } catch (error) {
      await reply(rpc.error(id, internalError, error instanceof Error ? error.message : "it failed"))
    } finally {
      this.answering.delete(id)
    }
  }

  private finish(reason: string): void {
    if (this.ended !== undefined) return
    this.ended = reason
    const lost = new McpError("mcp_server_gone", reason, { isInDoubt: true })
    for (const { reject } of this.waiting.values()) reject(lost)
    for (const cancel of this.answering.values()) cancel.abort()
    this.handlers.onClosed(reason)
  }

  async close(reason = "the connection was closed"): Promise<void> {
    this.finish(reason)
    await this.transport?.close()
  }
}
