// The logs that are in memory. One state per log, whoever asks for it at once; idle ones are forgotten when there are too
// many, those that somebody works with never.
import { LogNameInvalid } from "./Errors.ts"
import { isIdle, type LogState } from "./LogState.ts"
import { isLogName } from "./Segment.ts"

export interface ResidentsOptions {
  /** Brings a log from its directory. */
  readonly open: (log: string) => Promise<LogState>
  readonly logsMax: number
  /** Those that are in memory already. */
  readonly logs: ReadonlyMap<string, LogState>
}

/** Logs that are looked at for each one that is opened: more than one, so that a crowd of idle ones shrinks again. */
const LOOKS = 4

export class Residents {
  private readonly options: ResidentsOptions
  private readonly logs: Map<string, LogState>
  private readonly opening = new Map<string, Promise<LogState>>()
  /** Goes round the logs, the longest known first. Where it stands, it goes on: no look begins from the front. */
  private round: MapIterator<LogState>

  constructor(options: ResidentsOptions) {
    this.options = options
    this.logs = new Map(options.logs)
    this.round = this.logs.values()
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

  /** Those who wait get the state in the order they came, and before anyone finds it among the resident ones. */
  private open(log: string): Promise<LogState> {
    const opening = this.options.open(log)
    this.opening.set(log, opening)
    const settle = (): void => void this.opening.delete(log)
    opening.then((state) => {
      settle()
      this.makeRoom()
      this.logs.set(log, state)
    }, settle)
    return opening
  }

  /**
   * Looks at a few logs once there are too many, and forgets those that are idle. However many there are that cannot
   * be forgotten, a log costs the same to open.
   */
  private makeRoom(): void {
    for (let looks = 0; looks < LOOKS && this.logs.size >= this.options.logsMax; looks++) {
      const next = this.round.next()
      if (next.done === true) this.round = this.logs.values()
      else if (isIdle(next.value)) this.logs.delete(next.value.name)
    }
  }
}
