// One MCP server for one conversation, across all its lives: opened when it is first needed, opened again when it was
// lost, later each time it is lost again. Its tools are remembered meanwhile. Whatever the server does, a call has
// exactly one outcome.
import { after } from "../../contract/Timers.ts"
import type { EffectClass } from "../../rune/kinds/shared.ts"
import type { Input } from "../Tool.ts"
import type { SignalContext, ToolOutcome } from "../ToolPort.ts"
import { outcomeOf } from "./Content.ts"
import { asMcpError, inDoubt, McpError } from "./McpErrors.ts"
import { mcpLimits } from "./McpLimits.ts"
import { offeredName } from "./Names.ts"
import { Session, type SessionOptions } from "./Session.ts"
import type { McpServerSettings } from "./Settings.ts"
import { sleep } from "./Sleep.ts"
import { type McpToolInfo, noTools, type ToolList } from "./ToolList.ts"

export interface ConnectionOptions extends Omit<SessionOptions, "onChanged" | "onClosed"> {
  /** Makes room for one more; throws McpError when there is none. */
  readonly admit: () => void
  /** For the one who runs the server. */
  readonly onTrouble: (message: string) => void
}

export interface CalledTool {
  /** The name under which it is offered. */
  readonly name: string
  readonly effect_class: EffectClass
}

const backoffMs = (failures: number): number =>
  failures === 0 ? 0 : Math.min(mcpLimits.backoffMaxMs, mcpLimits.backoffFirstMs * 2 ** Math.min(failures - 1, 20))

/** Of what can be repeated, the lack of an answer is an error; of what cannot, nobody knows whether it happened. */
const failureOf = (server: string, effectClass: EffectClass, error: McpError): ToolOutcome => {
  if (error.failure === "mcp_cancelled") return { status: "cancelled" }
  const doubt = error.isInDoubt ? "; it is not known whether the call took effect" : ""
  const message = `the MCP server ${server}: ${error.message}`.slice(0, 2_000).toWellFormed()
  return {
    status: error.isInDoubt && effectClass === "effect" ? "unknown" : "error",
    error: { code: error.failure, message: `${message}${doubt}`, retryable: false, source: "tool" }
  }
}

export class McpConnection {
  private readonly options: ConnectionOptions
  private session: Session | undefined
  private opening: Promise<Session> | undefined
  private list: ToolList = noTools
  private hasList = false
  private failures = 0
  private lostMs = 0
  private refreshing: Promise<void> | undefined
  private isStale = false
  private isClosed = false
  usedMs: number

  constructor(options: ConnectionOptions) {
    this.options = options
    this.usedMs = options.monotonicMs()
  }

  get settings(): McpServerSettings {
    return this.options.settings
  }

  get isOpen(): boolean {
    return this.session !== undefined || this.opening !== undefined
  }

  get calls(): number {
    return this.session?.calls ?? 0
  }

  /** The tools as they were last told; undefined when they never were. */
  get tools(): ReadonlyArray<McpToolInfo> | undefined {
    return this.hasList ? this.list.tools : undefined
  }

  get leftOut(): ToolList["leftOut"] {
    return this.list.leftOut
  }

  /** Resolves when the tools are known as far as they can be: at once where the last attempt failed a moment ago. */
  async ready(signal: AbortSignal): Promise<void> {
    this.usedMs = this.options.monotonicMs()
    if (this.session === undefined && this.waitMs > 0) return
    if (this.session === undefined) await this.openedWithin(signal)
    await this.refreshing
  }

  private async openedWithin(signal: AbortSignal): Promise<void> {
    const done = new AbortController()
    const late = sleep(this.settings.startWithinMs + mcpLimits.readyGraceMs, AbortSignal.any([signal, done.signal]))
    await Promise.race([this.opened().catch(() => undefined), late])
    done.abort()
  }

  private get waitMs(): number {
    return this.lostMs + backoffMs(this.failures) - this.options.monotonicMs()
  }

  /** The session, or a new one. Rejects with McpError. */
  private opened(): Promise<Session> {
    if (this.isClosed) return Promise.reject(new McpError("mcp_unavailable", "the server is stopping"))
    if (this.session !== undefined) return Promise.resolve(this.session)
    this.opening ??= this.open().finally(() => {
      this.opening = undefined
    })
    return this.opening
  }

  private async open(): Promise<Session> {
    try {
      this.options.admit()
      let closed: string | undefined
      const session: Session = await Session.open({
        ...this.options,
        onChanged: () => this.changed(),
        onClosed: (reason) => {
          closed = reason
          this.lost(reason)
        }
      })
      this.list = await session.tools().catch((error: unknown) => {
        void session.close()
        throw error
      })
      if (closed !== undefined) throw new McpError("mcp_unavailable", closed)
      this.hasList = true
      this.session = session
      this.complainOfLeftOut()
      return session
    } catch (error) {
      const failure = asMcpError(error, "mcp_unavailable")
      this.noteFailure(failure.message)
      // Whatever became of the greeting: of the call nothing was said yet.
      throw new McpError(failure.failure, failure.message)
    }
  }

  private complainOfLeftOut(): void {
    const { leftOut, tools } = this.list
    if (leftOut.count === 0) return
    const told = `${tools.length} of its tools are offered, ${leftOut.count} are not`
    this.options.onTrouble(`${told}: ${leftOut.names.join(", ")}`)
  }

  private lost(reason: string): void {
    if (this.session === undefined) return
    this.session = undefined
    this.noteFailure(reason)
  }

  private noteFailure(reason: string): void {
    if (this.isClosed) return
    this.failures += 1
    this.lostMs = this.options.monotonicMs()
    this.options.onTrouble(reason)
  }

  /** The list is read again; one that changes all the time is read one time after the other. */
  private changed(): void {
    if (this.refreshing !== undefined) {
      this.isStale = true
      return
    }
    this.refreshing = this.refresh().finally(() => {
      this.refreshing = undefined
      if (!this.isStale) return
      this.isStale = false
      after(mcpLimits.backoffFirstMs, () => this.changed())
    })
  }

  private async refresh(): Promise<void> {
    try {
      const { session } = this
      if (session === undefined) return
      this.list = await session.tools()
      this.complainOfLeftOut()
    } catch (error) {
      this.options.onTrouble(asMcpError(error, "mcp_unavailable").message)
    }
  }

  /** Runs a tool by the name under which it is offered, to its one outcome. */
  async call(tool: CalledTool, input: Input, context: SignalContext): Promise<ToolOutcome> {
    const { effect_class: effectClass, name: offered } = tool
    this.usedMs = this.options.monotonicMs()
    try {
      return await this.attempt(offered, input, context).catch((error: unknown) => {
        const isOver = error instanceof McpError && error.failure === "mcp_session_over"
        return isOver ? this.attempt(offered, input, context) : Promise.reject(error)
      })
    } catch (error) {
      const failure = error instanceof McpError ? error : inDoubt(error, "mcp_server_gone")
      return failureOf(this.settings.name, effectClass, failure)
    } finally {
      this.usedMs = this.options.monotonicMs()
    }
  }

  private async attempt(offered: string, input: Input, context: SignalContext): Promise<ToolOutcome> {
    const { name } = this.settings
    const { waitMs } = this
    if (this.session === undefined && waitMs > 0) await sleep(waitMs, context.signal)
    if (context.signal.aborted) return { status: "cancelled" }
    const session = await this.opened()
    const tool = this.list.tools.find((one) => offeredName(name, one.name) === offered)
    if (tool === undefined) throw new McpError("mcp_error", `it has no tool ${offered}`)
    const result = await session.call(tool.name, input, context)
    this.failures = 0
    return outcomeOf(name, tool.name, result)
  }

  /** Closes what is open; the next use opens it again. */
  async rest(): Promise<void> {
    const { session } = this
    this.session = undefined
    await session?.close()
  }

  /** Ends it for good. */
  async close(): Promise<void> {
    this.isClosed = true
    await this.opening?.catch(() => undefined)
    await this.rest()
  }
}
