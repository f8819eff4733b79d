// The one owner of a conversation's state: decide, append, evolve, in that order, one command at a time. State runs
// ahead of the disk so that a stream is not slowed to one rune per sync; the answer to a command, and
// therefore every effect that waits for it, comes only when its runes are durable. An append that fails
// ends the actor: memory is then ahead of the log, and only the log is true.
import type { Command } from "../machine/Command.ts"
import { advance, stampAll } from "../machine/Conversation.ts"
import type { Idempotency } from "../machine/Decide.ts"
import { evolve } from "../machine/Evolve.ts"
import type { ConversationState, Outcome } from "../machine/State.ts"
import type { IdSource } from "../rune/IdSource.ts"
import { type ConversationId, makeRuneId } from "../rune/Ids.ts"
import { definitionOf } from "../rune/Kinds.ts"
import type { Rune, RuneDraft } from "../rune/Rune.ts"
import { CommandRefused, ConversationBusy, LogRefused } from "./Errors.ts"
import type { RuneSink, WallClock } from "./Ports.ts"

export interface Submitted {
  /** The last rune that the command caused. */
  readonly event_id: number
  readonly runes: ReadonlyArray<Rune>
  /** The command came before; this is what became of it then. */
  readonly repeated?: Outcome
}

export interface ActorOptions {
  readonly conversationId: ConversationId
  readonly state: ConversationState
  readonly sink: RuneSink
  readonly ids: IdSource
  readonly clock: WallClock
  /** Commands that may wait for the disk; more are refused as busy. */
  readonly mailboxMax: number
  /** State changed: effects may have to start or stop. */
  readonly onChange: (actor: Actor) => void
  /** The log refused an append; the actor is of no more use. */
  readonly onFailure: (actor: Actor, error: LogRefused) => void
}

interface Waiting {
  readonly command: Command
  readonly idempotency: Idempotency | undefined
  readonly resolve: (submitted: Promise<Submitted>) => void
}

const BUSY_RETRY_MS = 50

export class Actor {
  private readonly options: ActorOptions
  private readonly mailbox: Array<Waiting> = []
  private waitingForDisk = false
  private outstanding = 0
  private failure: LogRefused | undefined
  private durable: number
  private lastWrite: Promise<void> = Promise.resolve()
  readonly conversationId: ConversationId

  constructor(options: ActorOptions) {
    this.options = options
    this.conversationId = options.conversationId
    this.durable = options.state.head
  }

  /** The folded state, possibly ahead of the disk. */
  get state(): ConversationState {
    return this.options.state
  }

  /** The last event known to be on disk. */
  get durableHead(): number {
    return this.durable
  }

  /** Nothing waits and nothing is under way to the disk. */
  get isQuiet(): boolean {
    return this.outstanding === 0 && this.mailbox.length === 0
  }

  get failed(): LogRefused | undefined {
    return this.failure
  }

  /** Resolves when everything the command caused is durable. */
  submit(command: Command, idempotency?: Idempotency): Promise<Submitted> {
    if (this.failure !== undefined) return Promise.reject(this.failure)
    if (!this.waitingForDisk && this.options.sink.busy()) this.waitForDisk()
    if (!this.waitingForDisk) return this.run(command, idempotency)
    if (this.mailbox.length >= this.options.mailboxMax) {
      return Promise.reject(new ConversationBusy({ conversation_id: this.conversationId, retryAfterMs: BUSY_RETRY_MS }))
    }
    return new Promise((resolve) => this.mailbox.push({ command, idempotency, resolve }))
  }

  private waitForDisk(): void {
    this.waitingForDisk = true
    this.options.sink.ready().then(() => this.drain())
  }

  private drain(): void {
    this.waitingForDisk = false
    while (this.mailbox.length > 0) {
      if (this.failure === undefined && this.options.sink.busy()) return this.waitForDisk()
      const { command, idempotency, resolve } = this.mailbox.shift()!
      resolve(this.failure === undefined ? this.run(command, idempotency) : Promise.reject(this.failure))
    }
  }

  private run(command: Command, idempotency: Idempotency | undefined): Promise<Submitted> {
    const around = idempotency === undefined ? this.surroundings() : { ...this.surroundings(), idempotency }
    const { verdict, runes } = advance(this.state, command, around)
    if (verdict._tag === "Refused")
      return Promise.reject(new CommandRefused({ refusal: verdict.refusal, command: command._tag }))
    if (verdict._tag === "Accepted") return this.write(runes)
    // What the first one wrote may itself still be on its way to the disk.
    const { outcome } = verdict
    return this.settled().then(() => ({ event_id: outcome.last_event_id, runes: [], repeated: outcome }))
  }

  private surroundings() {
    return { at_ms: this.options.clock.nowMs(), runeId: () => makeRuneId(this.options.ids) }
  }

  /** Writes drafts that need no decision: what recovery found out. */
  record(drafts: ReadonlyArray<RuneDraft>): Promise<Submitted> {
    const runes = stampAll(this.state, drafts, this.surroundings())
    for (const rune of runes) evolve(this.state, rune)
    return this.write(runes)
  }

  /** Resolves when everything that was folded in so far is durable. */
  settled(): Promise<void> {
    return this.lastWrite
  }

  private write(runes: ReadonlyArray<Rune>): Promise<Submitted> {
    const { head } = this.state
    if (runes.length === 0) return this.settled().then(() => ({ event_id: head, runes }))
    const terminal = runes.some((rune) => definitionOf(rune.kind).runeClass === "terminal")
    this.outstanding += 1
    const written = this.options.sink.append(this.conversationId, runes, { terminal }).then(
      () => {
        this.outstanding -= 1
        this.durable = head
      },
      (cause) => {
        this.outstanding -= 1
        throw this.fail(cause)
      }
    )
    this.lastWrite = written
    written.catch(() => undefined)
    this.options.onChange(this)
    return written.then(() => ({ event_id: head, runes }))
  }

  private fail(cause: unknown): LogRefused {
    if (this.failure !== undefined) return this.failure
    this.failure = new LogRefused({ conversation_id: this.conversationId, cause })
    this.drain()
    this.options.onFailure(this, this.failure)
    return this.failure
  }
}
