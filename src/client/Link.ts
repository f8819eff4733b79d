/**
 * One connection, from hello to its end: answers find their requests, pushed frames their feeds. It ends once, tells
 * everybody who waits, and is never used again; connecting anew is the client's work.
 */
import { LinkLost, RequestFailed, SentAway } from "./ClientErrors.ts"
import { clientLimits } from "./ClientLimits.ts"
import type { Feed } from "./Feed.ts"
import { type Endpoint, type OpenSocket, type SocketLike, socketUrl } from "./Socket.ts"
import type { AnswerFrame, PushedFrame, Welcome } from "./Wire.ts"

export interface LinkEnd {
  readonly code: number
  readonly reason: string
}

export interface ClientName {
  readonly name: string
  readonly version: string
}

interface Waiting {
  readonly op: string
  /** Runs before any frame that follows the answer is looked at. */
  readonly onOk: ((ok: unknown) => void) | undefined
  readonly resolve: (ok: unknown) => void
  readonly reject: (error: Error) => void
}

export class Link {
  readonly ended: Promise<LinkEnd>
  welcome: Welcome | undefined
  lastHeardMs = 0
  /** Something sensible came after the welcome. */
  isProven = false
  private readonly socket: SocketLike
  private readonly waiting = new Map<string, Waiting>()
  private readonly feeds = new Map<string, Feed>()
  private nextId = 1
  private isOver = false
  private readonly nowMs: () => number
  private settleEnd: (end: LinkEnd) => void = () => {}

  private constructor(socket: SocketLike, nowMs: () => number) {
    this.socket = socket
    this.nowMs = nowMs
    this.ended = new Promise((resolve) => {
      this.settleEnd = resolve
    })
    socket.addEventListener("message", (event) => this.receive(event.data))
    socket.addEventListener("close", ({ code, reason }) => this.finish({ code, reason }))
    // A close follows every error and says more.
    socket.addEventListener("error", () => {})
  }

  /** Connects and says hello. Rejects with SentAway when the server does not want this client, else with LinkLost. */
  static async open(
    endpoint: Endpoint,
    options: { readonly openSocket: OpenSocket; readonly client: ClientName; readonly nowMs: () => number }
  ): Promise<Link> {
    const socket = options.openSocket(socketUrl(endpoint.url))
    const link = new Link(socket, options.nowMs)
    const timer = setTimeout(() => link.drop("no answer to hello"), clientLimits.connectWithinMs)
    try {
      await link.opened()
      await link.hello(endpoint, options.client)
      return link
    } catch (error) {
      link.drop("hello failed")
      throw await link.reasonFor(error)
    } finally {
      clearTimeout(timer)
    }
  }

  private opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.socket.addEventListener("open", () => resolve())
      void this.ended.then(({ reason }) => reject(new LinkLost(reason || "no server answers at this address")))
    })
  }

  private async hello(endpoint: Endpoint, client: ClientName): Promise<void> {
    const { token, ticket } = endpoint
    const credentials = ticket !== undefined ? { ticket } : token !== undefined ? { token } : {}
    this.welcome = (await this.exchange("0", "hello", { protocol: 1, ...credentials, client })) as Welcome
  }

  /** Not being let in is told by an error and by the close code that follows it. */
  private async reasonFor(error: unknown): Promise<Error> {
    if (error instanceof RequestFailed && error.code === "unauthorized") return new SentAway(4001, error.message)
    const { code, reason } = await this.ended
    if (isFinal(code)) return new SentAway(code, reason)
    return error instanceof Error ? error : new LinkLost(String(error))
  }

  request(op: string, fields: Readonly<Record<string, unknown>>, onOk?: (ok: unknown) => void): Promise<unknown> {
    const id = String(this.nextId)
    this.nextId += 1
    return this.exchange(id, op, fields, onOk)
  }

  private exchange(
    id: string,
    op: string,
    fields: Readonly<Record<string, unknown>>,
    onOk?: (ok: unknown) => void
  ): Promise<unknown> {
    if (this.isOver) return Promise.reject(new LinkLost("the connection is closed"))
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { op, onOk, resolve, reject })
      this.socket.send(JSON.stringify({ id, op, ...fields }))
    })
  }

  get waitingCount(): number {
    return this.waiting.size
  }

  follow(sub: string, feed: Feed): void {
    if (this.isOver) feed.finish("lost")
    else this.feeds.set(sub, feed)
  }

  /** No frame of this subscription is wanted any more; resolves when none can come. */
  async leave(sub: string, feed: Feed): Promise<void> {
    if (this.feeds.get(sub) !== feed || this.isOver) return
    this.feeds.delete(sub)
    try {
      await this.request("unsubscribe", { sub })
    } catch (error) {
      if (!(error instanceof LinkLost) && !(error instanceof RequestFailed)) throw error
    }
  }

  /** Ends the connection from this side, without waiting for the other. */
  drop(reason: string): void {
    this.socket.close()
    this.finish({ code: 1006, reason })
  }

  private receive(data: unknown): void {
    if (typeof data !== "string" || this.isOver) return
    this.lastHeardMs = this.nowMs()
    const frame = parseFrame(data)
    if (frame === undefined) return void this.drop("the server sent a message that is not JSON")
    this.isProven ||= this.welcome !== undefined
    if (frame.sub !== undefined) {
      const key = frame.attention === undefined ? frame.sub : attentionKey
      this.feeds.get(key)?.push(frame as PushedFrame, data.length)
    } else if (typeof frame.id === "string") this.settle(frame.id, frame as AnswerFrame)
  }

  private settle(id: string, answer: AnswerFrame): void {
    const waiting = this.waiting.get(id)
    if (waiting === undefined) return
    this.waiting.delete(id)
    if (answer.error === undefined) {
      waiting.onOk?.(answer.ok)
      waiting.resolve(answer.ok)
    } else waiting.reject(new RequestFailed(waiting.op, answer.error))
  }

  private finish(end: LinkEnd): void {
    if (this.isOver) return
    this.isOver = true
    this.settleEnd(end)
    const lost = new LinkLost(end.reason || `the connection ended with ${end.code}`)
    for (const waiting of this.waiting.values()) waiting.reject(lost)
    this.waiting.clear()
    for (const feed of this.feeds.values()) feed.finish("lost")
    this.feeds.clear()
  }
}

type Frame = Partial<PushedFrame> & Partial<AnswerFrame>

const parseFrame = (text: string): Frame | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? value : undefined
  } catch {
    return undefined
  }
}

/** Frames about attention share the name "*" with a subscription to everything; they are told apart by what they hold. */
export const attentionKey = "*attention"

/** Close codes after which connecting again would end the same way. */
export const isFinal = (code: number): boolean => code === 4001 || code === 4004 || code === 4008 || code === 4009
