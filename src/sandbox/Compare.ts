// What is mounted in a sandbox against what was planned: every place of the plan is there, is the file it was planned
// to be, and can be written to only where it may; and nothing is there that was not planned.
import { lstatSync, readFileSync } from "node:fs"
import type { Mount } from "./Places.ts"

export interface Mounted {
  readonly at: string
  readonly isReadOnly: boolean
  readonly type: string
}

const unescaped = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))

/** Names are bytes: they are read and compared as such. */
const bytesOf = (path: string): string => Buffer.from(path, "utf8").toString("latin1")

/** The lines of a mountinfo, in the order in which the mounts were made. */
export const mountedOf = (text: string): ReadonlyArray<Mounted> =>
  text.split("\n").flatMap((line) => {
    const [own = "", source = ""] = line.split(" - ")
    const [, , , , at, options = ""] = own.split(" ")
    if (at === undefined) return []
    return [{ at: unescaped(at), isReadOnly: options.split(",").includes("ro"), type: source.split(" ")[0] ?? "" }]
  })

/** The sandbox brings these along by itself. */
const usual: ReadonlySet<string> = new Set([
  ...["/", "/proc", "/dev", "/dev/pts", "/dev/console", "/dev/mqueue", "/dev/null", "/dev/zero", "/dev/full"],
  ...["/dev/random", "/dev/urandom", "/dev/tty", "/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"]
])

/** Why this place is not as it was planned. */
const issueAt = ({ at, kind }: Mount, found: Mounted | undefined): string | undefined => {
  if (found === undefined) return `${at} is not mounted`
  // A root may lie on a disk that nobody can write to.
  if (kind === "private" && found.isReadOnly) return `${at} cannot be written to`
  if (kind !== "private" && kind !== "writable" && !found.isReadOnly) return `${at} can be written to`
  const isEmpty = kind === "empty" || kind === "private"
  return isEmpty && found.type !== "tmpfs" ? `${at} is not empty` : undefined
}

/** Whether the same file lies there inside, looked at through the root of a process there. */
const isAnother = ({ at, file, kind }: Mount, pid: number): boolean => {
  if (file === undefined || (kind !== "writable" && kind !== "readonly")) return false
  const inside = lstatSync(`/proc/${pid}/root${at}`, { throwIfNoEntry: false, bigint: true })
  return inside?.dev !== file.dev || inside.ino !== file.ino
}

/** The first process inside, whose number only whoever is outside knows. */
const insideOf = (pid: number): number | undefined => {
  const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ")
  return first === undefined || first === "" ? undefined : Number(first)
}

const compare = (plan: ReadonlyArray<Mount>, inside: number): string | undefined => {
  const mounts = mountedOf(readFileSync(`/proc/${inside}/mountinfo`, "latin1"))
  const last = new Map(mounts.map((mounted) => [mounted.at, mounted]))
  const places = new Set(plan.map(({ at }) => bytesOf(at)))
  const unplanned = [...last.keys()].filter((at) => !usual.has(at) && !places.has(at))
  if (unplanned.length > 0) {
    // What is mounted outside below a place comes along with it.
    const outside = new Set(mountedOf(readFileSync("/proc/self/mountinfo", "latin1")).map(({ at }) => at))
    const other = unplanned.find((at) => !outside.has(at))
    if (other !== undefined) return `${Buffer.from(other, "latin1").toString("utf8")} was not planned`
  }
  if (last.get("/")?.isReadOnly !== true) return "/ can be written to"
  for (const place of plan) {
    const issue = issueAt(place, last.get(bytesOf(place.at)))
    if (issue !== undefined) return issue
    if (isAnother(place, inside)) return `${place.at} is not what was planned`
  }
  return undefined
}

/** How a sandbox whose first process outside is this one differs from its plan; undefined when it does not. */
export const differenceOf = (plan: ReadonlyArray<Mount>, pid: number): string | undefined => {
  try {
    const inside = insideOf(pid)
    return inside === undefined ? "there is no sandbox" : compare(plan, inside)
  } catch (error) {
    return `it cannot be looked at (${(error as NodeJS.ErrnoException).code ?? String(error)})`
  }
}
