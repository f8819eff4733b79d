// Calls under way that work on files: closing refuses new ones and waits for those begun before.
import { WriterClosed } from "./RunelogErrors.ts"

export interface OpenCallsOptions {
  readonly path: string
  /** What a caller is told of an error. */
  readonly failure: (error: unknown) => unknown
}

export class OpenCalls {
  private readonly options: OpenCallsOptions
  private readonly running = new Set<Promise<unknown>>()
  private closed = false

  constructor(options: OpenCallsOptions) {
    this.options = options
  }

  async run<A>(body: () => Promise<A>): Promise<A> {
    if (this.refusal !== undefined) throw this.refusal
    const running = body()
    this.running.add(running)
    try {
      return await running
    } catch (error) {
      throw this.options.failure(error)
    } finally {
      this.running.delete(running)
    }
  }

  /** Why no call is taken any more. */
  get refusal(): WriterClosed | undefined {
    return this.closed ? new WriterClosed({ path: this.options.path }) : undefined
  }

  refuse(): void {
    this.closed = true
  }

  async settled(): Promise<void> {
    await Promise.allSettled(this.running)
  }
}
