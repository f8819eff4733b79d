// The composition root: the only place where the parts are put together. It knows every verb and gives each the
// parts it works with, loaded when the verb runs and not before.
import { runCli } from "./cli/Cli.ts"
import { processTerminal } from "./cli/ProcessTerminal.ts"
import type { ExitCode, VerbEntry } from "./cli/Verb.ts"
import { readVersion } from "./config/Environment.ts"

const verbs: ReadonlyArray<VerbEntry> = []

export const main = (args: ReadonlyArray<string>): Promise<ExitCode> =>
  runCli({ version: readVersion(), verbs }, args, processTerminal)
