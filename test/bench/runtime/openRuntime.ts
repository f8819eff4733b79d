// The runtime as a server has it: store with catalog and snapshots, registry, conversations, all limits as they come.
// Beside it only what a benchmark needs: to start conversations and to know when a turn has ended for good.
import * as Redacted from "effect/Redacted"
import { NoticeBus } from "#src/contract/DurableNotices.ts"
import type { Conversations } from "#src/conversation/Conversations.ts"
import type { RuntimeOptions } from "#src/conversation/Runtime.ts"
import { snapshotPort, snapshotShape } from "#src/conversation/SnapshotStore.ts"
import { makeRegistry, type RegistryConfig } from "#src/provider/Registry.ts"
import { type IdSource, secureIdSource } from "#src/rune/IdSource.ts"
import { type ConversationId, makeAgentId, makeConversationId } from "#src/rune/Ids.ts"
import type { PayloadOf } from "#src/rune/Kinds.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import { type OpenConversations, type OpenOptions, openConversations } from "../../support/runtime/openConversations.ts"
import { type OpenStore, openStore } from "../../support/store/openStore.ts"
import { functionTools } from "../../support/tool/FunctionTools.ts"

export interface RuntimeSettings {
  readonly providers?: RegistryConfig["providers"]
  readonly key?: string
  readonly scenarios?: RegistryConfig["scenarios"]
  readonly tools?: RuntimeOptions["tools"]
  readonly runner?: OpenOptions["runner"]
  /** Told of runes when they are durable. */
  readonly onRunes?: (runes: ReadonlyArray<AnyRune>) => void
}

interface Waiter {
  readonly resolve: (finalOutput: string) => void
  readonly reject: (error: Error) => void
}

export class BenchRuntime {
  readonly store: OpenStore
  readonly conversations: OpenConversations
  /** Turns that are complete and durable. */
  completed = 0
  private readonly ids: IdSource = secureIdSource()
  private readonly waiters = new Map<string, Waiter>()
  private readonly onRunes: RuntimeSettings["onRunes"]
  private awaited: { readonly completed: number; readonly resolve: () => void } | undefined

  private constructor(store: OpenStore, settings: RuntimeSettings) {
    this.store = store
    this.onRunes = settings.onRunes
    const { key, providers, scenarios } = settings
    this.conversations = openConversations({
      store: store.runes,
      pressure: {
        busy: () => store.runelog.busy,
        ready: () => store.runelog.ready(),
        rest: (conversationId) => store.runelog.rest(conversationId),
        thinner: store.runelog
      },
      snapshots: snapshotPort({ snapshots: store.snapshots, store: store.runes }),
      registry: makeRegistry({
        key: () => (key === undefined ? undefined : Redacted.make(key)),
        ...(providers === undefined ? {} : { providers }),
        ...(scenarios === undefined ? {} : { scenarios })
      }),
      tools: settings.tools ?? functionTools([]),
      ...(settings.runner === undefined ? {} : { runner: settings.runner }),
      ids: this.ids,
      clock: { nowMs: () => Date.now() }
    })
  }

  static async open(directory: string, settings: RuntimeSettings = {}): Promise<BenchRuntime> {
    const notices = new NoticeBus()
    const runtime = new BenchRuntime(await openStore({ directory, snapshotShape, notices }), settings)
    notices.subscribe({ name: "bench", appended: (conversationId, runes) => runtime.note(conversationId, runes) })
    return runtime
  }

  private note(id: string, runes: ReadonlyArray<AnyRune>): void {
    this.onRunes?.(runes)
    for (const { kind, payload } of runes) {
      if (kind === "turn.completed") {
        this.completed += 1
        this.waiters.get(id)?.resolve((payload as PayloadOf<"turn.completed">).final_output ?? "")
        if (this.completed === this.awaited?.completed) this.awaited.resolve()
      } else if (kind === "turn.error" || kind === "turn.interrupted") {
        this.waiters.get(id)?.reject(new Error(`a turn ended as ${kind}: ${JSON.stringify(payload)}`))
      } else continue
      this.waiters.delete(id)
    }
  }

  async create(model: string): Promise<ConversationId> {
    const id = makeConversationId(this.ids)
    const root = { agent_id: makeAgentId(this.ids), role: "root", model }
    await this.conversations.create({ _tag: "CreateConversation", conversation_id: id, config: { model }, root })
    return id
  }

  /** So many conversations, a few at a time. */
  async createMany(count: number, model: string): Promise<ReadonlyArray<ConversationId>> {
    const made: Array<ConversationId> = []
    while (made.length < count) {
      const some = Array.from({ length: Math.min(200, count - made.length) }, () => this.create(model))
      made.push(...(await Promise.all(some)))
    }
    return made
  }

  /** One turn, from the message to the durable end; resolves with what it said, rejects when it does not complete. */
  async turn(id: ConversationId, content: string): Promise<string> {
    const ended = new Promise<string>((resolve, reject) => this.waiters.set(id, { resolve, reject }))
    const posted = this.conversations.submit(id, { _tag: "PostMessage", content, mode: "queue" })
    const [finalOutput] = await Promise.all([ended, posted])
    return finalOutput
  }

  /** Resolves when so many turns are complete. */
  untilCompleted(completed: number): Promise<void> {
    if (this.completed >= completed) return Promise.resolve()
    return new Promise((resolve) => {
      this.awaited = { completed, resolve }
    })
  }

  /** Lets the conversations leave memory; all of them must be idle. */
  unload(ids: ReadonlyArray<ConversationId>): void {
    const kept = ids.filter((id) => !this.conversations.unload(id))
    if (kept.length > 0) throw new Error(`${kept.length} conversations still have work`)
  }

  /** What a server does at its start with everything that is unfinished. */
  recover(): ReturnType<Conversations["recover"]> {
    const { catalog, runelog } = this.store
    const suspects = this.store.isBehind ? [] : runelog.recovered.logs
    const unfinished = new Set([...catalog.unfinished(), ...suspects])
    return this.conversations.recover(unfinished as Iterable<string> as Iterable<ConversationId>)
  }

  async close(): Promise<void> {
    await this.conversations.close()
    await this.store.close()
  }
}
