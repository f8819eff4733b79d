// One WebSocket client: hello first, then requests and subscriptions, each bounded. A client that keeps sending what
// cannot be understood, or too much, is sent away with a code that says so; nobody else notices.

import type { Duplex } from "node:stream"
import { WebSocket } from "ws"
import { after, type Cancel } from "../../contract/Timers.ts"
import { closeCodes, type WireError } from "../../wire/Codes.ts"
import type { ErrorFrame, HelloFields, WelcomeFrame } from "../../wire/Frames.ts"
import { limits } from "../../wire/WireLimits.ts"
import { type Following, Subscriptions } from "../feed/Subscriptions.ts"
import type { Principal } from "../operations/Context.ts"
import type { Operator } from "../operations/Operate.ts"
import { parseObject, parseRequest, type Request } from "../operations/Requests.ts"
import { type SocketSink, streamDrained, waitForRoom } from "./SocketSink.ts"
import { textFrame } from "./WebSocketFrame.ts"

/** A socket that answers a message over the limit with the code of this protocol. */
export class ClientSocket extends WebSocket {
  override close(code?: number, reason?: string | Buffer): void {
    super.close(code === 1009 ? closeCodes.abusive : code, reason)
  }
}

export interface ConnectionHost {
  /** Who the credentials of a hello belong to. */
  readonly authenticate: (credentials: { readonly token?: string; readonly ticket?: string }) => Principal | undefined
  readonly operator: Operator
  readonly following: Following
  readonly serverName: string
  readonly monotonicMs: () => number
  readonly stalledMs: number
  readonly helloWithinMs: number
  /** What a client is told of the limits that hold here. */
  readonly limits: Readonly<Record<string, number>>
  /** The stream belongs to somebody who is known. */
  readonly onKnown: (stream: Duplex) => void
  /** A request has its answer. */
  readonly onAnswered: () => void
  readonly onClosed: (connection: Connection) => void
}

export class Connection {
  private readonly socket: WebSocket
  private readonly stream: Duplex
  private readonly host: ConnectionHost
  private principal: Principal | undefined
  private subscriptions: Subscriptions | undefined
  private cancelHello: Cancel | undefined
  private malformed = 0
  private stopCounting: (() => void) | undefined
  private inFlight = 0
  private windowStartMs = 0
  private windowRequests = 0
  private isAlive = true
  private isHeld = false

  constructor(socket: WebSocket, stream: Duplex, host: ConnectionHost, known: Principal | undefined) {
    this.socket = socket
    this.stream = stream
    this.host = host
    this.principal = known
    const late = (): void => this.close(closeCodes.helloMissing, "no hello in time")
    this.cancelHello = after(host.helloWithinMs, late)
    // Fragments are put together by the library, so this is one buffer.
    socket.on("message", (data, isBinary) => this.receive(data as Buffer, isBinary))
    // After the library has seen the same bytes: what is still no hello then is waiting in its buffers.
    this.stopCounting = this.countBeforeHello()
    socket.on("pong", () => {
      this.isAlive = true
    })
    socket.on("error", () => this.endSoon())
    socket.on("close", () => this.closed())
  }

  /** Sends away who says too many messages before hello; returns how to stop counting. */
  private countBeforeHello(): () => void {
    let bytes = 0
    const count = (chunk: Buffer): void => {
      bytes += chunk.length
      if (this.subscriptions !== undefined || bytes <= limits.helloBytesMax) return
      this.stopCounting?.()
      this.close(closeCodes.abusive, "too many messages before hello")
      // Nothing more is read of it, so nothing more is kept.
      this.socket.pause()
    }
    this.stream.on("data", count)
    return () => this.stream.off("data", count)
  }

  /** Who came in; nobody before hello. */
  get principalName(): string | undefined {
    return this.principal?.name
  }

  get requestsInFlight(): number {
    return this.inFlight
  }

  get subscriptionCount(): number {
    return this.subscriptions?.size ?? 0
  }

  /** Asks for a sign of life; ends a connection that gave none since the last time. */
  ping(): void {
    if (this.socket.readyState !== WebSocket.OPEN) return
    // What waits in the socket waits in front of the ping; being slow is judged elsewhere.
    if (this.sink.pendingBytes() > 0) return
    if (!this.isAlive) {
      this.socket.terminate()
      return
    }
    this.isAlive = false
    this.socket.ping()
  }

  close(code: number, reason: string): void {
    this.subscriptions?.closeAll()
    this.socket.close(code, reason)
    this.endSoon()
  }

  /** A goodbye that nobody answers must not keep the socket. */
  private endSoon(): void {
    const withinMs = this.subscriptions === undefined ? limits.helloGoodbyeMs : limits.closeWithinMs
    const cancel = after(withinMs, () => this.socket.terminate())
    this.socket.once("close", cancel)
  }

  terminate(): void {
    this.socket.terminate()
  }

  private closed(): void {
    this.cancelHello?.()
    this.subscriptions?.closeAll()
    this.host.onClosed(this)
  }

  private readonly sink: SocketSink = {
    write: (bytes, onWritten) => {
      if (this.stream.writable && this.socket.readyState === WebSocket.OPEN) this.stream.write(bytes, onWritten)
      else onWritten?.()
    },
    pendingBytes: () => this.stream.writableLength,
    drained: () => streamDrained(this.stream),
    isOpen: () => this.socket.readyState === WebSocket.OPEN,
    closeStalled: () => this.close(closeCodes.tooFarBehind, "the reader is too slow; resume from your cursor"),
    stalledMs: () => this.host.stalledMs
  }

  private send(text: string): void {
    this.sink.write(textFrame(text))
    if (this.sink.pendingBytes() > limits.socketBytesMax && !this.isHeld) void this.hold()
  }

  /** One that asks and does not read the answers is asked to wait. */
  private async hold(): Promise<void> {
    this.isHeld = true
    this.socket.pause()
    const hasComeBack = await waitForRoom(this.sink)
    this.isHeld = false
    if (hasComeBack) this.socket.resume()
  }

  private fail(id: string | null, error: WireError): void {
    const frame: ErrorFrame = { id, error }
    this.send(JSON.stringify(frame))
  }

  private receive(data: Buffer, isBinary: boolean): void {
    if (this.socket.readyState !== WebSocket.OPEN) return
    const value = isBinary ? "binary messages are not part of this protocol" : parseObject(data.toString("utf8"))
    if (typeof value === "string") {
      this.countMalformed(null, { code: "bad_request", message: value })
      return
    }
    const id = idOf(value)
    if (this.isOverRate()) {
      this.fail(id, tooFast)
      return
    }
    if (value["op"] === "hello") {
      this.hello(value)
      return
    }
    if (this.subscriptions === undefined) {
      this.fail(id, { code: "unauthorized", message: "hello comes first" })
      this.close(closeCodes.notAuthorised, "hello comes first")
      return
    }
    const parsed = parseRequest(value)
    if (parsed._tag === "Refused") {
      this.countMalformed(parsed.id, parsed.error)
      return
    }
    this.malformed = 0
    void this.answer(parsed.request)
  }

  private countMalformed(id: string | null, error: WireError): void {
    this.fail(id, error)
    this.malformed += 1
    if (this.malformed >= limits.malformedMax) this.close(closeCodes.abusive, "too many malformed messages")
  }

  private isOverRate(): boolean {
    const now = this.host.monotonicMs()
    if (now - this.windowStartMs >= 1000) {
      this.windowStartMs = now
      this.windowRequests = 0
    }
    this.windowRequests += 1
    return this.windowRequests > limits.operationsPerSecondMax
  }

  private hello(value: Readonly<Record<string, unknown>>): void {
    const { protocol, ticket, token }: HelloFields = value
    const id = idOf(value)
    const known =
      this.principal ??
      this.host.authenticate({
        ...(typeof token === "string" ? { token } : {}),
        ...(typeof ticket === "string" ? { ticket } : {})
      })
    if (known === undefined) {
      this.fail(id, { code: "unauthorized", message: "the token is missing or wrong" })
      this.close(closeCodes.notAuthorised, "not authorised")
      return
    }
    this.principal = known
    if (protocol !== 1) {
      this.countMalformed(id, { code: "bad_request", message: "this server speaks protocol 1" })
      return
    }
    // A connection may last for days: nothing of the wait is kept for it.
    this.cancelHello?.()
    this.cancelHello = undefined
    this.stopCounting?.()
    this.stopCounting = undefined
    this.host.onKnown(this.stream)
    this.subscriptions ??= new Subscriptions(this.host.following, this.sink, known)
    const { name: principal, role } = known
    const { limits } = this.host
    const welcome: WelcomeFrame = { id, ok: { protocol: 1, server: this.host.serverName, principal, role, limits } }
    this.send(JSON.stringify(welcome))
  }

  private async answer(request: Request): Promise<void> {
    if (this.inFlight >= limits.requestsInFlightMax) {
      this.fail(request.id, tooMany)
      return
    }
    const { principal, subscriptions } = this
    if (principal === undefined || subscriptions === undefined) return
    this.inFlight += 1
    const outcome = await this.host.operator.run(request, {
      principal,
      channel: "websocket",
      connection: this,
      follow: ({ fields, op }) => subscriptions.perform(op, fields)
    })
    this.inFlight -= 1
    if (outcome._tag === "Failed") this.fail(request.id, outcome.error)
    else {
      this.send(JSON.stringify({ id: request.id, ok: outcome.ok }))
      subscriptions.answered(outcome.ok)
    }
    this.host.onAnswered()
  }
}

const idOf = (value: Readonly<Record<string, unknown>>): string | null => {
  const { id } = value
  return typeof id === "string" && id.length <= limits.idCharsMax ? id : null
}

const tooFast: WireError = {
  code: "limit_exceeded",
  message: `more than ${limits.operationsPerSecondMax} requests in a second`,
  data: { retry_after_ms: 1000 }
}

const tooMany: WireError = {
  code: "busy",
  message: "too many unanswered requests",
  data: { retry_after_ms: 100 }
}
