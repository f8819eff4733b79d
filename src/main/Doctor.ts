// What `echs doctor` looks at: the Node that runs, what is installed beside it, where the data lies and whether it
// verifies, whether a server runs, which model would answer, and how far tools are held back.
import { spawnSync } from "node:child_process"
import type { Finding } from "../cli/verbs/doctor.ts"
import type { VerifyReport } from "../cli/verbs/verify.ts"
import { keyOf } from "../config/Credentials.ts"
import { dataDirectory, type Environment } from "../config/Environment.ts"
import { readServerInfo } from "../config/LocalServer.ts"
import { type ServerSettings, serverSettings } from "../config/Settings.ts"

export interface DoctorParts {
  readonly environment: Environment
  readonly version: string
  readonly verify: (directory: string) => Promise<VerifyReport | "missing">
}

const firstLine = (program: string, ...args: ReadonlyArray<string>): string | undefined => {
  const run = spawnSync(program, args, { encoding: "utf8", timeout: 5_000 })
  return run.status === 0 ? (run.stdout || run.stderr).split("\n")[0]?.trim() : undefined
}

const programs: ReadonlyArray<readonly [name: string, args: ReadonlyArray<string>, use: string]> = [
  ["git", ["--version"], "workspaces and diffs"],
  ["claude", ["--version"], "Claude Code as an outside agent"],
  ["codex", ["--version"], "Codex as an outside agent"]
]

const installed = (): ReadonlyArray<Finding> =>
  programs.map(([name, args, use]) => {
    const version = firstLine(name, ...args)
    return { name, level: version === undefined ? "notice" : "good", text: version ?? `not found; needed for ${use}` }
  })

/** Settings that make no sense have a finding of their own. */
const namedPaths = (environment: Environment, directory: string): Partial<ServerSettings["sandbox"]> => {
  try {
    return serverSettings(environment, directory).sandbox
  } catch {
    return {}
  }
}

/** What holds commands, found out by running one; files are held by checks of their paths in any case. */
const sandbox = async ({ environment }: DoctorParts, directory: string): Promise<Finding> => {
  const { detectSandbox } = await import("../sandbox/Detect.ts")
  const { contained, detail, level, limits } = await detectSandbox({
    dataDirectory: directory,
    home: environment.homeDirectory,
    path: environment.variables["PATH"] ?? "",
    variables: environment.variables,
    ...namedPaths(environment, directory)
  })
  const asks = contained ? "" : "; every command needs approval; for a sandbox: apt install bubblewrap"
  const bounds = limits.map(({ name, per, value }) => `${value.toLocaleString("en-US")} ${name} per ${per}`).join(", ")
  const inForce = bounds === "" ? "no limits" : `at most ${bounds}`
  return {
    name: "sandbox",
    level: contained ? "good" : "notice",
    text: `files: path checks; commands: ${level} (${detail}${asks}); ${inForce}`
  }
}

const logFinding = async (parts: DoctorParts, directory: string, isRunning: boolean): Promise<Finding> => {
  if (isRunning)
    return { name: "log", level: "good", text: "in use by the server; echs verify reads it when the server is stopped" }
  const report = await parts.verify(directory)
  if (report === "missing") return { name: "log", level: "good", text: "none yet" }
  const [problem] = report.problems
  if (problem !== undefined) {
    return {
      name: "log",
      level: "bad",
      text: `${report.problems.length} problems; the first: ${problem.file} at byte ${problem.offset}: ${problem.reason}`
    }
  }
  return { name: "log", level: "good", text: `verifies: ${report.entries} entries in ${report.logs} logs` }
}

const modelFinding = async (parts: DoctorParts, directory: string): Promise<Finding> => {
  try {
    const [{ makeRegistry }, Redacted] = await Promise.all([
      import("../provider/Registry.ts"),
      import("effect/Redacted")
    ])
    const { model } = serverSettings(parts.environment, directory)
    const registry = makeRegistry({
      key: (variable) => {
        const value = keyOf(parts.environment, directory, variable)
        return value === undefined || value === "" ? undefined : Redacted.make(value)
      },
      ...(model === undefined ? {} : { model })
    })
    const chosen = registry.defaultModel()
    const isScripted = chosen.startsWith("scripted/")
    return {
      name: "model",
      level: isScripted ? "notice" : "good",
      text: isScripted ? `${chosen}; for a real one: echs login anthropic, or echs login openai` : chosen
    }
  } catch (error) {
    return { name: "model", level: "bad", text: error instanceof Error ? error.message : String(error) }
  }
}

/** Which tools a model would be offered; settings that make no sense have a finding of their own. */
const tools = async ({ environment, version }: DoctorParts, directory: string): Promise<ReadonlyArray<Finding>> => {
  let settings: ServerSettings
  try {
    settings = serverSettings(environment, directory)
  } catch {
    return []
  }
  const { toolFindings } = await import("./DoctorTools.ts")
  return toolFindings({ environment, version, settings })
}

export const examine = async (parts: DoctorParts, flag: string | undefined): Promise<ReadonlyArray<Finding>> => {
  const directory = dataDirectory(parts.environment, flag)
  const running = readServerInfo(directory)
  return [
    {
      name: "echs",
      level: "good",
      text: `${parts.version} on Node ${process.versions.node}, ${process.platform} ${process.arch}`
    },
    { name: "data", level: "good", text: directory },
    {
      name: "server",
      level: running === undefined ? "notice" : "good",
      text:
        running === undefined
          ? "none runs here; start one: echs server start"
          : `${running.url}, process ${running.pid}`
    },
    await logFinding(parts, directory, running !== undefined),
    await modelFinding(parts, directory),
    await sandbox(parts, directory),
    ...(await tools(parts, directory)),
    ...installed()
  ]
}
