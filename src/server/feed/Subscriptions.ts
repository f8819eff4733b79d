// What one connection follows: places in topics, places among the followers of everything, derived views, live text
// and what needs a person. Bounded; when the connection goes, all of it goes.
import type { OutsideAgents } from "../../contract/OutsideAgents.ts"
import type { DerivedView } from "../../conversation/Views.ts"
import type { AnswerOf, FieldsOf, OperationName } from "../../wire/Operations.ts"
import { limits } from "../../wire/WireLimits.ts"
import { type ConversationStore, type Principal, visibilityCap } from "../operations/Context.ts"
import { wireErrorOfRejection } from "../operations/Failures.ts"
import { BadRequest, LimitExceeded, NotFound } from "../operations/OperationErrors.ts"
import { pushedFrame } from "../socket/PushedFrame.ts"
import type { SocketSink } from "../socket/SocketSink.ts"
import type { AllFeed } from "./AllFeed.ts"
import type { AttentionFeed } from "./AttentionFeed.ts"
import type { Feeds, Membership } from "./Feeds.ts"
import type { RuneFilter } from "./Filter.ts"
import type { Live } from "./LiveText.ts"
import { Terminals } from "./Terminals.ts"
import { ViewReader } from "./ViewReader.ts"

type Subscribe = FieldsOf<"subscribe">

/** What all connections of a server share. */
export interface Following {
  readonly topics: Feeds
  readonly allFeed: AllFeed
  readonly attention: AttentionFeed
  readonly live: Live
  readonly conversationStore: ConversationStore
  readonly outsideAgents: OutsideAgents | undefined
  readonly newName: () => string
  readonly nowMs: () => number
}

const ATTENTION = "*"

export class Subscriptions {
  private readonly following: Following
  private readonly sink: SocketSink
  private readonly principal: Principal
  private readonly open = new Map<string, () => void>()
  private readonly terminals: Terminals
  /** Subscriptions that are being looked up and count already. */
  private pending = 0
  private closed = false

  constructor(following: Following, sink: SocketSink, principal: Principal) {
    this.following = following
    this.sink = sink
    this.principal = principal
    const { newName, outsideAgents } = following
    this.terminals = new Terminals({ outsideAgents, sink, newName, onEnded: (sub) => this.open.delete(sub) })
  }

  get size(): number {
    return this.open.size
  }

  async perform(op: OperationName, fields: Readonly<Record<string, unknown>>): Promise<unknown> {
    if (op === "unsubscribe") return this.unsubscribe(String(fields["sub"]))
    if (op === "terminal.input") return this.terminals.input(fields as FieldsOf<"terminal.input">)
    if (op === "terminal.resize") return this.terminals.resize(fields as FieldsOf<"terminal.resize">)
    if (this.open.size + this.pending >= limits.subscriptionsPerConnectionMax) {
      const most = limits.subscriptionsPerConnectionMax
      throw new LimitExceeded(`a connection can have at most ${most} subscriptions`)
    }
    this.pending += 1
    try {
      if (op === "terminal.attach") return await this.attachTerminal(fields as FieldsOf<"terminal.attach">)
      return op === "attention.subscribe" ? await this.subscribeAttention() : await this.subscribe(fields as Subscribe)
    } finally {
      this.pending -= 1
    }
  }

  /** What was pushed before its answer would belong to a subscription that the client does not know. */
  answered(ok: unknown): void {
    this.terminals.answered((ok as { readonly sub?: unknown } | null)?.sub)
  }

  private async attachTerminal(fields: FieldsOf<"terminal.attach">): Promise<AnswerOf<"terminal.attach">> {
    const attached = await this.terminals.attach(fields)
    const leave = (): void => this.terminals.leave(attached.sub)
    if (this.closed) leave()
    else this.open.set(attached.sub, leave)
    return attached
  }

  private unsubscribe(sub: string): AnswerOf<"unsubscribe"> {
    const leave = this.open.get(sub)
    if (leave === undefined) throw new NotFound(`there is no subscription ${sub.slice(0, 80)}`)
    leave()
    this.open.delete(sub)
    return {}
  }

  private async subscribeAttention(): Promise<AnswerOf<"attention.subscribe">> {
    if (!this.open.has(ATTENTION)) {
      const { leave, ready } = this.following.attention.follow(this.sink)
      this.open.set(ATTENTION, leave)
      await ready
    }
    return { sub: ATTENTION }
  }

  private async subscribe(fields: Subscribe): Promise<AnswerOf<"subscribe">> {
    const filter = this.filterOf(fields)
    if (fields.conversation_id === "*") return this.subscribeAll(fields, filter)
    if (fields.cursors !== undefined || fields.since_ms !== undefined) {
      const message = 'cursors and since_ms apply to a subscription to "*"; for one conversation use after'
      throw new BadRequest(message)
    }
    const conversationId = fields.conversation_id
    const head = await this.following.conversationStore.head(conversationId)
    if (head === 0) throw new NotFound(`there is no conversation ${conversationId}`)
    const cursor = fields.after === "tail" ? head : (fields.after ?? 0)
    if (cursor > head) {
      throw new BadRequest(`the cursor ${cursor} is beyond the head ${head}`, { head })
    }
    const place = { conversationId, filter, cursor }
    const { view = "runes" } = fields
    const member = view === "runes" ? this.joinTopic(place) : this.joinView(place, view)
    return this.keep(member, fields, head)
  }

  private joinTopic(place: Place): Membership {
    const { topics } = this.following
    return topics.join({
      ...place,
      sink: this.sink,
      taken: new Set(this.open.keys()),
      onFailure: (sub, error) => this.end(sub, error)
    })
  }

  private joinView(place: Place, view: DerivedView): Membership {
    const { newName, conversationStore } = this.following
    const sub = newName()
    const onFailure = (error: unknown) => this.end(sub, error)
    const reader = new ViewReader({ ...place, sub, view, sink: this.sink, conversationStore, onFailure })
    return { sub, leave: () => reader.leave() }
  }

  private subscribeAll(fields: Subscribe, filter: RuneFilter): AnswerOf<"subscribe"> {
    const { after = 0, cursors = {}, since_ms: sinceMs, view = "runes" } = fields
    if (view !== "runes") throw new BadRequest('a subscription to "*" has the view runes')
    if (after !== "tail" && after > 0) {
      throw new BadRequest('a subscription to "*" begins at 0, at "tail" or where cursors say')
    }
    // What is on its way to the disk now was stamped a moment ago, and is new to this follower all the same.
    const nowMs = this.following.nowMs() - limits.stampedWithinMs
    const member = this.following.allFeed.join({
      filter,
      sink: this.sink,
      cursors,
      others: after === "tail" ? "new" : "all",
      sinceMs: after === "tail" ? sinceMs : undefined,
      taken: new Set(this.open.keys()),
      onFailure: (sub, error) => this.end(sub, error)
    })
    return { ...this.keep(member, fields, 0), since_ms: sinceMs ?? nowMs }
  }

  private keep(member: Membership, fields: Subscribe, head: number): { readonly sub: string; readonly head: number } {
    const { sub } = member
    const stopLive =
      fields.live === true ? this.following.live.follow(fields.conversation_id, sub, this.sink) : undefined
    const leave = (): void => {
      member.leave()
      stopLive?.()
    }
    // The connection may have gone while the conversation was looked up.
    if (this.closed) leave()
    else this.open.set(sub, leave)
    return { sub, head }
  }

  /** The subscription cannot go on; the client is told why. */
  private end(sub: string, error: unknown): void {
    this.open.get(sub)?.()
    this.open.delete(sub)
    if (this.sink.isOpen()) this.sink.write(pushedFrame({ sub, error: wireErrorOfRejection(error) }))
  }

  private filterOf(fields: Subscribe): RuneFilter {
    const cap = visibilityCap(this.principal)
    return { visibility: fields.visibility === "public" ? "public" : cap, kinds: fields.kinds }
  }

  closeAll(): void {
    this.closed = true
    for (const leave of this.open.values()) leave()
    this.open.clear()
  }
}

interface Place {
  readonly conversationId: string
  readonly filter: RuneFilter
  readonly cursor: number
}
