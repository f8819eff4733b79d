// A server inside a program of somebody else: `import { startServer } from "echs/server"`. It is the same server that
// `echs serve` runs, with the same settings from `<data>/config.json` and the environment, and stops when it is closed. The
// process stays the program's own: no signal is handled and nothing is printed but the log.
import { resolve } from "node:path"
import { type Environment, readEnvironment, readVersion } from "../config/Environment.ts"
import { SettingInvalid, serverSettings } from "../config/Settings.ts"
import type { LogLevel } from "../contract/ServerLog.ts"
import { startServer as startWith } from "./Serve.ts"
import type { RunningServer } from "./ServeOptions.ts"
import { optionsOf } from "./ServeVerb.ts"

export { SettingInvalid } from "../config/Settings.ts"
export type { LogLevel } from "../contract/ServerLog.ts"
export { BindRefused } from "../server/Listener.ts"
export type { RunningServer } from "./ServeOptions.ts"

export interface EmbedOptions {
  /** Where everything is kept; one server at a time. */
  readonly dataDirectory: string
  /** 127.0.0.1 unless told; another machine's reach needs a token in the settings. */
  readonly host?: string
  /** 4600 unless told; 0 picks one. */
  readonly port?: number
  /** Used where a conversation names none. */
  readonly model?: string
  readonly logLevel?: LogLevel
  /** Takes the lines of the log; they go to standard error unless told. */
  readonly writeLine?: (line: string) => void
  /** Settings, keys and the search path are looked up here instead of in the environment of this process. */
  readonly variables?: Readonly<Record<string, string | undefined>>
}

const environmentOf = ({ variables }: EmbedOptions): Environment => {
  const environment = readEnvironment()
  return variables === undefined ? environment : { ...environment, variables }
}

/** Starts a server; resolves when it listens. What is given here wins over the environment and `config.json`. */
export const startServer = async (options: EmbedOptions): Promise<RunningServer> => {
  const { host, logLevel, model, port, writeLine } = options
  if (options.dataDirectory === "") throw new SettingInvalid("dataDirectory", "it must name a directory")
  const dataDirectory = resolve(options.dataDirectory)
  const environment = environmentOf(options)
  const flags = { host, model, log: logLevel, port: port === undefined ? undefined : String(port) }
  const settings = serverSettings(environment, dataDirectory, flags)
  const everything = optionsOf(dataDirectory, settings, { environment, version: readVersion() })
  return startWith({ ...everything, ...(writeLine === undefined ? {} : { writeLine }) })
}
