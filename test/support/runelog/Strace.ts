// System calls of the scripted run, by strace: first which there are, then the same run with a fault at the k-th of one
// kind. strace attaches once the child is ready, so that calls are counted from the first that matters and not from the
// start of Node. It counts per thread; with one thread in the pool that is two counts, the same in every run.
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { programRuns } from "../require.ts"
import { ChildLines } from "./ChildLines.ts"

export const straceAttaches = {
  name: "strace that may attach to a process",
  isThere: () => {
    // It ends well when it could follow the other program to its end.
    const target = spawn("sleep", ["0.5"])
    return target.pid !== undefined && programRuns("strace", ["-o", "/dev/null", "-p", String(target.pid)])
  },
  remedy: "apt-get install strace and run the tests as root, or allow ptrace (kernel.yama.ptrace_scope)"
}

/** The calls that change what is on the disk, and those that tell the parent. */
export const tracedCalls = [
  "write",
  "pwrite64",
  "fdatasync",
  "fsync",
  "openat",
  "rename",
  "ftruncate",
  "unlink",
  "mkdir"
] as const

/** The `ordinal`-th call of this kind by a thread. */
export interface CallPoint {
  readonly call: string
  readonly ordinal: number
}

const attach = async (pid: number, args: ReadonlyArray<string>): Promise<ChildProcess> => {
  const strace = spawn("strace", ["-f", "-p", String(pid), ...args], { stdio: ["ignore", "ignore", "pipe"] })
  let told = ""
  await new Promise<void>((resolve, reject) => {
    strace.stderr!.setEncoding("utf8").on("data", (text: string) => {
      told += text
      if (/attached/.test(told)) resolve()
    })
    strace.once("close", () => reject(new Error(`strace did not attach: ${told}`)))
  })
  return strace
}

/** Runs the script over a directory under strace; resolves when both have ended. */
export const runTraced = async (
  directory: string,
  run: number,
  straceArgs: ReadonlyArray<string>
): Promise<ChildLines> => {
  const child = new ChildLines("scriptChild.ts", [directory], { env: { UV_THREADPOOL_SIZE: "1" } })
  await child.heard(1)
  const strace = await attach(child.process.pid!, straceArgs)
  const ended = once(strace, "close")
  child.say(`go ${run}`)
  await child.ended()
  await ended
  return child
}

const parsePoint = (line: string): { readonly thread: string; readonly call: string } | undefined => {
  const match = /^(\d+) +([a-z0-9_]+)\(/.exec(line)
  return match === null ? undefined : { thread: match[1]!, call: match[2]! }
}

/** Every place of the run at which a call on the directory, or a word to the parent, is made; in order. */
export const recordPoints = async (
  directory: string,
  run: number,
  outputFile: string
): Promise<ReadonlyArray<CallPoint>> => {
  await runTraced(directory, run, ["-y", "-o", outputFile, "-e", `trace=${tracedCalls.join()}`])
  const counts = new Map<string, number>()
  const points = new Map<string, CallPoint>()
  for (const line of readFileSync(outputFile, "utf8").split("\n")) {
    const point = parsePoint(line)
    if (point === undefined) continue
    const counter = `${point.thread} ${point.call}`
    const ordinal = (counts.get(counter) ?? 0) + 1
    counts.set(counter, ordinal)
    const matters = line.includes(directory) || point.call === "write"
    if (matters) points.set(`${point.call} ${ordinal}`, { call: point.call, ordinal })
  }
  return [...points.values()]
}

export const killAt = ({ call, ordinal }: CallPoint, outputFile: string): ReadonlyArray<string> => [
  "-o",
  outputFile,
  "-e",
  `trace=${call}`,
  "-e",
  `inject=${call}:signal=KILL:when=${ordinal}`
]

export const failAt = ({ call, ordinal }: CallPoint, outputFile: string): ReadonlyArray<string> => [
  "-o",
  outputFile,
  "-e",
  `trace=${call}`,
  "-e",
  `inject=${call}:error=EIO:when=${ordinal}`
]

/** Whether the fault came to pass: a run may end before the call it was meant for. */
export const wasInjected = (outputFile: string): boolean => readFileSync(outputFile, "utf8").includes("(INJECTED)")

/** `count` of the items, evenly spread and never the same one twice. */
export const spread = <A>(items: ReadonlyArray<A>, count: number): ReadonlyArray<A> =>
  count >= items.length
    ? items
    : Array.from({ length: count }, (_, index) => items[Math.floor((index * items.length) / count)]!)
