// How much may be taken in a second. What is over it is taken later, not dropped.

export class Rate {
  private readonly perSecondMax: number
  private readonly monotonicMs: () => number
  private level = 0
  private atMs: number

  constructor(perSecondMax: number, monotonicMs: () => number) {
    this.perSecondMax = perSecondMax
    this.monotonicMs = monotonicMs
    this.atMs = monotonicMs()
  }

  /** Takes the amount; returns how long to wait before the next, 0 when there is room. */
  take(amount: number): number {
    const nowMs = this.monotonicMs()
    const drained = ((nowMs - this.atMs) * this.perSecondMax) / 1000
    this.atMs = nowMs
    this.level = Math.max(0, this.level - drained) + amount
    const over = this.level - this.perSecondMax
    return over <= 0 ? 0 : Math.ceil((over * 1000) / this.perSecondMax)
  }
}
