// Tells followers when something in any conversation begins or ceases to need a person. Keeps what it last said of
// each conversation while anybody listens, and only that.
import { attentionSummary } from "../conversation/Summary.ts"
import type { Outlet } from "./Outlet.ts"
import { textFrame } from "./WebSocketFrame.ts"

type State = Parameters<typeof attentionSummary>[0]
type Item = ReturnType<typeof attentionSummary>[number]

export interface AttentionOptions {
  readonly stateOf: (conversationId: string) => Promise<State>
  readonly known: () => ReadonlyArray<State>
  readonly onFailure: (error: unknown) => void
}

const keyOf = (item: Item): string => `${item.type} ${item.call_id ?? item.event_id}`

const byKey = (state: State): Map<string, string> =>
  new Map(attentionSummary(state).map((item) => [keyOf(item), JSON.stringify(item)]))

export class Attention {
  private readonly options: AttentionOptions
  private readonly outlets = new Set<Outlet>()
  private readonly told = new Map<string, ReadonlyMap<string, string>>()
  private readonly looking = new Set<string>()

  constructor(options: AttentionOptions) {
    this.options = options
  }

  get followers(): number {
    return this.outlets.size
  }

  follow(outlet: Outlet): () => void {
    if (this.outlets.size === 0) {
      for (const state of this.options.known()) this.remember(state.conversation_id, byKey(state))
    }
    this.outlets.add(outlet)
    return () => {
      this.outlets.delete(outlet)
      if (this.outlets.size === 0) this.told.clear()
    }
  }

  /** Something happened in a conversation. */
  notice(conversationId: string): void {
    if (this.outlets.size === 0 || this.looking.has(conversationId)) return
    this.looking.add(conversationId)
    setImmediate(() => void this.look(conversationId))
  }

  private async look(conversationId: string): Promise<void> {
    this.looking.delete(conversationId)
    try {
      this.compare(conversationId, byKey(await this.options.stateOf(conversationId)))
    } catch (error) {
      this.options.onFailure(error)
    }
  }

  private compare(conversationId: string, now: ReadonlyMap<string, string>): void {
    const before = this.told.get(conversationId) ?? new Map<string, string>()
    this.remember(conversationId, now)
    for (const [key, item] of now) {
      if (before.get(key) !== item) this.tell(item, before.has(key) ? "changed" : "raised")
    }
    for (const [key, item] of before) if (!now.has(key)) this.tell(item, "resolved")
  }

  private remember(conversationId: string, items: ReadonlyMap<string, string>): void {
    if (items.size === 0) this.told.delete(conversationId)
    else this.told.set(conversationId, items)
  }

  private tell(item: string, change: "raised" | "changed" | "resolved"): void {
    const attention: Item = JSON.parse(item)
    const frame = textFrame(JSON.stringify({ sub: "*", attention: { change, ...attention } }))
    for (const outlet of this.outlets) if (outlet.isOpen()) outlet.write(frame)
  }
}
