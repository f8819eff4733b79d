// Starts of the whole server, as a user starts it, on a directory whose writer was killed; and what is left there of
// everything that was acknowledged before.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { snapshotShape } from "#src/conversation/SnapshotStore.ts"
import { launcher } from "../../support/cli.ts"
import { caughtUp, openStore } from "../../support/store/openStore.ts"

export interface Start {
  /** From the start of the process until it says that it listens. */
  readonly wallMs: number
  /** Of all its threads; nothing where the system does not tell. */
  readonly cpuMs: number | undefined
}

const CLOCK_TICK_MS = 10

/** What a process that is still running has used so far. */
const cpuMsOf = (pid: number): number | undefined => {
  if (process.platform !== "linux") return undefined
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")
  return (Number(fields[11]) + Number(fields[12])) * CLOCK_TICK_MS
}

/** Starts a server and kills it once it listens. */
export const startServer = async (directory: string): Promise<Start> => {
  const startedMs = performance.now()
  const server = spawn(process.execPath, [launcher, "serve", "--data", directory, "--port", "0"], {
    stdio: ["ignore", "pipe", "pipe"]
  })
  const ended = once(server, "exit")
  let said = ""
  const listening = new Promise<Start>((resolve) => {
    const hear = (piece: Buffer): void => {
      said += piece.toString()
      if (!said.includes("listens on")) return
      resolve({ wallMs: performance.now() - startedMs, cpuMs: cpuMsOf(server.pid!) })
    }
    server.stdout.on("data", hear)
    server.stderr.on("data", hear)
  })
  const start = await Promise.race([listening, ended.then(() => undefined)])
  server.kill("SIGKILL")
  await ended
  if (start === undefined) throw new Error(`the server ended before it listened: ${said}`)
  return start
}

export interface Starts {
  readonly empty: ReadonlyArray<Start>
  readonly dirty: ReadonlyArray<Start>
}

/** In turns; each start finds the directory as the kill left it. */
export const measureStarts = async (scratch: string, killed: string, rounds: number): Promise<Starts> => {
  const empty: Array<Start> = []
  const dirty: Array<Start> = []
  const directory = join(scratch, "start")
  // The first start fills the compile cache, as it does for everybody.
  await startServer(directory)
  for (let round = 0; round < rounds; round++) {
    rmSync(directory, { recursive: true })
    empty.push(await startServer(directory))
    rmSync(directory, { recursive: true })
    cpSync(killed, directory, { recursive: true })
    dirty.push(await startServer(directory))
  }
  rmSync(directory, { recursive: true })
  return { empty, dirty }
}

export interface Kept {
  /** Logs of which the journal held the newest events. */
  readonly dirty: number
  /** Conversations that were acknowledged and do not reach their head. */
  readonly missing: number
  /** From the opening until the catalog was held against all logs. */
  readonly caughtUpMs: number
}

export const countKept = async (scratch: string, killed: string, head: number): Promise<Kept> => {
  const ids: ReadonlyArray<string> = JSON.parse(readFileSync(join(scratch, "ids.json"), "utf8"))
  const openedMs = performance.now()
  const store = await openStore({ directory: killed, snapshotShape })
  const dirty = store.runelog.stats.journalLogs
  await caughtUp(store)
  const caughtUpMs = performance.now() - openedMs
  let missing = 0
  for (const id of ids) if ((await store.runelog.head(id)) < head || store.catalog.get(id) === undefined) missing += 1
  await store.close()
  return { dirty, missing, caughtUpMs }
}
