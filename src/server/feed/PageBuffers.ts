// Buffers that pages are read into and sent from, used again and again: fresh memory costs more than what is done with
// it. Bounded for the whole server, so that readers who take nothing cannot hold more than this; who finds none reads
// smaller pages the ordinary way.
import { limits } from "../../wire/WireLimits.ts"

export interface PageBuffersOptions {
  readonly buffersMax: number
  /** Free ones beyond this many are let go. */
  readonly idleMax: number
  readonly bytes: number
}

const defaults: PageBuffersOptions = {
  buffersMax: limits.catchUpBuffersMax,
  idleMax: limits.catchUpBuffersIdleMax,
  bytes: limits.catchUpPageBytes
}

export class PageBuffers {
  private readonly options: PageBuffersOptions
  private readonly idle: Array<Buffer> = []
  private taken = 0

  constructor(options: PageBuffersOptions = defaults) {
    this.options = options
  }

  /** Buffers in use. */
  get inUse(): number {
    return this.taken
  }

  /** A buffer to be given back once; nothing when all are in use. */
  take(): Buffer | undefined {
    if (this.taken >= this.options.buffersMax) return undefined
    this.taken += 1
    return this.idle.pop() ?? Buffer.allocUnsafeSlow(this.options.bytes)
  }

  giveBack(buffer: Buffer): void {
    this.taken -= 1
    if (this.idle.length < this.options.idleMax) this.idle.push(buffer)
  }
}
