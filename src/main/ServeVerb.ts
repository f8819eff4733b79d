// `echs serve`: runs a server on a data directory until it is stopped, and shuts it down cleanly.
import { parseArgs } from "node:util"
import { DirectoryLocked } from "#runelog/RunelogErrors.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "../cli/Verb.ts"
import { keyOf, readCredentials } from "../config/Credentials.ts"
import { dataDirectory, type Environment } from "../config/Environment.ts"
import { DirectoryShared, scenarioReader } from "../config/ServerFiles.ts"
import { providerAddresses, type ServerSettings, SettingInvalid, serverSettings } from "../config/Settings.ts"
import { secretsIn } from "../rune/Secrets.ts"
import { BindRefused } from "../server/Listener.ts"
import { startWatchdog } from "../server/telemetry/Watchdog.ts"
import { limits } from "../wire/WireLimits.ts"
import { pageFiles } from "./PageFiles.ts"
import { startServer } from "./Serve.ts"
import type { RunningServer, ServeOptions } from "./ServeOptions.ts"

export interface ServeParts {
  readonly environment: Environment
  readonly version: string
}

const usage = `usage: echs serve [--data DIR] [--host HOST] [--port PORT] [--model MODEL] [--log LEVEL] [--any-port] [--idle-exit TIME] [--json]

  --data DIR    data directory (default: ECHS_DATA, then the user's state directory)
  --host HOST   address to listen on (default: ECHS_HOST, then 127.0.0.1); an address other machines can reach requires ECHS_TOKEN
  --port PORT   port to listen on (default: ECHS_PORT, then 4600); 0 picks a free one
  --model MODEL model of conversations that name none (default: ECHS_MODEL)
  --log LEVEL   debug, info, warn or error (default: ECHS_LOG)
  --any-port    use a free port if the chosen one is taken
  --idle-exit TIME  stop after this long without clients and without unfinished work, such as 30m
  --json        print the address as JSON

example: echs serve --port 0`

const flags = {
  data: { type: "string" },
  host: { type: "string" },
  port: { type: "string" },
  model: { type: "string" },
  log: { type: "string" },
  "any-port": { type: "boolean", default: false },
  "idle-exit": { type: "string" },
  json: { type: "boolean", default: false }
} as const

/** Everything a server gets from its settings: its tools in the sandbox that is found, hooks, MCP servers, providers. */
export const optionsOf = (directory: string, settings: ServerSettings, parts: ServeParts): ServeOptions => {
  const { hostNames, logLevel, model, origins, otlpEndpoint, otlpSignals, providers, scenarios, token, tokens } =
    settings
  return {
    dataDirectory: directory,
    host: settings.host,
    port: settings.port,
    tokens,
    hostNames,
    origins,
    logLevel,
    page: pageFiles(),
    version: parts.version,
    key: (variable) => keyOf(parts.environment, directory, variable),
    environment: parts.environment,
    sandbox: settings.sandbox,
    mcpServers: settings.mcpServers,
    instructions: settings.instructions,
    secrets: [...secretsOf(settings, parts.environment), ...Object.values(readCredentials(directory))],
    providers: { ...providerAddresses(parts.environment), ...providers },
    models: settings.models,
    llmRetryMs: settings.llmRetryMs,
    llmRetryGoalMs: settings.llmRetryGoalMs,
    ...(token === undefined ? {} : { token }),
    ...(model === undefined ? {} : { model }),
    ...(scenarios === undefined ? {} : { readText: scenarioReader(scenarios) }),
    otlpSignals,
    ...(otlpEndpoint === undefined ? {} : { otlpEndpoint })
  }
}

const textsIn = (value: unknown): ReadonlyArray<string> =>
  typeof value === "object" && value !== null ? Object.values(value).filter((one) => typeof one === "string") : []

/** Everything secret that the server was told, from wherever it was told. */
const secretsOf = (settings: ServerSettings, { variables }: Environment): ReadonlyArray<string> => [
  ...secretsIn(variables),
  ...settings.tokens.map(({ token }) => token),
  ...Object.values(settings.providers).flatMap(({ headers, keyVariable }) => [
    ...textsIn(headers),
    ...(typeof keyVariable === "string" ? [variables[keyVariable] ?? ""] : [])
  ]),
  ...Object.values(settings.mcpServers).flatMap(({ env, env_from, headers, headers_from }) => [
    ...textsIn(headers),
    ...secretsIn((env ?? {}) as Readonly<Record<string, string>>),
    ...[...textsIn(env_from), ...textsIn(headers_from)].map((name) => variables[name] ?? "")
  ])
]

const announce = (terminal: Terminal, server: RunningServer, version: string, json: boolean): void => {
  const { dataDirectory: data, url } = server
  terminal.write(
    json
      ? `${JSON.stringify({ url, data, pid: process.pid, version })}\n`
      : `echs ${version} listens on ${terminal.paint("strong", url)}, data in ${data}\n`
  )
}

const isTaken = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "EADDRINUSE"

/** Starts on the chosen port or, where that is taken and any port will do, on a free one. */
const startOn = async (options: ServeOptions, anyPort: boolean): Promise<RunningServer> => {
  try {
    return await startServer(options)
  } catch (error) {
    if (!anyPort || !isTaken(error)) throw error
    return startServer({ ...options, port: 0 })
  }
}

const unitMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

const idleMsOf = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined
  const [, count, unit] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? []
  if (count === undefined || unit === undefined)
    throw new SettingInvalid("--idle-exit", "it must be a number followed by s, m, h or d, such as 30m")
  return Number(count) * (unitMs[unit] ?? 0)
}

/** Looks four times within the time allowed whether anybody uses the server. */
const untilIdle = (server: RunningServer, idleMs: number): Promise<void> =>
  new Promise((resolve) => {
    let usedMs = performance.now()
    setInterval(() => {
      if (!server.isIdle()) usedMs = performance.now()
      else if (performance.now() - usedMs >= idleMs) resolve()
    }, idleMs / 4).unref()
  })

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener("abort", () => resolve(), { once: true })
  })

/** What the machine refused, or what was found, in one sentence; nothing for what is a defect. */
const whyNot = (error: unknown, directory: string): string | undefined => {
  if (error instanceof BindRefused || error instanceof DirectoryShared || error instanceof SettingInvalid)
    return error.message
  const { _tag, code, message, path, syscall } = error as Partial<NodeJS.ErrnoException> & { _tag?: string }
  if (_tag !== undefined) return message
  if (code === undefined || syscall === undefined) return undefined
  const isOfData = path === undefined ? false : path.startsWith(directory) || directory.startsWith(path)
  return isOfData
    ? `${directory} cannot be used as the data directory: ${message}. Choose another with --data`
    : message
}

export const make = (parts: ServeParts): Verb => ({
  usage,
  run: async (args, terminal): Promise<ExitCode> => {
    let values: ReturnType<typeof parseArgs<{ options: typeof flags }>>["values"]
    try {
      values = parseArgs({ args: [...args], options: flags }).values
    } catch (error) {
      terminal.complain(`echs serve: ${(error as Error).message}\n`)
      return exitCode.usage
    }
    const stop = terminal.interruption()
    const directory = dataDirectory(parts.environment, values.data)
    try {
      const settings = serverSettings(parts.environment, directory, values)
      const idleMs = idleMsOf(values["idle-exit"])
      const server = await startOn(
        { ...optionsOf(directory, settings, parts), isAdministered: true },
        values["any-port"] ?? false
      )
      announce(terminal, server, parts.version, values.json ?? false)
      startWatchdog({ log: server.log })
      const idle = idleMs === undefined ? [] : [untilIdle(server, idleMs)]
      await Promise.race([aborted(stop), server.stopRequested, ...idle])
      await server.close()
      // What ignores being stopped must not keep the process; everything acknowledged is durable.
      setTimeout(() => process.exit(exitCode.done), limits.exitWithinMs).unref()
      return exitCode.done
    } catch (error) {
      const reason = whyNot(error, directory)
      if (reason === undefined) throw error
      terminal.complain(`echs serve: ${reason}\n`)
      if (error instanceof SettingInvalid) return exitCode.usage
      return error instanceof DirectoryLocked ? exitCode.refusedByState : exitCode.failed
    }
  }
})
