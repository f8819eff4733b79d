// A client of a runelog that does everything at once: appends without waiting, seals, checkpoints, removals and reads
// that overlap, all drawn from a seed. It tells the models what was answered, and objects to any answer that neither
// the models nor a disk that was switched off explain.
import type { Runelog } from "#runelog/Runelog.ts"
import { checkPage } from "./checkLog.ts"
import { tagOf } from "./Hazard.ts"
import { LogModel, type ModelEntry, type Submission, Violation } from "./LogModel.ts"
import { turn } from "./turns.ts"

export interface ClientOptions {
  readonly logs: ReadonlyArray<LogModel>
  readonly chance: () => number
  /** Largest body, now and then. */
  readonly bodyBytesMax: number
  /** The disk is gone: any refusal is fine from now on, any acknowledgement must still be true. */
  readonly isOver: () => boolean
  /** Answers that something wrong with the disk explains. */
  readonly explains: (tag: string) => boolean
}

/** Answers that leave nothing behind. A full disk needs an explanation besides. */
const refusals = new Set(["Busy", "DiskFull", "WriterClosed", "BatchTooLarge"])

export class Client {
  readonly #options: ClientOptions
  readonly #runelog: Runelog
  /** What is under way, and what it is called. */
  readonly #tasks = new Map<Promise<void>, string>()
  #violation: Violation | undefined
  /** Terminal appends that were not answered yet. */
  readonly #lastWords = new Map<Submission, LogModel>()
  #isClosing = false
  acknowledged = 0
  refusedFull = 0

  constructor(runelog: Runelog, options: ClientOptions) {
    this.#runelog = runelog
    this.#options = options
  }

  /** Does one thing. */
  async step(): Promise<void> {
    if (this.#violation !== undefined) throw this.#violation
    const draw = this.#below(100)
    const log = this.#options.logs[this.#below(this.#options.logs.length)]!
    if (draw < 62) this.append(log, { terminal: draw < 4 })
    else if (draw < 76) await turn()
    else if (draw < 80) await Promise.race([this.idle(), this.#turns(this.#below(40))])
    else if (draw < 82) await this.#runelog.ready()
    else if (draw < 89) this.#run(`read ${log.name}`, () => this.#read(log))
    else if (draw < 92) this.#run("checkpoint", () => this.#runelog.checkpoint())
    else if (draw < 96) this.#run(`seal ${log.name}`, () => this.#seal(log))
    else if (draw < 98) this.#remove(log)
    else this.#run("list", () => this.#list())
  }

  append(log: LogModel, options: { readonly terminal: boolean }): void {
    // A removal under way refuses appends; what the log is afterwards is known only then.
    if (log.removing) return
    const submission = log.submit(this.#entries())
    const answer = this.#runelog.append(log.name, submission.firstEventId, submission.entries, options)
    if (options.terminal) this.#lastWords.set(submission, log)
    this.#run(`append ${log.name}`, () =>
      answer.then(
        () => {
          this.#lastWords.delete(submission)
          log.acknowledge(submission)
          this.acknowledged += submission.entries.length
        },
        (error) => {
          this.#lastWords.delete(submission)
          return this.#refused(log, submission, error)
        }
      )
    )
  }

  /** Appends to a log until it is taken, which must not need many attempts; of a poisoned writer, until it is refused. */
  async resume(): Promise<void> {
    const log = this.#options.logs.find(({ removing }) => !removing)
    if (log === undefined) return
    for (let attempt = 0; attempt < 6; attempt++) {
      const before = this.acknowledged
      this.append(log, { terminal: false })
      await this.idle()
      const isTaken = this.acknowledged > before
      if (isTaken && this.#runelog.poisoned !== undefined)
        throw new Violation("a poisoned writer acknowledged an append")
      if (isTaken || this.#runelog.poisoned !== undefined) return this.#readBack()
      await this.#turns(200)
    }
    throw new Violation(`${log.name}: no append is taken although the disk is sound again`)
  }

  async #readBack(): Promise<void> {
    for (const log of this.#options.logs) if (!log.removing && log.acknowledgedHead > 0) await this.#read(log)
  }

  get underWay(): ReadonlyArray<string> {
    return [...this.#tasks.values()]
  }

  /** Resolves when everything under way was answered. */
  async idle(): Promise<void> {
    while (this.#tasks.size > 0) await Promise.all(this.#tasks.keys())
    if (this.#violation !== undefined) throw this.#violation
  }

  async #refused(log: LogModel, submission: Submission, error: unknown): Promise<void> {
    const tag = tagOf(error)
    const isBehindLastWords = this.#isBehindLastWords(log, submission)
    // The refusal that stranded it may be on its way: it took the longer path of a log that had to be opened.
    if (tag === "EventIdOutOfOrder" && !log.isStranded(submission)) await turn()
    const isStranded = tag === "EventIdOutOfOrder" && (log.isStranded(submission) || isBehindLastWords)
    // A log that could not be opened took nothing.
    if (refusals.has(tag) || isStranded || tag === "DiskFailed") log.refuse(submission)
    if (tag === "DiskFull") this.refusedFull += 1
    else if (refusals.has(tag) || isStranded || tag === "WriterPoisoned") return
    throw error
  }

  /** A terminal append that finds no room is tried once more; what came behind it is refused meanwhile. */
  #isBehindLastWords(log: LogModel, { firstEventId }: Submission): boolean {
    return [...this.#lastWords].some(([before, of]) => of === log && before.firstEventId < firstEventId)
  }

  async #read(log: LogModel): Promise<void> {
    const { acknowledgedHead, life } = log
    const after = this.#below(acknowledgedHead + 1)
    const page = await this.#runelog.read(log.name, { after, bytesMax: 1 + this.#below(4000) }).catch((error) => {
      // It may have come into being after the answer was made and before it arrived.
      if (tagOf(error) === "LogUnknown" && acknowledgedHead === 0) return undefined
      if (tagOf(error) === "CursorBeyondEnd" && log.life !== life) return undefined
      if (this.#isGone(log, life)) return undefined
      throw error
    })
    if (page === undefined || this.#isGone(log, life)) return
    checkPage(log, page, { after })
    log.observed = Math.max(log.observed, page.next)
  }

  #isGone(log: LogModel, life: number): boolean {
    return log.removing || log.life !== life
  }

  async #seal(log: LogModel): Promise<void> {
    const { life, acknowledgedHead } = log
    // Not drawn, so that lives that once broke a promise stay the same.
    const sealing = acknowledgedHead % 2 === 0 ? this.#runelog.seal(log.name) : this.#runelog.pack(log.name)
    await sealing.catch((error) => {
      if (tagOf(error) === "LogUnknown" && acknowledgedHead === 0) return
      if (this.#isGone(log, life)) return
      throw error
    })
  }

  #remove(log: LogModel): void {
    if (log.removing || log.acknowledgedHead === 0) return
    log.removing = true
    this.#run(`remove ${log.name}`, async () => {
      try {
        await this.#runelog.remove(log.name)
        log.clear()
      } catch (error) {
        if (refusals.has(tagOf(error))) log.removing = false
        throw error
      }
    })
  }

  async #list(): Promise<void> {
    const certain = this.#options.logs.filter(({ acknowledgedHead, removing }) => acknowledgedHead > 0 && !removing)
    const lives = certain.map(({ life }) => life)
    const names = new Set(await this.#runelog.list())
    const missing = certain.find((log, at) => !names.has(log.name) && !this.#isGone(log, lives[at]!))
    if (missing !== undefined) throw new Violation(`${missing.name} is missing from the list of logs`)
  }

  #run(what: string, body: () => Promise<void>): void {
    const task: Promise<void> = body()
      .catch((error) => {
        if (this.#violation !== undefined) return
        if (error instanceof Violation) this.#violation = error
        else if (!this.#isExplained(error))
          this.#violation = new Violation(`${what}: ${String(error)}`, { cause: error })
      })
      .finally(() => this.#tasks.delete(task))
    this.#tasks.set(task, what)
  }

  #isExplained(error: unknown): boolean {
    const tag = tagOf(error)
    return this.#options.isOver() || this.#options.explains(tag) || (this.#isClosing && tag === "WriterClosed")
  }

  /** The runelog is being closed: refusals that say so are fine. */
  closing(): void {
    this.#isClosing = true
  }

  async #turns(count: number): Promise<void> {
    for (let turns = 0; turns < count; turns++) await turn()
  }

  #below(bound: number): number {
    return Math.floor(this.#options.chance() * bound)
  }

  #entries(): ReadonlyArray<ModelEntry> {
    const count = this.#below(3) > 0 ? 1 : 1 + this.#below(6)
    return Array.from({ length: count }, () => this.#entry())
  }

  #entry(): ModelEntry {
    const draw = this.#below(100)
    const bytes = this.#below(draw < 80 ? 200 : draw < 98 ? 1500 : this.#options.bodyBytesMax)
    const body = Buffer.alloc(bytes, `${this.#below(2 ** 32).toString(36)}RUNE`)
    const visibility = this.#below(3)
    const family = this.#below(4)
    const stream = this.#below(3)
    if (draw % 3 === 0) return { body, visibility, family, stream, role: "delta" }
    return draw % 10 === 1
      ? { body, visibility, family, stream, role: "supersedes" }
      : { body, visibility, family, stream }
  }
}

export const modelLogs = (count: number): ReadonlyArray<LogModel> =>
  Array.from({ length: count }, (_, index) => new LogModel(`log-${index}`))
