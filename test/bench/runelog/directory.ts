// A directory on a real disk for one run. The system's temporary directory is often memory, where a sync costs
// nothing and every durable row would be a lie. Whatever happens, also a signal, the directory is removed.
import { mkdirSync, mkdtempSync, rmSync, statfsSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"

/** Linux names of file systems that live in memory: tmpfs, ramfs. */
const memoryTypes: ReadonlySet<number> = new Set([0x01021994, 0x858458f6])

export const isInMemory = (path: string): boolean =>
  process.platform === "linux" && memoryTypes.has(statfsSync(path).type)

const candidates = (temporary: string): ReadonlyArray<string> => {
  const chosen = process.env["BENCH_DIRECTORY"]
  return chosen === undefined || chosen === "" ? [temporary, join(homedir(), ".cache"), "/var/tmp"] : [chosen]
}

const usable = (path: string): boolean => {
  try {
    mkdirSync(path, { recursive: true })
    return !isInMemory(path)
  } catch {
    return false
  }
}

export interface BenchDirectory {
  readonly path: string
  readonly remove: () => void
}

const removeTree = (path: string): void => rmSync(path, { recursive: true, force: true, maxRetries: 8 })

/** Makes the directory; `temporary` is used unless it is memory, and is removed on a signal as well. */
export const makeDirectory = (temporary: string): BenchDirectory => {
  const parent = candidates(temporary).find(usable)
  if (parent === undefined) {
    throw new Error(`no directory on a real disk among ${candidates(temporary).join(", ")}; set BENCH_DIRECTORY`)
  }
  const path = mkdtempSync(join(parent, "echs-bench-"))
  const onSignal = (signal: NodeJS.Signals): void => {
    remove()
    removeTree(temporary)
    process.kill(process.pid, signal)
  }
  const remove = (): void => {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal)
    removeTree(path)
  }
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal)
  return { path, remove }
}
