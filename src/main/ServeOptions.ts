// What a server is started with, its settings as plain values with the parts of them that every room gets; and what
// whoever started it holds.
import type { Environment } from "../config/Environment.ts"
import type { InstructionSettings } from "../config/InstructionSettings.ts"
import type { Log, LogLevel } from "../contract/ServerLog.ts"
import type { ConversationOptions } from "../conversation/ConversationService.ts"
import type { Recovered } from "../conversation/Conversations.ts"
import type { ProvidersOptions } from "../provider/Registry.ts"
import type { ListenerOptions } from "../server/Listener.ts"
import type { TelemetryOptions } from "../server/telemetry/Telemetry.ts"
import type { StoreOptions } from "../store/Store.ts"
import type { Role } from "../wire/Operations.ts"

/** What the tools, hooks and prompts of agents are made of. */
export interface AgentOptions {
  readonly dataDirectory: string
  readonly environment: Environment
  readonly version: string
  /** What commands find besides what they need, and what they never find. */
  readonly sandbox?: { readonly readable: ReadonlyArray<string>; readonly hidden: ReadonlyArray<string> }
  /** `mcp_servers` of the settings, as it was written. */
  readonly mcpServers?: unknown
  readonly instructions?: InstructionSettings
  /** How long a client that runs tools may be away. */
  readonly returnWithinMs?: number
}

export interface ServeOptions extends AgentOptions, ProvidersOptions {
  /** Where the log, snapshots, blobs and archives are kept; the machine's own disk unless told. */
  readonly disk?: StoreOptions["disk"]
  readonly host?: string
  /** 4600 unless told; 0 picks one. */
  readonly port?: number
  /** Used instead of the token file. */
  readonly token?: string
  /** More tokens, with their own names and roles. */
  readonly tokens?: ReadonlyArray<{ readonly name: string; readonly role: Role; readonly token: string }>
  readonly hostNames?: ReadonlyArray<string>
  /** Pages of others that may use this server from a browser. */
  readonly origins?: ReadonlyArray<string>
  /** What a browser is shown at "/". */
  readonly page?: ListenerOptions["page"]
  /** How long new conversations wait out an outage, in a turn and while a goal is pursued, unless they say so. */
  readonly llmRetryMs?: number | undefined
  readonly llmRetryGoalMs?: number | undefined
  /** What must not stand in anything that agents see, besides the token. */
  readonly secrets?: ReadonlyArray<string>
  readonly runtime?: Omit<ConversationOptions, "limitDefaults">
  readonly door?: Partial<Omit<ListenerOptions, "host" | "port" | "tokens" | "version" | "hostNames" | "origins">>
  /** An admin may change the named tokens of the data directory and ask for a stop. */
  readonly isAdministered?: boolean
  /** How long a stop may take before it leaves behind what hangs. */
  readonly drainMs?: number
  readonly logLevel?: LogLevel
  readonly writeLine?: (line: string) => void
  /** Where traces go, if anywhere: the base address of an OTLP collector. */
  readonly otlpEndpoint?: string
  /** What goes there; traces, unless told. */
  readonly otlpSignals?: TelemetryOptions["otlpSignals"]
}

/** A server as the program sees it that started it. */
export interface RunningServer {
  readonly url: string
  readonly port: number
  readonly token: string
  readonly dataDirectory: string
  /** What it says of itself. */
  readonly log: Log
  /** What the last stop left unfinished is resumed; resolves when all of it was looked at. */
  readonly recovered: Promise<Recovered>
  /** Nobody is connected, no conversation has unfinished work, no outside agent runs. */
  readonly isIdle: () => boolean
  /** Resolves with the reason when an admin asks for a stop. */
  readonly stopRequested: Promise<string>
  readonly close: () => Promise<void>
}
