// Gathers fragments of a stream into runes: at most one every 50 ms, sooner only when a lot has come. Order is
// kept, nothing is dropped, and a disk that cannot keep up holds the stream back instead of filling memory.
import { limits } from "./Limits.ts"

export interface CoalescerOptions {
  /** Sends one gathered piece; resolves when it is durable. */
  readonly send: (text: string) => Promise<void>
  readonly everyMs?: number
  readonly charsMax?: number
  readonly setTimer?: (run: () => void, delayMs: number) => () => void
}

const defaultTimer = (run: () => void, delayMs: number): (() => void) => {
  const timer = setTimeout(run, delayMs)
  return () => clearTimeout(timer)
}

export class Coalescer {
  private readonly options: Required<CoalescerOptions>
  private text = ""
  private cancelTimer: (() => void) | undefined
  private inFlight = 0
  private failure: unknown
  private failed = false
  private readonly waiters: Array<() => void> = []

  constructor(options: CoalescerOptions) {
    this.options = { everyMs: limits.deltaEveryMs, charsMax: limits.deltaCharsMax, setTimer: defaultTimer, ...options }
  }

  /** Takes a fragment. A returned promise asks the source to wait. */
  add(fragment: string): void | Promise<void> {
    if (this.failed) throw this.failure
    this.text += fragment
    if (this.text.length >= this.options.charsMax || this.options.everyMs === 0) this.flush()
    else this.cancelTimer ??= this.options.setTimer(() => this.flush(), this.options.everyMs)
    if (this.inFlight >= limits.deltasInFlightMax) return new Promise((resolve) => this.waiters.push(resolve))
  }

  /** Sends what has gathered. */
  flush(): void {
    this.cancelTimer?.()
    this.cancelTimer = undefined
    if (this.text === "") return
    const { text } = this
    this.text = ""
    this.inFlight += 1
    this.options.send(text).then(
      () => this.landed(),
      (error) => {
        this.failure = error
        this.failed = true
        this.landed()
      }
    )
  }

  private landed(): void {
    this.inFlight -= 1
    for (const resolve of this.waiters.splice(0)) resolve()
  }

  /** Sends what is left and waits until all of it landed; rejects if any piece failed. */
  async finish(): Promise<void> {
    this.flush()
    while (this.inFlight > 0) await new Promise<void>((resolve) => this.waiters.push(resolve))
    if (this.failed) throw this.failure
  }

  /** Forgets what has not been sent: the stream is over and somebody else tells the rest. */
  discard(): void {
    this.cancelTimer?.()
    this.cancelTimer = undefined
    this.text = ""
  }
}
