// What a log must hold, kept beside the engine: everything submitted, what of it was acknowledged, what a reader has
// seen, where batches end and which deltas a seal may drop. The engine is right when what it gives back after a
// restart is a prefix of this without a gap that holds at least the acknowledged and the seen.
import type { Entry } from "#runelog/commit/Entry.ts"

/** The engine broke a promise. */
export class Violation extends Error {
  override readonly name = "Violation"
}

export interface ModelEntry extends Entry {
  readonly body: Buffer
}

export interface Submission {
  readonly firstEventId: number
  readonly entries: ReadonlyArray<ModelEntry>
  acknowledged: boolean
}

const lastIdOf = ({ firstEventId, entries }: Submission): number => firstEventId + entries.length - 1

export class LogModel {
  readonly name: string
  #submissions: Array<Submission> = []
  #entries: Array<ModelEntry> | undefined
  /** The newest event that a reader was given: from then on it counts as much as an acknowledged one. */
  observed = 0
  /** A removal was asked for whose outcome is not known. */
  removing = false
  /** Counts the lives of this name. */
  life = 0

  constructor(name: string) {
    this.name = name
  }

  get submittedHead(): number {
    const last = this.#submissions.at(-1)
    return last === undefined ? 0 : lastIdOf(last)
  }

  get acknowledgedHead(): number {
    const last = this.#submissions.findLast(({ acknowledged }) => acknowledged)
    return last === undefined ? 0 : lastIdOf(last)
  }

  get waiting(): boolean {
    return this.#submissions.some(({ acknowledged }) => !acknowledged)
  }

  /** Takes note of an append that is about to be made with the next free id. */
  submit(entries: ReadonlyArray<ModelEntry>): Submission {
    const submission = { firstEventId: this.submittedHead + 1, entries, acknowledged: false }
    this.#submissions.push(submission)
    this.#entries = undefined
    return submission
  }

  /** The append cannot be taken: one before it was refused. */
  isStranded(submission: Submission): boolean {
    return !this.#chain().includes(submission)
  }

  /** The submissions up to the first gap that a refusal left. */
  #chain(): Array<Submission> {
    let next = 1
    const gap = this.#submissions.findIndex((submission) => {
      const isGap = submission.firstEventId !== next
      next = lastIdOf(submission) + 1
      return isGap
    })
    return gap < 0 ? this.#submissions : this.#submissions.slice(0, gap)
  }

  acknowledge(submission: Submission): void {
    if (this.isStranded(submission)) {
      throw new Violation(`${this.name}: ${submission.firstEventId} was acknowledged across a gap`)
    }
    submission.acknowledged = true
  }

  /** The append was refused in a way that promises that nothing of it remains. */
  refuse(submission: Submission): void {
    this.#submissions = this.#submissions.filter((other) => other !== submission)
    this.#entries = undefined
  }

  /** The log was removed. */
  clear(): void {
    this.#submissions = []
    this.#entries = undefined
    this.observed = 0
    this.removing = false
    this.life += 1
  }

  entry(eventId: number): ModelEntry | undefined {
    this.#entries ??= this.#chain().flatMap(({ entries }) => entries)
    return this.#entries[eventId - 1]
  }

  /** A seal may leave this event out of a log that reaches to `head`. */
  mayBeThinned(eventId: number, head: number): boolean {
    const delta = this.entry(eventId)
    if (delta?.role !== "delta") return false
    for (let later = eventId + 1; later <= head; later++) {
      const entry = this.entry(later)
      if (entry?.role === "supersedes" && (entry.stream ?? 0) === (delta.stream ?? 0)) return true
    }
    return false
  }

  /** What a restart may show as the newest event: says what is wrong with `head`. */
  headFault(head: number): string | undefined {
    if (this.removing && head === 0) return undefined
    if (head < this.acknowledgedHead) return `ends at ${head}, but ${this.acknowledgedHead} was acknowledged`
    if (head < this.observed) return `ends at ${head}, but a reader was given ${this.observed}`
    const chain = this.#chain()
    const last = chain.at(-1)
    if (head > (last === undefined ? 0 : lastIdOf(last))) return `reaches ${head}, which was never submitted`
    const isBorder = head === 0 || chain.some((submission) => lastIdOf(submission) === head)
    return isBorder ? undefined : `ends at ${head}, inside a batch`
  }

  /** A restart showed the log up to `head`: from now on that is the log. */
  settle(head: number): void {
    if (this.removing && head === 0) {
      this.clear()
      return
    }
    this.#submissions = this.#chain().filter((submission) => lastIdOf(submission) <= head)
    this.#entries = undefined
    for (const submission of this.#submissions) submission.acknowledged = true
    this.removing = false
  }
}
