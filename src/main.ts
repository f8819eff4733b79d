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

export const main = async (args: ReadonlyArray<string>, start: Start): Promise<ExitCode> => {
  const code = await runCli({ version: readVersion(), verbs: verbs(start) }, args, processTerminal)
  process.exitCode = code
  leave()
  return code
}
