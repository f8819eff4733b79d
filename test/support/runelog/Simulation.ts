// One life of a data directory on the simulated disk, drawn from a seed: several generations of a writer, each ended by
// a power cut, a kill or a clean close at a drawn step, recovery included. After every start all logs are compared
// with their models.

import type { Disk } from "#runelog/disk/Disk.ts"
import { systemError } from "#runelog/disk/DiskFault.ts"
import { type ResolvedLimits, type RunelogOptions, resolveLimits } from "#runelog/Options.ts"
import { Runelog } from "#runelog/Runelog.ts"
import { KIB, type Limits } from "#runelog/RunelogLimits.ts"
import { verify } from "#runelog/verify/Verify.ts"
import { DiskSim } from "../disk/DiskSim.ts"
import { randomFrom } from "../seed.ts"
import { Client, modelLogs } from "./Client.ts"
import { checkLogs } from "./checkLog.ts"
import { withJitter } from "./DiskJitter.ts"
import { type Hazard, type HazardKind, makeHazard, tagOf } from "./Hazard.ts"
import { type LogModel, Violation } from "./LogModel.ts"
import { settled } from "./turns.ts"

export interface SimulationOptions {
  readonly seed: number
  /** Puts a broken disk between the engine and the simulated one. */
  readonly mutate?: (disk: Disk) => Disk
  readonly defect?: RunelogOptions["defect"]
  readonly hazard?: HazardKind
  /** Starts leave logs to the journal; else they settle all, as with a small directory. Every other seed unless told. */
  readonly defers?: boolean
  /** Told of every step of the disk and every end of a generation. */
  readonly trace?: (line: string) => void
}

export interface SimulationReport {
  crashes: number
  kills: number
  closes: number
  /** Starts that were cut short themselves. */
  interruptedStarts: number
  acknowledged: number
  recoveredFrames: number
  operations: number
  /** Appends that were refused for want of room. */
  refusedFull: number
  /** Writers that stopped because the disk failed. */
  poisoned: number
  /** Starts that left logs to the journal, and those of them that ended before all was in segments. */
  deferredStarts: number
  unsettledEnds: number
}

const directory = "/home/data"

const limitsFrom = (pick: <A>(values: ReadonlyArray<A>) => A): Partial<Limits> => {
  const limits = {
    journalFileBytes: pick([64, 64, 64, 96, 128, 256]) * KIB,
    journalFilesMax: pick([1, 2, 3, 4]),
    reserveBytes: 8 * KIB,
    segmentBytes: pick([4, 8, 16]) * KIB,
    segmentWriteBytes: pick([1, 1, 4]) * KIB,
    indexEveryFrames: pick([2, 4, 16]),
    indexEveryBytes: 512,
    openFilesMax: pick([1, 2, 8]),
    residentLogsMax: pick([1, 2, 3, 20]),
    pendingBytesMax: pick([512, 1024]) * KIB,
    inFlightBytesMax: pick([4, 32, 256]) * KIB,
    bodyBytesMax: 24 * KIB,
    batchBytesMax: 40 * KIB
  }
  // Not drawn, so that lives that once broke a promise stay the same; with the largest it never happens.
  return { ...limits, earlyCommitBytes: limits.inFlightBytesMax / 4, packSavedBytesMin: 1 }
}

class Simulation {
  readonly #options: SimulationOptions
  readonly #chance: () => number
  #limits: ResolvedLimits
  readonly #logs: ReadonlyArray<LogModel>
  readonly #hazard: Hazard
  #disk = new DiskSim()
  /** Changing steps until the end comes, one way or another. */
  #stepsLeft = Number.POSITIVE_INFINITY
  #successor: DiskSim | undefined
  readonly report: SimulationReport = {
    crashes: 0,
    kills: 0,
    closes: 0,
    interruptedStarts: 0,
    acknowledged: 0,
    recoveredFrames: 0,
    operations: 0,
    refusedFull: 0,
    poisoned: 0,
    deferredStarts: 0,
    unsettledEnds: 0
  }

  constructor(options: SimulationOptions) {
    this.#options = options
    this.#chance = randomFrom(options.seed)
    this.#limits = this.#drawLimits()
    this.#logs = modelLogs(1 + this.#below(4))
    this.#hazard = makeHazard(options.hazard, this.#chance)
  }

  async run(): Promise<SimulationReport> {
    const generations = 2 + this.#below(3)
    for (let generation = 0; generation < generations; generation++) await this.#generation()
    await this.#lastStart()
    return this.report
  }

  #drawLimits(): ResolvedLimits {
    const drawn = limitsFrom((values) => values[this.#below(values.length)]!)
    if (!this.#defers) return resolveLimits(drawn)
    return resolveLimits({ ...drawn, startLogsMax: this.#below(2), closeLogsMax: this.#below(3) })
  }

  #below(bound: number): number {
    return Math.floor(this.#chance() * bound)
  }

  get #defers(): boolean {
    return this.#options.defers ?? this.#options.seed % 2 === 1
  }

  async #generation(): Promise<void> {
    while (this.#defers && this.#chance() < 0.4) await this.#briefStart()
    const inRecovery = this.#chance() < 0.3
    this.#arm(this.#below(inRecovery ? 60 : 400))
    if (this.#chance() < 0.2) await this.#verify()
    // Settings may change from one start to the next.
    if (this.#chance() < 0.3) this.#limits = this.#drawLimits()
    this.#hazard.befall(this.#disk)
    const runelog = await this.#open()
    if (runelog !== undefined) await this.#live(runelog)
    this.report.operations += this.#disk.operationCount
    this.#disk = this.#successor ?? this.#end()
    this.#successor = undefined
    if (this.#chance() < 0.8) this.#hazard.pass(this.#disk)
  }

  async #lastStart(): Promise<void> {
    this.#arm(Number.POSITIVE_INFINITY)
    this.#hazard.pass(this.#disk)
    this.#limits = { ...this.#limits, closeLogsMax: Number.MAX_SAFE_INTEGER }
    const runelog = await this.#open()
    await settled(runelog!.close(), "close")
    const { entries, thinnedEvents } = await this.#verify()
    const expected = this.#logs.reduce((sum, log) => sum + log.acknowledgedHead, 0)
    if (entries + thinnedEvents !== expected) {
      throw new Violation(`verify counts ${entries} and ${thinnedEvents} thinned events where there are ${expected}`)
    }
  }

  /** Nothing that a crash leaves may look like damage. */
  async #verify(): Promise<{ readonly entries: number; readonly thinnedEvents: number }> {
    const report = await settled(verify({ directory, disk: this.#disk }), "verify").catch((error) => {
      if (tagOf(error) === "DataMissing") return { problems: [], entries: 0, thinnedEvents: 0 }
      throw error
    })
    const problem = report.problems[0]
    if (problem === undefined) return report
    throw new Violation(`verify finds damage: ${problem.file} at ${problem.offset}: ${problem.reason}`)
  }

  /** A start that ends while most of what it found is in the journal alone. */
  async #briefStart(): Promise<void> {
    this.#arm(this.#below(80))
    const runelog = await settled(Runelog.open(this.#runelogOptions()), "a brief open").catch((error) => {
      if (this.#successor === undefined && !this.#hazard.explains(tagOf(error), this.#disk)) throw error
    })
    if (runelog !== undefined) {
      if (runelog.stats.journalLogs > 0) this.report.deferredStarts += 1
      for (const { name } of this.#logs) {
        if (this.#chance() < 0.4)
          await settled(
            runelog.read(name, { after: 0 }).catch(() => undefined),
            "a look"
          )
      }
      if (this.#chance() < 0.3)
        await settled(
          runelog.checkpoint().catch(() => undefined),
          "a checkpoint"
        )
      if (runelog.stats.journalLogs > 0) this.report.unsettledEnds += 1
      if (this.#successor === undefined) this.#end()
      await settled(
        runelog.close().catch(() => undefined),
        "the close of a brief start"
      )
    }
    this.#disk = this.#successor ?? this.#end()
    this.#successor = undefined
  }

  #arm(steps: number): void {
    this.#stepsLeft = steps
    this.#disk.onOperation = ({ operation, path }) => {
      this.#options.trace?.(`${operation} ${path}`)
      this.#stepsLeft -= 1
      if (this.#stepsLeft >= 0) return
      if (this.#successor === undefined) this.#end()
      throw systemError("EIO", operation, path)
    }
  }

  /** The power goes, or the process dies; what is under way fails. */
  #end(): DiskSim {
    const disk = this.#disk
    this.#options.trace?.("the end of a generation")
    if (this.#chance() < 0.7 || this.#hazard.needsPowerCut(disk)) {
      this.#successor = disk.crash(this.#below(2 ** 32))
      disk.powerOff()
      this.report.crashes += 1
    } else {
      this.#successor = disk.killProcess()
      this.report.kills += 1
    }
    return this.#successor
  }

  #runelogOptions(): RunelogOptions {
    const { mutate, defect } = this.#options
    const share = [0, 0.2, 0.5][this.#below(3)]!
    const jittered = withJitter(this.#disk, { chance: this.#chance, share })
    const sync = [undefined, "inline", "pool"][this.#below(3)] as "inline" | "pool" | undefined
    return {
      directory,
      disk: mutate === undefined ? jittered : mutate(jittered),
      limits: this.#limits,
      nowMs: this.#clock(),
      randomHex: (bytes) => Array.from({ length: bytes * 2 }, () => this.#below(16).toString(16)).join(""),
      ...(sync && { sync }),
      ...(defect && { defect })
    }
  }

  /** Every look at the clock costs a while, so that the engine changes its mind about the speed of the disk. */
  #clock(): () => number {
    let nowMs = 0
    return () => {
      nowMs += this.#chance() * 2
      return nowMs
    }
  }

  async #open(): Promise<Runelog | undefined> {
    try {
      const runelog = await settled(Runelog.open(this.#runelogOptions()), "open")
      if (runelog.stats.journalLogs > 0) this.report.deferredStarts += 1
      const stepsLeft = this.#stepsLeft
      this.#stepsLeft = Number.POSITIVE_INFINITY
      if (this.#successor === undefined) await settled(checkLogs(runelog, this.#logs, this.#chance), "the check")
      this.#stepsLeft = stepsLeft
      this.report.recoveredFrames += runelog.recovered.frames
      return runelog
    } catch (error) {
      if (error instanceof Violation) throw error
      if (this.#successor === undefined && !this.#hazard.explains(tagOf(error), this.#disk)) throw error
      this.report.interruptedStarts += 1
      return undefined
    }
  }

  async #live(runelog: Runelog): Promise<void> {
    const client = new Client(runelog, {
      logs: this.#logs,
      chance: this.#chance,
      bodyBytesMax: this.#limits.bodyBytesMax,
      isOver: () => this.#successor !== undefined,
      explains: (tag) => this.#hazard.explains(tag, this.#disk)
    })
    const steps = 15 + this.#below(110)
    for (let step = 0; step < steps && this.#successor === undefined && runelog.poisoned === undefined; step++) {
      this.#hazard.befall(this.#disk)
      await settled(client.step(), () => `a step beside ${client.underWay.join()}`)
    }
    if (this.#successor === undefined) await this.#recuperate(runelog, client)
    if (this.#successor === undefined && this.#chance() < 0.4) {
      await this.#close(runelog, client)
    } else {
      if (this.#successor === undefined) this.#end()
      client.closing()
      await settled(client.idle(), () => `when the disk is gone, ${client.underWay.join()}`)
      await settled(
        runelog.close().catch(() => undefined),
        "close without a disk"
      )
    }
    this.report.acknowledged += client.acknowledged
    this.report.refusedFull += client.refusedFull
  }

  /** The disk is sound again: a writer that was only short of room goes on, one that is poisoned never does. */
  async #recuperate(runelog: Runelog, client: Client): Promise<void> {
    if (this.#options.hazard === undefined || this.#chance() < 0.3) return
    await settled(client.idle(), () => `${client.underWay.join()} beside the hazard`)
    if (this.#successor !== undefined) return
    if (runelog.poisoned !== undefined) this.report.poisoned += 1
    this.#hazard.pass(this.#disk)
    const stepsLeft = this.#stepsLeft
    this.#stepsLeft = Number.POSITIVE_INFINITY
    await settled(client.resume(), "going on after the hazard")
    this.#stepsLeft = stepsLeft
  }

  async #close(runelog: Runelog, client: Client): Promise<void> {
    if (this.#chance() < 0.5) await settled(client.idle(), "the work under way")
    client.closing()
    try {
      await settled(runelog.close(), "close")
      if (this.#successor === undefined) this.report.closes += 1
    } catch (error) {
      if (this.#successor === undefined && !this.#hazard.explains(tagOf(error), this.#disk)) throw error
    }
    await settled(client.idle(), "the work under way at the close")
    // The page cache is what it is: a clean close promises no more than the syncs it made.
    if (this.#successor === undefined) this.#end()
  }
}

/** Runs one seed; rejects with a Violation that names it when a promise is broken. */
export const simulate = async (options: SimulationOptions): Promise<SimulationReport> => {
  try {
    return await new Simulation(options).run()
  } catch (error) {
    throw new Violation(`SEED=${options.seed}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error
    })
  }
}
