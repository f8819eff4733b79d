// Gathers fragments of a stream into runes: the first goes with whatever came in the same turn of the event loop, later
// ones at the next multiple of 50 ms, sooner only when a lot has come, and none is larger than a piece may be. Order is kept, nothing is dropped, and a disk that
// cannot keep up holds the stream back instead of filling memory.
import { limits } from "./TurnLimits.ts"

export interface CoalescerOptions {
  /** Sends one gathered piece; resolves when it is durable. */
  readonly send: (text: string) => Promise<void>
  readonly everyMs?: number
  readonly charsMax?: number
  /** Runs once, at the next multiple of `everyMs`; with 0, in the next turn of the event loop. */
  readonly setTimer?: (run: () => void, everyMs: number) => () => void
}

/** All streams send off at the same moments: their pieces share a commit, and whoever listens is woken once. */
export const nextMultipleMs = (nowMs: number, everyMs: number): number => everyMs - (nowMs % everyMs)

const defaultTimer = (run: () => void, everyMs: number): (() => void) => {
  if (everyMs === 0) {
    const immediate = setImmediate(run)
    return () => clearImmediate(immediate)
  }
  const timer = setTimeout(run, nextMultipleMs(performance.now(), everyMs))
  return () => clearTimeout(timer)
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff

/** Pieces of at most `charsMax` units that split no character. */
function* piecesOf(text: string, charsMax: number): Generator<string> {
  let at = 0
  while (text.length - at > charsMax) {
    const end = at + charsMax
    const next = isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end
    yield text.slice(at, next)
    at = next
  }
  if (at < text.length) yield text.slice(at)
}

export class Coalescer {
  private readonly options: Required<CoalescerOptions>
  private text = ""
  private hasBegun = false
  private cancelTimer: (() => void) | undefined
  private inFlight = 0
  private failure: { readonly cause: unknown } | undefined
  private waiters: Array<() => void> = []

  constructor(options: CoalescerOptions) {
    this.options = { everyMs: limits.deltaEveryMs, charsMax: limits.deltaCharsMax, setTimer: defaultTimer, ...options }
  }

  /** As many pieces are on their way to the disk as may be. */
  get isFull(): boolean {
    return this.inFlight >= limits.deltasInFlightMax
  }

  /** Takes a fragment. A returned promise asks the source to wait. Throws what a piece before it failed with. */
  add(fragment: string): undefined | Promise<void> {
    if (this.failure !== undefined) throw this.failure.cause
    this.text += fragment
    const { charsMax, everyMs } = this.options
    if (everyMs === 0 || this.text.length >= charsMax) this.flush()
    else this.cancelTimer ??= this.options.setTimer(() => this.flush(), this.hasBegun ? everyMs : 0)
    return this.isFull ? this.roomy() : undefined
  }

  private async roomy(): Promise<void> {
    while (this.isFull) await this.nextLanding()
  }

  private nextLanding(): Promise<void> {
    return new Promise((resolve) => this.waiters.push(resolve))
  }

  /** Sends what has gathered. */
  flush(): void {
    this.cancelTimer?.()
    this.cancelTimer = undefined
    const { text } = this
    this.text = ""
    if (text !== "") this.hasBegun = true
    for (const piece of piecesOf(text, this.options.charsMax)) this.sendNow(piece)
  }

  private sendNow(piece: string): void {
    this.inFlight += 1
    this.options.send(piece).then(
      () => this.landed(),
      (cause) => {
        this.failure ??= { cause }
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
    while (this.inFlight > 0) await this.nextLanding()
    if (this.failure !== undefined) throw this.failure.cause
  }

  /** Forgets what has not been sent: the stream is over and somebody else tells the rest. */
  discard(): void {
    this.cancelTimer?.()
    this.cancelTimer = undefined
    this.text = ""
  }
}
