// Trees of processes: who is in them, and ending them. In a process namespace the tree is known to the kernel, and
// ending its first process ends all. Outside of one we look for what can be found: the process group, descendants, and
// whoever carries the mark of the tree in the environment it was started with.
import { randomBytes } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"

/** Processes of a tree carry it, whoever their parents are by now. */
export const markName = "ECHS_PROCESS_TREE"

/** Begins with whose it is, so that a tree can be found again by the next server on the same data. */
export const newMark = (owner = ""): string => `${owner}${owner === "" ? "" : "."}${randomBytes(12).toString("hex")}`

/** Files of a process that may end at any moment; nothing when it has. */
const readProc = (path: string): string => {
  try {
    return readFileSync(path, "latin1")
  } catch {
    return ""
  }
}

const namesIn = (directory: string): ReadonlyArray<string> => {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}

const childrenOf = (pid: number): ReadonlyArray<number> =>
  namesIn(`/proc/${pid}/task`).flatMap((thread) =>
    readProc(`/proc/${pid}/task/${thread}/children`)
      .split(" ")
      .flatMap((text) => (text === "" ? [] : [Number(text)]))
  )

/** Everything below a process, parents before children. */
export const descendantsOf = (pid: number): ReadonlyArray<number> => {
  const found: Array<number> = []
  const open = [...childrenOf(pid)]
  for (let next = open.shift(); next !== undefined && found.length < 10_000; next = open.shift()) {
    found.push(next)
    open.push(...childrenOf(next))
  }
  return found
}

/**
 * Processes that were started with this mark in their environment. Numbers are given out in order, so that of a program
 * that ran shortly only those after its own have to be looked at.
 */
export const markedWith = (
  mark: string,
  range: { readonly from: number; readonly wasShort: boolean }
): ReadonlyArray<number> => {
  const last = Number(readProc("/proc/sys/kernel/ns_last_pid") || Number.NaN)
  const isOrdered = range.wasShort && last >= range.from
  return namesIn("/proc")
    .filter((name) => /^[0-9]+$/.test(name) && (!isOrdered || Number(name) > range.from))
    .filter((name) => readProc(`/proc/${name}/environ`).includes(`${markName}=${mark}`))
    .map(Number)
}

/** Processes that were started with any mark of this owner. */
export const markedBy = (owner: string): ReadonlyArray<number> =>
  namesIn("/proc")
    .filter((name) => /^[0-9]+$/.test(name))
    .filter((name) => `\0${readProc(`/proc/${name}/environ`)}`.includes(`\0${markName}=${owner}.`))
    .map(Number)

const isZombie = (pid: number): boolean => / [ZX] /.test(readProc(`/proc/${pid}/stat`).replace(/^.*\)/s, ""))

export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !isZombie(pid)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"
  }
}

/** Sends a signal; a process or group that has ended meanwhile needs none. */
export const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== "ESRCH" && code !== "EPERM") throw error
  }
}

/** The command line of a process, for people. */
export const commandOf = (pid: number): string =>
  readProc(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim().slice(0, 200)
