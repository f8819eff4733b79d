/**
 * The terminal of an outside agent as an async iterable that outlives its connections: after each of them the whole screen
 * comes again. Keys go to whatever connection there is; those typed while there is none are dropped, as nobody saw them.
 */
import { LinkLost, RequestFailed } from "./ClientErrors.ts"
import type { Link } from "./Link.ts"
import { type LinkSource, open, openAgain } from "./Subscription.ts"
import type { Answer, TerminalFrame } from "./Wire.ts"

export interface TerminalOptions {
  readonly columns?: number
  readonly rows?: number
  /** See without typing. */
  readonly watch?: boolean
  readonly signal?: AbortSignal
}

export type TerminalItem =
  /** The screen follows: whoever shows it begins with an empty one. */
  | { readonly attached: Omit<Answer<"terminal.attach">, "sub"> }
  | { readonly output: Uint8Array }
  | { readonly ended: NonNullable<TerminalFrame["ended"]> }

const bytesOf = (base64: string): Uint8Array => Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))
const base64Of = (bytes: Uint8Array): string => btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(""))

export class Terminal {
  private readonly source: LinkSource
  private readonly conversationId: string
  private readonly options: TerminalOptions
  private size: { readonly columns?: number; readonly rows?: number }
  private current: { readonly link: Link; readonly sub: string } | undefined
  private readonly closing = new AbortController()

  constructor(source: LinkSource, conversationId: string, options: TerminalOptions) {
    this.source = source
    this.conversationId = conversationId
    this.options = options
    const { columns, rows, signal } = options
    this.size = columns === undefined || rows === undefined ? {} : { columns, rows }
    if (signal?.aborted === true) this.close()
    signal?.addEventListener("abort", () => this.close())
  }

  /** False where nobody is there to take it. Rejects where this client only watches. */
  input(bytes: Uint8Array): Promise<boolean> {
    return this.tell("terminal.input", { data: base64Of(bytes) })
  }

  resize(columns: number, rows: number): Promise<boolean> {
    this.size = { columns, rows }
    return this.tell("terminal.resize", this.size)
  }

  /** Leaves the program running. */
  close(): void {
    this.closing.abort()
  }

  private async tell(op: string, fields: Readonly<Record<string, unknown>>): Promise<boolean> {
    const { current } = this
    if (current === undefined) return false
    try {
      await current.link.request(op, { sub: current.sub, ...fields })
      return true
    } catch (error) {
      if (error instanceof LinkLost || (error instanceof RequestFailed && error.code === "not_found")) return false
      throw error
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<TerminalItem, void, void> {
    const { signal } = this.closing
    const { watch } = this.options
    for (;;) {
      let attached: Answer<"terminal.attach"> | undefined
      const fields = { conversation_id: this.conversationId, ...(watch === undefined ? {} : { watch }) }
      const opened = await openAgain(this.source, signal, (link) =>
        open<"terminal.attach">(link, { op: "terminal.attach", fields: { ...fields, ...this.size } }, (ok) => {
          attached = ok
          this.current = { link, sub: ok.sub }
        })
      )
      if (opened === undefined || attached === undefined) return
      const { sub: _, ...place } = attached
      try {
        yield { attached: place }
        for (;;) {
          const frame = await opened.feed.next(signal)
          if (frame === "aborted") return
          if (typeof frame === "string") break
          if (frame.terminal?.output !== undefined) yield { output: bytesOf(frame.terminal.output) }
          if (frame.terminal?.ended !== undefined) return yield { ended: frame.terminal.ended }
        }
        await opened.leave()
      } finally {
        this.current = undefined
        void opened.leave()
      }
    }
  }
}
