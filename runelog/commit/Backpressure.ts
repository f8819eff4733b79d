// How much waits in memory: bytes that are not durable yet, and slabs whose frames are not in their segments yet. Says
// when it is too much, for which of the two reasons, and wakes those who were sent away.
import { Busy } from "../RunelogErrors.ts"
import type { Limits } from "../RunelogLimits.ts"
import type { Slabs } from "./Slabs.ts"

export interface BackpressureOptions {
  readonly slabs: Slabs
  readonly limits: Limits
}

export class Backpressure {
  private readonly options: BackpressureOptions
  private readonly waiters: Array<() => void> = []
  /** Bytes that were encoded and are not durable yet. */
  inFlightBytes = 0

  constructor(options: BackpressureOptions) {
    this.options = options
  }

  get isTooMuch(): boolean {
    const { limits, slabs } = this.options
    return this.inFlightBytes > limits.inFlightBytesMax || slabs.bytes > limits.pendingBytesMax
  }

  /** What an appender is told while it is too much. */
  refusal(): Busy {
    const { limits, slabs } = this.options
    return this.inFlightBytes > limits.inFlightBytesMax
      ? new Busy({ waitingFor: "journal", bytes: this.inFlightBytes, bytesMax: limits.inFlightBytesMax })
      : new Busy({ waitingFor: "segments", bytes: slabs.bytes, bytesMax: limits.pendingBytesMax })
  }

  /** Resolves with the next `tell`. */
  wait(): Promise<void> {
    return new Promise((resolve) => this.waiters.push(resolve))
  }

  tell(): void {
    for (const resolve of this.waiters.splice(0)) resolve()
  }
}
