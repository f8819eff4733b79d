// Leaves out deltas that a later rune repeats in full, while runes go by: how a copy of a conversation is no larger than
// its final content. Runes wait in a window until it is known of each delta before them; the window is bounded, and
// what no longer fits goes through as it is.

import { type AnyRune, encode } from "../../rune/Rune.ts"
import { deltaKey, supersededKey } from "../../rune/Supersession.ts"

interface Waiting {
  readonly rune: AnyRune
  /** The scope of a delta that is not superseded yet. */
  open: string | undefined
  dropped: boolean
  readonly chars: number
}

/** Text held back at most. A turn streams a few hundred kilobytes. */
const WINDOW_CHARS = 16 * 1024 * 1024

export async function* dropSuperseded(
  runes: AsyncIterable<AnyRune>,
  options: { readonly windowChars?: number } = {}
): AsyncGenerator<AnyRune> {
  const window = new Window(options.windowChars ?? WINDOW_CHARS)
  for await (const rune of runes) {
    window.add(rune)
    yield* window.release()
  }
  yield* window.rest()
}

class Window {
  private readonly charsMax: number
  private waiting: Array<Waiting> = []
  private chars = 0

  constructor(charsMax: number) {
    this.charsMax = charsMax
  }

  add(rune: AnyRune): void {
    const superseded = supersededKey(rune)
    if (superseded !== undefined) this.settle(superseded)
    const open = deltaKey(rune)
    // Only what has to wait is weighed: most runes pass at once.
    const chars = this.waiting.length === 0 && open === undefined ? 0 : encode(rune).length
    this.waiting.push({ rune, open, dropped: false, chars })
    this.chars += chars
  }

  private settle(key: string): void {
    for (const waiting of this.waiting) {
      if (waiting.open !== key) continue
      waiting.open = undefined
      waiting.dropped = true
    }
  }

  /** Lets go of what no open delta is in front of, and of the oldest when too much waits. */
  *release(): Generator<AnyRune> {
    let released = 0
    for (const { chars, dropped, open, rune } of this.waiting) {
      if (open !== undefined && this.chars <= this.charsMax) break
      released += 1
      this.chars -= chars
      if (!dropped) yield rune
    }
    if (released > 0) this.waiting = this.waiting.slice(released)
  }

  *rest(): Generator<AnyRune> {
    for (const { dropped, rune } of this.waiting) if (!dropped) yield rune
  }
}
