// How rows are measured: every subject gives short samples in turns with all others, so that a slow minute of the
// machine meets each of them, and a row is the median of its samples. Subjects that take concurrent appends are
// driven by one loop, the same for all.
import { cpus } from "node:os"
import { setTimeout as sleep } from "node:timers/promises"
import { Latency } from "./latency.ts"

export interface Sample {
  readonly count: number
  readonly seconds: number
  /** User and system time of this process, all threads. */
  readonly cpuMicroseconds: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** Background passes that ended inside the sample, where the subject has any. */
  readonly checkpoints: number
}

export interface Subject {
  readonly name: string
  /** Makes everything that exists before the clock starts. */
  readonly prepare: () => Promise<void>
  readonly sample: (seconds: number) => Promise<Sample>
  /** Leaves nothing under way that would run on into the sample of another. */
  readonly settle: () => Promise<void>
  readonly close: () => Promise<void>
}

export const nothing = async (): Promise<void> => undefined

export interface Summary {
  readonly perSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly cpuMicrosecondsPerItem: number
  readonly checkpoints: number
  readonly slowestPerSecond: number
  readonly fastestPerSecond: number
}

export const median = (values: ReadonlyArray<number>): number => {
  if (values.length === 0) throw new Error("the median of nothing")
  const sorted = [...values].sort((left, right) => left - right)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

export const summarize = (samples: ReadonlyArray<Sample>): Summary => {
  const rates = samples.map(({ count, seconds }) => count / seconds)
  return {
    perSecond: median(rates),
    p50Ms: median(samples.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(samples.map(({ p99Ms }) => p99Ms)),
    cpuMicrosecondsPerItem: median(samples.map(({ cpuMicroseconds, count }) => cpuMicroseconds / count)),
    checkpoints: samples.reduce((sum, { checkpoints }) => sum + checkpoints, 0),
    slowestPerSecond: Math.min(...rates),
    fastestPerSecond: Math.max(...rates)
  }
}

/** Runs `body`, which says how many items it did and how long each took. */
export const timed = async (
  body: (latency: Latency, startedMs: number) => Promise<number>,
  checkpoints: () => number = () => 0
): Promise<Sample> => {
  const latency = new Latency()
  const checkpointsBefore = checkpoints()
  const cpuBefore = process.cpuUsage()
  const startedMs = performance.now()
  const count = await body(latency, startedMs)
  const seconds = (performance.now() - startedMs) / 1000
  const { user, system } = process.cpuUsage(cpuBefore)
  return {
    count,
    seconds,
    cpuMicroseconds: user + system,
    p50Ms: latency.percentileMs(0.5),
    p99Ms: latency.percentileMs(0.99),
    checkpoints: checkpoints() - checkpointsBefore
  }
}

export interface Load {
  readonly outstanding: number
  /** Starts one append for the appender of that number. */
  readonly append: (appender: number) => Promise<unknown>
  /** What to do before the appender tries again; without it a rejection ends the benchmark. */
  readonly retry?: (error: unknown, appender: number) => Promise<void>
  readonly isOver: (nowMs: number) => boolean
}

/** So many appenders, each with one append outstanding at all times; returns how many appends were acknowledged. */
export const drive = async (load: Load, latency: Latency): Promise<number> => {
  const { append, isOver, retry } = load
  let count = 0
  const appender = async (number: number): Promise<void> => {
    let startedMs = performance.now()
    while (!isOver(startedMs)) {
      try {
        await append(number)
      } catch (error) {
        if (retry === undefined) throw error
        await retry(error, number)
        continue
      }
      const endedMs = performance.now()
      latency.record(endedMs - startedMs)
      count += 1
      startedMs = endedMs
    }
  }
  await Promise.all(Array.from({ length: load.outstanding }, (_, number) => appender(number)))
  return count
}

/** Calls `once` until the time is up, for subjects that do one thing at a time; `once` says how many items it did. */
export const repeat = async (seconds: number, once: () => number | Promise<number>): Promise<Sample> =>
  timed(async (latency, startedMs) => {
    let count = 0
    for (let beforeMs = startedMs; beforeMs < startedMs + seconds * 1000; ) {
      const done = once()
      count += typeof done === "number" ? done : await done
      const afterMs = performance.now()
      latency.record(afterMs - beforeMs)
      beforeMs = afterMs
    }
    return count
  })

const QUIET_CHECK_MS = 20
const QUIET_CHECKS_MAX = 100

/** Waits until this process has stopped working, pool threads included. */
const untilQuiet = async (): Promise<void> => {
  for (let check = 0; check < QUIET_CHECKS_MAX; check++) {
    const before = process.cpuUsage()
    await sleep(QUIET_CHECK_MS)
    const { user, system } = process.cpuUsage(before)
    if (user + system < QUIET_CHECK_MS * 100) return
  }
}

export type Results = ReadonlyMap<string, Summary>

export interface Rounds {
  readonly seconds: number
  readonly rounds: number
  readonly progress: (line: string) => void
}

/**
 * One sample of every subject, then the next of every subject, and so on; all are closed at the end. Every second round
 * goes backwards: a disk that still works off what one subject wrote should not always be met by the same other one.
 */
export const measureInTurns = async (subjects: ReadonlyArray<Subject>, options: Rounds): Promise<Results> => {
  const samples = new Map<string, Array<Sample>>(subjects.map(({ name }) => [name, []]))
  try {
    for (const subject of subjects) {
      options.progress(`preparing ${subject.name}`)
      await subject.prepare()
      await subject.sample(Math.min(options.seconds, 0.3))
      await subject.settle()
    }
    for (let round = 1; round <= options.rounds; round++) {
      options.progress(`round ${round} of ${options.rounds}`)
      for (const subject of round % 2 === 1 ? subjects : subjects.toReversed()) {
        await untilQuiet()
        samples.get(subject.name)!.push(await subject.sample(options.seconds))
        await subject.settle()
      }
    }
  } finally {
    for (const subject of subjects) await subject.close()
  }
  const results = new Map([...samples].map(([name, taken]) => [name, summarize(taken)]))
  for (const [name, summary] of results) options.progress(spreadLine(name, summary))
  return results
}

const spreadLine = (name: string, { perSecond, slowestPerSecond, fastestPerSecond }: Summary): string => {
  const [middle, least, most] = [perSecond, slowestPerSecond, fastestPerSecond].map((rate) => Math.round(rate))
  return `${name}: ${middle} a second [${least}–${most}]`
}

const machineBusyMs = (): number =>
  cpus().reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0)

/** Starts a watch over the whole machine; the answer is how many cores others, the kernel's own threads included, kept busy. */
export const watchOthers = (): (() => number) => {
  const startedMs = performance.now()
  const busyBeforeMs = machineBusyMs()
  const ownBefore = process.cpuUsage()
  return () => {
    const { user, system } = process.cpuUsage(ownBefore)
    const othersMs = machineBusyMs() - busyBeforeMs - (user + system) / 1000
    return Math.max(0, othersMs) / (performance.now() - startedMs)
  }
}
