// Holds the terminal of one program, in a process of its own: the program lives on when the server or a viewer dies. Passes
// bytes through unchanged, keeps the screen for those who come later, answers the terminal's questions while nobody
// watches, and tells how the program ended. One client types; a viewer that falls too far behind is sent away.
import { createServer, type Server, type Socket } from "node:net"
import { harnessLimits } from "../HarnessLimits.ts"
import type { ProgramStatus } from "../Port.ts"
import { type Exit, encodeFrame, type Frame, FrameReader, type Hello, type Size } from "./Frames.ts"
import type { Screen } from "./Screen.ts"
import { colorAnswers, statusUnderstood, TerminalQueries } from "./TerminalQueries.ts"

/** The terminal side of a program. */
export interface Terminal {
  readonly pid: number
  readonly write: (bytes: Uint8Array | string) => void
  readonly resize: (size: Size) => void
  readonly kill: (signal: NodeJS.Signals) => void
  readonly pause: () => void
  readonly resume: () => void
}

export interface HolderOptions {
  /** Starts the program. One that is not detached starts when its owner is there, so that nothing of it is missed. */
  readonly start: (size: Size) => Terminal
  readonly screen: Screen
  readonly size: Size
  readonly nowMs: () => number
  readonly isDetached: boolean
}

interface Client {
  readonly socket: Socket
  role: Hello["role"] | undefined
  isOwner: boolean
}

const sizeOf = ({ columns, rows }: Partial<Size>): Size | undefined => {
  const isSize = (value: unknown): value is number =>
    Number.isInteger(value) && Number(value) > 0 && Number(value) < 4096
  return isSize(columns) && isSize(rows) ? { columns, rows } : undefined
}

const signals: ReadonlySet<string> = new Set([
  "SIGHUP",
  "SIGINT",
  "SIGTERM",
  "SIGKILL",
  "SIGQUIT",
  "SIGCONT",
  "SIGTSTP"
])

export class Holder {
  private readonly options: HolderOptions
  private readonly clients = new Set<Client>()
  private readonly queries = new TerminalQueries()
  private readonly server: Server
  private size: Size
  private terminal: Terminal | undefined
  private startedMs = 0
  private status: ProgramStatus = { state: "working", source: "silence" }
  private silence: NodeJS.Timeout | undefined
  private isPaused = false
  private exit: Exit | undefined
  private killer: NodeJS.Timeout | undefined

  constructor(options: HolderOptions) {
    this.options = options
    this.size = options.size
    this.server = createServer((socket) => this.accept(socket))
    options.screen.onAnswer((text) => {
      if (this.typist === undefined) this.terminal?.write(text)
    })
    if (options.isDetached) this.start()
  }

  private start(): Terminal {
    this.startedMs = this.options.nowMs()
    this.terminal = this.options.start(this.size)
    this.quietSoon()
    return this.terminal
  }

  listen(path: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.server.once("error", reject)
      this.server.listen(path, () => resolve())
    })
  }

  /** Output of the program. */
  output(bytes: Uint8Array): void {
    const { screen } = this.options
    const found = this.queries.read(bytes)
    if (found.asksStatus) this.terminal?.write(statusUnderstood)
    if (this.typist === undefined) for (const color of found.asksColors) this.terminal?.write(colorAnswers[color])
    for (const state of found.statuses) this.tellStatus({ state, source: "osc" })
    if (this.status.source === "silence" && this.status.state !== "working")
      this.tellStatus({ state: "working", source: "silence" })
    this.quietSoon()
    screen.write(bytes, () => this.flow())
    const frame = encodeFrame({ type: "output", bytes })
    for (const client of this.clients)
      if (client.role === "typist" || client.role === "viewer") this.show(client, frame)
    this.flow()
  }

  /** The program has ended; resolves when everybody was told, or had the time to hear it. */
  async ended(exit: Exit): Promise<void> {
    this.exit = exit
    clearTimeout(this.silence)
    clearTimeout(this.killer)
    const frame = encodeFrame({ type: "exit", value: exit })
    for (const { socket } of this.clients) socket.end(frame)
    const late = new Promise<void>((resolve) => setTimeout(resolve, harnessLimits.holderLingersMs))
    const all = new Promise<void>((resolve) => this.server.close(() => resolve()))
    await Promise.race([late, all])
  }

  private get typist(): Client | undefined {
    return [...this.clients].find(({ role }) => role === "typist")
  }

  private accept(socket: Socket): void {
    const client: Client = { socket, role: undefined, isOwner: false }
    const reader = new FrameReader()
    this.clients.add(client)
    socket.on("data", (piece) => {
      try {
        for (const frame of reader.push(piece)) this.take(client, frame)
      } catch {
        socket.destroy()
      }
    })
    socket.on("drain", () => this.flow())
    socket.on("error", () => socket.destroy())
    socket.on("close", () => this.left(client))
  }

  private left(client: Client): void {
    if (!this.clients.delete(client)) return
    this.flow()
    if (client.isOwner && this.exit === undefined) this.hangUp()
  }

  /** As a terminal that is closed: the program is told, and killed when it stays. */
  hangUp(): void {
    this.terminal?.kill("SIGHUP")
    this.killer ??= setTimeout(() => this.terminal?.kill("SIGKILL"), harnessLimits.killAfterMs)
  }

  private take(client: Client, frame: Frame): void {
    if (frame.type === "hello") {
      this.welcome(client, frame.value)
      return
    }
    if (client.role === undefined || client.role === "viewer") {
      if (frame.type === "leave") client.socket.end()
      return
    }
    this.command(client, frame)
  }

  private command(client: Client, frame: Frame): void {
    const { screen } = this.options
    switch (frame.type) {
      case "input":
        if (this.exit === undefined) this.terminal?.write(frame.bytes)
        return
      case "resize": {
        const size = sizeOf(frame.value)
        if (size === undefined || client.role !== "typist" || this.exit !== undefined) return
        this.size = size
        this.terminal?.resize(size)
        screen.resize(size)
        return
      }
      case "signal":
        if (signals.has(frame.value.signal) && this.exit === undefined)
          this.terminal?.kill(frame.value.signal as NodeJS.Signals)
        return
      case "leave":
        client.isOwner = false
        client.socket.end()
        return
      default:
    }
  }

  private welcome(client: Client, hello: Hello): void {
    const { isDetached, screen } = this.options
    if (client.role !== undefined) return
    if (this.clients.size > harnessLimits.viewersMax) {
      client.socket.end(encodeFrame({ type: "refused", value: { reason: "too many viewers" } }))
      return
    }
    client.role = hello.role === "typist" && this.typist !== undefined ? "viewer" : hello.role
    client.isOwner = hello.owner === true && client.role === "typist" && !isDetached
    if (client.role === "typist") this.command(client, { type: "resize", value: { ...this.size, ...hello } })
    const isFirst = this.terminal === undefined
    if (isFirst && !client.isOwner) {
      client.socket.end(encodeFrame({ type: "refused", value: { reason: "the program has not started yet" } }))
      return
    }
    const { pid } = this.terminal ?? this.start()
    const value = { role: client.role, pid, startedMs: this.startedMs, ...this.size }
    client.socket.write(encodeFrame({ type: "welcome", value }))
    client.socket.write(encodeFrame({ type: "status", value: this.status }))
    if (client.role !== "observer" && !client.isOwner)
      client.socket.write(encodeFrame({ type: "output", bytes: Buffer.from(screen.serialize()) }))
    if (this.exit !== undefined) client.socket.end(encodeFrame({ type: "exit", value: this.exit }))
  }

  private show(client: Client, frame: Buffer): void {
    client.socket.write(frame)
    if (client.role === "viewer" && client.socket.writableLength > harnessLimits.viewerBytesMax) client.socket.destroy()
  }

  /** The program waits for the one who types and for the screen, as it would for a slow terminal. */
  private flow(): void {
    const behind = Math.max(this.options.screen.behindBytes, this.typist?.socket.writableLength ?? 0)
    const isFull = behind > harnessLimits.viewerBytesMax / 8
    if (isFull === this.isPaused) return
    this.isPaused = isFull
    if (isFull) this.terminal?.pause()
    else this.terminal?.resume()
  }

  private quietSoon(): void {
    if (this.status.source === "osc") return
    this.silence?.refresh()
    this.silence ??= setTimeout(() => {
      this.silence = undefined
      if (this.status.source === "silence") this.tellStatus({ state: "idle", source: "silence" })
    }, harnessLimits.silenceMs)
  }

  private tellStatus(status: ProgramStatus): void {
    this.status = status
    if (status.source === "osc") clearTimeout(this.silence)
    const frame = encodeFrame({ type: "status", value: status })
    for (const { role, socket } of this.clients) if (role === "observer") socket.write(frame)
  }
}
