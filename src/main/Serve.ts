// Puts a server together: store, runtime, door. Used by `echs serve` and by programs that hold a server in their own
// process. Owns the order of starting and stopping: nothing is acknowledged that a stop would lose, and whatever is
// unfinished when it stops goes on at the next start.
import * as Cause from "effect/Cause"
import * as Redacted from "effect/Redacted"
import { type DescriptorPlan, descriptorLimit, descriptorPlan } from "../config/Descriptors.ts"
import { createNamedToken, readNamedTokens, removeNamedToken } from "../config/LocalServer.ts"
import { claimDirectory, ensureToken, removeServerInfo, writeServerInfo } from "../config/ServerFiles.ts"
import { NoticeBus } from "../contract/DurableNotices.ts"
import { describeError, type Log, type LogLevel } from "../contract/ServerLog.ts"
import { Approvals } from "../conversation/Approvals.ts"
import { ConversationStore } from "../conversation/ConversationStore.ts"
import type { Conversations, Recovered } from "../conversation/Conversations.ts"
import { PromptView } from "../conversation/PromptView.ts"
import { makeConversations, type RuntimeOptions } from "../conversation/Runtime.ts"
import { snapshotPort, snapshotShape } from "../conversation/SnapshotStore.ts"
import { makeRegistry, type Registry, type RegistryConfig } from "../provider/Registry.ts"
import { secureIdSource } from "../rune/IdSource.ts"
import type { ConversationId } from "../rune/Ids.ts"
import { mediaLimits } from "../rune/Media.ts"
import { workspaceIssue } from "../sandbox/WorkspaceCheck.ts"
import { type NamedToken, namedToken } from "../server/Auth.ts"
import { HttpListener, type HttpListenerOptions } from "../server/HttpListener.ts"
import type { AttachmentPort } from "../server/operations/Context.ts"
import { makeLog } from "../server/telemetry/Log.ts"
import { Traces } from "../server/telemetry/Traces.ts"
import { Store, type StoreOptions } from "../store/Store.ts"
import { functionTools } from "../tool/FunctionTools.ts"
import type { BlobPort } from "../tool/Output.ts"
import type { ToolPort } from "../tool/ToolPort.ts"
import type { Role } from "../wire/Operations.ts"
import { limits } from "../wire/WireLimits.ts"
import type { Extensions } from "./Extensions.ts"
import type { AssembledTools } from "./Tools.ts"

export interface TokenSpec {
  readonly name: string
  readonly role: Role
  readonly token: string
}

export interface ServeOptions {
  readonly dataDirectory: string
  /** Where the log, snapshots, blobs and archives are kept; the machine's own disk unless told. */
  readonly disk?: StoreOptions["disk"]
  readonly host?: string
  /** 4600 unless told; 0 picks one. */
  readonly port?: number
  /** Used instead of the token file. */
  readonly token?: string
  /** More tokens, with their own names and roles. */
  readonly tokens?: ReadonlyArray<TokenSpec>
  readonly hostNames?: ReadonlyArray<string>
  /** Pages of others that may use this server from a browser. */
  readonly origins?: ReadonlyArray<string>
  readonly version: string
  readonly model?: string
  readonly providers?: RegistryConfig["providers"]
  readonly models?: RegistryConfig["models"]
  /** How long new conversations wait out an outage, in a turn and while a goal is pursued, unless they say so. */
  readonly llmRetryMs?: number | undefined
  readonly llmRetryGoalMs?: number | undefined
  /** Value of a variable that holds a key. */
  readonly key?: (variable: string) => string | undefined
  readonly scenarios?: RegistryConfig["scenarios"]
  readonly readText?: RegistryConfig["readText"]
  /** Tools as they are, or what makes them of the parts of this server. */
  readonly tools?: ToolPort | ((parts: ToolParts) => Promise<AssembledTools>)
  readonly hooks?: RuntimeOptions["hooks"]
  readonly runtime?: Partial<Pick<RuntimeOptions, "deltaEveryMs" | "residentMax" | "idleAfterMs" | "mailboxMax">>
  readonly door?: Partial<
    Pick<
      HttpListenerOptions,
      "stalledMs" | "helloWithinMs" | "headersWithinMs" | "pingEveryMs" | "connectionsMax" | "socketsMax"
    >
  >
  /** Asked to stop by an admin; without it nobody can ask. Tokens are then kept in the settings of the data directory. */
  readonly onStop?: (reason: string) => void
  /** How long a stop may take before it leaves behind what hangs. */
  readonly drainMs?: number
  readonly logLevel?: LogLevel
  readonly writeLine?: (line: string) => void
  /** Where traces go, if anywhere: the base address of an OTLP collector. */
  readonly otlpEndpoint?: string
}

/** What tools may use of the server. */
export interface ToolParts {
  readonly blobs: BlobPort
  readonly log: Log
  /** What became durable: shell sessions end with their conversation, worktrees with their goal. */
  readonly notices: NoticeBus
}

export interface RunningServer {
  readonly url: string
  readonly port: number
  readonly token: string
  readonly dataDirectory: string
  /** What it says of itself. */
  readonly log: Log
  /** What the last stop left unfinished goes on; resolves when all of it was looked at. */
  readonly recovered: Promise<Recovered>
  /** Nobody is connected and no conversation has unfinished work. */
  readonly isIdle: () => boolean
  readonly close: () => Promise<void>
}

export class BindRefused extends Error {
  override readonly name = "BindRefused"

  constructor(host: string) {
    super(`refusing to listen on ${host}: anybody on the network could come in; give a token of your own to allow it`)
  }
}

const defaultPort = 4600
const loopback: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "localhost"])

const tokensOf = (options: ServeOptions, own: string): ReadonlyArray<NamedToken> => [
  namedToken("local", "admin", own),
  ...(options.tokens ?? []).map(({ name, role, token }) => namedToken(name, role, token))
]

/** Under which names, and for pages of which origins, the server is there. */
const namesOf = ({ hostNames, origins }: ServeOptions): Pick<HttpListenerOptions, "hostNames" | "origins"> => ({
  ...(hostNames === undefined ? {} : { hostNames }),
  ...(origins === undefined ? {} : { origins })
})

const administrationOf = ({ dataDirectory, onStop }: ServeOptions): Pick<HttpListenerOptions, "administration"> =>
  onStop === undefined
    ? {}
    : {
        administration: {
          tokens: () => readNamedTokens(dataDirectory).map(({ name, role }) => ({ name, role })),
          createToken: (name, role) => createNamedToken(dataDirectory, name, role)?.token,
          removeToken: (name) => removeNamedToken(dataDirectory, name),
          stop: onStop
        }
      }

const blobPort = ({ blobs }: Store): BlobPort => ({
  keep: (source, mediaType = "text/plain") => blobs.keep(source, { mediaType }),
  read: (sha256, range) => blobs.read(sha256, range)
})

const toolsOf = async (
  { tools }: ServeOptions,
  store: Store,
  log: Log,
  notices: NoticeBus
): Promise<AssembledTools> => {
  if (typeof tools !== "function") return { tools: tools ?? functionTools([]), close: async () => undefined }
  try {
    return await tools({ blobs: blobPort(store), log, notices })
  } catch (error) {
    await store.close()
    throw error
  }
}

const registryOf = (options: ServeOptions, { blobs }: Store): Registry => {
  const { model, models, providers, readText, scenarios } = options
  return makeRegistry({
    key: (variable) => {
      const value = options.key?.(variable)
      return value === undefined || value === "" ? undefined : Redacted.make(value)
    },
    readBlob: (sha256) => blobs.readAll(sha256, { bytesMax: mediaLimits.fileBytesMax }),
    ...(model === undefined ? {} : { model }),
    ...(providers === undefined ? {} : { providers }),
    ...(models === undefined ? {} : { models }),
    ...(scenarios === undefined ? {} : { scenarios }),
    ...(readText === undefined ? {} : { readText })
  })
}

const runtimeOf = (
  options: ServeOptions,
  {
    extensions,
    prompts,
    runner,
    store,
    tools,
    workspaceCheck
  }: Pick<AssembledTools, "extensions" | "prompts" | "runner" | "tools" | "workspaceCheck"> & {
    readonly store: Store
  },
  log: Log,
  door: () => Door
): RuntimeOptions => {
  const hooks = options.hooks ?? extensions?.hooks
  return {
    ...options.runtime,
    store: store.runes,
    pressure: {
      busy: () => store.runelog.busy,
      ready: () => store.runelog.ready(),
      rest: (conversationId) => store.runelog.rest(conversationId),
      thinner: store.runelog
    },
    keepOutput: (output) => store.blobs.keep(output, { mediaType: "text/plain" }),
    keepMedia: (bytes, mediaType) => store.blobs.keep(bytes, { mediaType }),
    snapshots: snapshotPort({ snapshots: store.snapshots, store: store.runes }),
    registry: registryOf(options, store),
    limitDefaults: { llmRetryMs: options.llmRetryMs, llmRetryGoalMs: options.llmRetryGoalMs },
    tools,
    ...(prompts === undefined ? {} : { prompts }),
    ...(runner === undefined ? {} : { runner }),
    ...(workspaceCheck === undefined ? {} : { workspaceCheck, workspaceIssue: workspaceIssue(workspaceCheck) }),
    ...(hooks === undefined ? {} : { hooks }),
    ids: secureIdSource(),
    clock: { nowMs: () => Date.now() },
    onLive: (live) => door().server?.tellLive(live),
    onCrash: (conversationId, work, cause) =>
      log.write("error", "work crashed", {
        conversation_id: conversationId,
        work,
        cause: describeError(Cause.squash(cause))
      }),
    onLoaded: (state) => door().notices.loaded(state),
    onLogRefused: (error) => log.write("error", "the log refused runes", { cause: describeError(error) }),
    onSnapshotFailed: (conversationId, cause) =>
      log.write("warn", "no snapshot", { conversation_id: conversationId, cause: describeError(cause) }),
    onThinFailed: (conversationId, cause) =>
      log.write("warn", "a log was not thinned", { conversation_id: conversationId, cause: describeError(cause) })
  }
}

/** What the runtime reports to, once it is there. */
interface Door {
  readonly notices: NoticeBus
  readonly descriptors: DescriptorPlan
  server: HttpListener | undefined
  conversations: Conversations | undefined
  readonly traces: Traces | undefined
  readonly listening: PromiseWithResolvers<void>
}

const openStore = (options: ServeOptions, log: Log, door: Door): Promise<Store> =>
  Store.open({
    directory: options.dataDirectory,
    notices: door.notices,
    catchUpAfter: door.listening.promise,
    ...(options.disk === undefined ? {} : { disk: options.disk }),
    snapshotShape,
    runelog: {
      limits: { openFilesMax: door.descriptors.logFilesMax },
      onPoison: (error) => {
        log.write("error", "the log writes no more", { cause: describeError(error) })
        // Not inside the append that found it.
        setImmediate(() => door.conversations?.stopWriting(error))
      },
      onDamage: (damage) => {
        log.write("error", "a conversation is read-only from now on", { cause: describeError(damage) })
        setImmediate(() => door.conversations?.stopWriting(damage, damage.log))
      }
    },
    onSnapshotReport: (report) => log.write("warn", "a snapshot was not used", { ...report }),
    onCatalogFault: (fault) => log.write("warn", "the catalog had to be mended", { ...fault })
  })

const makeListenerSlots = (options: ServeOptions, log: Log): Door => {
  const { otlpEndpoint, version } = options
  const onFailure = (error: unknown): void =>
    log.write("warn", "traces could not be delivered", { cause: describeError(error) })
  const notices = new NoticeBus((listener, error) =>
    log.write("error", "a listener of durable notices failed", { listener, cause: describeError(error) })
  )
  const traces = otlpEndpoint === undefined ? undefined : new Traces({ endpoint: otlpEndpoint, version, onFailure })
  if (traces !== undefined)
    notices.subscribe({
      name: "traces",
      appended: (_conversationId, runes) => traces.notice(runes),
      loaded: (state) => traces.resume(state)
    })
  return {
    notices,
    descriptors: descriptorPlan(descriptorLimit()),
    server: undefined,
    conversations: undefined,
    listening: Promise.withResolvers(),
    traces
  }
}

const approvalsOf = (
  conversations: Conversations,
  { learn, tools }: Pick<AssembledTools, "learn" | "tools">,
  log: Log
): Approvals => {
  const onNotLearned = (error: unknown): void =>
    log.write("error", "a permission for good was not written down", { cause: describeError(error) })
  return new Approvals({ conversations, tools, onNotLearned, ...(learn === undefined ? {} : { learn }) })
}

const promptsOf = ({ prompts, registry }: RuntimeOptions, conversations: Conversations): PromptView =>
  new PromptView({
    state: (conversationId) => conversations.state(conversationId),
    prompts,
    contextTokens: (model) => registry.catalog.lookup(model).contextTokens
  })

/** Starts everything on a data directory; resolves when the server listens. */
export const startServer = async (options: ServeOptions): Promise<RunningServer> => {
  const { dataDirectory, host = "127.0.0.1", port = defaultPort, version } = options
  if (!loopback.has(host) && options.token === undefined) throw new BindRefused(host)
  const writeLine = options.writeLine ?? ((line) => void process.stderr.write(`${line}\n`))
  const log = makeLog({ level: options.logLevel ?? "info", nowMs: () => Date.now(), writeLine })
  claimDirectory(dataDirectory)
  const token = options.token ?? ensureToken(dataDirectory)
  const door = makeListenerSlots(options, log)
  const store = await openStore(options, log, door)
  const { close: closeTools, ...assembled } = await toolsOf(options, store, log, door.notices)
  try {
    const runtime = runtimeOf(options, { store, ...assembled }, log, () => door)
    const conversations = makeConversations(runtime)
    door.conversations = conversations
    const { extensions } = assembled
    extensions?.attach(conversations)
    assembled.attach?.(conversations)
    const { ids, registry } = runtime
    const conversationStore = new ConversationStore({ store, conversations, ids, nowMs: () => Date.now() })
    door.server = await HttpListener.listen({
      ...ofMachine(options, door, store, assembled),
      host,
      port,
      tokens: tokensOf(options, token),
      ...namesOf(options),
      ...administrationOf(options),
      notices: door.notices,
      services: {
        conversations,
        conversationStore,
        approvals: approvalsOf(conversations, assembled, log),
        prompts: promptsOf(runtime, conversations),
        newId: () => ids.hex16(),
        defaultModel: () => registry.defaultModel(),
        ...servicesOf(extensions, attachmentsOf(store, registry))
      },
      version,
      log,
      nowMs: () => Date.now(),
      monotonicMs: () => performance.now()
    })
    const { server, traces } = door
    const isIdle = (): boolean => isUnused(server, store)
    writeServerInfo(dataDirectory, { url: server.url, pid: process.pid, started_ms: Date.now(), version })
    let closing: Promise<void> | undefined
    const recovered = goOn({ store, conversations, log, door, isClosing: () => closing !== undefined })
    const close = async (): Promise<void> => {
      const drainMs = options.drainMs ?? limits.drainMs
      const isDone = await within(drainMs, stop({ server, conversations, store, recovered, closeTools }))
      if (!isDone) log.write("warn", "the stop took too long, what hangs is left behind", { after_ms: drainMs })
      await traces?.close()
      removeServerInfo(dataDirectory, process.pid)
    }
    return {
      url: server.url,
      port: server.port,
      token,
      dataDirectory,
      log,
      recovered,
      isIdle,
      close: () => (closing ??= close())
    }
  } catch (error) {
    await closeTools()
    await store.close()
    throw error
  }
}

const isUnused = (server: HttpListener, { catalog }: Store): boolean =>
  server.connectionCount === 0 && catalog.unfinished().length === 0

/** What the machine allows the door, and what the store says about itself. */
const ofMachine = (
  options: ServeOptions,
  { descriptors }: Door,
  store: Store,
  { sandbox }: Pick<AssembledTools, "sandbox">
) => ({
  ...(sandbox === undefined ? {} : { sandbox }),
  connectionsMax: descriptors.connectionsMax,
  socketsMax: descriptors.socketsMax,
  ...options.door,
  writable: () => writeRefusal(store),
  figures: () => figuresOf(store)
})

/** Why the server takes no runes of any conversation now, if it does not. */
const writeRefusal = ({ runelog }: Store): string | undefined =>
  (runelog.readOnly ?? runelog.poisoned ?? runelog.noRoom)?.message

/** What the door needs of hooks and of tools that clients run. */
const attachmentsOf = ({ blobs }: Store, { catalog }: Registry): AttachmentPort => ({
  keep: (bytes, mediaType) => blobs.keep(bytes, { mediaType }),
  read: (sha256) => blobs.readAll(sha256, { bytesMax: mediaLimits.fileBytesMax }),
  sight: (model) => {
    const { files = false, images = false } = catalog.lookup(model)
    return { files, images }
  }
})

const servicesOf = (extensions: Extensions | undefined, attachments: AttachmentPort) =>
  extensions === undefined
    ? { attachments }
    : { attachments, beforePrompt: extensions.beforePrompt, remoteTools: extensions.remoteTools }

interface Running {
  readonly server: HttpListener
  readonly conversations: ReturnType<typeof makeConversations>
  readonly store: Store
  readonly recovered: Promise<unknown>
  readonly closeTools: () => Promise<void>
}

/** Answers what is under way, stops the work where it is, hands out what is durable, says goodbye, closes the log. */
const stop = async ({ closeTools, conversations, recovered, server, store }: Running): Promise<void> => {
  await server.quiesce(limits.answerWithinMs)
  await conversations.close()
  await closeTools()
  await recovered.catch(() => undefined)
  await server.close()
  await store.close()
}

/** Whatever hangs must not keep the process: what was acknowledged is durable already. Says whether the work is done. */
const within = async (ms: number, work: Promise<void>): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false)
  })
  const isDone = await Promise.race([work.then(() => true), late])
  clearTimeout(timer)
  return isDone
}

const reportRecovery = (log: Log, { failed, loaded, resumed }: Recovered): void => {
  if (loaded > 0 || failed.length > 0) log.write("info", "recovered", { loaded, resumed, failed: failed.length })
  for (const error of failed) log.write("error", "a conversation cannot go on", { cause: describeError(error) })
}

interface Recovering {
  readonly store: Store
  readonly conversations: Running["conversations"]
  readonly log: Log
  readonly door: Door
  readonly isClosing: () => boolean
}

/** Lets unfinished work go on; resolves when what was known of at once is loaded. */
const goOn = ({ conversations, door, isClosing, log, store }: Recovering): Promise<Recovered> => {
  door.listening.resolve()
  const recover = (ids: Iterable<string>): Promise<Recovered> => conversations.recover(ids as Iterable<ConversationId>)
  const suspects = store.isBehind ? [] : store.runelog.recovered.logs
  const unfinished = new Set([...store.catalog.unfinished(), ...suspects])
  const recovered = recover(unfinished)
  void recovered.then((found) => reportRecovery(log, found))
  // A catalog that was behind, or had to be filled again, knows only when it has caught up who else has work.
  const recoverMissed = async (): Promise<void> => {
    if ((store.catalog.openState === "clean" && !store.isBehind) || isClosing()) return
    const missed = await recover(store.catalog.unfinished().filter((id) => !unfinished.has(id)))
    if (!isClosing()) reportRecovery(log, missed)
  }
  void store.caughtUp.then(recoverMissed, () => undefined)
  return recovered
}

const figuresOf = (store: Store): Readonly<Record<string, number>> => {
  const { journalFiles, memoryBytes, residentLogs, sequence } = store.runelog.stats
  return {
    conversations: store.catalog.count(),
    log_resident: residentLogs,
    log_journal_files: journalFiles,
    log_memory_bytes: memoryBytes,
    log_batches_total: sequence,
    log_poisoned: store.runelog.poisoned === undefined ? 0 : 1
  }
}
