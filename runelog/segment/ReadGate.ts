// Many readers or one who replaces: a page read finishes before a segment file is exchanged under it, and
// the next one waits until the exchange is done.

export class ReadGate {
  private readers = 0
  private closed: Promise<void> | undefined
  private drained: (() => void) | undefined

  async shared<A>(body: () => Promise<A>): Promise<A> {
    while (this.closed !== undefined) await this.closed
    this.readers += 1
    try {
      return await body()
    } finally {
      this.readers -= 1
      if (this.readers === 0) this.drained?.()
    }
  }

  async exclusive<A>(body: () => Promise<A>): Promise<A> {
    while (this.closed !== undefined) await this.closed
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    if (this.readers > 0) {
      await new Promise<void>((drained) => {
        this.drained = drained
      })
      this.drained = undefined
    }
    try {
      return await body()
    } finally {
      this.closed = undefined
      resolve()
    }
  }
}
