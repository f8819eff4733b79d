// Finds the verb named by the first argument and runs it. Owns `--help`, `--version` and the error for an unknown verb;
// everything else belongs to the verbs.
import { type ExitCode, exitCode, type Terminal, type VerbEntry } from "./Verb.ts"

export interface Cli {
  readonly version: string
  readonly verbs: ReadonlyArray<VerbEntry>
}

export const runCli = async (cli: Cli, args: ReadonlyArray<string>, terminal: Terminal): Promise<ExitCode> => {
  const [name, ...rest] = args
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    terminal.write(helpText(cli, terminal))
    return exitCode.done
  }
  if (name === "--version" || name === "-v") {
    terminal.write(`${cli.version}\n`)
    return exitCode.done
  }
  const entry = cli.verbs.find((verb) => verb.name === name)
  if (entry === undefined) {
    const kind = name.startsWith("-") ? "option" : "command"
    terminal.complain(`echs: unknown ${kind} "${name}". Run "echs --help" for a list of commands.\n`)
    return exitCode.usage
  }
  const verb = await entry.load()
  if (rest.includes("--help") || rest.includes("-h")) {
    terminal.write(`${entry.summary}\n\n${verb.usage}\n`)
    return exitCode.done
  }
  return verb.run(rest, terminal)
}

const helpText = (cli: Cli, terminal: Terminal): string => {
  const nameWidth = Math.max(...cli.verbs.map((verb) => verb.name.length))
  const verbs = cli.verbs.map((verb) => `  ${terminal.paint("strong", verb.name.padEnd(nameWidth))}  ${verb.summary}`)
  return [
    `${terminal.paint("strong", "echs")} ${cli.version}: run AI agents the way an operating system runs processes`,
    "",
    "usage: echs <command> [options]",
    "",
    ...verbs,
    "",
    "  echs <command> --help  show the options of a command and an example",
    "  echs --version         print the version",
    ""
  ].join("\n")
}
