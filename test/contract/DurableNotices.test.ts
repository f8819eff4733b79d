// Goal: whoever listens hears every notice, in order, whatever another listener does. Method: the bus by hand, and as a
// layer with a log that is read.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { describe, expect, it } from "vitest"
import { DurableNotices, NoticeBus } from "#src/contract/DurableNotices.ts"
import { ServerLog } from "#src/contract/ServerLog.ts"
import { emptyConversation } from "#src/machine/State.ts"
import { Scribe } from "../store/support.ts"

const { conversationId, runes } = new Scribe(1).begin()

describe("the bus of durable notices", () => {
  it("tells everybody of each kind, in the order in which they came to listen", () => {
    const heard: Array<string> = []
    const bus = new NoticeBus()
    for (const name of ["first", "second"])
      bus.subscribe({
        name,
        appended: (id, durable) => void heard.push(`${name} ${id} ${durable.length}`),
        appeared: (id, how) => void heard.push(`${name} ${id} ${how}`),
        loaded: (state) => void heard.push(`${name} ${state.conversation_id} loaded`),
        refused: (cause, id) => void heard.push(`${name} ${id} ${cause.message}`)
      })
    bus.appended(conversationId, runes)
    bus.appeared(conversationId, "restored")
    bus.loaded(emptyConversation(conversationId))
    bus.refused(new Error("damaged"), conversationId)
    expect(heard).toEqual(
      [runes.length, "restored", "loaded", "damaged"].flatMap((what) =>
        ["first", "second"].map((name) => `${name} ${conversationId} ${what}`)
      )
    )
  })

  it("reports a listener that throws, and tells the others", () => {
    const failed: Array<string> = []
    const heard: Array<number> = []
    const bus = new NoticeBus((listener, error) => failed.push(`${listener}: ${(error as Error).message}`))
    const broken = (): never => {
      throw new Error("broken")
    }
    bus.subscribe({ name: "bad", appended: broken, appeared: broken, loaded: broken, refused: broken })
    bus.subscribe({ name: "good", appended: (_id, durable) => void heard.push(durable.length) })
    bus.appended(conversationId, runes)
    bus.appeared(conversationId, "forked")
    bus.loaded(emptyConversation(conversationId))
    bus.refused(new Error("poisoned"))
    expect(failed).toEqual(Array.from({ length: 4 }, () => "bad: broken"))
    expect(heard).toEqual([runes.length])
  })

  it("finishes a notice with those it began with, and tells who left no more", () => {
    const heard: Array<string> = []
    const bus = new NoticeBus()
    const leave = bus.subscribe({
      name: "leaves",
      appended: () => {
        heard.push("leaves")
        leave()
        bus.subscribe({ name: "late", appended: () => void heard.push("late") })
      }
    })
    bus.subscribe({ name: "stays", appended: () => void heard.push("stays") })
    bus.appended(conversationId, runes)
    expect(heard).toEqual(["leaves", "stays"])
    bus.appended(conversationId, runes)
    expect(heard).toEqual(["leaves", "stays", "stays", "late"])
  })
})

describe("the service", () => {
  it("writes failures to the server's log, and lets a scope listen for as long as it is open", async () => {
    const lines: Array<unknown> = []
    const log = { level: "info", write: (...line: ReadonlyArray<unknown>) => void lines.push(line) } as const
    const bus = DurableNotices.layer.pipe(Layer.provide(Layer.succeed(ServerLog, log)))
    const program = Effect.gen(function* () {
      const notices = yield* DurableNotices
      const appended = (): never => {
        throw new Error("broken")
      }
      yield* Effect.scoped(
        Effect.andThen(
          DurableNotices.listen({ name: "bad", appended }),
          Effect.sync(() => notices.appended(conversationId, runes))
        )
      )
      notices.appended(conversationId, runes)
    })
    await Effect.runPromise(Effect.provide(program, bus))
    expect(lines).toEqual([
      ["error", "a listener of durable notices failed", { listener: "bad", cause: "Error: broken" }]
    ])
  })
})
