// Every setting, its value and where it came from, for `echs config`: the same order of precedence the server uses, with
// secrets masked.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { dataDirectory, type Environment } from "./Environment.ts"
import { SettingInvalid } from "./Settings.ts"

export interface ExplainedSetting {
  readonly name: string
  readonly value: string | null
  readonly source: "flag" | "environment" | "config.json" | "default"
  readonly variable: string
}

interface Definition {
  readonly name: string
  readonly variable: string
  readonly fallback?: string
  readonly isSecret?: boolean
  /** Not taken from config.json. */
  readonly isEnvironmentOnly?: boolean
}

/** In the order in which they are shown. */
export const definitions: ReadonlyArray<Definition> = [
  { name: "host", variable: "ECHS_HOST", fallback: "127.0.0.1" },
  { name: "port", variable: "ECHS_PORT", fallback: "4600" },
  { name: "token", variable: "ECHS_TOKEN", isSecret: true },
  { name: "model", variable: "ECHS_MODEL" },
  { name: "scenarios", variable: "ECHS_SCENARIOS" },
  { name: "log", variable: "ECHS_LOG", fallback: "info" },
  { name: "openai_api_key", variable: "OPENAI_API_KEY", isSecret: true, isEnvironmentOnly: true },
  { name: "openai_base_url", variable: "OPENAI_BASE_URL", isEnvironmentOnly: true },
  { name: "anthropic_api_key", variable: "ANTHROPIC_API_KEY", isSecret: true, isEnvironmentOnly: true },
  { name: "anthropic_base_url", variable: "ANTHROPIC_BASE_URL", isEnvironmentOnly: true },
  { name: "otlp_endpoint", variable: "OTEL_EXPORTER_OTLP_ENDPOINT" }
]

export const configPath = (directory: string): string => join(directory, "config.json")

/** The object in config.json; empty when there is no such file. */
export const readConfigFile = (directory: string): Readonly<Record<string, unknown>> => {
  const path = configPath(directory)
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"))
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return {}
    throw new SettingInvalid(path, error instanceof Error ? error.message : String(error))
  }
  throw new SettingInvalid(path, "it must hold a JSON object")
}

/** Says that there is one, and nothing of it. */
export const mask = (secret: string): string => (secret === "" ? "" : "••••••••")

const explain = (
  definition: Definition,
  environment: Environment,
  file: Readonly<Record<string, unknown>>
): ExplainedSetting => {
  const { fallback, isEnvironmentOnly = false, isSecret = false, name, variable } = definition
  const show = (value: string): string => (isSecret ? mask(value) : value)
  const inEnvironment = environment.variables[variable]
  if (inEnvironment !== undefined && inEnvironment !== "")
    return { name, variable, value: show(inEnvironment), source: "environment" }
  const inFile = isEnvironmentOnly ? undefined : file[name]
  if (inFile !== undefined && inFile !== "")
    return { name, variable, value: show(String(inFile)), source: "config.json" }
  return { name, variable, value: fallback ?? null, source: "default" }
}

export const explainSettings = (
  environment: Environment,
  flag: string | undefined
): ReadonlyArray<ExplainedSetting> => {
  const directory = dataDirectory(environment, flag)
  const file = readConfigFile(directory)
  const isFromEnvironment = (environment.variables["ECHS_DATA"] ?? "") !== ""
  const data: ExplainedSetting = {
    name: "data",
    variable: "ECHS_DATA",
    value: directory,
    source: flag !== undefined && flag !== "" ? "flag" : isFromEnvironment ? "environment" : "default"
  }
  const more = [
    "tokens",
    "host_names",
    "origins",
    "providers",
    "models",
    "mcp_servers",
    "instructions",
    "llm_retry_ms",
    "llm_retry_goal_ms"
  ].flatMap((name): ReadonlyArray<ExplainedSetting> => {
    const value = file[name]
    if (value === undefined) return []
    const names = Array.isArray(value)
      ? value.map((one) => String((one as { readonly name?: unknown } | null)?.name ?? one))
      : Object.keys(value as object)
    return [{ name, variable: "", value: names.join(", "), source: "config.json" }]
  })
  return [data, ...definitions.map((definition) => explain(definition, environment, file)), ...more]
}
