// The thread of the watchdog. Looks at every turn whether the main thread gave a sign of life, and when it did not for
// too many turns, interrupts it by the debugger for a moment to see where it is. It writes to standard error itself,
// because everything else goes through the thread that is blocked.
import { writeSync } from "node:fs"
import type { Debugger, Session } from "node:inspector"
import { workerData } from "node:worker_threads"
import type { LogLevel } from "../../contract/ServerLog.ts"
import { BeatCounter } from "./BeatCounter.ts"
import { makeLog } from "./Log.ts"
import type { WatchdogWork } from "./Watchdog.ts"

const { beats, blockedMs, stackWithinMs, tickMs } = workerData as WatchdogWork

const write = (level: LogLevel, message: string, fields: Readonly<Record<string, unknown>>): void => {
  const writeLine = (line: string): void => void writeSync(2, `${line}\n`)
  try {
    makeLog({ level: "info", nowMs: () => Date.now(), writeLine }).write(level, message, fields)
  } catch {
    // Nobody reads standard error; there is nobody else to tell.
  }
}

/** Where the main thread is, innermost call first; nothing when it does not get to say so, as in a call of the system. */
const stackOfMain = async (session: Session): Promise<ReadonlyArray<string> | undefined> => {
  const scripts = new Map<string, string>()
  session.on("Debugger.scriptParsed", ({ params }) => scripts.set(params.scriptId, params.url))
  const { promise, resolve } = Promise.withResolvers<ReadonlyArray<Debugger.CallFrame> | undefined>()
  session.on("Debugger.paused", ({ params }) => resolve(params.callFrames))
  const timer = setTimeout(() => resolve(undefined), stackWithinMs)
  session.post("Debugger.enable")
  session.post("Debugger.pause")
  const frames = await promise
  clearTimeout(timer)
  return frames?.map(({ functionName, location }) => {
    const { columnNumber = 0, lineNumber, scriptId } = location
    return `${functionName || "(anonymous)"} (${scripts.get(scriptId) ?? "?"}:${lineNumber + 1}:${columnNumber + 1})`
  })
}

const look = async (): Promise<ReadonlyArray<string> | string> => {
  try {
    const { Session } = await import("node:inspector")
    const session = new Session()
    session.connectToMainThread()
    try {
      return (await stackOfMain(session)) ?? "the main thread is in a system call"
    } finally {
      // Lets the main thread go on, too.
      session.disconnect()
    }
  } catch (error) {
    return `not known: ${error instanceof Error ? error.message : String(error)}`
  }
}

const counter = new BeatCounter(Math.ceil(blockedMs / tickMs))

const turn = async (): Promise<void> => {
  const verdict = counter.turn(Atomics.load(beats, 0))
  if (verdict._tag === "Alive") return
  const fields = { blocked_ms: verdict.turns * tickMs }
  if (verdict._tag === "Freed") return write("warn", "the event loop is running again", fields)
  write("error", "the event loop is blocked", { ...fields, stack: await look() })
}

const next = (): void => {
  setTimeout(() => void turn().finally(next), tickMs)
}
next()
