// The shell sessions of all conversations: found by conversation, agent and name, bounded in number, ended when nobody
// uses them, when their conversation is over, and with the server.
import { after, type Cancel } from "../../../contract/Timers.ts"
import type { ProcessPort } from "../../../sandbox/process/ProcessPort.ts"
import { shellLimits } from "./Limits.ts"
import { Session, type SessionOptions } from "./Session.ts"

export interface Owner {
  readonly conversation_id: string
  readonly agent_id: string
}

interface Entry {
  readonly owner: Owner
  readonly session: Session
  cancelIdle: Cancel | undefined
}

export class SessionsFull extends Error {
  override readonly name = "SessionsFull"
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

  /** Rejects with SessionsFull, and with what keeps a program from starting. */
  async open(owner: Owner, options: SessionOptions): Promise<Session> {
    const own = this.of(owner.conversation_id).length
    if (own >= shellLimits.sessionsPerConversationMax || this.entries.size + this.opening >= shellLimits.sessionsMax)
      throw new SessionsFull(
        own >= shellLimits.sessionsPerConversationMax
          ? `a conversation has at most ${shellLimits.sessionsPerConversationMax} sessions; close one first`
          : `the server has at most ${shellLimits.sessionsMax} sessions, and all are in use`
      )
    this.opening += 1
    try {
      const session = await Session.open(this.processes, options)
      const entry: Entry = { owner, session, cancelIdle: undefined }
      this.entries.set(keyOf(owner, options.name), entry)
      this.touch(entry)
      return session
    } finally {
      this.opening -= 1
    }
  }

  /** Ends a session and forgets it. */
  async close(owner: Owner, name: string): Promise<void> {
    const key = keyOf(owner, name)
    const entry = this.entries.get(key)
    if (entry === undefined) return
    this.entries.delete(key)
    entry.cancelIdle?.()
    await entry.session.close()
  }

  async closeConversation(conversationId: string): Promise<void> {
    await Promise.all(this.of(conversationId).map(({ owner, session }) => this.close(owner, session.name)))
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.entries.values()].map(({ owner, session }) => this.close(owner, session.name)))
  }

  private of(conversationId: string): ReadonlyArray<Entry> {
    return [...this.entries.values()].filter(({ owner }) => owner.conversation_id === conversationId)
  }

  private touch(entry: Entry): void {
    entry.cancelIdle?.()
    entry.cancelIdle = after(this.idleMs, () => void this.close(entry.owner, entry.session.name))
  }
}
