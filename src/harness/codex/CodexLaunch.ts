// How Codex is started under ECHS: an app-server of our own, on a port that it chooses and behind a token, and the terminal as
// one of its clients. Where the app-server does not come up the terminal runs by itself, watched by what it says there.
// The daemon that Codex would leave behind is never started, and nothing in the user's configuration is changed.
import { join } from "node:path"
import { type CompanionPlan, companionFile } from "../holder/Companion.ts"
import type { LaunchPlan, LaunchRequest } from "../Port.ts"

const tokenVariable = "ECHS_HARNESS_TOKEN"
export const codexTokenFile = "codex-token"
const noDaemon = ["--disable", "daemon_auto_start"] as const

/** Commands of Codex that open its terminal. Every other one does something else, and ends. */
const inTerminal: ReadonlySet<string> = new Set(["resume", "fork"])
const commands: ReadonlySet<string> = new Set([
  ..."agents exec e review login logout mcp plugin app-server remote-control completion update doctor".split(" "),
  ..."sandbox debug apply a queue archive delete migrate-rollouts migrate-nfs-db unarchive cloud".split(" "),
  ..."exec-server features help".split(" ")
])

const withValue: ReadonlySet<string> = new Set([
  ..."-c --config --enable --disable -m --model -p --profile -s --sandbox -a --ask-for-approval".split(" "),
  ..."-C --cd -i --image --add-dir --local-provider --remote --remote-auth-token-env".split(" ")
])

/** Settings that hold for the work and not only for the terminal. */
const ofWork: ReadonlySet<string> = new Set(["-c", "--config", "--enable", "--disable"])

interface ReadArguments {
  readonly command: string | undefined
  readonly isRemote: boolean
  readonly settings: ReadonlyArray<string>
}

export const readArguments = (args: ReadonlyArray<string>): ReadArguments => {
  const settings: Array<string> = []
  let isRemote = false
  for (let at = 0; at < args.length; at += 1) {
    const one = args[at] ?? ""
    if (one === "--") break
    if (!one.startsWith("-")) return { command: one, isRemote, settings }
    if (one === "--help" || one === "-h" || one === "--version" || one === "-V")
      return { command: "help", isRemote, settings }
    if (one.startsWith("--remote")) isRemote = true
    if (!withValue.has(one)) continue
    at += 1
    if (ofWork.has(one)) settings.push(one, args[at] ?? "")
  }
  return { command: undefined, isRemote, settings }
}

export const codexLaunch = ({ command, directory, token }: LaunchRequest): LaunchPlan => {
  const [program = "codex", ...rest] = command
  const { command: name, isRemote, settings } = readArguments(rest)
  const plain: LaunchPlan = { command: program, prependArgs: [...noDaemon], env: {}, files: [] }
  const isTerminal = name === undefined || inTerminal.has(name) || !commands.has(name)
  // Whoever names a server of his own wants that one.
  if (!isTerminal || isRemote) return plain
  const tokenPath = join(directory, codexTokenFile)
  const companion: CompanionPlan = {
    command: program,
    args: [
      "app-server",
      ...noDaemon,
      ...settings,
      "--listen",
      "ws://127.0.0.1:0",
      "--ws-auth",
      "capability-token",
      "--ws-token-file",
      tokenPath
    ],
    listening: "listening on: (ws://127\\.0\\.0\\.1:\\d+)",
    withAddress: ["--remote", "{address}", "--remote-auth-token-env", tokenVariable]
  }
  return {
    ...plain,
    env: { [tokenVariable]: token },
    files: [
      { name: codexTokenFile, text: token },
      { name: companionFile, text: `${JSON.stringify(companion)}\n` }
    ]
  }
}
