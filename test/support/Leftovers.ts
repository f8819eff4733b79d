// The place of one test run, and what the run left behind. Everything a run makes lies below one temporary folder, and
// the name of that folder is the mark of its processes: it is in their environment, their arguments or the folder they work
// in. A process that carries the mark when the run is over was started by it and should have been ended by it.
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface Leftover {
  readonly pid: number
  readonly command: string
}

const compiled = join(import.meta.dirname, "../../node_modules/.cache/echs-compiled")

/** Processes that were told to end may take this long. */
const graceMs = 5_000
const lookEveryMs = 50

/** Makes the folder and sends everything that asks for a temporary one into it. The name is short: sockets have short paths. */
export const enterPlace = (): string => {
  const place = realpathSync(mkdtempSync(join(tmpdir(), "echs-")))
  process.env["TMPDIR"] = place
  // What Node compiled outlives the run: a server that a test starts anew has nothing to compile.
  process.env["NODE_COMPILE_CACHE"] ??= compiled
  return place
}

const textOf = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    // Gone meanwhile, or somebody else's.
    return ""
  }
}

const workingDirectory = (pid: number): string => {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return ""
  }
}

/** The line that started a process; nothing for one that is dead and not yet collected. */
const commandOf = (pid: number): string => textOf(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim()

const carries = (pid: number, mark: string): boolean =>
  [textOf(`/proc/${pid}/environ`), textOf(`/proc/${pid}/cmdline`), workingDirectory(pid)].some((text) =>
    text.includes(mark)
  )

/** Processes that carry the mark, but for this one. Without /proc nothing can be said, and nothing is. */
export const findLeftovers = (mark: string): ReadonlyArray<Leftover> => {
  const names = process.platform === "linux" ? readdirSync("/proc").filter((name) => /^\d+$/.test(name)) : []
  return names
    .map(Number)
    .filter((pid) => pid !== process.pid && carries(pid, mark))
    .map((pid) => ({ pid, command: commandOf(pid) }))
    .filter(({ command }) => command !== "")
}

/** Waits, without giving way, until nothing carries the mark or the grace is over. For the very end of a process. */
const settledLeftovers = (mark: string): ReadonlyArray<Leftover> => {
  const clock = new Int32Array(new SharedArrayBuffer(4))
  const untilMs = performance.now() + graceMs
  let found = findLeftovers(mark)
  while (found.length > 0 && performance.now() < untilMs) {
    Atomics.wait(clock, 0, 0, lookEveryMs)
    found = findLeftovers(mark)
  }
  return found
}

/** Tells what was left running below the place, ends it, and removes the place. */
export const leavePlace = (place: string): ReadonlyArray<Leftover> => {
  const left = settledLeftovers(place)
  for (const { pid } of left) {
    try {
      process.kill(pid, "SIGKILL")
    } catch {
      // It ended by itself meanwhile.
    }
  }
  try {
    rmSync(place, { recursive: true, force: true })
  } catch {
    // A mount that is still busy; what made it says so.
  }
  return left
}
