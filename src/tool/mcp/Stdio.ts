// An MCP server as a process of ours: messages are lines on its standard streams. It runs where and as the sandbox
// lets it; what it says too fast waits in its pipe, what is too long ends it, and all it started ends with it.
import * as Effect from "effect/Effect"
import { after } from "../../contract/Timers.ts"
import type { ProcessPort, RunningProcess } from "../../sandbox/process/ProcessPort.ts"
import { Lines } from "./Lines.ts"
import { asMcpError, McpError } from "./McpErrors.ts"
import { mcpLimits } from "./McpLimits.ts"
import { type Json, parseMessages } from "./Message.ts"
import { Rate } from "./Rate.ts"
import type { Transport, TransportListener } from "./Transport.ts"

export interface StdioOptions {
  readonly processes: Pick<ProcessPort, "start">
  readonly argv: ReadonlyArray<string>
  readonly directory: string
  readonly writable: ReadonlyArray<string>
  readonly readable: ReadonlyArray<string>
  readonly network: boolean
  readonly environment: Readonly<Record<string, string>>
  readonly monotonicMs: () => number
}

class StdioTransport implements Transport {
  private readonly listener: TransportListener
  private readonly lines = new Lines(mcpLimits.messageBytesMax)
  private readonly messages: Rate
  private readonly bytes: Rate
  private process: RunningProcess | undefined
  private errorTail = ""
  private malformed = 0
  private isOver = false

  constructor(listener: TransportListener, monotonicMs: () => number) {
    this.listener = listener
    this.messages = new Rate(mcpLimits.messagesPerSecondMax, monotonicMs)
    this.bytes = new Rate(mcpLimits.bytesPerSecondMax, monotonicMs)
  }

  async open({ monotonicMs: _, processes, ...request }: StdioOptions): Promise<this> {
    try {
      this.process = await processes.start({ ...request, onOutput: (stream, bytes) => this.hear(stream, bytes) })
    } catch (error) {
      throw asMcpError(error, "mcp_unavailable")
    }
    void this.process.ended.then(({ exit_code: code, signal }) =>
      this.finish(code === null ? `it was ended by ${signal}` : `it ended with exit code ${code}`)
    )
    return this
  }

  private hear(stream: unknown, bytes: Buffer): void {
    if (this.isOver) return
    if (stream === "stderr") {
      this.errorTail = (this.errorTail + bytes.toString("utf8")).slice(-mcpLimits.errorTailChars)
      return
    }
    const lines = this.lines.add(bytes)
    if (lines === "too_long") {
      this.giveUp(`it sent a message of more than ${mcpLimits.messageBytesMax} bytes`)
      return
    }
    const waitMs = Math.max(this.bytes.take(bytes.length), this.messages.take(lines.length))
    if (waitMs > 0) this.hold(waitMs)
    for (const line of lines) if (line !== "") this.take(line)
  }

  private hold(waitMs: number): void {
    this.process?.pause()
    after(waitMs, () => this.process?.resume())
  }

  private take(line: string): void {
    const messages = parseMessages(line)
    if (messages === undefined) {
      this.malformed += 1
      this.errorTail = `${this.errorTail}\n${line.slice(0, 200)}`.slice(-mcpLimits.errorTailChars)
      if (this.malformed >= mcpLimits.malformedMax) this.giveUp("what it prints is not the protocol")
      return
    }
    this.malformed = 0
    for (const message of messages) if (!this.isOver) this.listener.onMessage(message)
  }

  private giveUp(reason: string): void {
    this.finish(reason)
    void this.process?.kill()
  }

  private finish(reason: string): void {
    if (this.isOver) return
    this.isOver = true
    const said = this.errorTail.trim()
    this.listener.onClosed(said === "" ? reason : `${reason}; it said: ${said}`)
  }

  async send(message: Json): Promise<void> {
    const isHandedOver = !this.isOver && (await this.process?.write(`${JSON.stringify(message)}\n`))
    if (isHandedOver !== true) throw new McpError("mcp_server_gone", "it no longer reads", { isInDoubt: true })
  }

  agreed(): void {}

  /** Ends its input first, as the protocol wants, and then all of it. */
  async close(): Promise<void> {
    this.isOver = true
    const { process } = this
    if (process === undefined) return
    process.endInput()
    await Effect.runPromise(
      Effect.timeoutOption(
        Effect.promise(() => process.ended),
        mcpLimits.closeWithinMs
      )
    )
    await process.kill()
  }
}

export const openStdio = (options: StdioOptions, listener: TransportListener): Promise<Transport> =>
  new StdioTransport(listener, options.monotonicMs).open(options)
