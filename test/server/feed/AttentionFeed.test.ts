// Goal: what needs a person is told when it begins, changes and ends, once each, wherever its conversation is kept, and a
// reader that takes nothing is sent away. Method: the real server; and for slow readers, conversations told by hand.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { describe, expect, it, onTestFinished } from "vitest"
import { AttentionProjection } from "#src/attention/Attention.ts"
import { AttentionFeed } from "#src/server/feed/AttentionFeed.ts"
import { limits } from "#src/wire/WireLimits.ts"
import { say, scenarios, step, use } from "../../support/runtime/scenarios.ts"
import { effectTool } from "../../support/runtime/tools.ts"
import { FakeSink, turnOfLoop } from "../../support/server/FakeSink.ts"
import type { Json, Socket } from "../../support/server/Socket.ts"
import { useServers } from "../../support/server/TestServer.ts"
import { Story } from "../../support/story.ts"

const { open } = useServers()

const told = (socket: Socket): ReadonlyArray<Json> =>
  socket.pushed.flatMap((frame) => ("attention" in frame ? [frame["attention"] as Json] : []))

const changesOf = (socket: Socket): ReadonlyArray<unknown> =>
  told(socket).map(({ change, key, type }) => [change, type, key])

/** A conversation that a spent budget has suspended. */
const suspend = async (socket: Socket): Promise<string> => {
  const id = await socket.create({ budget: { tokens: 1 } })
  await socket.ok("subscribe", { conversation_id: id })
  // The first one spends it, the second one finds it spent.
  await socket.ok("message.post", { conversation_id: id, content: "one" })
  await socket.rune("turn.completed")
  await socket.ok("message.post", { conversation_id: id, content: "two" })
  await socket.rune("session.suspended")
  return id
}

describe("what needs a person", () => {
  it("is told once for as long as it lasts, whatever else happens in its conversation", async () => {
    const server = await open()
    const socket = await server.connect()
    const follower = await server.connect()
    await follower.ok("attention.subscribe")
    const id = await suspend(socket)
    const isTold = () => told(follower).some(({ change, type }) => change === "raised" && type === "suspended")
    await follower.until(isTold)
    const before = changesOf(follower)
    const { items } = await socket.ok("attention.list")
    // Runes that change nothing about it.
    for (let time = 0; time < 5; time++) {
      await socket.ok("message.post", { conversation_id: id, content: "later" })
    }
    expect((await socket.ok("attention.list"))["items"]).toEqual(items)
    await socket.ok("conversation.close", { conversation_id: id })
    await follower.until(() => told(follower).some(({ change, key }) => change === "resolved" && key === "suspended"))
    const about = changesOf(follower).filter((change) => (change as ReadonlyArray<unknown>)[1] === "suspended")
    expect(about).toEqual([
      ["raised", "suspended", "suspended"],
      ["resolved", "suspended", "suspended"]
    ])
    expect(before).toContainEqual(["raised", "suspended", "suspended"])
  })

  it("is told to be over also where its conversation was out of memory when listening began", async () => {
    const server = await open({ runtime: { deltaEveryMs: 0, residentMax: 1 } })
    const socket = await server.connect()
    const id = await suspend(socket)
    // Whoever else is spoken to takes its place.
    for (let other = 0; other < 3; other++) await socket.create()
    expect((await socket.ok("stats"))["conversations_resident"]).toBe(1)
    const follower = await server.connect()
    await follower.ok("attention.subscribe")
    for (let other = 0; other < 3; other++) await socket.create()
    await socket.ok("conversation.close", { conversation_id: id })
    await follower.until(() => told(follower).some(({ change, key }) => change === "resolved" && key === "suspended"))
    expect(told(follower).filter(({ change }) => change === "raised")).toEqual([])
  })

  it("is told of a fork that continues, though nothing was appended to it", async () => {
    const asked = effectTool("pay_asked", async () => "paid", { approval: "ask" })
    const server = await open({
      scenarios: scenarios({ ask: [step(1, use("pay_asked")), step(2, say("paid"))] }),
      tools: [asked]
    })
    const socket = await server.connect()
    const id = await socket.create({ model: "scripted/ask" })
    await socket.ok("subscribe", { conversation_id: id })
    await socket.ok("message.post", { conversation_id: id, content: "pay" })
    const { event_id: at } = await socket.rune("tool.approval_requested")
    const follower = await server.connect()
    await follower.ok("attention.subscribe")
    const fork = { conversation_id: id, at_event_id: at, continue: true }
    const { conversation_id: copy } = await socket.ok("conversation.fork", fork)
    await follower.until(() => told(follower).length > 0)
    expect(told(follower)).toMatchObject([{ change: "raised", conversation_id: copy, type: "approval" }])
  })
})

describe("a reader of what needs a person", () => {
  const world = async () => {
    const story = new Story().ready()
    const scope = Scope.makeUnsafe()
    onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const projection = AttentionProjection.make({
      conversations: { state: async () => story.state, residentStates: () => [story.state] },
      conversationStore: { waiting: async () => [] },
      log: {
        write: (_level, message) => {
          throw new Error(message)
        }
      }
    })
    const attention = await Effect.runPromise(Scope.provide(projection, scope))
    const feed = new AttentionFeed(attention)
    // Told whatever the others are: a change has been handed out when this one has it.
    const witness = new FakeSink()
    await feed.follow(witness).ready
    const toggle = async (): Promise<void> => {
      const isSuspended = story.state.session.status === "suspended"
      story.send(isSuspended ? { _tag: "Unsuspend", reason: "go on" } : { _tag: "Suspend", reason: "errors" })
      attention.notice(story.state.conversation_id)
      const before = changes(witness).length
      while (changes(witness).length === before) {
        await turnOfLoop()
        witness.drain()
      }
    }
    return { feed, toggle }
  }
  const changes = ({ frames }: FakeSink) => frames.map(({ attention }) => attention?.["change"])

  it("whose socket is full gets nothing more, and the last word about each thing when there is room", async () => {
    const { feed, toggle } = await world()
    const sink = new FakeSink()
    await feed.follow(sink).ready
    sink.pending = limits.socketBytesMax
    await toggle()
    const written = sink.unsentBytes
    for (let time = 0; time < 100; time++) await toggle()
    expect(sink.unsentBytes).toBe(written)
    sink.drain()
    for (let turns = 0; turns < 5; turns++) await turnOfLoop()
    sink.drain()
    expect(changes(sink)).toEqual(["raised", "raised"])
    await toggle()
    sink.drain()
    expect(changes(sink)).toEqual(["raised", "raised", "resolved"])
  })

  it("that takes nothing for too long is sent away", async () => {
    const { feed, toggle } = await world()
    const sink = new FakeSink()
    sink.stalledMs = () => 1
    await feed.follow(sink).ready
    sink.pending = limits.socketBytesMax
    await toggle()
    while (!sink.closed) await turnOfLoop()
    while (feed.followers > 1) await turnOfLoop()
  })

  it("hears of changes once it has been told that it listens, and others after it has left", async () => {
    const { feed, toggle } = await world()
    const [first, second] = [new FakeSink(), new FakeSink()]
    const following = feed.follow(first)
    await following.ready
    await feed.follow(second).ready
    await toggle()
    following.leave()
    await toggle()
    for (const sink of [first, second]) sink.drain()
    expect([changes(first), changes(second)]).toEqual([["raised"], ["raised", "resolved"]])
  })
})
