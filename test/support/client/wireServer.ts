// A server of the wire in small, for tests of the client: real sockets, one log in memory that outlives restarts, and
// faults on demand. It keeps idempotency keys, pushes in order, and counts what it was asked.
import type { AddressInfo } from "node:net"
import { type WebSocket, WebSocketServer } from "ws"

interface StoredRune {
  readonly event_id: number
  readonly kind: string
  readonly [field: string]: unknown
}

interface Follower {
  readonly sub: string
  readonly socket: WebSocket
  cursor: number
  isCaughtUp: boolean
  readonly kinds: ReadonlyArray<string> | undefined
}

type Message = Readonly<Record<string, unknown>>

export class WireServer {
  readonly runes: Array<StoredRune> = []
  readonly received: Array<Message> = []
  readonly outcomes = new Map<string, number>()
  readonly attention: Array<Message> = []
  readonly token = "right"
  /** Runs before a request is answered; answering true means that it has dealt with it. */
  intercept: ((message: Message, socket: WebSocket) => boolean) | undefined
  url = ""
  private server: WebSocketServer | undefined
  private port = 0
  private followers: Array<Follower> = []
  private named = 0

  async start(): Promise<void> {
    const server = new WebSocketServer({ host: "127.0.0.1", port: this.port, path: "/ws" })
    await new Promise<void>((resolve, reject) => server.once("listening", resolve).once("error", reject))
    this.port = (server.address() as AddressInfo).port
    this.url = `http://127.0.0.1:${this.port}`
    this.server = server
    server.on("connection", (socket) => {
      socket.on("message", (data) => this.receive(socket, JSON.parse(String(data))))
      socket.on("close", () => {
        this.followers = this.followers.filter((follower) => follower.socket !== socket)
      })
    })
  }

  get sockets(): ReadonlyArray<WebSocket> {
    return [...(this.server?.clients ?? [])]
  }

  get following(): number {
    return this.followers.length
  }

  /** Ends every connection: with a code in good order, without one as a crash would. */
  dropAll(code?: number): void {
    for (const socket of this.sockets) code === undefined ? socket.terminate() : socket.close(code, "test")
  }

  async stop(): Promise<void> {
    this.dropAll()
    await new Promise<void>((resolve) => (this.server === undefined ? resolve() : this.server.close(() => resolve())))
    this.server = undefined
  }

  append(count: number, payload: Message = {}): void {
    for (let added = 0; added < count; added += 1) {
      const eventId = this.runes.length + 1
      this.runes.push({ event_id: eventId, kind: eventId % 5 === 0 ? "tool.call" : "turn.assistant_delta", payload })
    }
    for (const follower of this.followers) this.deliver(follower)
  }

  raiseAttention(item: Message): void {
    this.attention.push(item)
    for (const socket of this.sockets) socket.send(JSON.stringify({ sub: "*", attention: item }))
  }

  private deliver(follower: Follower): void {
    const { socket, sub, kinds } = follower
    for (const rune of this.runes.slice(follower.cursor)) {
      follower.cursor = rune.event_id
      if (kinds === undefined || kinds.includes(rune.kind)) socket.send(JSON.stringify({ sub, rune }))
    }
    if (!follower.isCaughtUp) socket.send(JSON.stringify({ sub, caught_up: { head: this.runes.length } }))
    follower.isCaughtUp = true
  }

  private receive(socket: WebSocket, message: Message): unknown {
    this.received.push(message)
    if (this.intercept?.(message, socket) === true) return undefined
    const answer = (ok: unknown) => socket.send(JSON.stringify({ id: message["id"], ok }))
    const fail = (code: string, text: string, data?: Message) =>
      socket.send(JSON.stringify({ id: message["id"], error: { code, message: text, data } }))
    switch (message["op"]) {
      case "hello": {
        if (message["token"] === this.token) return answer({ protocol: 1, server: "test/1", principal: "test" })
        fail("unauthorized", "the token is wrong")
        return socket.close(4001, "not authorised")
      }
      case "subscribe":
        return message["conversation_id"] === "conv_00000000"
          ? this.subscribe(socket, message, answer)
          : fail("not_found", "unknown")
      case "unsubscribe":
        this.followers = this.followers.filter(({ sub }) => sub !== message["sub"])
        return answer({})
      case "attention.subscribe":
        return answer({ sub: "*" })
      case "attention.list":
        return answer({ items: this.attention })
      case "stats":
        return answer({ runes: this.runes.length })
      case "message.post":
        return answer({ event_id: this.once(String(message["idempotency_key"])) })
      default:
        return fail("bad_request", "no such operation")
    }
  }

  private once(key: string): number {
    const known = this.outcomes.get(key)
    if (known !== undefined) return known
    this.append(1, { key })
    this.outcomes.set(key, this.runes.length)
    return this.runes.length
  }

  private subscribe(socket: WebSocket, message: Message, answer: (ok: unknown) => void): void {
    this.named += 1
    const head = this.runes.length
    const cursor = message["after"] === "tail" ? head : Number(message["after"] ?? 0)
    const kinds = message["kinds"] as ReadonlyArray<string> | undefined
    const follower = { sub: `s${this.named}`, socket, cursor, isCaughtUp: false, kinds }
    answer({ sub: follower.sub, head })
    this.followers.push(follower)
    this.deliver(follower)
  }
}
