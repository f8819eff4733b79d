// Count of the turns in which a watched thread gave no sign of life. Knows no clock: however long a turn took, it is one.

export type BeatVerdict =
  | { readonly _tag: "Alive" }
  /** It is time to say that the thread is blocked; said again whenever it has lasted twice as long. */
  | { readonly _tag: "Blocked"; readonly turns: number }
  /** The thread that was said to be blocked goes on. */
  | { readonly _tag: "Freed"; readonly turns: number }

const alive: BeatVerdict = { _tag: "Alive" }

export class BeatCounter {
  private readonly turnsMax: number
  private seen: number | undefined
  private turns = 0
  private sayAt: number

  constructor(turnsMax: number) {
    this.turnsMax = turnsMax
    this.sayAt = turnsMax
  }

  /** A turn of the watcher, and how often the watched thread has been alive so far. */
  turn(beats: number): BeatVerdict {
    if (beats !== this.seen) return this.beat(beats)
    this.turns += 1
    if (this.turns < this.sayAt) return alive
    this.sayAt *= 2
    return { _tag: "Blocked", turns: this.turns }
  }

  private beat(beats: number): BeatVerdict {
    const { turns } = this
    this.seen = beats
    this.turns = 0
    this.sayAt = this.turnsMax
    return turns < this.turnsMax ? alive : { _tag: "Freed", turns }
  }
}
