// A whole runtime for a test: the real log on a disk in memory (or in a directory), the real store, machine, providers
// and engine. Tests wait for runes that are durable, never for time.

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Cause from "effect/Cause"
import * as Redacted from "effect/Redacted"
import { afterEach, expect } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import { Runelog } from "#runelog/Runelog.ts"
import type { Submitted } from "#src/conversation/Actor.ts"
import type { RuntimeOptions } from "#src/conversation/Runtime.ts"
import { snapshotPort, snapshotShape } from "#src/conversation/SnapshotStore.ts"
import type { AgentSpec, Command } from "#src/machine/Command.ts"
import type { AgentState, ConversationState } from "#src/machine/State.ts"
import { makeRegistry, type Registry, type RegistryConfig } from "#src/provider/Registry.ts"
import { type IdSource, seededIdSource } from "#src/rune/IdSource.ts"
import { type AgentId, type ConversationId, makeAgentId, makeConversationId } from "#src/rune/Ids.ts"
import type { Kind } from "#src/rune/Kinds.ts"
import type { ConversationConfig } from "#src/rune/kinds/shared.ts"
import type { AnyRune, RuneOf } from "#src/rune/Rune.ts"
import { RuneStore } from "#src/store/runes/RuneStore.ts"
import { Snapshots } from "#src/store/Snapshots.ts"
import { reportCount } from "../counts.ts"
import { makeDiskMemory } from "../disk/DiskMemory.ts"
import { serverKey } from "../provider-server/Server.ts"
import { type FunctionTool, functionTools } from "../tool/FunctionTools.ts"
import { channelTo } from "./channelTo.ts"
import { type CheckedLog, checkStored, readStored } from "./Logs.ts"
import { type OpenConversations, type OpenOptions, openConversations } from "./openConversations.ts"

export interface WorldOptions
  extends Partial<Omit<OpenOptions, "store" | "pressure" | "registry" | "tools" | "snapshots">> {
  readonly scenarios?: RegistryConfig["scenarios"]
  readonly models?: RegistryConfig["models"]
  /** Address of a provider server, for the models `responses/…`, `chat/…` and `messages/…`. */
  readonly serverUrl?: string
  readonly tools?: ReadonlyArray<FunctionTool> | RuntimeOptions["tools"]
  /** A real directory instead of a disk in memory. */
  readonly directory?: string
  readonly disk?: Disk
  readonly snapshots?: boolean
  /** Between the runtime and the store, to hold back, to refuse, to look. */
  readonly wrapStore?: (store: RuneStore) => RuneStore
  /** Between the runtime and the models. */
  readonly wrapRegistry?: (registry: Registry) => Registry
  readonly busy?: () => boolean
  readonly ready?: () => Promise<void>
  /** Bytes of a journal file, where many worlds are opened on simulated disks. */
  readonly journalFileBytes?: number
  /** Random bytes for the log, where a test wants the same ones again. */
  readonly randomHex?: (bytes: number) => string
  /** The next open of the same disk continues these ids. */
  readonly idSeed?: number
  /** Superseded deltas stay where they are. */
  readonly thinner?: "none"
  /** The logs are not meant to be well-formed, or are checked by the test itself. */
  readonly unchecked?: boolean
}

interface Waiter {
  readonly isMet: () => boolean
  readonly resolve: () => void
}

const everybody = "every conversation"

const testLimits = { journalFileBytes: 8 * 1024 * 1024, journalFilesMax: 4 }

const providersOf = (url: string | undefined): Pick<RegistryConfig, "providers" | "key"> => ({
  key: () => (url === undefined ? undefined : Redacted.make(serverKey)),
  ...(url === undefined
    ? {}
    : {
        providers: {
          responses: { adapter: "openai-responses", baseUrl: `${url}/v1`, keyVariable: "TEST_KEY" },
          chat: { adapter: "openai-chat", baseUrl: `${url}/v1`, keyVariable: "TEST_KEY" },
          messages: { adapter: "anthropic", baseUrl: url, keyVariable: "TEST_KEY" }
        }
      })
})

const isPort = (tools: NonNullable<WorldOptions["tools"]>): tools is RuntimeOptions["tools"] => "describe" in tools

export class World {
  readonly conversations: OpenConversations
  /** The store as the runtime sees it. */
  readonly store: RuneStore
  /** The store itself, for whoever judges. */
  readonly record: RuneStore
  readonly snapshots: Snapshots | undefined
  readonly ids: IdSource
  /** Runes in the order in which they became durable, by conversation. */
  readonly durable = new Map<ConversationId, Array<AnyRune>>()
  /** Crashes of supervised work, as they were reported. */
  readonly crashes: Array<{ readonly work: string; readonly message: string }> = []
  private readonly runelog: Runelog
  private readonly waiters = new Map<string, Set<Waiter>>()
  readonly options: WorldOptions
  isClosed = false

  private constructor(runelog: Runelog, disk: Disk | undefined, directory: string, options: WorldOptions) {
    this.options = options
    this.runelog = runelog
    this.ids = seededIdSource(options.idSeed ?? 7)
    this.record = new RuneStore({
      runelog,
      notices: { appended: (id, runes) => this.note(id as ConversationId, runes) }
    })
    this.store = options.wrapStore?.(this.record) ?? this.record
    this.snapshots =
      options.snapshots === true && disk !== undefined
        ? new Snapshots({
            disk,
            directory: `${directory}/snapshots`,
            shape: snapshotShape,
            eventSum: (conversationId, eventId) => this.store.eventSumNow(conversationId, eventId)
          })
        : undefined
    this.conversations = openConversations(this.runtimeOptions())
  }

  static async open(options: WorldOptions = {}): Promise<World> {
    const disk = options.disk ?? (options.directory === undefined ? makeDiskMemory() : undefined)
    const directory = options.directory ?? "/data"
    const { journalFileBytes = testLimits.journalFileBytes, monotonicMs, randomHex } = options
    const runelog = await Runelog.open({
      directory,
      limits: { ...testLimits, journalFileBytes },
      ...(disk === undefined ? {} : { disk }),
      ...(monotonicMs === undefined ? {} : { nowMs: monotonicMs }),
      ...(randomHex === undefined ? {} : { randomHex })
    })
    return new World(runelog, disk, directory, options)
  }

  private runtimeOptions(): OpenOptions {
    const {
      busy,
      journalFileBytes: _bytes,
      models,
      ready,
      scenarios,
      serverUrl,
      snapshots: _,
      thinner: _thinner,
      tools = [],
      wrapRegistry = (registry) => registry,
      ...rest
    } = this.options
    const registry = makeRegistry({
      ...providersOf(serverUrl),
      ...(scenarios === undefined ? {} : { scenarios }),
      ...(models === undefined ? {} : { models })
    })
    return {
      clock: { nowMs: () => Date.now() },
      random: () => 0,
      deltaEveryMs: 0,
      ...rest,
      ids: this.ids,
      store: this.store,
      pressure: {
        busy: busy ?? (() => this.runelog.busy),
        ready: ready ?? (() => this.runelog.ready()),
        ...(this.options.thinner === "none" ? {} : { thinner: this.runelog })
      },
      registry: wrapRegistry(registry),
      tools: isPort(tools) ? tools : functionTools(tools),
      ...(this.snapshots === undefined
        ? {}
        : { snapshots: snapshotPort({ snapshots: this.snapshots, store: this.store }) }),
      reports: channelTo((report) => {
        if (report._tag === "WorkCrashed")
          this.crashes.push({ work: report.work, message: String((Cause.squash(report.cause) as Error).message) })
        this.options.reports?.tell(report)
      })
    }
  }

  private note(id: ConversationId, runes: ReadonlyArray<AnyRune>): void {
    const known = this.durable.get(id)
    if (known === undefined) this.durable.set(id, [...runes])
    else known.push(...runes)
    // The actor folds and answers first; then the test may look.
    setImmediate(() => {
      this.look(id)
      this.look(everybody)
    })
  }

  private look(at: string): void {
    const waiters = this.waiters.get(at)
    for (const waiter of waiters ?? []) {
      if (!waiter.isMet()) continue
      waiters?.delete(waiter)
      waiter.resolve()
    }
  }

  /** Resolves when the condition holds; it is asked after every durable batch, of one conversation or of any. */
  until(isMet: () => boolean, at: string = everybody): Promise<void> {
    if (isMet()) return Promise.resolve()
    return new Promise((resolve) => {
      const waiters = this.waiters.get(at) ?? new Set()
      this.waiters.set(at, waiters.add({ isMet, resolve }))
    })
  }

  async create(config: ConversationConfig = {}, root: Partial<AgentSpec> = {}): Promise<Talk> {
    const id = makeConversationId(this.ids)
    const agentId = makeAgentId(this.ids)
    const talk = new Talk(this, id, agentId)
    const spec = { agent_id: agentId, role: "root", model: config.model ?? "scripted/echo", ...root }
    await this.conversations.create({ _tag: "CreateConversation", conversation_id: id, config, root: spec })
    return talk
  }

  /** The same conversation in this world. */
  talk(other: Talk): Talk {
    return new Talk(this, other.id, other.root)
  }

  /** Checks every log there is, as the store gives it back. */
  async check(): Promise<ReadonlyArray<CheckedLog>> {
    const checked: Array<CheckedLog> = []
    for (const id of this.durable.keys())
      checked.push(checkStored(id, await readStored(this.store, id), this.liveState(id)))
    return checked
  }

  private liveState(id: ConversationId): ConversationState | undefined {
    return this.conversations.residentStates().find((state) => state.conversation_id === id)
  }

  /** Stops all work and checks every log, the live states included; then lets go of the disk. */
  async close(): Promise<ReadonlyArray<CheckedLog>> {
    if (this.isClosed) return []
    this.isClosed = true
    const states = this.conversations.residentStates()
    await this.conversations.close()
    const checked: Array<CheckedLog> = []
    if (this.options.unchecked !== true) {
      for (const id of this.durable.keys()) {
        const live = states.find((state) => state.conversation_id === id)
        checked.push(checkStored(id, await readStored(this.store, id), live))
      }
    }
    await this.runelog.close()
    if (checked.length > 0) {
      const runes = checked.reduce((sum, one) => sum + one.runes.length, 0)
      reportCount("runtime logs replayed, folds equal by hash", checked.length)
      reportCount("runtime runes checked against the invariants", runes)
    }
    return checked
  }
}

/** One conversation, as a test speaks to it. */
export class Talk {
  readonly world: World
  readonly id: ConversationId
  readonly root: AgentId

  constructor(world: World, id: ConversationId, root: AgentId) {
    this.world = world
    this.id = id
    this.root = root
  }

  submit(command: Command): Promise<Submitted> {
    return this.world.conversations.submit(this.id, command)
  }

  post(content: string, mode: "queue" | "steer" = "queue", agentId?: AgentId): Promise<Submitted> {
    return this.submit({ _tag: "PostMessage", content, mode, ...(agentId === undefined ? {} : { agent_id: agentId }) })
  }

  interrupt(reason = "user"): Promise<Submitted> {
    return this.submit({ _tag: "InterruptTurn", reason })
  }

  approve(callId: string): Promise<Submitted> {
    return this.submit({
      _tag: "ApproveCall",
      call_id: callId as never,
      approver: "ada",
      channel: "test",
      scope: "once"
    })
  }

  get runes(): ReadonlyArray<AnyRune> {
    return this.world.durable.get(this.id) ?? []
  }

  get kinds(): ReadonlyArray<string> {
    return this.runes.map((rune) => rune.kind)
  }

  of<K extends Kind>(kind: K): ReadonlyArray<RuneOf<K>> {
    return this.runes.filter((rune): rune is RuneOf<K> => rune.kind === kind)
  }

  state(): Promise<ConversationState> {
    return this.world.conversations.state(this.id)
  }

  async agent(agentId: AgentId = this.root): Promise<AgentState> {
    const found = (await this.state()).agents.find((one) => one.agent_id === agentId)
    expect(found).toBeDefined()
    return found!
  }

  /** Resolves when so many runes of the kind are durable. */
  async until<K extends Kind>(kind: K, times = 1): Promise<RuneOf<K>> {
    await this.world.until(() => this.of(kind).length >= times, this.id)
    return this.of(kind)[times - 1]!
  }

  /** Resolves when so many turns have ended, however they did. */
  async turns(times = 1): Promise<AnyRune> {
    const isEnd = ({ kind }: AnyRune) =>
      kind === "turn.completed" || kind === "turn.interrupted" || kind === "turn.error"
    await this.world.until(() => this.runes.filter(isEnd).length >= times, this.id)
    return this.runes.filter(isEnd)[times - 1]!
  }
}

/** Worlds of one test file: each is closed, and every log it produced checked, after the test that opened it. */
export const useWorlds = (): {
  readonly open: (options?: WorldOptions) => Promise<World>
  readonly directory: () => string
} => {
  let worlds: Array<World> = []
  let directories: Array<string> = []
  afterEach(async () => {
    const all = worlds
    worlds = []
    try {
      for (const world of all.reverse()) await world.close()
    } finally {
      for (const directory of directories) rmSync(directory, { recursive: true, force: true })
      directories = []
    }
  })
  return {
    open: async (options = {}) => {
      const world = await World.open(options)
      worlds.push(world)
      return world
    },
    directory: () => {
      const directory = mkdtempSync(join(tmpdir(), "echs-runtime-"))
      directories.push(directory)
      return directory
    }
  }
}
