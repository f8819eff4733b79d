// Something that did not work for want of descriptors or room is tried again, after a pause that doubles up to a longest
// one. One attempt waits at a time; a success makes the next pause short again.

/** Runs something later; returns how to call it off. */
export type Later = (delayMs: number, run: () => void) => () => void

/** A timer that does not keep the process alive. */
export const afterTimeout: Later = (delayMs, run) => {
  const timer = setTimeout(run, delayMs)
  timer.unref()
  return () => clearTimeout(timer)
}

export interface RetryOptions {
  readonly delayMsMin: number
  readonly delayMsMax: number
  readonly later: Later
  readonly run: () => void
}

export class Retry {
  private readonly options: RetryOptions
  private delayMs: number
  private cancel: (() => void) | undefined
  private stopped = false

  constructor(options: RetryOptions) {
    this.options = options
    this.delayMs = options.delayMsMin
  }

  /** An attempt is due later, and not before. */
  get isWaiting(): boolean {
    return this.cancel !== undefined
  }

  /** Tries again after a pause, unless that is planned already. */
  plan(): void {
    if (this.isWaiting || this.stopped) return
    const { delayMsMax, later, run } = this.options
    this.cancel = later(this.delayMs, () => {
      this.cancel = undefined
      run()
    })
    this.delayMs = Math.min(this.delayMs * 2, delayMsMax)
  }

  succeeded(): void {
    this.delayMs = this.options.delayMsMin
  }

  stop(): void {
    this.stopped = true
    this.cancel?.()
    this.cancel = undefined
  }
}
