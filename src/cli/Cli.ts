// Finds the verb named by the first argument and runs it. Owns `--help`, `--version` and the error for an unknown verb;
// everything else belongs to the verbs.
import { type ExitCode, exitCode, type Terminal, type VerbEntry } from "./Verb.ts"

export interface Cli {
  readonly version: string
  readonly verbs: ReadonlyArray<VerbEntry>
  /** The verb that runs when options but no verb are given, and at a terminal when nothing is. */
  readonly home?: string
  /** The name that was most likely meant, if one is close. */
  readonly suggest?: (name: string, known: ReadonlyArray<string>) => Promise<string | undefined>
}

const isHelp = (name: string): boolean => name === "--help" || name === "-h" || name === "help"

export const runCli = async (cli: Cli, args: ReadonlyArray<string>, terminal: Terminal): Promise<ExitCode> => {
  const home = cli.verbs.find((verb) => verb.name === cli.home)
  const [name = "", ...rest] = args
  if (isHelp(name) || (args.length === 0 && (home === undefined || !terminal.isAnswered))) {
    terminal.write(helpText(cli, terminal))
    return exitCode.done
  }
  if (name === "--version" || name === "-v") {
    terminal.write(`${cli.version}\n`)
    return exitCode.done
  }
  if (home !== undefined && (args.length === 0 || name.startsWith("-"))) {
    return (await home.load()).run(args, terminal)
  }
  const entry = cli.verbs.find((verb) => verb.name === name)
  if (entry === undefined) return refuse(cli, name, terminal)
  const verb = await entry.load()
  const own = verb.own?.(rest) ?? rest
  if (own.includes("--help") || own.includes("-h")) {
    terminal.write(`${entry.summary}\n\n${verb.usage}\n`)
    return exitCode.done
  }
  return verb.run(rest, terminal)
}

const refuse = async (cli: Cli, name: string, terminal: Terminal): Promise<ExitCode> => {
  const kind = name.startsWith("-") ? "option" : "command"
  const known = cli.verbs.map((verb) => verb.name)
  const meant = await cli.suggest?.(name, known)
  const hint = meant === undefined ? 'Run "echs --help" for a list of commands.' : `Did you mean ${meant}?`
  terminal.complain(`echs: unknown ${kind} "${name}". ${hint}\n`)
  return exitCode.usage
}

const helpText = (cli: Cli, terminal: Terminal): string => {
  const nameWidth = Math.max(...cli.verbs.map((verb) => verb.name.length))
  const verbs = cli.verbs.map((verb) => `  ${terminal.paint("strong", verb.name.padEnd(nameWidth))}  ${verb.summary}`)
  return [
    `${terminal.paint("strong", "echs")} ${cli.version}: run AI agents the way an operating system runs processes`,
    "",
    "usage: echs [options]            chat in this directory",
    "       echs <command> [options]",
    "",
    ...verbs,
    "",
    "  echs <command> --help  show the options of a command and an example",
    "  echs --version         print the version",
    ""
  ].join("\n")
}
