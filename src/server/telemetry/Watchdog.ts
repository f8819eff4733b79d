// Watchdog of the event loop. A thread of its own counts how often it came around without a sign of life of the main
// thread, and writes to standard error where the main thread is: whoever is blocked cannot say so. It counts its
// own turns and no time, so that a process that was stopped, or a machine that slept, raises no alarm.
import { url as debuggerUrl } from "node:inspector"
import { Worker } from "node:worker_threads"
import { describeError, type Log } from "../../contract/ServerLog.ts"
import { limits } from "../../wire/WireLimits.ts"

/** What the thread is given. */
export interface WatchdogWork {
  /** Counted up by the main thread. */
  readonly beats: Int32Array<SharedArrayBuffer>
  readonly tickMs: number
  readonly blockedMs: number
  readonly stackWithinMs: number
}

export interface WatchdogOptions {
  readonly log: Log
  readonly tickMs?: number
  readonly blockedMs?: number
}

export interface Watchdog {
  readonly close: () => Promise<void>
}

/** Source and build lie side by side under the same names. */
const threadFile = (): URL =>
  new URL(import.meta.url.endsWith(".ts") ? "./WatchdogThread.ts" : "./WatchdogThread.js", import.meta.url)

const memoryMaxMb = 32

/** Starts the watch, which keeps no process alive; nothing where somebody debugs this one and holds it on purpose. */
export const startWatchdog = (options: WatchdogOptions): Watchdog | undefined => {
  if (debuggerUrl() !== undefined) return undefined
  const { blockedMs = limits.blockedMs, log, tickMs = limits.watchdogTickMs } = options
  const beats = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const timer = setInterval(() => Atomics.add(beats, 0, 1), tickMs)
  timer.unref()
  const work: WatchdogWork = { beats, tickMs, blockedMs, stackWithinMs: limits.watchdogStackMs }
  const thread = new Worker(threadFile(), {
    workerData: work,
    execArgv: [],
    env: {},
    resourceLimits: { maxYoungGenerationSizeMb: 4, maxOldGenerationSizeMb: memoryMaxMb }
  })
  thread.unref()
  thread.once("error", (error) => {
    clearInterval(timer)
    log.write("warn", "the event loop is no longer monitored", { cause: describeError(error) })
  })
  return {
    close: async () => {
      clearInterval(timer)
      await thread.terminate()
    }
  }
}
