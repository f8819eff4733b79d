// The composition root: the only place where the parts are put together. What is put together for which verb is in
// main/Verbs.ts; this file starts the command.
import { runCli } from "./cli/Cli.ts"
import { processTerminal } from "./cli/ProcessTerminal.ts"
import type { ExitCode } from "./cli/Verb.ts"
import { readVersion } from "./config/Environment.ts"
import { type Start, verbs } from "./main/Verbs.ts"

export const main = (args: ReadonlyArray<string>, start: Start): Promise<ExitCode> =>
  runCli({ version: readVersion(), verbs: verbs(start) }, args, processTerminal)
