// The shell sessions of all conversations: found by conversation, agent and name, bounded in number, ended when nobody
// uses them, when their conversation is over, and with the server.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { after, type Cancel } from "../../../contract/Timers.ts"
import type { ProcessPort } from "../../../sandbox/process/ProcessPort.ts"
import type { NotBegun } from "../../../sandbox/process/ProcessWork.ts"
import { shellLimits } from "./Limits.ts"
import { Session, type SessionOptions } from "./Session.ts"

export interface Owner {
  readonly conversation_id: string
  readonly agent_id: string
}

interface Entry {
  readonly owner: Owner
  readonly session: Session
  /** What the session lives in. */
  readonly scope: Scope.Closeable
  cancelIdle: Cancel | undefined
}

export class SessionsFull extends Error {
  override readonly name = "SessionsFull"
  readonly _tag = "SessionsFull"
}

const keyOf = ({ agent_id, conversation_id }: Owner, name: string): string =>
  JSON.stringify([conversation_id, agent_id, name])

export class Sessions {
  private readonly processes: ProcessPort
  private readonly idleMs: number
  private readonly entries = new Map<string, Entry>()
  private opening = 0

  constructor(processes: ProcessPort, idleMs: number = shellLimits.sessionIdleMs) {
    this.processes = processes
    this.idleMs = idleMs
  }

  /** A session that is there, used again from now on. */
  find(owner: Owner, name: string): Session | undefined {
    const entry = this.entries.get(keyOf(owner, name))
    if (entry !== undefined) this.touch(entry)
    return entry?.session
  }

  list(owner: Owner): ReadonlyArray<Session> {
    return this.of(owner.conversation_id).flatMap(({ owner: other, session }) =>
      other.agent_id === owner.agent_id ? [session] : []
    )
  }

  /** Fails with SessionsFull, and with what keeps a program from starting. */
  readonly open = (owner: Owner, options: SessionOptions): Effect.Effect<Session, SessionsFull | NotBegun> =>
    Effect.suspend((): Effect.Effect<Session, SessionsFull | NotBegun> => {
      const full = this.fullFor(owner)
      if (full !== undefined) return Effect.fail(full)
      this.opening += 1
      return Effect.ensuring(
        this.enter(owner, options),
        Effect.sync(() => {
          this.opening -= 1
        })
      )
    })

  private fullFor({ conversation_id }: Owner): SessionsFull | undefined {
    if (this.of(conversation_id).length >= shellLimits.sessionsPerConversationMax)
      return new SessionsFull(
        `a conversation has at most ${shellLimits.sessionsPerConversationMax} sessions; close one first`
      )
    return this.entries.size + this.opening >= shellLimits.sessionsMax
      ? new SessionsFull(`the server has at most ${shellLimits.sessionsMax} sessions, and all are in use`)
      : undefined
  }

  private enter(owner: Owner, options: SessionOptions): Effect.Effect<Session, NotBegun> {
    return Effect.uninterruptible(
      Effect.flatMap(Scope.make(), (scope) =>
        Session.open(this.processes, options).pipe(
          Scope.provide(scope),
          Effect.tapCause((cause) => Scope.close(scope, Exit.failCause(cause))),
          Effect.tap((session) => Effect.sync(() => this.keep({ owner, session, scope, cancelIdle: undefined })))
        )
      )
    )
  }

  private keep(entry: Entry): void {
    this.entries.set(keyOf(entry.owner, entry.session.name), entry)
    this.touch(entry)
  }

  /** Ends a session and forgets it. */
  readonly close = (owner: Owner, name: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const key = keyOf(owner, name)
      const entry = this.entries.get(key)
      if (entry === undefined) return Effect.void
      this.entries.delete(key)
      entry.cancelIdle?.()
      return Scope.close(entry.scope, Exit.void)
    })

  readonly closeConversation = (conversationId: string): Effect.Effect<void> =>
    Effect.suspend(() => this.closeEach(this.of(conversationId)))

  readonly closeAll: Effect.Effect<void> = Effect.suspend(() => this.closeEach([...this.entries.values()]))

  private closeEach(entries: ReadonlyArray<Entry>): Effect.Effect<void> {
    return Effect.forEach(entries, ({ owner, session }) => this.close(owner, session.name), {
      concurrency: "unbounded",
      discard: true
    })
  }

  private of(conversationId: string): ReadonlyArray<Entry> {
    return [...this.entries.values()].filter(({ owner }) => owner.conversation_id === conversationId)
  }

  private touch(entry: Entry): void {
    entry.cancelIdle?.()
    entry.cancelIdle = after(this.idleMs, () => void Effect.runFork(this.close(entry.owner, entry.session.name)))
  }
}
