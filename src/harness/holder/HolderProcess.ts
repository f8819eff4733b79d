// The process of a holder: reads what it was told to run from its directory, starts it in a terminal, and ends soon after
// it. Started detached, so that nothing that happens to the server or to a window reaches it.

import { rmSync } from "node:fs"
import { createRequire } from "node:module"
import { readEnvironment } from "../../config/Environment.ts"
import { readCompanion, startCompanion } from "./Companion.ts"
import type { Size } from "./Frames.ts"
import { Holder, type Terminal } from "./Holder.ts"
import { type HolderState, readLaunch, socketPath, writeState } from "./HolderFiles.ts"
import { makeScreen } from "./Screen.ts"

type NodePty = typeof import("@lydell/node-pty")
type Pty = ReturnType<NodePty["spawn"]>

/** The program and all it started in its terminal. */
const killGroup = (pty: Pty, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pty.pid, signal)
  } catch {
    // It has ended meanwhile.
  }
}

const isAlive = ({ pid }: Pty): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** While the program is held back its end must be seen all the same: what it wrote last would be dropped with it. */
const watchedEveryMs = 40

const terminalOf = (pty: Pty): Terminal => {
  let watch: NodeJS.Timeout | undefined
  const resume = (): void => {
    clearInterval(watch)
    pty.resume()
  }
  return {
    pid: pty.pid,
    // Typed for text; bytes go through as they are.
    write: (bytes) => pty.write((typeof bytes === "string" ? bytes : Buffer.from(bytes)) as string),
    resize: ({ columns, rows }) => pty.resize(columns, rows),
    kill: (signal) => killGroup(pty, signal),
    pause: () => {
      pty.pause()
      clearInterval(watch)
      watch = setInterval(() => {
        if (!isAlive(pty)) resume()
      }, watchedEveryMs)
    },
    resume
  }
}

/** A directory that is gone must not keep the process of a program that has ended. */
const noteEnd = (directory: string, state: HolderState): void => {
  try {
    writeState(directory, state)
  } catch (error) {
    process.stderr.write(`${String(error)}\n`)
  }
}

const ownerWithinMs = 30_000

const run = async (directory: string): Promise<void> => {
  const launch = readLaunch(directory)
  const { spawn }: NodePty = createRequire(import.meta.url)("@lydell/node-pty")
  const path = socketPath(directory)
  const planned = readCompanion(directory)
  const companion =
    planned === undefined
      ? undefined
      : await startCompanion(planned, { cwd: launch.workingDirectory, env: environment })
  const unowned = setTimeout(() => process.exit(1), ownerWithinMs)
  const start = ({ columns: cols, rows }: Size): Terminal => {
    clearTimeout(unowned)
    const startedMs = Date.now()
    const pty = spawn(launch.command, [...(companion?.args ?? []), ...launch.args], {
      name: environment["TERM"] ?? "xterm-256color",
      cols,
      rows,
      cwd: launch.workingDirectory,
      env: environment,
      encoding: null
    })
    const beside = companion === undefined ? {} : { companion: { pid: companion.pid, address: companion.address } }
    const state = { holderPid: process.pid, pid: pty.pid, startedMs, ...beside }
    writeState(directory, state)
    pty.onData((data) => holder.output(data as unknown as Uint8Array))
    pty.onExit(({ exitCode, signal }) => {
      const exit = { exitCode, signal: signal === undefined || signal === 0 ? null : signal }
      noteEnd(directory, { ...state, exit })
      companion?.end()
      void holder.ended(exit).then(() => {
        rmSync(path, { force: true })
        process.exit(0)
      })
    })
    return terminalOf(pty)
  }
  const { columns, rows, isDetached } = launch
  const screen = makeScreen({ columns, rows })
  const size = { columns, rows }
  const holder = new Holder({ start, screen, size, isDetached, nowMs: () => Date.now() })
  rmSync(path, { force: true })
  await holder.listen(path)
}

const environment = readEnvironment().variables

process.umask(0o077)
// A holder ends with its program and for no other reason.
for (const signal of ["SIGHUP", "SIGINT", "SIGTERM"] as const) process.on(signal, () => undefined)
void run(process.argv[2] ?? "").catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
  process.exit(1)
})
