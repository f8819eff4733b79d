// The store, the runtime and the door as production puts them together, with the parts in hand.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { AttentionProjection } from "#src/attention/Attention.ts"
import { Channel } from "#src/contract/Channel.ts"
import { NoticeBus } from "#src/contract/DurableNotices.ts"
import { Approvals } from "#src/conversation/Approvals.ts"
import { ConversationStore } from "#src/conversation/ConversationStore.ts"
import { PromptView } from "#src/conversation/PromptView.ts"
import { snapshotPort, snapshotShape } from "#src/conversation/SnapshotStore.ts"
import { Undo } from "#src/conversation/Undo.ts"
import { makeRegistry } from "#src/provider/Registry.ts"
import { secureIdSource } from "#src/rune/IdSource.ts"
import { namedToken } from "#src/server/Auth.ts"
import { HttpListener } from "#src/server/HttpListener.ts"
import { makeLog } from "#src/server/telemetry/Log.ts"
import { Metrics } from "#src/server/telemetry/Metrics.ts"
import { openConversations } from "../../support/runtime/openConversations.ts"
import { openStore } from "../../support/store/openStore.ts"
import { functionTools } from "../../support/tool/FunctionTools.ts"

export const token = "bench-token-of-no-consequence"

const chunks = 60

/** One turn with so many pieces of text, each of which becomes a rune. */
const stream = {
  name: "stream",
  replies: [{ play: [{ text: "some words of it ".repeat(chunks), chunk_chars: 17 }] }]
}

export const openDoor = async (directory: string) => {
  const notices = new NoticeBus()
  const store = await openStore({ directory, snapshotShape, notices })
  const ids = secureIdSource()
  const tools = functionTools([])
  const conversations = openConversations({
    store: store.runes,
    pressure: { busy: () => store.runelog.busy, ready: () => store.runelog.ready() },
    snapshots: snapshotPort({ snapshots: store.snapshots, store: store.runes }),
    registry: makeRegistry({ key: () => undefined, scenarios: { stream } }),
    tools,
    ids,
    clock: { nowMs: () => Date.now() },
    deltaEveryMs: 0
  })
  const conversationStore = new ConversationStore({ store, conversations, ids, nowMs: () => Date.now() })
  const scope = Scope.makeUnsafe()
  const log = makeLog({
    level: "error",
    nowMs: () => Date.now(),
    writeLine: (line) => void process.stderr.write(`${line}\n`)
  })
  const metrics = new Metrics()
  const attention = await Effect.runPromise(
    Scope.provide(AttentionProjection.make({ conversations, conversationStore, log }), scope)
  )
  notices.subscribe({
    name: "server",
    appended: (conversationId, runes) => {
      metrics.notice(runes)
      attention.notice(conversationId)
    }
  })
  const opening = HttpListener.open({
    notices,
    liveTexts: new Channel(() => undefined),
    host: "127.0.0.1",
    port: 0,
    tokens: [namedToken("bench", "admin", token)],
    services: {
      conversations,
      conversationStore,
      attention,
      approvals: new Approvals({ conversations, tools }),
      prompts: new PromptView({ state: (id) => conversations.state(id), contextTokens: () => 32_768 }),
      undo: new Undo({ conversations, store: conversationStore, checkpoints: undefined }),
      newId: () => ids.hex16(),
      defaultModel: () => "scripted/stream"
    },
    version: "bench",
    log,
    metrics,
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    figures: () => ({})
  })
  const server = await Effect.runPromise(Scope.provide(opening, scope))
  const close = async (): Promise<void> => {
    await conversations.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    await store.close()
  }
  return { store, conversations, server, close }
}

export type OpenDoor = Awaited<ReturnType<typeof openDoor>>
