// `echs run`: runs a program of somebody else under ECHS, in this terminal, as if ECHS were not there. What it does goes to the
// log, and what it asks for to the inbox. The program lives in a process of its own: the server may die and come back.
import { spawnSync } from "node:child_process"
import { accessSync, constants, statSync } from "node:fs"
import { delimiter, join, resolve } from "node:path"
import { makeRemoteVerb, type RemoteParts } from "../cli/Remote.ts"
import { type ExitCode, exitCode, programExit, type Terminal, type Verb } from "../cli/Verb.ts"
import { UsageError } from "../cli/VerbSpec.ts"
import type { Client } from "../client/Client.ts"
import { passThrough } from "../harness/front/PassThrough.ts"
import type { Exit } from "../harness/holder/Frames.ts"
import { startHolder } from "../harness/holder/HolderLink.ts"

export interface RunParts extends RemoteParts {
  readonly variables: Readonly<Record<string, string | undefined>>
}

const known = ["claude", "codex"] as const
type Known = (typeof known)[number]

const packages: Readonly<Record<Known, string>> = { claude: "@anthropic-ai/claude-code", codex: "@openai/codex" }

interface Order {
  readonly harness: Known | "generic"
  readonly command: ReadonlyArray<string>
}

const withValue: ReadonlySet<string> = new Set(["--data", "--url", "--title"])

/** Everything after the name of the program belongs to the program. */
export const splitArguments = (args: ReadonlyArray<string>): ReadonlyArray<string> => {
  for (let at = 0; at < args.length; at += 1) {
    const one = args[at] ?? ""
    if (one === "--") return args
    if (!one.startsWith("-")) return [...args.slice(0, at), "--", ...args.slice(at)]
    if (withValue.has(one)) at += 1
  }
  return args
}

const orderOf = ([name = "", ...rest]: ReadonlyArray<string>): Order => {
  const harness = known.find((one) => one === name)
  return { harness: harness ?? "generic", command: [name, ...rest] }
}

const isProgram = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

const programPath = (name: string, { PATH = "" }: RunParts["variables"], directory: string): string | undefined => {
  if (name.includes("/")) return [resolve(directory, name)].find(isProgram)
  return PATH.split(delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, name))
    .find(isProgram)
}

const versionWithinMs = 10_000

/** Said before anything starts: which version it is, where it is not one that was tried. */
const versionWarning = (program: string, { harness }: Order, versions: ReadonlyArray<string>): string | undefined => {
  if (versions.length === 0) return undefined
  const { stdout } = spawnSync(program, ["--version"], { encoding: "utf8", timeout: versionWithinMs })
  const version = /\d+\.\d+\.\d+/.exec(stdout ?? "")?.[0]
  if (version !== undefined && versions.includes(version)) return undefined
  return `${harness} ${version ?? "of an unknown version"}: tried with ${versions.join(", ")}; what it reports may be read wrong`
}

export const codeOf = ({ exitCode: code, signal }: Exit): number => (signal === null ? code : 128 + signal)

const missing = ({ command: [name = ""], harness }: Order): string =>
  harness === "generic"
    ? `${name}: there is no such program`
    : `${name} is not installed; install it with "npm install --global ${packages[harness]}"`

interface Launching {
  readonly parts: RunParts
  readonly client: Client
  readonly terminal: Terminal
  readonly order: Order
  readonly title: string | undefined
  readonly isDetached: boolean
}

const launch = async ({ client, isDetached, order, parts, terminal, title }: Launching) => {
  const workspace = parts.workingDirectory()
  const program = programPath(order.command[0] ?? "", parts.variables, workspace)
  if (program === undefined) {
    terminal.complain(`echs run: ${missing(order)}\n`)
    return undefined
  }
  const launched = await client.call("harness.launch", {
    harness: order.harness,
    command: [program, ...order.command.slice(1)],
    workspace,
    title: title ?? order.command.join(" ").slice(0, 200)
  })
  const warning = versionWarning(program, order, launched.versions)
  if (warning !== undefined) terminal.complain(`echs run: ${warning}\n`)
  const { columns = 80, rows = 24 } = process.stdout
  await startHolder(
    launched.directory,
    {
      command: program,
      args: [...launched.prepend_args, ...order.command.slice(1)],
      workingDirectory: workspace,
      isDetached,
      columns: columns || 80,
      rows: rows || 24
    },
    { ...parts.variables, ...launched.env }
  )
  return launched
}

export const make = (parts: RunParts): Verb => {
  const verb = makeRemoteVerb(parts, {
    name: "run",
    takes: "claude|codex|PROGRAM [ARGUMENTS]",
    positionals: { min: 1, max: 10_000 },
    options: {
      detach: { type: "boolean", help: "run it in the background; see it with echs attach" },
      title: { type: "string", value: "TITLE", help: "title of the conversation (default: the command)" }
    },
    example: "echs run claude",
    notes: [
      "Permission requests of the program are also in the inbox (echs approve); the first answer wins.",
      "Options of echs come before the name of the program; everything after it belongs to the program."
    ],
    startsServer: true,
    run: async ({ answer, client, positionals, terminal, values }): Promise<ExitCode> => {
      const order = orderOf(positionals)
      if (order.command[0] === "") throw new UsageError("the name of the program is empty")
      const isDetached = values.detach === true
      const launched = await launch({ parts, client, terminal, order, title: values.title, isDetached })
      if (launched === undefined) return exitCode.failed
      const { conversation_id, directory } = launched
      const attach = async (): Promise<void> => {
        // The program runs, with or without us.
        await client.call("harness.attach", { conversation_id }).catch((error: unknown) => {
          terminal.complain(`echs run: the server does not follow it: ${(error as Error).message}\r\n`)
        })
      }
      if (isDetached) {
        await attach()
        answer({ conversation_id }, () => `${conversation_id} runs; see it with "echs attach ${conversation_id}"\n`)
        return exitCode.done
      }
      const { stdin, stdout } = process
      const end = await passThrough({ directory, role: "typist", isOwner: true, stdin, stdout, onConnected: attach })
      if (end._tag !== "Exited") {
        terminal.complain("echs run: the process that holds the terminal has ended\n")
        return exitCode.failed
      }
      return programExit(codeOf(end.exit))
    }
  })
  const own = (args: ReadonlyArray<string>) => {
    const split = splitArguments(args)
    return split.includes("--") ? split.slice(0, split.indexOf("--")) : split
  }
  return { ...verb, own, run: (args, terminal) => verb.run(splitArguments(args), terminal) }
}
