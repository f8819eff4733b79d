// What a writer does on a disk that runs full, step by step: fill it, read everything, say the last words out of the
// reserve, get room back, go on. Told to a model at every step, so that each of them can be judged.
import type { Disk } from "#runelog/disk/Disk.ts"
import { Runelog } from "#runelog/Runelog.ts"
import { KIB, type Limits } from "#runelog/RunelogLimits.ts"
import { checkLogs, checkPage } from "./checkLog.ts"
import { tagOf } from "./Hazard.ts"
import { LogModel, Violation } from "./LogModel.ts"

export const fullDiskLimits: Partial<Limits> = {
  journalFileBytes: 64 * KIB,
  journalFilesMax: 4,
  reserveBytes: 8 * KIB,
  segmentBytes: 16 * KIB,
  segmentWriteBytes: 2 * KIB,
  pendingBytesMax: 2048 * KIB
}

export interface Room {
  readonly directory: string
  readonly disk?: Disk
  /** Gives the disk ample room. */
  readonly enlarge: () => void
}

export interface FullDiskReport {
  /** Whether there was room to open the directory at all. */
  readonly opened: boolean
  readonly acknowledged: number
  /** Last words taken while nothing else was. */
  readonly lastAnswer: number
}

const appendsMax = 20_000
const bodyBytes = 2500

class FullDisk {
  readonly #room: Room
  readonly #logs = [new LogModel("alpha"), new LogModel("beta")]
  #runelog: Runelog | undefined

  constructor(room: Room) {
    this.#room = room
  }

  async #open(): Promise<boolean> {
    const { directory, disk } = this.#room
    try {
      this.#runelog = await Runelog.open({ directory, limits: fullDiskLimits, ...(disk && { disk }) })
      return true
    } catch (error) {
      if (tagOf(error) !== "DiskFull") throw error
      return false
    }
  }

  /** Appends one event; false when there is no room for it. */
  async #append(log: LogModel, options: { readonly terminal: boolean }): Promise<boolean> {
    const body = Buffer.alloc(bodyBytes, `${log.name} ${log.submittedHead + 1} `)
    const submission = log.submit([{ body }])
    try {
      await this.#runelog!.append(log.name, submission.firstEventId, submission.entries, options)
      log.acknowledge(submission)
      return true
    } catch (error) {
      log.refuse(submission)
      if (tagOf(error) !== "DiskFull") throw error
      return false
    }
  }

  async #fill(): Promise<void> {
    for (let appends = 0, refused = 0; refused < 3; appends++) {
      if (appends > appendsMax) throw new Violation("the disk does not run full")
      if (!(await this.#append(this.#logs[appends % 2]!, { terminal: false }))) refused += 1
    }
  }

  async #readAll(): Promise<void> {
    for (const log of this.#logs) {
      for (let after = 0; after < log.acknowledgedHead; ) {
        const page = await this.#runelog!.read(log.name, { after })
        checkPage(log, page, { after })
        after = page.next
      }
    }
  }

  async #sayLastWords(): Promise<number> {
    let words = 0
    while (words < 8 && (await this.#append(this.#logs[words % 2]!, { terminal: true }))) words += 1
    return words
  }

  /** Nobody is told that room came back: the engine looks when it is asked again. */
  async #goOn(): Promise<void> {
    for (let attempt = 0; attempt < 1000; attempt++) {
      if (await this.#append(this.#logs[0]!, { terminal: false })) return
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    throw new Violation("no append is taken although there is room again")
  }

  async #closeAndCheck(): Promise<void> {
    await this.#runelog!.close()
    if (!(await this.#open())) throw new Violation("the directory cannot be opened although there is room")
    await checkLogs(this.#runelog!, this.#logs, () => 0.5)
    await this.#runelog!.close()
  }

  async run(): Promise<FullDiskReport> {
    const opened = await this.#open()
    let lastAnswer = 0
    if (opened) {
      await this.#fill()
      await this.#readAll()
      lastAnswer = await this.#sayLastWords()
      await this.#readAll()
    }
    this.#room.enlarge()
    if (!opened && !(await this.#open())) throw new Violation("the directory cannot be opened although there is room")
    await this.#goOn()
    await this.#closeAndCheck()
    const acknowledged = this.#logs.reduce((sum, log) => sum + log.acknowledgedHead, 0)
    return { opened, acknowledged, lastAnswer }
  }
}

export const runFullDisk = (room: Room): Promise<FullDiskReport> => new FullDisk(room).run()
