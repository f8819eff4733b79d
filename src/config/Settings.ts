// The settings of a server: flag, then environment, then `<data>/config.json`, then default. A setting that makes no
// sense is an error that names it and where it came from; nothing is guessed.
import { readFileSync } from "node:fs"
import { isAbsolute, join } from "node:path"
import type { Environment } from "./Environment.ts"
import { type InstructionSettings, instructionsOf } from "./InstructionSettings.ts"
import { type ModelSetting, modelsOf } from "./ModelSettings.ts"
import { distance, nearest } from "./Nearest.ts"

export interface TokenSetting {
  readonly name: string
  readonly role: "viewer" | "operator" | "admin"
  readonly token: string
}

export interface ServerSettings {
  readonly host: string
  readonly port: number
  readonly token: string | undefined
  readonly tokens: ReadonlyArray<TokenSetting>
  readonly hostNames: ReadonlyArray<string>
  /** Pages of others that may use this server from a browser, by their exact origin. */
  readonly origins: ReadonlyArray<string>
  /** The one directory below which scenarios of scripted models may lie; none where it is left out. */
  readonly scenarios: string | undefined
  readonly model: string | undefined
  readonly logLevel: "debug" | "info" | "warn" | "error"
  readonly otlpEndpoint: string | undefined
  /** What is sent there. */
  readonly otlpSignals: ReadonlyArray<OtlpSignal>
  readonly providers: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** What is known of models, by full name, beyond the catalog. */
  readonly models: Readonly<Record<string, ModelSetting>>
  /** MCP servers that every conversation has, by name. */
  readonly mcpServers: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** What commands find besides the system, the runtimes and their workspace, and what they never find. */
  readonly sandbox: { readonly readable: ReadonlyArray<string>; readonly hidden: ReadonlyArray<string> }
  /** How long new conversations wait out an outage of a provider, unless they say so themselves. */
  readonly llmRetryMs: number | undefined
  readonly llmRetryGoalMs: number | undefined
  /** Which instruction files agents are told. */
  readonly instructions: InstructionSettings
}

export interface SettingFlags {
  readonly host?: string | undefined
  readonly port?: string | undefined
  readonly model?: string | undefined
  readonly log?: string | undefined
}

export class SettingInvalid extends Error {
  override readonly name = "SettingInvalid"

  constructor(setting: string, reason: string) {
    super(`${setting}: ${reason}`)
  }
}

type Config = Readonly<Record<string, unknown>>

const isRecord = (value: unknown): value is Config =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const readConfig = (dataDirectory: string): Config => {
  const path = join(dataDirectory, "config.json")
  let text: string
  try {
    text = readFileSync(path, "utf8")
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    // Where the data directory itself is none, whoever makes it says so.
    if (code === "ENOENT" || code === "ENOTDIR") return {}
    throw new SettingInvalid(path, (error as Error).message)
  }
  try {
    const value: unknown = JSON.parse(text)
    if (isRecord(value)) return value
  } catch (error) {
    throw new SettingInvalid(path, (error as Error).message)
  }
  throw new SettingInvalid(path, "it must hold a JSON object")
}

const firstOf = (...values: ReadonlyArray<unknown>): unknown =>
  values.find((value) => value !== undefined && value !== "")

const textOf = (setting: string, value: unknown): string | undefined => {
  if (value === undefined) return undefined
  if (typeof value !== "string") throw new SettingInvalid(setting, "it must be text")
  return value
}

const portOf = (value: unknown): number => {
  const port = typeof value === "string" && /^\d{1,5}$/.test(value) ? Number(value) : value
  if (typeof port === "number" && Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  throw new SettingInvalid("port", `"${String(value)}" is not a port; it must be a whole number from 0 to 65535`)
}

const levels = ["debug", "info", "warn", "error"] as const

const levelOf = (value: unknown): ServerSettings["logLevel"] => {
  const level = levels.find((one) => one === value)
  if (level === undefined) throw new SettingInvalid("log", `it must be one of ${levels.join(", ")}`)
  return level
}

const roles: ReadonlyArray<unknown> = ["viewer", "operator", "admin"]
/** A shorter token could be guessed. */
const TOKEN_CHARS_MIN = 16

const checkToken = (setting: string, token: string): string => {
  if (token.length >= TOKEN_CHARS_MIN && !/\s/.test(token)) return token
  throw new SettingInvalid(setting, `a token has at least ${TOKEN_CHARS_MIN} characters and no spaces`)
}

/** A setting that nobody reads is a mistake: what was meant would silently not hold. */
const checkNames = (place: string, names: Iterable<string>, known: Iterable<string>): void => {
  const all = new Set(known)
  for (const name of names) {
    if (all.has(name)) continue
    const meant = nearest(name, all)
    throw new SettingInvalid(
      place,
      `there is no setting "${name}"${meant === undefined ? "" : `; did you mean "${meant}"?`}`
    )
  }
}

/** Hands out settings and remembers which names were asked for: those are the ones there are. */
const remembering = (config: Config): { readonly config: Config; readonly asked: ReadonlySet<string> } => {
  const asked = new Set<string>()
  const get = (target: Config, name: string | symbol): unknown => {
    if (typeof name !== "string") return undefined
    asked.add(name)
    return Object.hasOwn(target, name) ? target[name] : undefined
  }
  return { config: new Proxy(config, { get }), asked }
}

const variables = ["DATA", "HOST", "LOG", "MODEL", "PORT", "SCENARIOS", "TOKEN"].map((name) => `ECHS_${name}`)
/** Others may use variables that begin like ours; one that is almost ours was meant to be. */
const typoMax = 2

const checkVariables = ({ variables: given }: Environment): void => {
  for (const name of Object.keys(given)) {
    if (!name.startsWith("ECHS_") || variables.includes(name)) continue
    const meant = nearest(name, variables) ?? ""
    if (distance(name, meant) <= typoMax)
      throw new SettingInvalid("environment", `there is no variable ${name}; did you mean ${meant}?`)
  }
}

const originsOf = (value: unknown): ReadonlyArray<string> => {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw new SettingInvalid("origins", "it must be a list of origins")
  return value.map((one: unknown, at) => {
    const isOrigin = typeof one === "string" && URL.canParse(one) && new URL(one).origin === one
    if (isOrigin && /^https?:/.test(one)) return one
    throw new SettingInvalid(
      `origins[${at}]`,
      "an origin is http or https, a host and where needed a port, such as https://app.example.org"
    )
  })
}

const tokensOf = (value: unknown): ReadonlyArray<TokenSetting> => {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw new SettingInvalid("tokens", "it must be a list")
  return value.map((one: unknown, at) => {
    const setting = `tokens[${at}]`
    if (!isRecord(one) || typeof one["name"] !== "string" || typeof one["token"] !== "string") {
      throw new SettingInvalid(setting, "it must have a name, a role and a token")
    }
    checkNames(setting, Object.keys(one), ["name", "role", "token"])
    if (!roles.includes(one["role"])) throw new SettingInvalid(setting, `its role must be one of ${roles.join(", ")}`)
    return { name: one["name"], role: one["role"] as TokenSetting["role"], token: checkToken(setting, one["token"]) }
  })
}

const namesOf = (value: unknown): ReadonlyArray<string> => {
  if (value === undefined) return []
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value as ReadonlyArray<string>
  throw new SettingInvalid("host_names", "it must be a list of names")
}

const signals = ["traces", "metrics", "logs"] as const
type OtlpSignal = (typeof signals)[number]

const isSignal = (value: unknown): value is OtlpSignal => signals.some((signal) => signal === value)

const signalsOf = (value: unknown): ReadonlyArray<OtlpSignal> => {
  if (value === undefined) return ["traces"]
  if (Array.isArray(value) && value.every(isSignal)) return value
  throw new SettingInvalid("otlp_signals", `it must be a list of ${signals.join(", ")}`)
}

const recordsOf = (setting: string, value: unknown): ServerSettings["providers"] => {
  if (value === undefined) return {}
  if (isRecord(value) && Object.values(value).every(isRecord)) return value as ServerSettings["providers"]
  throw new SettingInvalid(setting, "it must be an object of objects")
}

const pathsOf = (setting: string, value: unknown): ReadonlyArray<string> => {
  if (value === undefined) return []
  if (Array.isArray(value) && value.every((one) => typeof one === "string" && isAbsolute(one))) return value
  throw new SettingInvalid(setting, "it must be a list of absolute paths")
}

const sandboxOf = (value: unknown): ServerSettings["sandbox"] => {
  if (value !== undefined && !isRecord(value)) throw new SettingInvalid("sandbox", "it must be an object")
  const { hidden, readable, ...others } = value ?? {}
  checkNames("sandbox", Object.keys(others), ["readable", "hidden"])
  return { readable: pathsOf("sandbox.readable", readable), hidden: pathsOf("sandbox.hidden", hidden) }
}

const millisecondsOf = (setting: string, value: unknown): number | undefined => {
  if (value === undefined || (typeof value === "number" && Number.isSafeInteger(value) && value >= 0)) return value
  throw new SettingInvalid(setting, "it must be a whole number of milliseconds, 0 or more")
}

const directoryOf = (setting: string, value: unknown): string | undefined => {
  const path = textOf(setting, value)
  if (path !== undefined && !isAbsolute(path)) throw new SettingInvalid(setting, "it must be an absolute path")
  return path
}

const providerFields = [
  "adapter",
  "baseUrl",
  "eagerToolInput",
  "headers",
  "includeUsage",
  "keyHeader",
  "keyVariable",
  "maxTokensField",
  "reasoningSummary",
  "replayReasoning"
] as const

const providersOf = (value: unknown): ServerSettings["providers"] => {
  const providers = recordsOf("providers", value)
  for (const [name, provider] of Object.entries(providers))
    checkNames(`providers.${name}`, Object.keys(provider), providerFields)
  return providers
}

export const serverSettings = (
  environment: Environment,
  dataDirectory: string,
  flags: SettingFlags = {}
): ServerSettings => {
  checkVariables(environment)
  return checked(environment, readConfig(dataDirectory), flags, join(dataDirectory, "config.json"))
}

const checked = (environment: Environment, file: Config, flags: SettingFlags, path: string): ServerSettings => {
  const { asked, config } = remembering(file)
  const settings = settingsIn(environment, config, flags)
  checkNames(path, Object.keys(file), asked)
  return settings
}

/** Throws what is wrong with the content of a config.json; the environment hides nothing of it. */
export const checkSettings = ({ homeDirectory }: Environment, file: Config, path: string): void => {
  checked({ homeDirectory, variables: {} }, file, {}, path)
}

const settingsIn = (environment: Environment, config: Config, flags: SettingFlags): ServerSettings => {
  const { ECHS_HOST, ECHS_LOG, ECHS_MODEL, ECHS_PORT, ECHS_SCENARIOS, ECHS_TOKEN, OTEL_EXPORTER_OTLP_ENDPOINT } =
    environment.variables
  const token = textOf("token", firstOf(ECHS_TOKEN, config["token"]))
  return {
    host: textOf("host", firstOf(flags.host, ECHS_HOST, config["host"])) ?? "127.0.0.1",
    port: portOf(firstOf(flags.port, ECHS_PORT, config["port"], 4600)),
    token: token === undefined ? undefined : checkToken("token", token),
    tokens: tokensOf(config["tokens"]),
    hostNames: namesOf(config["host_names"]),
    origins: originsOf(config["origins"]),
    scenarios: directoryOf("scenarios", firstOf(ECHS_SCENARIOS, config["scenarios"])),
    model: textOf("model", firstOf(flags.model, ECHS_MODEL, config["model"])),
    logLevel: levelOf(firstOf(flags.log, ECHS_LOG, config["log"], "info")),
    otlpEndpoint: textOf("otlp_endpoint", firstOf(OTEL_EXPORTER_OTLP_ENDPOINT, config["otlp_endpoint"])),
    otlpSignals: signalsOf(config["otlp_signals"]),
    providers: providersOf(config["providers"]),
    models: modelsOf(config["models"], (setting, reason) => new SettingInvalid(setting, reason)),
    mcpServers: recordsOf("mcp_servers", config["mcp_servers"]),
    sandbox: sandboxOf(config["sandbox"]),
    llmRetryMs: millisecondsOf("llm_retry_ms", config["llm_retry_ms"]),
    llmRetryGoalMs: millisecondsOf("llm_retry_goal_ms", config["llm_retry_goal_ms"]),
    instructions: instructionsOf(config["instructions"], (setting, reason) => new SettingInvalid(setting, reason))
  }
}

/** Base addresses of the built-in providers that the environment changes. */
export const providerAddresses = ({
  variables
}: Environment): Readonly<Record<string, { readonly baseUrl: string }>> => {
  const openai = firstOf(variables["OPENAI_BASE_URL"]) as string | undefined
  const anthropic = firstOf(variables["ANTHROPIC_BASE_URL"]) as string | undefined
  return {
    ...(openai === undefined ? {} : { openai: { baseUrl: openai }, "openai-chat": { baseUrl: openai } }),
    ...(anthropic === undefined ? {} : { anthropic: { baseUrl: anthropic } })
  }
}
