// The logs that are in memory. One state per log, whoever asks for it at once; idle ones are forgotten when there are too
// many, and so are those that the journal can bring back as they are; those that somebody works with never.

import { isIdle, type LogState } from "./LogState.ts"
import { LogNameInvalid } from "./RunelogErrors.ts"
import { isLogName } from "./segment/Segment.ts"

export interface ResidentLogsOptions {
  /** Brings a log from its directory. */
  readonly open: (log: string) => Promise<LogState>
  readonly logsMax: number
  /** Lets a log go that is not idle but can be opened again as it is; says whether it may be forgotten. */
  readonly release: (log: LogState) => boolean
  /** Those that are in memory already. */
  readonly logs: ReadonlyMap<string, LogState>
}

/** Logs that are looked at for each one that is opened: more than one, so that a crowd of idle ones shrinks again. */
const LOOKS = 4
/** Names of logs that are gone, which the line may hold beside those of all others. */
const LINE_SLACK = 64

export class ResidentLogs {
  private readonly options: ResidentLogsOptions
  private readonly logs: Map<string, LogState>
  private readonly opening = new Map<string, Promise<LogState>>()
  /** Names in the order in which they are looked at, from `looked` on; of some the log has gone meanwhile. */
  private line: Array<string>
  private looked = 0

  constructor(options: ResidentLogsOptions) {
    this.options = options
    this.logs = new Map(options.logs)
    this.line = [...this.logs.keys()]
  }

  get(log: string): LogState | undefined {
    return this.logs.get(log)
  }

  values(): Iterable<LogState> {
    return this.logs.values()
  }

  get size(): number {
    return this.logs.size
  }

  forget(log: string): void {
    this.logs.delete(log)
  }

  /** Forgets a log that is idle. */
  rest(log: string): void {
    const state = this.logs.get(log)
    if (state !== undefined && isIdle(state)) this.logs.delete(log)
  }

  /** Nothing of the log is in memory alone any more: where there are too many, it is one that can go. */
  settled(log: LogState): void {
    if (this.logs.size > this.options.logsMax && this.logs.get(log.name) === log) this.rest(log.name)
  }

  /** The state of a log, from memory or from its directory. It may be forgotten before the caller goes on. */
  find(log: string): Promise<LogState> {
    const resident = this.logs.get(log)
    if (resident !== undefined) return Promise.resolve(resident)
    if (!isLogName(log)) return Promise.reject(new LogNameInvalid({ log }))
    return this.opening.get(log) ?? this.open(log)
  }

  /** Runs `body` with the state of a log, which is not forgotten meanwhile. */
  async use<A>(log: string, body: (state: LogState) => Promise<A>): Promise<A> {
    let state = await this.find(log)
    while (this.logs.get(log) !== state) state = await this.find(log)
    state.users += 1
    try {
      return await body(state)
    } finally {
      state.users -= 1
    }
  }

  /** Resolves when no log is being opened any more; opening one may change its files. */
  async idle(): Promise<void> {
    while (this.opening.size > 0) await Promise.allSettled(this.opening.values())
  }

  /** Those who wait get the state in the order they came, and before anyone finds it among the resident ones. */
  private open(log: string): Promise<LogState> {
    const opening = this.options.open(log)
    this.opening.set(log, opening)
    const settle = (): void => void this.opening.delete(log)
    opening.then((state) => {
      settle()
      this.makeRoom()
      this.logs.set(log, state)
      this.line.push(log)
      this.shortenLine()
    }, settle)
    return opening
  }

  /**
   * Looks at a few logs once there are too many, and forgets those that are idle. However many there are that cannot
   * be forgotten, a log costs the same to open.
   */
  private makeRoom(): void {
    const end = Math.min(this.looked + LOOKS, this.line.length)
    while (this.looked < end && this.logs.size >= this.options.logsMax) {
      const name = this.line[this.looked]!
      this.looked += 1
      const state = this.logs.get(name)
      if (state === undefined) continue
      if (isIdle(state) || this.options.release(state)) this.logs.delete(name)
      else this.line.push(name)
    }
  }

  /** Not an iterator that stays: a map keeps every table it ever had for one that does not move. */
  private shortenLine(): void {
    if (this.line.length <= 2 * this.logs.size + LINE_SLACK) return
    const seen = new Set<string>()
    for (let at = this.looked; at < this.line.length; at++) if (this.logs.has(this.line[at]!)) seen.add(this.line[at]!)
    this.line = [...seen]
    this.looked = 0
  }
}
