// Goal: whatever conversations report stands in the log of the server, each in its own words, and what was loaded is a
// durable notice. Method: the layer with a log that is read.
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { expect, it } from "vitest"
import { DurableNotices } from "#src/contract/DurableNotices.ts"
import { ServerLog } from "#src/contract/ServerLog.ts"
import { LogRefused } from "#src/conversation/ConversationErrors.ts"
import { ConversationReports } from "#src/conversation/ConversationReports.ts"
import { emptyConversation } from "#src/machine/State.ts"
import type { ConversationId } from "#src/rune/Ids.ts"

const conversationId = "conv_0000000000000001" as ConversationId

it("reports of conversations reach the log of the server and the bus", async () => {
  const lines: Array<ReadonlyArray<unknown>> = []
  const loaded: Array<string> = []
  const log = Layer.succeed(ServerLog, { level: "info", write: (...line) => void lines.push(line) })
  const program = Effect.gen(function* () {
    const reports = yield* ConversationReports
    yield* DurableNotices.listen({ name: "test", loaded: (state) => void loaded.push(state.conversation_id) })
    const cause = new Error("no room")
    reports.tell({ _tag: "Loaded", state: emptyConversation(conversationId) })
    reports.tell({ _tag: "WorkCrashed", conversationId, work: "model", cause: Cause.die(new Error("broken")) })
    reports.tell({ _tag: "LogRefused", error: new LogRefused({ conversation_id: conversationId, cause }) })
    reports.tell({ _tag: "SnapshotFailed", conversationId, cause })
    reports.tell({ _tag: "ThinFailed", conversationId, cause })
  })
  const layer = ConversationReports.layer.pipe(Layer.provideMerge(DurableNotices.layer), Layer.provide(log))
  await Effect.runPromise(Effect.scoped(Effect.provide(program, layer)))
  expect(loaded).toEqual([conversationId])
  expect(lines).toEqual([
    ["error", "work crashed", { conversation_id: conversationId, work: "model", cause: "Error: broken" }],
    ["error", "the log refused runes", { cause: expect.stringContaining("LogRefused") }],
    ["warn", "no snapshot", { conversation_id: conversationId, cause: "Error: no room" }],
    ["warn", "a log was not thinned", { conversation_id: conversationId, cause: "Error: no room" }]
  ])
})
