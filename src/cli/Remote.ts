// Base of the verbs that talk to a server: finds it, connects, and maps its errors to exit codes. When no server is
// running, the error says how to start one.
import type { Endpoint } from "../client/Client.ts"
import { Client, type ConnectionChange, errorCodes, NoServer, RequestFailed, SentAway } from "../client/Client.ts"
import { idleArgs, type StartServerParts } from "./shared/BackgroundServer.ts"
import { conversationsIn } from "./shared/Directory.ts"
import { type ExitCode, exitCode, type Terminal, type Verb } from "./Verb.ts"
import { dataOption, makeVerb, type OptionTable, UsageError, type VerbInput, type VerbSpec } from "./VerbSpec.ts"

export interface RemoteParts {
  readonly version: string
  /** Address of the server: from the flags, else from the file a running server wrote; undefined when there is none. */
  readonly endpoint: (flags: { readonly data?: string; readonly url?: string }) => Promise<Endpoint | undefined>
  readonly workingDirectory: () => string
  /** Reads an attachment; rejects with the reason it cannot be read. */
  readonly readFile: (path: string) => Promise<Uint8Array>
  /** Starts a server in the background unless one runs on the data directory. */
  readonly startServer: StartServerParts["startServer"]
  /** A server that a command had started in the background ended without a goodbye. */
  readonly hasCrashed: (data: string | undefined) => Promise<boolean>
}

export const remoteOptions = {
  data: dataOption,
  url: { type: "string", value: "URL", help: "address of another server, such as http://127.0.0.1:4600" }
} as const satisfies OptionTable

type Flags = { readonly data?: string | undefined; readonly url?: string | undefined }

export interface RemoteInput<Table extends OptionTable> extends VerbInput<Table & typeof remoteOptions> {
  readonly client: Client
}

export interface RemoteSpec<Table extends OptionTable> extends Omit<VerbSpec<Table>, "run"> {
  /** Keeps reconnecting while the server is away; otherwise the verb fails after a few seconds. */
  readonly isPatient?: boolean
  /** Starts a server in the background where none runs and none was named. */
  readonly startsServer?: boolean
  readonly onConnection?: (change: ConnectionChange, terminal: Terminal) => void
  readonly run: (input: RemoteInput<Table>) => Promise<ExitCode>
}

const giveUpAfterMs = 10_000

export const makeRemoteVerb = <const Table extends OptionTable>(parts: RemoteParts, spec: RemoteSpec<Table>): Verb =>
  makeVerb({
    ...spec,
    options: { ...spec.options, ...remoteOptions },
    run: (input) =>
      withServer(parts, spec, input, (client) =>
        spec.run({ ...(input as VerbInput<Table & typeof remoteOptions>), client })
      )
  })

/** The server in the background could not be started; the message says why. */
class StartFailed extends Error {
  override readonly name = "StartFailed"
}

const ensureServer = async (parts: RemoteParts, { data, url }: Flags, terminal: Terminal): Promise<void> => {
  if (url !== undefined || (await parts.endpoint({ ...(data === undefined ? {} : { data }) })) !== undefined) return
  terminal.status(terminal.paint("quiet", "starting a server in the background…"))
  const started = await parts.startServer(data, idleArgs(undefined))
  terminal.status(undefined)
  if (started._tag === "Failed") throw new StartFailed(started.reason)
}

type Connecting = Pick<RemoteSpec<OptionTable>, "name" | "isPatient" | "onConnection" | "startsServer">

/** Does something with a running server, and tells what kept it from doing so. */
export const withServer = async (
  parts: RemoteParts,
  spec: Connecting,
  {
    terminal,
    values
  }: { readonly terminal: Terminal; readonly values: object & { readonly json?: boolean | undefined } },
  run: (client: Client) => Promise<ExitCode>
): Promise<ExitCode> => {
  let client: Client | undefined
  try {
    if (spec.startsServer === true) await ensureServer(parts, values as Flags, terminal)
    client = await connect(parts, values as Flags, spec, terminal)
    return await run(client)
  } catch (error) {
    return tellFailure(spec.name, error, { terminal, isJson: values.json === true })
  } finally {
    await client?.close()
  }
}

const connect = (parts: RemoteParts, values: Flags, spec: Connecting, terminal: Terminal): Promise<Client> => {
  const { onConnection } = spec
  const flags = {
    ...(values.data === undefined ? {} : { data: values.data }),
    ...(values.url === undefined ? {} : { url: values.url })
  }
  return Client.connect({
    endpoint: async () => {
      const known = await parts.endpoint(flags)
      // One that somebody stopped stays stopped; one that crashed is brought back.
      const isGone = known === undefined && values.url === undefined && spec.startsServer === true
      if (!isGone || !(await parts.hasCrashed(values.data))) return known
      await parts.startServer(values.data, idleArgs(undefined))
      return parts.endpoint(flags)
    },
    client: { name: `echs ${spec.name}`, version: parts.version },
    ...(spec.isPatient === true ? {} : { giveUpAfterMs }),
    ...(onConnection === undefined ? {} : { onConnection: (change) => onConnection(change, terminal) })
  })
}

/** Prints the failure as text and, with `--json`, as JSON; returns its exit code. */
export const tellFailure = (
  verb: string,
  error: unknown,
  to: { readonly terminal: Terminal; readonly isJson: boolean }
): ExitCode => {
  if (error instanceof UsageError) throw error
  const failure = describe(error)
  if (failure === undefined) throw error
  to.terminal.status(undefined)
  to.terminal.complain(`echs ${verb}: ${failure.message}\n`)
  if (to.isJson) {
    const { code, message, data } = failure
    to.terminal.write(`${JSON.stringify({ error: { code, message, ...(data === undefined ? {} : { data }) } })}\n`)
  }
  return failure.exit
}

interface Failure {
  readonly code: string
  readonly message: string
  readonly exit: ExitCode
  readonly data?: unknown
}

const describe = (error: unknown): Failure | undefined => {
  if (error instanceof NoServer) {
    const where = error.url === "" ? "no server is running" : `no server answers at ${error.url}`
    return { code: "no_server", message: `${where}; start one with "echs server start"`, exit: exitCode.noServer }
  }
  if (error instanceof StartFailed)
    return {
      code: "no_server",
      message: `the server could not be started: ${error.message}`,
      exit: exitCode.noServer
    }
  if (error instanceof SentAway) {
    const isAuth = error.closeCode === 4001
    const hint = isAuth ? '. "echs token" prints where the token is stored; ECHS_TOKEN overrides it' : ""
    return {
      code: isAuth ? "unauthorized" : "sent_away",
      message: `disconnected by the server: ${error.message}${hint}`,
      exit: isAuth ? exitCode.notAuthorised : exitCode.failed
    }
  }
  if (error instanceof RequestFailed) {
    const { code, message, data } = error
    return { code, message, exit: errorCodes[code]?.exit ?? exitCode.failed, data }
  }
  return undefined
}

/** Resolves a conversation by id, by unambiguous id prefix, or by `last`: the newest of the directory, else of all. */
export const findConversation = async (client: Client, named: string, directory?: string): Promise<string> => {
  if (named === "*" || /^conv_[0-9a-z]{16,}$/.test(named)) return named
  if (named === "last") {
    const here = directory === undefined ? [] : await conversationsIn(client, directory, 1)
    const [newest] = here.length > 0 ? here : (await client.call("conversation.list", { limit: 1 })).items
    if (newest === undefined)
      throw new RequestFailed("conversation.list", { code: "not_found", message: "there are no conversations yet" })
    return newest.conversation_id
  }
  const start = named.startsWith("conv_") ? named : `conv_${named}`
  const { items } = await client.call("conversation.list", { q: start, limit: 200 })
  const fitting = items.filter((item) => item.conversation_id.startsWith(start))
  if (fitting.length > 1) throw new UsageError(`"${named}" is ambiguous: it matches ${fitting.length} conversations`)
  // The server refuses a name that matches nothing.
  return fitting[0]?.conversation_id ?? named
}
