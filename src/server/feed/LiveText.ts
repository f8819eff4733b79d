// Text of a model as it comes, for those who asked to see it before it is durable. Best effort: whoever has no room in
// the socket misses it, and the runes bring it all the same.

import type { LiveText } from "../../contract/LiveText.ts"
import { pushedFrame } from "../socket/PushedFrame.ts"
import { hasRoom, type SocketSink } from "../socket/SocketSink.ts"

interface Listener {
  readonly sub: string
  readonly sink: SocketSink
}

export class Live {
  private readonly listeners = new Map<string, Set<Listener>>()

  follow(conversationId: string, sub: string, sink: SocketSink): () => void {
    const all = this.listeners.get(conversationId) ?? new Set()
    this.listeners.set(conversationId, all)
    const listener = { sub, sink }
    all.add(listener)
    return () => {
      all.delete(listener)
      if (all.size === 0 && this.listeners.get(conversationId) === all) this.listeners.delete(conversationId)
    }
  }

  tell({ conversation_id: conversationId, ...live }: LiveText): void {
    for (const { sink, sub } of this.listeners.get(conversationId) ?? []) {
      if (sink.isOpen() && hasRoom(sink)) sink.write(pushedFrame({ sub, live }))
    }
    for (const { sink, sub } of this.listeners.get("*") ?? []) {
      const told = { conversation_id: conversationId, ...live }
      if (sink.isOpen() && hasRoom(sink)) sink.write(pushedFrame({ sub, live: told }))
    }
  }
}
