// All conversations of a process: who is in memory, who can leave it, and what goes on after a restart. A conversation
// is loaded when somebody speaks to it or when it has work, at most once at a time, and leaves when it has had
// nothing to do for a while. After a crash everything unfinished is loaded, resolved and goes on by itself.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { CommandRefused, RuntimeClosed } from "../contract/CommandErrors.ts"
import { after, scopedFork } from "../contract/Timers.ts"
import type { Command } from "../machine/Command.ts"
import type { Idempotency } from "../machine/decide/Decide.ts"
import { type RetryDefaults, withRetryDefaults } from "../machine/MachineLimits.ts"
import { type ConversationState, emptyConversation } from "../machine/State.ts"
import { resolveAfterCrash } from "../machine/work/Recovery.ts"
import { policyIssue } from "../policy/Rule.ts"
import type { Circuit } from "../provider/Resilience.ts"
import type { IdSource } from "../rune/IdSource.ts"
import { type ConversationId, isConversationId } from "../rune/Ids.ts"
import type { WorkspaceCheck, WorkspaceChoice } from "../sandbox/WorkspaceCheck.ts"
import { endsAppends } from "../store/StoreErrors.ts"
import { type FiberList, fiberList, type RunFork } from "../supervise/Branch.ts"
import type { RestartIntensity } from "../supervise/ChildSpec.ts"
import type { Submitted } from "./Actor.ts"
import { ConversationUnknown, LogRefused } from "./ConversationErrors.ts"
import { limits } from "./ConversationLimits.ts"
import type { ConversationReport, ReportChannel } from "./ConversationReports.ts"
import { LoadedConversation, type RuntimeServices, type WorkContext, type Workers } from "./LoadedConversation.ts"
import type { WallClock } from "./Ports.ts"
import { priceIssue } from "./PriceCheck.ts"
import { type ConversationLog, readConversation } from "./ReadConversation.ts"
import { type Thinner, Thinning } from "./Thinning.ts"

export interface ConversationsOptions {
  readonly log: ConversationLog
  readonly ids: IdSource
  readonly clock: WallClock
  readonly monotonicMs: () => number
  readonly intensity: RestartIntensity
  readonly runFork?: RunFork
  /** Conversations kept in memory without need; older idle ones leave first. */
  readonly residentMax?: number
  /** A conversation without work leaves memory after this long without use. */
  readonly idleAfterMs?: number
  /** Pauses before a conversation whose log refused runes is read again to go on; the last one repeats. */
  readonly reloadAfterMs?: ReadonlyArray<number>
  /** Commands of clients to one conversation that may wait for the disk. */
  readonly mailboxMax?: number
  /** The work of one conversation; made when there is some. */
  readonly workers: (workContext: WorkContext) => Workers
  /** How the circuits of the providers stand. */
  readonly circuits?: () => Readonly<Record<string, Circuit>>
  /** How long new conversations wait out an outage of a provider, unless they say so themselves. */
  readonly limitDefaults?: RetryDefaults
  /** Whether the price of a model is known; of every one, unless told. */
  readonly isPriced?: (model: string) => boolean
  /** Which directories can be workspaces; all of them, unless told. */
  readonly workspaceCheck?: WorkspaceCheck
  /** Where they report what is in no rune. */
  readonly reports?: ReportChannel
}

interface ConversationsParts {
  readonly thinning: Thinning
  /** Snapshots that are being written. */
  readonly saves: RunFork
  /** Sweeps, and conversations that are read again later. */
  readonly timers: RunFork
  readonly stop: Effect.Effect<void>
}

export interface Recovered {
  readonly loaded: number
  /** Conversations that go on by themselves. */
  readonly resumed: number
  readonly failed: ReadonlyArray<unknown>
}

const noThinner: Thinner = { unsealedBytes: () => 0, pack: async () => undefined }

/** Nothing more is to come, as far as anybody knows. */
const isOver = ({ session }: ConversationState): boolean => session.status === "closed"

export class Conversations {
  private readonly options: ConversationsOptions
  private readonly services: RuntimeServices
  private readonly loaded = new Map<ConversationId, LoadedConversation>()
  private readonly loading = new Map<ConversationId, Promise<LoadedConversation>>()
  /** How many wait to speak to a conversation; it does not leave before they have. */
  private readonly pins = new Map<string, number>()
  /** Conversations whose log refused runes: appends that are still under way, and how often it happened. */
  private readonly draining = new Map<ConversationId, Promise<void>>()
  private readonly refusals = new Map<ConversationId, number>()
  private readonly parts: ConversationsParts
  private readonly residentMax: number
  private isSweeping = false
  private isStopping = false

  private constructor(options: ConversationsOptions, parts: ConversationsParts) {
    this.options = options
    this.parts = parts
    this.residentMax = options.residentMax ?? limits.residentMax
    const { clock, ids, intensity, log: sink, mailboxMax = limits.mailboxMax, runFork } = options
    this.services = {
      actor: { sink, ids, clock, mailboxMax },
      reactor: runFork === undefined ? { intensity } : { intensity, runFork },
      workers: options.workers,
      onCrash: ({ actor: { conversationId } }, work, cause) =>
        this.report({ _tag: "WorkCrashed", conversationId, work, cause }),
      onQuiet: (resident) => this.quiet(resident),
      onFailure: (resident, error) => this.abandon(resident, error)
    }
  }

  /**
   * Work for as long as the scope is open, or until `stop`. First no timer begins anything more, then all work stops
   * where it is, and at last what is being written is finished.
   */
  static readonly make = (options: ConversationsOptions): Effect.Effect<Conversations, never, Scope.Scope> =>
    Effect.gen(function* () {
      const { log, reports, runFork } = options
      const scope = yield* Scope.make()
      const thinning = Thinning.make({
        thinner: log.thinner ?? noThinner,
        onThinned: (id) => log.rest?.(id),
        onFailed: (conversationId, cause) => reports?.tell({ _tag: "ThinFailed", conversationId, cause }),
        runFork
      })
      const parts = {
        thinning: yield* Scope.provide(thinning, scope),
        saves: yield* Scope.provide(scopedFork(runFork), scope)
      }
      yield* Scope.addFinalizer(
        scope,
        Effect.suspend(() => conversations.stopAll)
      )
      const timers = yield* Scope.provide(scopedFork(runFork), scope)
      const stop = yield* Effect.cached(Scope.close(scope, Exit.void))
      const conversations: Conversations = new Conversations(options, { ...parts, timers, stop })
      yield* Effect.addFinalizer(() => conversations.stop)
      return conversations
    })

  private report(report: ConversationReport): void {
    this.options.reports?.tell(report)
  }

  get resident(): number {
    return this.loaded.size
  }

  /** How the circuits of the providers stand that were asked for something. */
  circuits(): Readonly<Record<string, Circuit>> {
    return this.options.circuits?.() ?? {}
  }

  /** The states of the conversations in memory; read them, and do not keep them across an await. */
  residentStates(): ReadonlyArray<ConversationState> {
    return [...this.loaded.values()].map(({ state }) => state)
  }

  /** Creates the conversation that the command names. */
  async create(
    given: Extract<Command, { readonly _tag: "CreateConversation" }>,
    idempotency?: Idempotency
  ): Promise<Submitted> {
    const command = { ...given, config: withRetryDefaults(given.config, this.options.limitDefaults) }
    const id = command.conversation_id
    if (!isConversationId(id)) {
      const refusal = { code: "bad_request", message: `"${String(id).slice(0, 80)}" is no conversation id` } as const
      throw new CommandRefused({ refusal, command: command._tag })
    }
    const issue = policyIssue(command.config.policy)
    if (issue !== undefined) {
      throw new CommandRefused({ refusal: { code: "bad_request", message: issue }, command: command._tag })
    }
    this.checkWorkspace(command.config, command._tag)
    this.checkPrice(command, emptyConversation(id))
    const { answer, resident } = await this.pinned(id, async () => {
      const resident = await this.loadOrBegin(id)
      return { resident, answer: resident.actor.submit(command, idempotency) }
    })
    try {
      return await answer
    } finally {
      // Refused, and nothing was ever written: there is no such conversation.
      if (resident.state.head === 0) this.forget(resident)
    }
  }

  /** Throws CommandRefused when nobody may work there. */
  checkWorkspace(choice: WorkspaceChoice, command: string): void {
    const message = this.options.workspaceCheck?.(choice)
    if (message !== undefined) throw new CommandRefused({ refusal: { code: "bad_request", message }, command })
  }

  /** Throws CommandRefused when a budget in dollars could not be held. */
  private checkPrice(command: Command, state: ConversationState): void {
    const { isPriced } = this.options
    const message = isPriced === undefined ? undefined : priceIssue(command, state, isPriced)
    if (message === undefined) return
    const refusal = { code: "bad_request", message, data: { reason: "price_unknown", setting: "models" } } as const
    throw new CommandRefused({ refusal, command: command._tag })
  }

  private async loadOrBegin(id: ConversationId): Promise<LoadedConversation> {
    try {
      return await this.load(id)
    } catch (error) {
      if (!(error instanceof ConversationUnknown)) throw error
      return this.loaded.get(id) ?? this.adopt(emptyConversation(id))
    }
  }

  /** Speaks to a conversation, loading it if need be. */
  async submit(conversationId: string, command: Command, idempotency?: Idempotency): Promise<Submitted> {
    const { answer } = await this.pinned(conversationId, async () => {
      const { actor, state } = await this.load(conversationId)
      this.checkPrice(command, state)
      if (command._tag === "SubmitGoal") this.checkWorkspace(state.session.config, command._tag)
      if (command._tag === "UpdateConfig")
        this.checkWorkspace({ ...state.session.config, ...command.changes }, command._tag)
      // In an object, so that only the command is waited for here, and not its answer.
      return { answer: actor.submit(command, idempotency) }
    })
    return answer
  }

  /** A conversation in memory, brought there if need be. Looking starts nothing. */
  look(conversationId: string): Promise<LoadedConversation> {
    return this.pinned(conversationId, () => this.find(conversationId))
  }

  /** Its state, which may be ahead of the log; read it, and do not keep it across an await. */
  async state(conversationId: string): Promise<ConversationState> {
    return (await this.look(conversationId)).state
  }

  /** Keeps a conversation in memory while somebody who asked for it has not yet spoken to it. */
  private async pinned<A>(conversationId: string, use: () => Promise<A>): Promise<A> {
    this.pins.set(conversationId, (this.pins.get(conversationId) ?? 0) + 1)
    try {
      return await use()
    } finally {
      const left = (this.pins.get(conversationId) ?? 1) - 1
      if (left === 0) this.pins.delete(conversationId)
      else this.pins.set(conversationId, left)
    }
  }

  /** Loads the conversation, and what it has to do goes on. Rejects when there is no such conversation. */
  load(conversationId: string): Promise<LoadedConversation> {
    if (this.loaded.get(conversationId as ConversationId)?.isAsleep === false) return this.find(conversationId)
    // Asleep it may leave although it has work, so it is held until it is awake.
    return this.pinned(conversationId, async () => {
      const resident = await this.find(conversationId)
      // All who came meanwhile wait for the same, and go on in the order in which they came.
      resident.waking ??= this.wake(resident)
      await resident.waking
      return resident
    })
  }

  private async wake(resident: LoadedConversation): Promise<void> {
    if (!resident.isAsleep) return
    const { drafts } = resolveAfterCrash(resident.state, { at_ms: this.options.clock.nowMs() })
    if (drafts.length > 0) await resident.actor.record(drafts)
    resident.isAsleep = false
    resident.reactor.react()
  }

  /** The conversation in memory, brought there without starting anything. */
  private find(conversationId: string): Promise<LoadedConversation> {
    if (!isConversationId(conversationId))
      return Promise.reject(new ConversationUnknown({ conversation_id: conversationId }))
    if (this.isStopping) return Promise.reject(new RuntimeClosed({ conversation_id: conversationId }))
    const known = this.loaded.get(conversationId)
    if (known !== undefined) return Promise.resolve(this.touch(known))
    const loading = this.loading.get(conversationId) ?? this.loadNow(conversationId)
    this.loading.set(conversationId, loading)
    return loading
  }

  private touch(resident: LoadedConversation): LoadedConversation {
    resident.usedMs = this.options.monotonicMs()
    return this.toEnd(resident)
  }

  /** The most recently used come last. */
  private toEnd(resident: LoadedConversation): LoadedConversation {
    const id = resident.actor.conversationId
    this.loaded.delete(id)
    this.loaded.set(id, resident)
    return resident
  }

  private async loadNow(conversationId: ConversationId): Promise<LoadedConversation> {
    try {
      await this.draining.get(conversationId)
      const { newer, snapshotAt, state } = await readConversation(this.options.log, conversationId)
      const refusal = (await this.options.log.refusal?.(conversationId)) ?? newer
      if (this.isStopping) throw new RuntimeClosed({ conversation_id: conversationId })
      if (refusal !== undefined) return this.adopt(state, refusal)
      this.report({ _tag: "Loaded", state })
      const resident = this.adopt(state)
      resident.snapshotAt = snapshotAt
      resident.isAsleep = true
      return resident
    } finally {
      this.loading.delete(conversationId)
    }
  }

  /** Where the log takes no more runes, work could only be paid for and lost: there is none. */
  private adopt(state: ConversationState, refusal?: unknown): LoadedConversation {
    const { conversation_id } = state
    const readOnly = refusal === undefined ? undefined : new LogRefused({ conversation_id, cause: refusal })
    const resident = new LoadedConversation(this.services, state, readOnly)
    this.touch(resident)
    this.sweepLater()
    if (this.loaded.size > this.residentMax) this.evict()
    return resident
  }

  private forget(resident: LoadedConversation): void {
    const id = resident.actor.conversationId
    if (this.loaded.get(id) === resident) this.loaded.delete(id)
    resident.retire()
  }

  /** Memory ran ahead of a log that took no more: forget it, and read the log again when it is needed. */
  private abandon(resident: LoadedConversation, error: LogRefused): void {
    const id = resident.actor.conversationId
    this.forget(resident)
    // What was sent after the refused append must not land behind what the next reader of the log writes.
    const drained = Promise.all([resident.actor.drained(), resident.stop()]).then(() => {
      if (this.draining.get(id) === drained) this.draining.delete(id)
    })
    this.draining.set(id, drained)
    this.report({ _tag: "LogRefused", error })
    // Only the log knows whether there is work: what memory says is ahead of it.
    if (!endsAppends(error.cause)) this.loadLater(id)
  }

  /** The log takes no more runes, of one conversation or of all: their work stops now. They can still be looked at. */
  stopWriting(cause: unknown, conversationId?: string): void {
    for (const resident of [...this.loaded.values()]) {
      const isMeant = conversationId === undefined || resident.actor.conversationId === conversationId
      if (isMeant) resident.actor.refuseAll(cause)
    }
  }

  /** Work that a full disk or the like has stopped goes on by itself when there is room again. */
  private loadLater(id: ConversationId): void {
    const refusals = this.refusals.get(id) ?? 0
    this.refusals.set(id, refusals + 1)
    const pauses = this.options.reloadAfterMs ?? limits.reloadAfterMs
    const delayMs = pauses[Math.min(refusals, pauses.length - 1)] ?? 0
    // Whatever keeps it from being read keeps it from going on; the next to speak to it is told.
    after(delayMs, () => void this.recover([id]), this.parts.timers)
  }

  private quiet(resident: LoadedConversation): void {
    if (this.refusals.size > 0) this.refusals.delete(resident.actor.conversationId)
    if (resident.isSnapshotDue) this.saveSnapshot(resident)
    if (isOver(resident.state)) this.parts.thinning.add(resident.actor.conversationId, { isOver: true })
  }

  private saveSnapshot(resident: LoadedConversation): void {
    const { actor, state } = resident
    // Memory may be ahead of a log that refused: what is not durable never was.
    if (actor.durableHead !== state.head) return
    resident.snapshotAt = state.head
    // Reads the state before it returns, so it is asked here and not in the fiber that waits for it.
    const saving = this.options.log.saveSnapshot(state)
    const saved = Effect.tryPromise({ try: () => saving, catch: (cause) => cause }).pipe(
      Effect.match({
        onSuccess: (chars) => {
          resident.snapshotChars = chars
        },
        onFailure: (cause) => this.report({ _tag: "SnapshotFailed", conversationId: state.conversation_id, cause })
      })
    )
    this.parts.saves(Effect.uninterruptible(saved))
  }

  /** Lets conversations leave memory until there are few enough, the longest unused first. */
  private evict(): void {
    let looked = this.loaded.size - this.residentMax + limits.evictionLooks
    for (const resident of this.loaded.values()) {
      if (this.loaded.size <= this.residentMax || looked === 0) return
      looked -= 1
      // One that has work goes to the end of the line, so that the next search does not meet it again at once.
      if (!this.leave(resident)) this.toEnd(resident)
    }
  }

  private leave(resident: LoadedConversation): boolean {
    const id = resident.actor.conversationId
    if (resident.isBusy || this.pins.has(id) || this.loaded.get(id) !== resident) return false
    const isReadOnly = resident.actor.ended !== undefined
    this.forget(resident)
    if (resident.isSnapshotDue && !isReadOnly) this.saveSnapshot(resident)
    const isThinned = !isReadOnly && this.parts.thinning.add(id, { isOver: isOver(resident.state) })
    if (!isThinned) this.options.log.rest?.(id)
    return true
  }

  private sweepLater(): void {
    if (this.isSweeping || this.isStopping) return
    this.isSweeping = true
    const idleAfterMs = this.options.idleAfterMs ?? limits.idleAfterMs
    const sweep = (): void => {
      this.isSweeping = false
      this.sweep(idleAfterMs)
      if (this.loaded.size > 0) this.sweepLater()
    }
    after(idleAfterMs / 2, sweep, this.parts.timers)
  }

  /** Lets every conversation leave that has no work and has not been used for so long. */
  sweep(idleAfterMs: number): void {
    const beforeMs = this.options.monotonicMs() - idleAfterMs
    for (const resident of [...this.loaded.values()]) if (resident.usedMs <= beforeMs) this.leave(resident)
  }

  /** What runs now: the trees of fibers of the conversations at work, in reading order. */
  fibers(): FiberList {
    return fiberList(
      [...this.loaded.values()].flatMap(({ reactor }) => reactor.fibers ?? []),
      limits.fibersListedMax
    )
  }

  /** Makes an idle conversation leave memory now; false when it has work. */
  unload(conversationId: ConversationId): boolean {
    const resident = this.loaded.get(conversationId)
    return resident === undefined || this.leave(resident)
  }

  /** Loads the given conversations, a few at a time, so that what they have to do goes on; the others leave again. */
  async recover(conversationIds: Iterable<ConversationId>): Promise<Recovered> {
    const ids = conversationIds[Symbol.iterator]()
    const failed: Array<unknown> = []
    let loaded = 0
    let resumed = 0
    const lane = async (): Promise<void> => {
      for (let next = ids.next(); next.done !== true; next = ids.next()) {
        try {
          const resident = await this.load(next.value)
          loaded += 1
          if (!this.leave(resident)) resumed += 1
        } catch (error) {
          failed.push(error)
        }
      }
    }
    await Promise.all(Array.from({ length: limits.recoveryLanes }, lane))
    return { loaded, resumed, failed }
  }

  /** Stops all work where it is; unfinished turns go on at the next start. Done when all of it is over. */
  readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.isStopping = true
    return this.parts.stop
  })

  private readonly stopAll: Effect.Effect<void> = Effect.promise(async () => {
    // What is being loaded now ends there.
    await Promise.allSettled(this.loading.values())
    const all = [...this.loaded.values()]
    await Promise.all(all.map((resident) => resident.stop()))
    await Promise.all([...all.map(({ actor }) => actor.drained()), ...this.draining.values()])
    for (const resident of all) if (resident.isSnapshotDue) this.saveSnapshot(resident)
    this.loaded.clear()
  })
}
