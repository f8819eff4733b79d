// A server in the background: a process of its own that outlives the command that started it, stops by itself after a
// time without use, and writes its log to `<data>/logs/server.log`. Two commands that start one at once get the same one.
import { spawn } from "node:child_process"
import { closeSync, openSync, readFileSync, renameSync, statSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { exitCode } from "../cli/Verb.ts"
import { noteBackground, readServerInfo } from "../config/LocalServer.ts"
import { makeDirectories, type ServerInfo } from "../config/ServerFiles.ts"

/** The log is set aside when a server starts and finds it larger than this; one older file is kept. */
const logBytesMax = 8_388_608
const logShownChars = 2_000
const startWithinMs = 30_000
const lookEveryMs = 50

export interface BackgroundOptions {
  /** Program and arguments that start this CLI again. */
  readonly command: ReadonlyArray<string>
  readonly dataDirectory: string
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Passed on to `echs serve`. */
  readonly args: ReadonlyArray<string>
}

export type BackgroundStart =
  | { readonly _tag: "Running"; readonly info: ServerInfo; readonly isNew: boolean }
  | { readonly _tag: "Failed"; readonly reason: string }

export const serverLogPath = (dataDirectory: string): string => join(dataDirectory, "logs", "server.log")

const openLog = (dataDirectory: string): number => {
  const path = serverLogPath(dataDirectory)
  makeDirectories(join(dataDirectory, "logs"))
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  if (size > logBytesMax) renameSync(path, `${path}.1`)
  return openSync(path, "a", 0o600)
}

/** What was written to the log since the server was started. */
const logSince = (dataDirectory: string, offset: number): string =>
  readFileSync(serverLogPath(dataDirectory)).subarray(offset).toString("utf8").slice(-logShownChars).trim()

/** Resolves when a server of this directory is there, whoever started it; the child's end alone is a failure. */
const waitForServer = async (dataDirectory: string, isOver: () => boolean): Promise<ServerInfo | undefined> => {
  const until = performance.now() + startWithinMs
  while (performance.now() < until) {
    const info = readServerInfo(dataDirectory)
    if (info !== undefined) return info
    if (isOver()) return undefined
    await sleep(lookEveryMs)
  }
  return undefined
}

export const startBackground = async (options: BackgroundOptions): Promise<BackgroundStart> => {
  const { args, command, dataDirectory, environment } = options
  const running = readServerInfo(dataDirectory)
  if (running !== undefined) return { _tag: "Running", info: running, isNew: false }
  const log = openLog(dataDirectory)
  const offset = statSync(serverLogPath(dataDirectory)).size
  const [program = "", ...rest] = command
  const child = spawn(program, [...rest, "serve", "--data", dataDirectory, "--any-port", ...args], {
    detached: true,
    env: { ...environment },
    stdio: ["ignore", "ignore", log]
  })
  closeSync(log)
  child.unref()
  let ended: string | undefined
  let isHeldByAnother = false
  child.on("exit", (code, signal) => {
    ended = `it ended with ${signal ?? `code ${code}`}`
    // Of two that were started at once, the other one has the directory and may not listen yet.
    isHeldByAnother = code === exitCode.refusedByState
  })
  child.on("error", (error) => (ended = error.message))
  const info = await waitForServer(dataDirectory, () => ended !== undefined && !isHeldByAnother)
  const isNew = info?.pid === child.pid
  // One that lost the race, or is too slow, must not come up later by itself.
  if (!isNew) child.kill("SIGTERM")
  if (isNew && child.pid !== undefined) noteBackground(dataDirectory, child.pid)
  if (info !== undefined) return { _tag: "Running", info, isNew }
  const said = logSince(dataDirectory, offset)
  return { _tag: "Failed", reason: said === "" ? (ended ?? "it did not answer in time") : said }
}
