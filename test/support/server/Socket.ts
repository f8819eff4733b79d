// A client as plain as it can be: sends frames, keeps what comes, waits for what a test names. Knows the protocol by its
// text and its schemas alone, so that it cannot share a mistake with the product's client.
import { once } from "node:events"
import { type ClientOptions, WebSocket } from "ws"
import { mustMatch } from "./answers.ts"

export type Json = Readonly<Record<string, unknown>>
export interface Answer {
  readonly id: string | null
  readonly ok?: Json
  readonly error?: { readonly code: string; readonly message: string; readonly data?: Json }
}

interface Waiter {
  readonly isMet: () => boolean
  readonly resolve: () => void
}

export class Socket {
  readonly raw: WebSocket
  /** Every frame that was pushed, in order. */
  readonly pushed: Array<Json> = []
  readonly answers = new Map<string | null, Answer>()
  closeCode: number | undefined
  private readonly waiters = new Set<Waiter>()
  private asked = 0

  private constructor(raw: WebSocket) {
    this.raw = raw
    raw.on("message", (data) => this.take(JSON.parse(String(data))))
    raw.on("error", () => undefined)
    raw.on("close", (code) => {
      this.closeCode = code
      this.look()
    })
  }

  static async open(url: string, options: ClientOptions = {}): Promise<Socket> {
    const raw = new WebSocket(`${url.replace(/^http/, "ws")}/ws`, options)
    const socket = new Socket(raw)
    await once(raw, "open")
    return socket
  }

  private take(frame: Json): void {
    if ("attention" in frame) mustMatch("wire/pushed.json", frame)
    if ("sub" in frame) this.pushed.push(frame)
    else this.answers.set(frame["id"] as string | null, frame as unknown as Answer)
    this.look()
  }

  private look(): void {
    for (const waiter of this.waiters) {
      if (!waiter.isMet()) continue
      this.waiters.delete(waiter)
      waiter.resolve()
    }
  }

  /** Resolves when the condition holds; it is asked after every frame. */
  until(isMet: () => boolean): Promise<void> {
    if (isMet()) return Promise.resolve()
    return new Promise((resolve) => this.waiters.add({ isMet, resolve }))
  }

  send(frame: unknown): void {
    this.raw.send(typeof frame === "string" ? frame : JSON.stringify(frame))
  }

  async ask(op: string, fields: Json = {}): Promise<Answer> {
    const id = `t${++this.asked}`
    this.send({ id, op, ...fields })
    await this.until(() => this.answers.has(id) || this.closeCode !== undefined)
    const answer = this.answers.get(id)
    if (answer === undefined) throw new Error(`the connection ended with ${this.closeCode} before ${op} was answered`)
    this.answers.delete(id)
    return answer
  }

  /** The answer of an operation that must succeed. */
  async ok(op: string, fields: Json = {}): Promise<Json> {
    const { error, ok } = await this.ask(op, fields)
    if (ok === undefined) throw new Error(`${op} failed: ${JSON.stringify(error)}`)
    mustMatch(op === "hello" ? "wire/welcome.json" : `answers/${op}.json`, ok)
    return ok
  }

  /** The error of an operation that must fail. */
  async error(op: string, fields: Json = {}): Promise<NonNullable<Answer["error"]>> {
    const { error, ok } = await this.ask(op, fields)
    if (error === undefined) throw new Error(`${op} succeeded: ${JSON.stringify(ok)}`)
    mustMatch("wire/error.json", error)
    return error
  }

  async hello(token: string): Promise<Json> {
    return this.ok("hello", { protocol: 1, token, client: { name: "test", version: "0" } })
  }

  /** A new conversation. */
  async create(fields: Json = {}): Promise<string> {
    return (await this.ok("conversation.create", fields))["conversation_id"] as string
  }

  runes(sub?: unknown): Array<Json> {
    const runes: Array<Json> = []
    for (const frame of this.pushed) {
      if ("rune" in frame && (sub === undefined || frame["sub"] === sub)) runes.push(frame["rune"] as Json)
    }
    return runes
  }

  /** Resolves when a rune of the kind has come so many times. */
  async rune(kind: string, times = 1): Promise<Json> {
    const found: Array<Json> = []
    let looked = 0
    await this.until(() => {
      // Each frame is looked at once: it is asked after every one of them, and there may be many thousand.
      for (; looked < this.pushed.length; looked++) {
        const rune = this.pushed[looked]!["rune"] as Json | undefined
        if (rune?.["kind"] === kind) found.push(rune)
      }
      return found.length >= times
    })
    return found[times - 1]!
  }

  /** The code with which the server ended the connection. */
  async closed(): Promise<number> {
    await this.until(() => this.closeCode !== undefined)
    return this.closeCode!
  }

  async close(): Promise<void> {
    if (this.closeCode !== undefined) return
    this.raw.close()
    await this.closed()
  }
}
