// Listener: one port for WebSocket and HTTP, open for as long as its scope. `Host` and `Origin` are checked first, then the
// token. Its end hands out what is durable, tells every client to come back later, and takes bounded time.
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import type { Duplex } from "node:stream"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { WebSocketServer } from "ws"
import type { Channel } from "../contract/Channel.ts"
import type { NoticeBus } from "../contract/DurableNotices.ts"
import type { LiveText } from "../contract/LiveText.ts"
import { describeError, type Log } from "../contract/ServerLog.ts"
import type { AnyRune } from "../rune/Rune.ts"
import { closeCodes } from "../wire/Codes.ts"
import type { AnswerOf } from "../wire/Operations.ts"
import { limits } from "../wire/WireLimits.ts"
import { Auth, allowedHosts, bearerOf, checkRequest, type NamedToken, namedToken } from "./Auth.ts"
import { Condition } from "./Condition.ts"
import { AllFeed } from "./feed/AllFeed.ts"
import { AttentionFeed } from "./feed/AttentionFeed.ts"
import { Feeds } from "./feed/Feeds.ts"
import { Live } from "./feed/LiveText.ts"
import { PageBuffers } from "./feed/PageBuffers.ts"
import type { Following } from "./feed/Subscriptions.ts"
import type { BlobReader } from "./http/BlobDownload.ts"
import { answerPage } from "./http/CrossOrigin.ts"
import { Http } from "./http/Http.ts"
import { answerJson, urlOf } from "./http/HttpAnswer.ts"
import type { Health } from "./http/HttpParts.ts"
import { type PageFiles, principalOfCookie } from "./http/Page.ts"
import type { Administration, Principal } from "./operations/Context.ts"
import { Operator, type Services } from "./operations/Operate.ts"
import { ClientSocket, Connection, type ConnectionHost } from "./socket/Connection.ts"
import { UnknownSockets } from "./socket/UnknownSockets.ts"
import { circuitGauges, type Metrics, plainGauges } from "./telemetry/Metrics.ts"

export interface HttpListenerOptions {
  readonly host: string
  /** 0 picks one. */
  readonly port: number
  readonly tokens: ReadonlyArray<NamedToken>
  /** More names under which the server may be addressed. */
  readonly hostNames?: ReadonlyArray<string>
  /** Pages of others that may use this server from a browser, by their exact origin. */
  readonly origins?: ReadonlyArray<string>
  /** Where the store announces what became durable. */
  readonly notices: NoticeBus
  /** Where turns tell text as it arrives. */
  readonly liveTexts: Channel<readonly [live: LiveText]>
  readonly services: Omit<Services, "about" | "administration" | "figures" | "nowMs">
  /** What holds commands; absent on a server without them. */
  readonly sandbox?: AnswerOf<"server.info">["sandbox"]
  /** Bytes that runes name. */
  readonly blobs?: BlobReader
  /** What a browser gets at "/"; nothing where it is absent. */
  readonly page?: PageFiles
  readonly version: string
  readonly log: Log
  /** What was counted since the server started. */
  readonly metrics: Metrics
  readonly nowMs: () => number
  readonly monotonicMs: () => number
  /** Figures of the parts behind the listener, for `stats` and for the metrics. */
  readonly figures: () => Readonly<Record<string, number>>
  /** Keeps tokens and ends the server; without it, only the program that holds the server does. */
  readonly administration?: Administration
  readonly stalledMs?: number
  readonly helloWithinMs?: number
  readonly headersWithinMs?: number
  readonly pingEveryMs?: number
  readonly connectionsMax?: number
  /** Sockets of any kind at once, where the process may have fewer than the table says. */
  readonly socketsMax?: number
  /** Why nothing can be written now, if nothing can. */
  readonly writable?: () => string | undefined
}

const FORBIDDEN = "HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
const UNAUTHORIZED =
  "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
const NOT_FOUND = "HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
const AWAY = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"

export class HttpListener {
  private readonly options: HttpListenerOptions
  private readonly http: HttpServer
  private readonly sockets: WebSocketServer
  private readonly auth: Auth
  private readonly routes: Http
  /** What became durable since the start, and how long it took from the making of the first rune of each append. */
  private readonly committed = { commits: 0, runes: 0, ms: 0 }
  private readonly connections = new Set<Connection>()
  private readonly unknown: UnknownSockets
  private readonly following: Following
  private readonly connectionHost: ConnectionHost
  private readonly live = new Live()
  private readonly attention: AttentionFeed
  private readonly allFeed: AllFeed
  private readonly topics: Feeds
  private readonly metrics: Metrics
  private readonly startedMs: number
  private hosts: ReadonlySet<string> = new Set()
  private readonly origins: ReadonlySet<string>
  private readonly changed = new Condition()
  private names = 0
  private readonly stopListening: () => void
  private isClosing = false

  private constructor(options: HttpListenerOptions) {
    this.options = options
    const { log, monotonicMs, services } = options
    const { conversations, conversationStore } = services
    this.startedMs = options.nowMs()
    this.origins = new Set(options.origins?.map((one) => one.toLowerCase()))
    this.unknown = new UnknownSockets(Math.min(limits.unknownSocketsMax, Math.ceil(this.socketsMax / 4)))
    this.auth = new Auth(options.tokens, options.nowMs)
    this.metrics = options.metrics
    const newName = (): string => `s${++this.names}`
    const onFailure = (error: unknown, conversationId: string): void => {
      const fields = { conversation_id: conversationId, cause: describeError(error) }
      if (!this.isClosing) log.write("warn", "a conversation could not be read for its followers", fields)
    }
    const onQuiet = this.changed.notify
    const reading = { conversationStore, buffers: new PageBuffers(), monotonicMs, onQuiet }
    this.topics = new Feeds({ ...reading, newName, onFailure })
    this.allFeed = new AllFeed({ ...reading, newName, onFailure })
    this.attention = new AttentionFeed(services.attention)
    this.following = {
      topics: this.topics,
      allFeed: this.allFeed,
      attention: this.attention,
      live: this.live,
      conversationStore,
      outsideAgents: services.outsideAgents,
      newName,
      nowMs: options.nowMs
    }
    const operator = new Operator({
      services: { ...services, ...this.administration(), ...this.selfDescription(), nowMs: options.nowMs },
      log,
      metrics: this.metrics,
      monotonicMs
    })
    const stalledMs = options.stalledMs ?? limits.stalledMs
    this.connectionHost = this.hostFor(operator, stalledMs)
    this.routes = new Http({
      auth: this.auth,
      operator,
      metrics: this.metrics,
      gauges: () => [...plainGauges(this.figures()), ...circuitGauges(conversations.circuits())],
      conversationStore,
      ...(services.attachments === undefined ? {} : { attachments: services.attachments }),
      ...(options.blobs === undefined ? {} : { blobs: options.blobs }),
      ...(options.page === undefined ? {} : { page: options.page }),
      ...(services.outsideAgents === undefined ? {} : { outsideAgents: services.outsideAgents }),
      log,
      stalledMs,
      health: () => this.health(),
      onKnown: (socket) => this.unknown.known(socket)
    })
    this.sockets = this.makeSockets()
    this.http = this.makeHttp()
    this.stopListening = this.listenToNotices()
  }

  private listenToNotices(): () => void {
    const { liveTexts, notices } = this.options
    const stops = [
      liveTexts.add("server", (live) => this.live.tell(live)),
      notices.subscribe({
        name: "server",
        appended: (conversationId, runes) => this.appended(conversationId, runes),
        // Whoever follows everything has had a restored one before it was archived.
        appeared: (conversationId, how) => (how === "restored" ? undefined : this.allFeed.notice(conversationId, 1))
      })
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }

  /** Listens for as long as the scope is open. */
  static readonly open = (options: HttpListenerOptions): Effect.Effect<HttpListener, Error, Scope.Scope> =>
    Effect.gen(function* () {
      const server = new HttpListener(options)
      yield* Effect.addFinalizer(() => server.close)
      yield* server.listen
      yield* server.every(options.pingEveryMs ?? limits.pingEveryMs, () => server.ping())
      yield* server.every(limits.followAllQuietMs, () => server.allFeed.sweep())
      return server
    })

  /** What is done again and again while the scope is open; what fails is told and tried again. */
  private every(periodMs: number, run: () => void): Effect.Effect<void, never, Scope.Scope> {
    const failed = (cause: Cause.Cause<never>) =>
      this.options.log.write("error", "a periodic task failed", { cause: describeError(Cause.squash(cause)) })
    return Effect.sync(run).pipe(
      Effect.catchCause((cause) => Effect.sync(() => failed(cause))),
      Effect.delay(periodMs),
      Effect.repeat(Schedule.forever),
      Effect.forkScoped,
      Effect.asVoid
    )
  }

  /** Tokens are taken up, and given up, at once. */
  private administration(): { readonly administration?: Administration } {
    const kept = this.options.administration
    if (kept === undefined) return {}
    const createToken: Administration["createToken"] = (name, role) => {
      const token = kept.createToken(name, role)
      if (token !== undefined) this.auth.add(namedToken(name, role, token))
      return token
    }
    const removeToken: Administration["removeToken"] = (name) => {
      if (!kept.removeToken(name)) return false
      this.auth.remove(name)
      for (const connection of this.connections)
        if (connection.principalName === name) connection.close(closeCodes.notAuthorised, "the token was removed")
      return true
    }
    return { administration: { ...kept, createToken, removeToken } }
  }

  private makeSockets(): WebSocketServer {
    return new WebSocketServer({
      noServer: true,
      WebSocket: ClientSocket,
      maxPayload: limits.messageBytesMax,
      perMessageDeflate: false,
      clientTracking: false,
      handleProtocols: (offered) => (offered.has("echs.v1") ? "echs.v1" : false)
    })
  }

  private makeHttp(): HttpServer {
    const http = createServer({
      requestTimeout: limits.requestWithinMs,
      headersTimeout: this.options.headersWithinMs ?? limits.headersWithinMs,
      maxHeaderSize: limits.headersBytesMax,
      // Times are kept only as well as they are looked at.
      connectionsCheckingInterval: limits.headersCheckedEveryMs
    })
    http.maxConnections = this.socketsMax
    http.on("connection", (socket) => this.unknown.add(socket))
    http.on("request", (request, response) => void this.request(request, response))
    http.on("upgrade", (request, stream, head) => this.upgrade(request, stream, head))
    http.on("clientError", (_error, stream) => stream.destroy())
    return http
  }

  private get socketsMax(): number {
    return Math.min(this.options.socketsMax ?? limits.socketsMax, limits.socketsMax)
  }

  private get connectionsMax(): number {
    return this.options.connectionsMax ?? limits.connectionsMax
  }

  private hostFor(operator: Operator, stalledMs: number): ConnectionHost {
    const { helloWithinMs = limits.helloWithinMs, monotonicMs, version } = this.options
    return {
      authenticate: ({ ticket, token }) => this.auth.byToken(token) ?? this.auth.byTicket(ticket),
      operator,
      following: this.following,
      serverName: `echs/${version}`,
      monotonicMs,
      stalledMs,
      helloWithinMs,
      limits: { ...limits, socketsMax: this.socketsMax, connectionsMax: this.connectionsMax },
      onKnown: (stream) => this.unknown.known(stream),
      onAnswered: this.changed.notify,
      onClosed: (connection) => {
        this.connections.delete(connection)
        this.options.services.remoteTools?.gone(connection)
        this.changed.notify()
      }
    }
  }

  private get listen(): Effect.Effect<void, Error> {
    const { host, hostNames, port } = this.options
    return Effect.callback((resume) => {
      const refused = (error: Error): void => resume(Effect.fail(error))
      this.http.once("error", refused)
      this.http.listen({ host, port, backlog: 2048 }, () => {
        this.http.off("error", refused)
        this.hosts = allowedHosts(host, this.port, hostNames)
        resume(Effect.void)
      })
    })
  }

  get port(): number {
    return (this.http.address() as AddressInfo).port
  }

  get url(): string {
    const { host } = this.options
    const name = host.includes(":") ? `[${host}]` : host
    return `http://${name === "0.0.0.0" ? "127.0.0.1" : name === "[::]" ? "[::1]" : name}:${this.port}`
  }

  private appended(conversationId: string, runes: ReadonlyArray<AnyRune>): void {
    const first = runes[0]
    if (first === undefined) return
    this.committed.commits += 1
    this.committed.runes += runes.length
    this.committed.ms += Math.max(0, this.options.nowMs() - first.ts_ms)
    this.allFeed.notice(conversationId, first.event_id)
  }

  private ping(): void {
    for (const connection of this.connections) connection.ping()
    this.routes.beat()
  }

  private async request(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.metrics.count("http_requests_total")
    const verdict = checkRequest(request.headers, this.hosts, this.origins)
    if (verdict !== "welcome") {
      this.metrics.count("door_refusals_total", { reason: verdict })
      return answerJson(response, 403, { error: { code: "unauthorized", message: refusals[verdict] } })
    }
    if (answerPage(request, response, this.origins) === "answered") return
    await this.routes.answer(request, response)
  }

  private upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    stream.on("error", () => stream.destroy())
    const verdict = checkRequest(request.headers, this.hosts, this.origins)
    if (verdict !== "welcome") {
      this.metrics.count("door_refusals_total", { reason: verdict })
      return void stream.end(FORBIDDEN)
    }
    if (this.isClosing) return void stream.end(AWAY)
    if (urlOf(request).pathname !== "/ws") return void stream.end(NOT_FOUND)
    const { authorization } = request.headers
    const known = this.auth.byToken(bearerOf(authorization)) ?? principalOfCookie(this.auth, request)
    if (authorization !== undefined && known === undefined) return void stream.end(UNAUTHORIZED)
    if (known !== undefined) this.unknown.known(stream)
    ;(stream as Socket).setNoDelay?.(true)
    this.sockets.handleUpgrade(request, stream, head, (socket) => this.welcome(socket as ClientSocket, stream, known))
  }

  private welcome(socket: ClientSocket, stream: Duplex, known: Principal | undefined): void {
    this.metrics.count("websocket_connections_total")
    const connection = new Connection(socket, stream, this.connectionHost, known)
    this.connections.add(connection)
    if (this.connections.size > this.connectionsMax)
      connection.close(closeCodes.tooManyConnections, "too many connections")
  }

  private health(): Health {
    const { version, writable } = this.options
    const reason = writable?.()
    if (this.isClosing) return { status: "closing", version }
    return reason === undefined ? { status: "ok", version } : { status: "read_only", version, reason }
  }

  private selfDescription(): Pick<Services, "about" | "figures"> {
    const { sandbox = null, version } = this.options
    return {
      about: () => ({ version, pid: process.pid, started_ms: this.startedMs, sandbox }),
      figures: () => this.figures()
    }
  }

  /** Clients that follow or ask at this moment. */
  get connectionCount(): number {
    return this.connections.size + this.routes.eventStreams
  }

  private figures(): Readonly<Record<string, number>> {
    let subscriptions = 0
    for (const connection of this.connections) subscriptions += connection.subscriptionCount
    const { heapUsed, rss } = process.memoryUsage()
    return {
      uptime_ms: this.options.nowMs() - this.startedMs,
      connections: this.connections.size,
      sockets_unknown: this.unknown.size,
      subscriptions,
      topics: this.topics.size,
      event_streams: this.routes.eventStreams,
      conversations_resident: this.options.services.conversations.resident,
      runes_total: this.committed.runes,
      commits_total: this.committed.commits,
      commit_ms_total: this.committed.ms,
      process_resident_bytes: rss,
      process_heap_bytes: heapUsed,
      ...this.options.figures()
    }
  }

  /** Takes nobody new; done when the requests under way are answered, or when time is up. */
  quiesce(withinMs: number): Effect.Effect<void> {
    const isIdle = (): boolean => [...this.connections].every(({ requestsInFlight }) => requestsInFlight === 0)
    return Effect.andThen(
      Effect.sync(() => void this.http.close()),
      this.changed.waitFor(isIdle, withinMs)
    )
  }

  /** Hands out what is durable, tells everybody to come back later, and ends. Takes bounded time. */
  private readonly close = Effect.gen({ self: this }, function* () {
    this.isClosing = true
    yield* this.changed.waitFor(() => this.topics.isQuiet && this.allFeed.isQuiet, limits.deliverWithinMs)
    this.stopListening()
    this.http.close()
    this.routes.endStreams()
    for (const connection of this.connections)
      connection.close(closeCodes.goingAway, "the server is shutting down; reconnect later")
    yield* this.changed.waitFor(() => this.connections.size === 0, limits.goodbyeMs)
    for (const connection of this.connections) connection.terminate()
    this.http.closeAllConnections()
  })
}

const refusals = {
  wrong_host: "the Host header does not name this server",
  wrong_origin: "requests from other origins are refused unless the setting origins lists them"
} as const
