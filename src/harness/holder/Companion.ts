// A second process that a program needs beside it, such as the server that its terminal is a client of. It is started before
// the program, tells its address, and ends with the holder, however that ends: a shell waits for the pipe between them to
// close and then ends the whole group.
import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"

export const companionFile = "companion.json"

export interface CompanionPlan {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** Finds the address in what it prints; the first group is it. */
  readonly listening: string
  /** Arguments of the program where the companion runs; `{address}` is replaced. */
  readonly withAddress: ReadonlyArray<string>
}

export interface Companion {
  readonly address: string
  readonly pid: number
  readonly args: ReadonlyArray<string>
  /** Ends it; nothing of it is left a moment later. */
  readonly end: () => void
}

export const readCompanion = (directory: string): CompanionPlan | undefined => {
  try {
    return JSON.parse(readFileSync(join(directory, companionFile), "utf8")) as CompanionPlan
  } catch {
    return undefined
  }
}

const upWithinMs = 10_000
const printedMax = 64 * 1024

/**
 * The pipe on standard input closes when the holder is gone, however it went. The shell and all that the command starts are one
 * group; it is asked to end, and a second later it has.
 */
const guard = `trap : TERM
"$@" </dev/null &
exec >/dev/null 2>&1
cat
kill -TERM 0
sleep 1
kill -KILL 0`

const addressIn = (child: ChildProcess, pattern: RegExp): Promise<string | undefined> =>
  new Promise((resolve) => {
    let printed = ""
    const hear = (bytes: Buffer): void => {
      if (printed.length < printedMax) printed += bytes.toString("utf8")
      const address = pattern.exec(printed)?.[1]
      if (address !== undefined) resolve(address)
    }
    child.stdout?.on("data", hear)
    child.stderr?.on("data", hear)
    child.stdout?.once("end", () => resolve(undefined))
    child.once("error", () => resolve(undefined))
    setTimeout(() => resolve(undefined), upWithinMs).unref()
  })

/** Resolves when it tells its address; with nothing where it does not, and then nothing of it is left. */
export const startCompanion = async (
  { args, command, listening, withAddress }: CompanionPlan,
  options: { readonly cwd: string; readonly env: Readonly<Record<string, string | undefined>> }
): Promise<Companion | undefined> => {
  const child = spawn("/bin/sh", ["-c", guard, "companion", command, ...args], {
    ...options,
    detached: true,
    stdio: ["pipe", "pipe", "pipe"]
  })
  child.stdin?.on("error", () => undefined)
  const end = (): void => void child.stdin?.end()
  const address = await addressIn(child, new RegExp(listening))
  if (address === undefined || child.pid === undefined) {
    end()
    return undefined
  }
  const replaced = withAddress.map((one) => one.replaceAll("{address}", address))
  return { address, pid: child.pid, args: replaced, end }
}
