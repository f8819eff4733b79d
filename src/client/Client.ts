/**
 * The client of an ECHS server, for Node and for browsers. It connects again whenever the connection is lost; calls that
 * waited are made again with the same idempotency key, so that nothing happens twice; subscriptions go on from their
 * cursor. Only a server that does not want it, or `close`, ends it.
 */
import { backoffMs, pause } from "./Backoff.ts"
import { ClientClosed, LinkLost, NoServer, RequestFailed, SentAway } from "./ClientErrors.ts"
import { clientLimits } from "./ClientLimits.ts"
import { type Downloaded, type DownloadRange, download } from "./Download.ts"
import { type ClientName, isFinal, Link, type LinkEnd } from "./Link.ts"
import { readingOperations } from "./ReadingOperations.ts"
import { type Endpoint, type OpenSocket, openGlobalSocket } from "./Socket.ts"
import { type AttentionUpdate, attention, type LinkSource, type TailOptions, tail } from "./Subscription.ts"
import { Terminal, type TerminalOptions } from "./Terminal.ts"
import { requestTicket, type Ticket } from "./Ticket.ts"
import { type ClientTool, type RegisteredTools, type ToolHost, ToolRegistration } from "./Tools.ts"
import { type Uploaded, upload } from "./Upload.ts"
import type { Answer, Fields, OperationName, TailItem, Welcome } from "./Wire.ts"

export { errorCodes, exitCodes } from "../wire/Codes.ts"
export { type AnswerPiece, AnswerText } from "./AnswerText.ts"
export { ClientClosed, NoServer, RequestFailed, SentAway } from "./ClientErrors.ts"
export { clientLimits } from "./ClientLimits.ts"
export type { Downloaded, DownloadRange } from "./Download.ts"
export type { ClientName } from "./Link.ts"
export type { Endpoint, OpenSocket, SocketLike } from "./Socket.ts"
export type { AttentionUpdate, TailOptions } from "./Subscription.ts"
export type { Terminal, TerminalItem, TerminalOptions } from "./Terminal.ts"
export type { Ticket } from "./Ticket.ts"
export type { ClientTool, RegisteredTools, ToolAnswer, ToolCallInfo } from "./Tools.ts"
export type { Uploaded } from "./Upload.ts"
export type * from "./Wire.ts"

export type ConnectionChange =
  | { readonly type: "connected"; readonly welcome: Welcome; readonly isFirst: boolean }
  | { readonly type: "lost"; readonly code: number; readonly reason: string; readonly retryInMs: number }

export interface ClientOptions {
  /** Where the server is; a function is asked before every connection, so a server may come back elsewhere. */
  readonly endpoint: Endpoint | (() => Promise<Endpoint | undefined>)
  readonly client?: ClientName
  readonly openSocket?: OpenSocket
  readonly onConnection?: (change: ConnectionChange) => void
  /** Wait for a server that is not there yet instead of failing with NoServer. */
  readonly isPatient?: boolean
  /** Gives up this long after a connection was lost; without it, never. */
  readonly giveUpAfterMs?: number
  readonly random?: () => number
  readonly nowMs?: () => number
}

export interface CallOptions {
  /** Chosen by the client when left out; name one to make a call repeatable by another process. */
  readonly idempotencyKey?: string
  readonly signal?: AbortSignal
}

interface Gate {
  readonly promise: Promise<Link>
  readonly open: (link: Link) => void
  readonly fail: (error: Error) => void
}

const makeGate = (): Gate => {
  const { promise, resolve, reject } = Promise.withResolvers<Link>()
  // Nobody may be waiting when it fails; whoever comes later still gets the reason.
  promise.catch(() => {})
  return { promise, open: resolve, fail: reject }
}

export class Client {
  private readonly options: ClientOptions
  private readonly closing = new AbortController()
  private readonly nowMs: () => number
  private gate = makeGate()
  private current: Link | undefined
  private failure: Error | undefined
  private calls = 0
  /** Conversations in which this client runs tools. */
  private readonly withTools = new Set<string>()
  private readonly running: Promise<void>

  private constructor(options: ClientOptions) {
    this.options = options
    this.nowMs = options.nowMs ?? Date.now
    this.running = this.run()
  }

  /** Resolves when the server has said welcome; rejects with NoServer or SentAway. */
  static async connect(options: ClientOptions): Promise<Client> {
    const client = new Client(options)
    await client.gate.promise
    return client
  }

  get welcome(): Welcome | undefined {
    return this.current?.welcome
  }

  /** One operation. Survives lost connections; rejects with RequestFailed when the server says no. */
  async call<Op extends OperationName>(op: Op, fields: Fields<Op>, options: CallOptions = {}): Promise<Answer<Op>> {
    if (this.calls >= clientLimits.callsWaitingMax) {
      throw new RequestFailed(op, { code: "busy", message: "too many unanswered calls of this client" })
    }
    const key = readingOperations.has(op) ? undefined : (options.idempotencyKey ?? globalThis.crypto.randomUUID())
    this.calls += 1
    try {
      return (await this.callUntilAnswered(
        op,
        { ...(fields as Readonly<Record<string, unknown>>), ...(key === undefined ? {} : { idempotency_key: key }) },
        options
      )) as Answer<Op>
    } finally {
      this.calls -= 1
    }
  }

  private async callUntilAnswered(
    op: string,
    body: Readonly<Record<string, unknown>>,
    options: CallOptions
  ): Promise<unknown> {
    const signal = options.signal ?? this.closing.signal
    for (let busy = 0; ; ) {
      const link = await this.link(signal)
      if (link === undefined) throw signal.reason ?? new ClientClosed()
      try {
        return await link.request(op, body)
      } catch (error) {
        if (error instanceof LinkLost) continue
        busy += 1
        if (busy > clientLimits.busyRetriesMax || !(await this.waitBusy(error, signal))) throw error
      }
    }
  }

  /** Bytes of an image or a file for a message to name: `{ type: "image", blob }`. For what is too large for a message. */
  async upload(bytes: Uint8Array): Promise<Uploaded> {
    return upload(await this.endpoint(), bytes)
  }

  /** Bytes that a rune names by their hash, from an offset on: the whole output of a tool, an image. */
  async download(sha256: string, range: DownloadRange): Promise<Downloaded> {
    return download(await this.endpoint(), sha256, range)
  }

  /** A ticket with which a browser begins a session as this client's principal, and where. */
  async ticket(): Promise<Ticket & { readonly url: string }> {
    const endpoint = await this.endpoint()
    return { ...(await requestTicket(endpoint)), url: endpoint.url }
  }

  private async endpoint(): Promise<Endpoint> {
    const { endpoint } = this.options
    const where = typeof endpoint === "function" ? await endpoint() : endpoint
    if (where === undefined) throw new NoServer("", "no server is known")
    return where
  }

  /** The conversation rune by rune, across restarts of the server, each exactly once and in order. */
  tail(conversationId: string, options: TailOptions = {}): AsyncGenerator<TailItem, void, void> {
    return tail(this.source, conversationId, options)
  }

  /** What needs a person: everything now, then every change. */
  attention(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<AttentionUpdate, void, void> {
    return attention(this.source, () => this.call("attention.list", {}), options.signal)
  }

  /** The terminal of an outside agent, to be looked at and typed in. */
  terminal(conversationId: string, options: TerminalOptions = {}): Terminal {
    return new Terminal(this.source, conversationId, options)
  }

  /** Tools that this client runs itself. They stay registered across lost connections, until closed. */
  readonly tools = {
    register: async (conversationId: string, tools: ReadonlyArray<ClientTool>): Promise<RegisteredTools> => {
      const message = "this client has tools in that conversation already: close them first"
      if (this.withTools.has(conversationId))
        throw new RequestFailed("tool.register", { code: "invalid_state", message })
      this.withTools.add(conversationId)
      const leave = (): boolean => this.withTools.delete(conversationId)
      try {
        const registered = await ToolRegistration.open(this.toolHost, conversationId, tools)
        registered.ended.then(leave, leave)
        return registered
      } catch (error) {
        leave()
        throw error
      }
    }
  }

  /** Ends the connection and everything that waits for it. */
  async close(): Promise<void> {
    this.closing.abort(new ClientClosed())
    this.current?.drop("closed by the client")
    await this.running
  }

  private readonly source: LinkSource = {
    link: (signal) => this.link(signal),
    waitBusy: (error, signal) => this.waitBusy(error, signal)
  }

  private readonly toolHost: ToolHost = {
    source: this.source,
    call: (op, fields, options) => this.call(op, fields, options),
    tail: (conversationId, options) => this.tail(conversationId, options)
  }

  /** Waits as long as the server asked for; false when the error was something else. */
  private async waitBusy(error: unknown, signal: AbortSignal): Promise<boolean> {
    if (!(error instanceof RequestFailed) || error.code !== "busy") return false
    const asked = error.data["retry_after_ms"]
    await pause(typeof asked === "number" ? Math.min(asked, clientLimits.backoffMaxMs) : 100, signal)
    return !signal.aborted
  }

  private async link(signal: AbortSignal): Promise<Link | undefined> {
    if (signal.aborted) return undefined
    if (this.failure !== undefined) throw this.failure
    if (this.current !== undefined) return this.current
    const { promise, resolve } = Promise.withResolvers<undefined>()
    const settle = (): void => resolve(undefined)
    signal.addEventListener("abort", settle)
    try {
      return await Promise.race([this.gate.promise, promise])
    } finally {
      signal.removeEventListener("abort", settle)
    }
  }

  private async run(): Promise<void> {
    let failures = 0
    let isFirst = true
    let lostMs = this.nowMs()
    while (!this.closing.signal.aborted) {
      const outcome = await this.attempt()
      if (outcome instanceof Link) {
        const end = await this.use(outcome, isFirst)
        isFirst = false
        lostMs = this.nowMs()
        if (isFinal(end.code))
          return this.fail(new SentAway(end.code, end.reason || "the server closed the connection permanently"))
        // A server that takes connections only to end them is waited for longer and longer.
        failures = outcome.isProven ? 1 : failures + 1
        await this.wait(end, failures)
      } else {
        failures += 1
        const isOver =
          outcome instanceof SentAway || (isFirst && this.options.isPatient !== true) || this.hasGivenUp(lostMs)
        if (isOver) return this.fail(outcome)
        await this.wait({ code: 1006, reason: outcome.message }, failures)
      }
    }
    this.fail(new ClientClosed())
  }

  private hasGivenUp(lostMs: number): boolean {
    const { giveUpAfterMs } = this.options
    return giveUpAfterMs !== undefined && this.nowMs() - lostMs >= giveUpAfterMs
  }

  private async attempt(): Promise<Link | Error> {
    const { endpoint, openSocket = openGlobalSocket, client = { name: "echs-client", version: "0" } } = this.options
    let url = ""
    try {
      const target = typeof endpoint === "function" ? await endpoint() : endpoint
      if (target === undefined) return new NoServer("", "no server is known")
      url = target.url
      return await Link.open(target, { openSocket, client, nowMs: this.nowMs })
    } catch (error) {
      if (error instanceof SentAway) return error
      return new NoServer(url, error instanceof Error ? error.message : String(error))
    }
  }

  /** Lets everybody use the connection until it ends. */
  private async use(link: Link, isFirst: boolean): Promise<LinkEnd> {
    if (this.closing.signal.aborted) link.drop("closed by the client")
    this.current = link
    const probe = setInterval(() => void this.probe(link), clientLimits.silenceMs / 2)
    if (link.welcome !== undefined) this.options.onConnection?.({ type: "connected", welcome: link.welcome, isFirst })
    this.gate.open(link)
    const end = await link.ended
    clearInterval(probe)
    this.current = undefined
    this.gate = makeGate()
    return end
  }

  /** A connection can die without a word: whoever is silent for long is asked, and given up without an answer. */
  private async probe(link: Link): Promise<void> {
    if (this.nowMs() - link.lastHeardMs < clientLimits.silenceMs) return
    const timer = setTimeout(() => link.drop("no response to pings"), clientLimits.probeWithinMs)
    await link.request("stats", {}).catch(() => undefined)
    clearTimeout(timer)
  }

  private async wait(end: LinkEnd, failures: number): Promise<void> {
    if (this.closing.signal.aborted) return
    const retryInMs = backoffMs(failures, (this.options.random ?? Math.random)())
    this.options.onConnection?.({ type: "lost", ...end, retryInMs })
    await pause(retryInMs, this.closing.signal)
  }

  private fail(error: Error): void {
    this.failure = error
    this.gate.fail(error)
  }
}
