// The one owner of a conversation's state: decide, append, evolve, in that order, one command at a time. State runs
// ahead of the disk so that a stream is not slowed to one rune per sync; the answer to a command, a refusal
// included, and therefore every effect that waits for it, comes only when all it rests on is durable. An append
// that fails ends the actor: memory is then ahead of the log, and only the log is true.

import { CommandRefused } from "../contract/CommandErrors.ts"
import type { Command } from "../machine/Command.ts"
import { stampAll } from "../machine/Conversation.ts"
import { decide, type Idempotency, type Refusal } from "../machine/decide/Decide.ts"
import { evolve } from "../machine/evolve/Evolve.ts"
import type { ConversationState, Outcome } from "../machine/State.ts"
import type { IdSource } from "../rune/IdSource.ts"
import { type ConversationId, makeRuneId } from "../rune/Ids.ts"
import { definitionOf } from "../rune/Kinds.ts"
import type { Rune, RuneDraft } from "../rune/Rune.ts"
import { ActorRetired, ConversationBusy, LogRefused } from "./ConversationErrors.ts"
import { limits } from "./ConversationLimits.ts"
import type { RuneSink, WallClock } from "./Ports.ts"
import { oversize } from "./RuneSize.ts"

export interface Submitted {
  /** The last rune that the command caused. */
  readonly event_id: number
  readonly runes: ReadonlyArray<Rune>
  /** The command came before; this is what became of it then. */
  readonly repeated?: Outcome
}

/** What all actors of a process share. */
export interface ActorOptions {
  readonly sink: RuneSink
  readonly ids: IdSource
  readonly clock: WallClock
  /** Commands of clients that may wait for the disk; more are refused as busy. */
  readonly mailboxMax: number
}

/** Who has to know what happens to the actor. */
export interface ActorListener {
  /** State changed in a way that may start or stop effects. */
  readonly onChange: () => void
  /** The command is about to be decided; the last moment for what belongs before it. */
  readonly beforeDecision?: (command: Command) => void
  /** Everything folded in so far is on disk. */
  readonly onQuiet?: () => void
  /** The log refused an append; the actor is of no more use. */
  readonly onFailure: (error: LogRefused) => void
}

interface Waiting {
  readonly command: Command
  readonly bytesMax: number
  readonly idempotency: Idempotency | undefined
  readonly resolve: (submitted: Promise<Submitted>) => void
}

/** The key travels in the runes of its command, so it must be one that a rune can carry. */
const isUsableKey = ({ key, hash }: Idempotency): boolean =>
  key.length >= 1 && key.length <= 256 && /^[0-9a-f]{64}$/u.test(hash)

const keyRefusal: Refusal = {
  code: "bad_request",
  message: "an idempotency key has 1 to 256 characters, and its hash is a SHA-256 in hexadecimal"
}

const nothingUnderWay = Promise.resolve()

export class Actor {
  private readonly options: ActorOptions
  private readonly listener: ActorListener
  private mailbox: Array<Waiting> | undefined
  private waitingForDisk = false
  private outstanding = 0
  private over: LogRefused | ActorRetired | undefined
  private durable: number
  private lastWrite: Promise<void> = nothingUnderWay
  private drainWaiters: Array<() => void> | undefined
  readonly state: ConversationState

  constructor(options: ActorOptions, state: ConversationState, listener: ActorListener, readOnly?: LogRefused) {
    this.options = options
    this.state = state
    this.listener = listener
    this.durable = state.head
    this.over = readOnly
  }

  get conversationId(): ConversationId {
    return this.state.conversation_id
  }

  /** The last event known to be on disk. */
  get durableHead(): number {
    return this.durable
  }

  /** Nothing waits and nothing is under way to the disk. */
  get isQuiet(): boolean {
    return this.outstanding === 0 && (this.mailbox?.length ?? 0) === 0
  }

  /** Why the actor takes no more commands, if it does not. */
  get ended(): LogRefused | ActorRetired | undefined {
    return this.over
  }

  /** A client's command. Resolves when everything it caused is durable; refused as busy when too many wait. */
  submit(command: Command, idempotency?: Idempotency): Promise<Submitted> {
    const isFull = this.waitingForDisk && (this.mailbox?.length ?? 0) >= this.options.mailboxMax
    if (isFull && this.over === undefined) {
      const { conversationId: conversation_id } = this
      return Promise.reject(new ConversationBusy({ conversation_id, retryAfterMs: limits.busyRetryMs }))
    }
    return this.enter(command, limits.clientRuneBytesMax, idempotency)
  }

  /**
   * A command of the runtime itself. It waits as long as it has to: work under way must not fail because clients
   * are many, and there are never more of these than the work has pieces in flight.
   */
  insist(command: Command): Promise<Submitted> {
    return this.enter(command, limits.runeBytesMax, undefined)
  }

  private enter(command: Command, bytesMax: number, idempotency: Idempotency | undefined): Promise<Submitted> {
    if (this.over !== undefined) return Promise.reject(this.over)
    this.listener.beforeDecision?.(command)
    if (!this.waitingForDisk && this.options.sink.busy()) this.waitForDisk()
    if (!this.waitingForDisk) return this.run(command, bytesMax, idempotency)
    return new Promise((resolve) => {
      this.mailbox ??= []
      this.mailbox.push({ command, bytesMax, idempotency, resolve })
    })
  }

  private waitForDisk(): void {
    this.waitingForDisk = true
    this.options.sink.ready().then(
      () => this.drain(),
      (cause) => this.fail(cause)
    )
  }

  private drain(): void {
    this.waitingForDisk = false
    const waiting = this.mailbox ?? []
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      next.resolve(this.over === undefined ? this.run(next.command, next.bytesMax, next.idempotency) : this.rejected())
      const mustWait = waiting.length > 0 && this.over === undefined && this.options.sink.busy()
      if (mustWait) {
        this.waitForDisk()
        return
      }
    }
    this.mailbox = undefined
  }

  private rejected(): Promise<Submitted> {
    return Promise.reject(this.over)
  }

  private run(command: Command, bytesMax: number, idempotency: Idempotency | undefined): Promise<Submitted> {
    try {
      return this.decided(command, bytesMax, idempotency)
    } catch (cause) {
      return Promise.reject(cause)
    }
  }

  private decided(command: Command, bytesMax: number, idempotency: Idempotency | undefined): Promise<Submitted> {
    if (idempotency !== undefined && !isUsableKey(idempotency)) return this.refuse(command, keyRefusal)
    const atMs = this.options.clock.nowMs()
    const verdict = decide(this.state, command, { at_ms: atMs }, idempotency)
    if (verdict._tag === "Accepted") return this.take(command, this.stamped(verdict.drafts, atMs), bytesMax)
    if (verdict._tag === "Refused") return this.refuse(command, verdict.refusal)
    // What the first one wrote may itself still be on its way to the disk.
    const { outcome } = verdict
    return this.settled().then(() => ({ event_id: outcome.last_event_id, runes: [], repeated: outcome }))
  }

  private stamped(drafts: ReadonlyArray<RuneDraft>, atMs: number): ReadonlyArray<Rune> {
    return stampAll(this.state, drafts, { at_ms: atMs, runeId: () => makeRuneId(this.options.ids) })
  }

  private take(command: Command, runes: ReadonlyArray<Rune>, bytesMax: number): Promise<Submitted> {
    const large = oversize(runes, { runeBytesMax: bytesMax, batchBytesMax: limits.batchBytesMax })
    return large === undefined ? this.write(runes) : this.refuse(command, large)
  }

  /** What a refusal says about the state must be as true after a crash as it is now. */
  private async refuse(command: Command, refusal: Refusal): Promise<never> {
    if (this.outstanding > 0) await this.settled()
    throw new CommandRefused({ refusal, command: command._tag })
  }

  /** Writes drafts that need no decision: what recovery found out. */
  record(drafts: ReadonlyArray<RuneDraft>): Promise<Submitted> {
    return this.write(this.stamped(drafts, this.options.clock.nowMs()))
  }

  /** Resolves when everything that was folded in so far is durable; rejects when it will not be. */
  settled(): Promise<void> {
    return this.lastWrite
  }

  /** Resolves when no append is under way any more, however it ended. */
  drained(): Promise<void> {
    if (this.outstanding === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.drainWaiters ??= []
      this.drainWaiters.push(resolve)
    })
  }

  private write(runes: ReadonlyArray<Rune>): Promise<Submitted> {
    const last = runes.at(-1)
    if (last === undefined) return this.settled().then(() => ({ event_id: this.state.head, runes }))
    const classes = new Set(runes.map((rune) => definitionOf(rune.kind).runeClass))
    const append = this.append(runes, { terminal: classes.has("terminal") })
    for (const rune of runes) evolve(this.state, rune)
    const written = append.then(
      () => this.landed(last.event_id),
      (cause) => {
        const error = this.fail(cause)
        this.leave()
        throw error
      }
    )
    this.lastWrite = written
    written.catch(() => undefined)
    // Fragments of text change nothing that anybody would have to start or stop.
    if (classes.size > 1 || !classes.has("delta")) this.listener.onChange()
    return written.then(() => ({ event_id: last.event_id, runes }))
  }

  private async append(runes: ReadonlyArray<Rune>, options: { readonly terminal: boolean }): Promise<void> {
    this.outstanding += 1
    await this.options.sink.append(this.conversationId, runes, options)
  }

  private landed(eventId: number): void {
    this.durable = eventId
    this.leave()
    if (this.isQuiet && this.over === undefined) this.listener.onQuiet?.()
  }

  private leave(): void {
    this.outstanding -= 1
    if (this.outstanding > 0 || this.drainWaiters === undefined) return
    for (const resolve of this.drainWaiters.splice(0)) resolve()
    this.drainWaiters = undefined
  }

  /** The log takes no more runes, whoever found that out: nothing is tried any more, and whoever waits is told. */
  refuseAll(cause: unknown): void {
    if (this.over === undefined) this.fail(cause)
  }

  private fail(cause: unknown): LogRefused {
    if (this.over instanceof LogRefused) return this.over
    const error = new LogRefused({ conversation_id: this.conversationId, cause })
    this.over = error
    this.drain()
    this.listener.onFailure(error)
    return error
  }

  /** Takes no more commands: the conversation leaves memory. What was accepted goes on to the disk. */
  retire(): void {
    this.over ??= new ActorRetired({ conversation_id: this.conversationId })
    this.drain()
  }
}
