// The composition root: the only place where the parts are put together. What is put together for which verb is in
// main/Verbs.ts; this file starts the command.
import { runCli } from "./cli/Cli.ts"
import { processTerminal } from "./cli/ProcessTerminal.ts"
import type { ExitCode } from "./cli/Verb.ts"
import { readVersion } from "./config/Environment.ts"
import { type Start, verbs } from "./main/Verbs.ts"

/** How long a command that is done waits for a peer that does not say goodbye. */
const lingerMs = 1_000

/** Ends the process when something still holds it although all is said: a server that is frozen never closes its side. */
const leave = (): void => {
  const timer = setTimeout(() => (process.stdout.writableLength === 0 ? process.exit() : leave()), lingerMs)
  timer.unref()
}

/** Farther away than this, a name was not a slip of the finger. */
const slipMax = 2

const suggest = async (name: string, known: ReadonlyArray<string>): Promise<string | undefined> => {
  const { distance, nearest } = await import("./config/Nearest.ts")
  const meant = nearest(name, known)
  return meant !== undefined && distance(name, meant) <= Math.min(slipMax, meant.length - 1) ? meant : undefined
}

export const main = async (args: ReadonlyArray<string>, start: Start): Promise<ExitCode> => {
  const cli = { version: readVersion(), verbs: verbs(start), home: "chat", suggest }
  const code = await runCli(cli, args, processTerminal)
  process.exitCode = code
  leave()
  return code
}
