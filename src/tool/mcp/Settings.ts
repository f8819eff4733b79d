// The MCP servers that were configured: for all conversations in the settings of the server, for one in its list of
// tools (`{ "type": "mcp", "server": … }`). What a conversation names is on record for everybody who may read it, so
// values of the server's own environment are for the settings alone.
import { isAbsolute } from "node:path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Ordinal } from "../../rune/kinds/shared.ts"
import { mcpLimits } from "./McpLimits.ts"
import { isServerName } from "./Names.ts"

const optional = Schema.optionalKey
const Word = Schema.String.check(Schema.isPattern(/^[^\0]*$/u))
const Texts = Schema.Record(Schema.String, Word)
const Names = Schema.Array(Schema.String)

const entryFields = {
  type: optional(Schema.Literals(["mcp", "stdio", "http", "streamable-http"])),
  /** The program and its arguments; or the program alone, with `args`. */
  command: optional(Schema.Union([Word, Schema.Array(Word)])),
  args: optional(Schema.Array(Word)),
  env: optional(Texts),
  url: optional(Schema.String.check(Schema.isPattern(/^https?:\/\//u))),
  headers: optional(Texts),
  network: optional(Schema.Boolean),
  /** Believe the server when it says that a tool changes nothing. */
  trust_annotations: optional(Schema.Boolean),
  /** Tools that are offered; all when left out. */
  include: optional(Names),
  exclude: optional(Names),
  start_timeout_ms: optional(Ordinal.check(Schema.isLessThanOrEqualTo(mcpLimits.startWithinMsMax))),
  timeout_ms: optional(Ordinal)
}

const Entry = Schema.Struct({ ...entryFields, server: Schema.String })
const OwnEntry = Schema.Struct({
  ...entryFields,
  /** Variables of the server that the program finds in its environment. */
  env_from: optional(Names),
  /** Headers whose value is a variable of the server. */
  headers_from: optional(Texts),
  /** Places outside the workspace that the program may read. */
  readable: optional(Schema.Array(Word))
})
type AnyEntry = typeof OwnEntry.Type

const strict = { onExcessProperty: "error" } as const
const decodeEntry = Schema.decodeUnknownResult(Entry, strict)
const decodeOwn = Schema.decodeUnknownResult(OwnEntry, strict)

export type McpReach =
  | {
      readonly type: "stdio"
      readonly argv: ReadonlyArray<string>
      readonly environment: Readonly<Record<string, string>>
      readonly network: boolean
      /** Places outside the workspace that it may read: those that the operator named, and what its own words name. */
      readonly readable: ReadonlyArray<string>
    }
  | { readonly type: "http"; readonly url: string; readonly headers: Readonly<Record<string, string>> }

export interface McpServerSettings {
  readonly name: string
  readonly reach: McpReach
  readonly trustsAnnotations: boolean
  readonly isWanted: (tool: string) => boolean
  readonly startWithinMs: number
  readonly timeoutMs: number | undefined
  /** The same for the same settings; a changed server is another one. */
  readonly key: string
}

export type ParsedServer =
  | { readonly _tag: "Server"; readonly server: McpServerSettings }
  | { readonly _tag: "Invalid"; readonly name: string; readonly reason: string }

const argvOf = ({ args = [], command }: AnyEntry): ReadonlyArray<string> =>
  command === undefined ? [] : [...(typeof command === "string" ? [command] : command), ...args]

const named = (
  names: Readonly<Record<string, string>>,
  variable: (name: string) => string | undefined
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(names).flatMap(([as, name]) => {
      const value = variable(name)
      return value === undefined ? [] : [[as, value]]
    })
  )

type Variables = (name: string) => string | undefined
/** Who wrote an entry: what a conversation names must not open places to it. */
type Owner = "operator" | "conversation"

const reachOf = (entry: AnyEntry, variable: Variables, owner: Owner): McpReach | string => {
  const argv = argvOf(entry)
  const { env = {}, env_from: from = [], headers = {}, headers_from: headersFrom = {}, url } = entry
  if (argv.length > 0 && url !== undefined) return "it has both a command and an address"
  if (url !== undefined) {
    if (!URL.canParse(url)) return `${url} is no address`
    return { type: "http", url, headers: { ...headers, ...named(headersFrom, variable) } }
  }
  if (argv.length === 0 || argv[0] === "") return "it has neither a command nor an address"
  const passed = named(Object.fromEntries(from.map((name) => [name, name])), variable)
  const readable = owner === "operator" ? [...(entry.readable ?? []), ...argv.filter((word) => isAbsolute(word))] : []
  return { type: "stdio", argv, environment: { ...passed, ...env }, network: entry.network ?? false, readable }
}

const serverOf = (name: string, entry: AnyEntry, variable: Variables, owner: Owner): ParsedServer => {
  if (!isServerName(name))
    return { _tag: "Invalid", name, reason: "a name has letters, digits, - and single _, at most 24 characters" }
  const reach = reachOf(entry, variable, owner)
  if (typeof reach === "string") return { _tag: "Invalid", name, reason: reach }
  const { exclude = [], include } = entry
  const server: McpServerSettings = {
    name,
    reach,
    trustsAnnotations: entry.trust_annotations ?? false,
    isWanted: (tool) => (include?.includes(tool) ?? true) && !exclude.includes(tool),
    startWithinMs: entry.start_timeout_ms ?? mcpLimits.startWithinMs,
    timeoutMs: entry.timeout_ms,
    key: JSON.stringify([name, reach, include ?? null, exclude, entry.trust_annotations ?? false])
  }
  return { _tag: "Server", server }
}

const reasonOf = (failure: unknown): string =>
  (failure instanceof Error ? failure.message : String(failure)).replaceAll(/\s*\n\s*/gu, " ").slice(0, 300)

/** The servers in the settings: an object of entries by name. */
export const globalServers = (
  value: unknown,
  variable: (name: string) => string | undefined
): ReadonlyArray<ParsedServer> => {
  if (value === undefined) return []
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return [{ _tag: "Invalid", name: "mcp_servers", reason: "it must be an object of servers by name" }]
  return Object.entries(value).map(([name, entry]): ParsedServer => {
    const decoded = decodeOwn(entry)
    if (Result.isFailure(decoded)) return { _tag: "Invalid", name, reason: reasonOf(decoded.failure) }
    return serverOf(name, decoded.success, variable, "operator")
  })
}

const isMcp = (value: unknown): value is { readonly server?: unknown } =>
  typeof value === "object" && value !== null && (value as { readonly type?: unknown }).type === "mcp"

/** The servers in the list of tools of a conversation. */
export const conversationServers = (tools: ReadonlyArray<unknown> | undefined): ReadonlyArray<ParsedServer> =>
  (tools ?? []).filter(isMcp).map((value): ParsedServer => {
    const decoded = decodeEntry(value)
    if (Result.isFailure(decoded))
      return { _tag: "Invalid", name: String(value.server).slice(0, 80), reason: reasonOf(decoded.failure) }
    const { server, ...entry } = decoded.success
    return serverOf(server, entry, () => undefined, "conversation")
  })
