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

/** Of the most there may be, this share is left when some are forgotten. */
const SHARE_LEFT = 0.9

export class Residents {
  private readonly options: ResidentsOptions
  private readonly logs: Map<string, LogState>
  private readonly opening = new Map<string, Promise<LogState>>()

  constructor(options: ResidentsOptions) {
    this.options = options
    this.logs = new Map(options.logs)
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

  /** Forgets idle logs, the longest known first, once there are too many. */
  private makeRoom(): void {
    const { logsMax } = this.options
    if (this.logs.size < logsMax) return
    let surplus = this.logs.size + 1 - Math.floor(logsMax * SHARE_LEFT)
    for (const [name, state] of this.logs) {
      if (surplus <= 0) return
      if (!isIdle(state)) continue
      this.logs.delete(name)
      surplus -= 1
    }
  }
}
