// A log in the hands of a test: appends land, wait or fail as the test says.
import type { RuneSink } from "#src/conversation/Ports.ts"
import type { Rune } from "#src/rune/Rune.ts"

interface Append {
  readonly runes: ReadonlyArray<Rune>
  readonly terminal: boolean
  readonly land: () => void
  readonly fail: (error: unknown) => void
}

export class HandSink implements RuneSink {
  readonly appends: Array<Append> = []
  /** Runes whose append has landed. */
  readonly landed: Array<Rune> = []
  isBusy = false
  /** Appends land by themselves, in the next turn of the loop. */
  lands: "by hand" | "at once" = "by hand"
  onAppend: (runes: ReadonlyArray<Rune>) => void = () => undefined
  private waiting: Array<{ readonly resolve: () => void; readonly reject: (error: unknown) => void }> = []

  readonly append = (
    _id: string,
    runes: ReadonlyArray<Rune>,
    options: { readonly terminal: boolean }
  ): Promise<void> => {
    this.onAppend(runes)
    return new Promise((resolve, reject) => {
      const land = () => {
        this.landed.push(...runes)
        resolve()
      }
      this.appends.push({ runes, terminal: options.terminal, land, fail: reject })
      if (this.lands === "at once") setImmediate(land)
    })
  }

  readonly busy = (): boolean => this.isBusy

  readonly ready = (): Promise<void> =>
    new Promise((resolve, reject) => {
      this.waiting.push({ resolve, reject })
    })

  get waiters(): number {
    return this.waiting.length
  }

  free(): void {
    this.isBusy = false
    for (const { resolve } of this.waiting.splice(0)) resolve()
  }

  die(error: unknown): void {
    for (const { reject } of this.waiting.splice(0)) reject(error)
  }

  landAll(): void {
    for (const append of this.appends.splice(0)) append.land()
  }
}

export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** How a promise stands now. */
export const standing = async (promise: Promise<unknown>): Promise<"pending" | "resolved" | "rejected"> => {
  let result: "pending" | "resolved" | "rejected" = "pending"
  promise.then(
    () => {
      result = "resolved"
    },
    () => {
      result = "rejected"
    }
  )
  await nextTurn()
  return result
}
