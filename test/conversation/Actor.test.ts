// Goal: one owner, one order. Nothing is answered before it is durable, nothing is built on what was refused. Method:
// a real machine over a log whose every append the test lands or fails by hand.
// Verifies: INV-EVENTID-MONOTONIC, INV-REPLAY-DETERMINISTIC
import { beforeEach, describe, expect, it } from "vitest"
import { limits as runelogLimits } from "#runelog/RunelogLimits.ts"
import { CommandRefused } from "#src/contract/CommandErrors.ts"
import { Actor, type ActorListener } from "#src/conversation/Actor.ts"
import { ActorRetired, ConversationBusy, LogRefused } from "#src/conversation/ConversationErrors.ts"
import { limits } from "#src/conversation/ConversationLimits.ts"
import { bytesBound, oversize } from "#src/conversation/RuneSize.ts"
import { canonicalHash } from "#src/machine/Canonical.ts"
import type { Command } from "#src/machine/Command.ts"
import { fold } from "#src/machine/evolve/Evolve.ts"
import { emptyConversation } from "#src/machine/State.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import { makeAgentId, makeConversationId, makeRequestId } from "#src/rune/Ids.ts"
import type { Rune } from "#src/rune/Rune.ts"
import { HandSink, nextTurn, standing } from "../support/runtime/sink.ts"

const ids = seededIdSource(11)
const conversationId = makeConversationId(ids)
const root = makeAgentId(ids)

const create: Command = {
  _tag: "CreateConversation",
  conversation_id: conversationId,
  config: {},
  root: { agent_id: root, role: "root", model: "scripted/echo" }
}
const ready: Command = { _tag: "CompleteAgentInit", agent_id: root }
const post = (content: string): Command => ({ _tag: "PostMessage", content, mode: "queue" })

let sink: HandSink
let told: Array<string>
let nowMs: number

const listener: ActorListener = {
  onChange: () => told.push("change"),
  beforeDecision: (command) => {
    told.push(`before ${command._tag}`)
  },
  onQuiet: () => told.push("quiet"),
  onFailure: (error) => told.push(`failure ${String((error.cause as Error).message)}`)
}

const newActor = (more: Partial<{ mailboxMax: number; listener: ActorListener }> = {}): Actor =>
  new Actor(
    { sink, ids, clock: { nowMs: () => nowMs }, mailboxMax: more.mailboxMax ?? 4 },
    emptyConversation(conversationId),
    more.listener ?? listener
  )

beforeEach(() => {
  sink = new HandSink()
  told = []
  nowMs = 1_000_000
})

/** An actor in the middle of a turn, everything on disk. */
const inTurn = async (): Promise<Actor> => {
  const actor = newActor()
  const all = [actor.submit(create), actor.submit(ready), actor.submit(post("go"))]
  sink.landAll()
  await Promise.all(all)
  told.length = 0
  return actor
}

describe("a command", () => {
  it("is decided, sent to the log, folded in, and answered when it is durable", async () => {
    const actor = newActor()
    const heads: Array<number> = []
    sink.onAppend = () => heads.push(actor.state.head)
    const answer = actor.submit(create)
    // Sent before it was folded in, folded in before anybody else can ask, and not yet answered.
    expect(heads).toEqual([0])
    expect(actor.state.head).toBe(2)
    expect(actor.durableHead).toBe(0)
    expect(await standing(answer)).toBe("pending")
    expect(told).toEqual(["before CreateConversation", "change"])
    sink.landAll()
    expect(await answer).toMatchObject({
      event_id: 2,
      runes: [{ kind: "session.created" }, { kind: "agent.spawning" }]
    })
    expect(actor.durableHead).toBe(2)
    expect(told.at(-1)).toBe("quiet")
  })

  it("does not wait for the one before it, and neither do their answers mix", async () => {
    const actor = newActor()
    const answers = [actor.submit(create), actor.submit(ready), actor.submit(post("go"))]
    expect(sink.appends.map((append) => append.runes.map((rune) => rune.event_id))).toEqual([[1, 2], [3, 4], [5]])
    sink.appends[0]?.land()
    expect(await standing(answers[0]!)).toBe("resolved")
    expect(await standing(answers[1]!)).toBe("pending")
    sink.appends[1]?.land()
    sink.appends[2]?.land()
    expect((await Promise.all(answers)).map((one) => one.event_id)).toEqual([2, 4, 5])
    expect(canonicalHash(fold(sink.landed, conversationId))).toBe(canonicalHash(actor.state))
  })

  it("that is refused writes nothing and says why", async () => {
    const actor = await inTurn()
    const refused = await actor.submit({ _tag: "Resume" }).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(CommandRefused)
    expect(refused).toMatchObject({ command: "Resume", refusal: { code: "invalid_state" } })
    expect(sink.appends).toEqual([])
    expect(told).toEqual(["before Resume"])
  })

  it("is not refused before what the refusal rests on is durable", async () => {
    const actor = await inTurn()
    const paused = actor.submit({ _tag: "Pause", reason: "lunch" })
    const again = actor.submit({ _tag: "Pause", reason: "lunch" })
    expect(await standing(again)).toBe("pending")
    sink.landAll()
    await paused
    await expect(again).rejects.toBeInstanceOf(CommandRefused)
  })

  it("that came before is answered with what became of it, once that is durable", async () => {
    const actor = await inTurn()
    const key = { key: "k1", hash: "1".repeat(64) }
    const first = actor.submit({ _tag: "Pause", reason: "lunch" }, key)
    const second = actor.submit({ _tag: "Pause", reason: "lunch" }, key)
    expect(await standing(second)).toBe("pending")
    sink.landAll()
    const { event_id } = await first
    expect(await second).toMatchObject({ event_id, runes: [], repeated: { key: "k1", last_event_id: event_id } })
    await expect(actor.submit({ _tag: "Resume" }, { key: "k1", hash: "2".repeat(64) })).rejects.toMatchObject({
      refusal: { code: "idempotency_conflict" }
    })
  })

  it("with a key that no rune can carry is refused, and costs nobody anything", async () => {
    const actor = await inTurn()
    for (const key of [
      { key: "", hash: "1".repeat(64) },
      { key: "k".repeat(257), hash: "1".repeat(64) },
      { key: "k", hash: "no hash" }
    ]) {
      const refused = actor.submit({ _tag: "Pause", reason: "x" }, key)
      await expect(refused).rejects.toMatchObject({ refusal: { code: "bad_request" } })
    }
    expect(actor.ended).toBeUndefined()
  })

  it("gets the reserve of a full disk when it ends something", async () => {
    const actor = await inTurn()
    void actor.submit({ _tag: "InterruptTurn", reason: "user" })
    void actor.submit(post("more"))
    expect(sink.appends.map((append) => append.terminal)).toEqual([true, false])
    sink.landAll()
  })

  it("never gets a time before the one in the log", async () => {
    const actor = newActor()
    void actor.submit(create)
    nowMs -= 3_600_000
    void actor.submit(ready)
    expect(sink.appends[1]?.runes.map((rune) => rune.ts_ms)).toEqual([1_000_000, 1_000_000])
    sink.landAll()
  })

  it("that only adds to a text starts nothing", async () => {
    const actor = await inTurn()
    const request_id = makeRequestId(ids)
    void actor.insist({ _tag: "RequestModel", agent_id: root, request_id, provider: "p", model: "m" })
    told.length = 0
    void actor.insist({ _tag: "AppendText", agent_id: root, content: "word", request_id })
    expect(told).toEqual(["before AppendText"])
    sink.landAll()
  })

  it("that makes the machine throw rejects, and the next one is taken", async () => {
    const actor = await inTurn()
    const broken = { _tag: "NoSuchCommand" } as unknown as Command
    await expect(actor.submit(broken)).rejects.toBeInstanceOf(TypeError)
    const next = actor.submit({ _tag: "Pause", reason: "x" })
    sink.landAll()
    await next
  })
})

describe("a disk that cannot keep up", () => {
  it("makes commands wait, in order, and refuses more of them than may wait", async () => {
    const actor = await inTurn()
    sink.isBusy = true
    const waiting = ["a", "b", "c", "d"].map((text) => actor.submit(post(text)))
    const refused = await actor.submit(post("e")).catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(ConversationBusy)
    expect(refused).toMatchObject({ retryAfterMs: limits.busyRetryMs })
    expect(actor.isQuiet).toBe(false)
    expect(sink.appends).toEqual([])
    sink.free()
    await nextTurn()
    sink.landAll()
    expect((await Promise.all(waiting)).map((one) => one.event_id)).toEqual([6, 7, 8, 9])
    expect(sink.landed.slice(-4).map((rune) => (rune.payload as { input: string }).input)).toEqual(["a", "b", "c", "d"])
  })

  it("never refuses the runtime's own commands", async () => {
    const actor = await inTurn()
    sink.isBusy = true
    for (const text of ["a", "b", "c", "d"]) void actor.submit(post(text)).catch(() => undefined)
    const own = actor.insist({
      _tag: "FailTurn",
      agent_id: root,
      error: { error_type: "x", message: "y", retryable: true }
    })
    sink.free()
    await nextTurn()
    sink.landAll()
    expect((await own).runes.map((rune) => rune.kind)).toEqual(["turn.error"])
  })

  it("is asked again for each waiting command", async () => {
    const actor = await inTurn()
    sink.isBusy = true
    const waiting = ["a", "b"].map((text) => actor.submit(post(text)))
    sink.onAppend = () => {
      sink.isBusy = true
    }
    sink.free()
    await nextTurn()
    expect(sink.appends.length).toBe(1)
    expect(sink.waiters).toBe(1)
    sink.landAll()
    sink.free()
    await nextTurn()
    sink.landAll()
    await Promise.all(waiting)
  })

  it("that dies while commands wait for it fails them all", async () => {
    const actor = await inTurn()
    sink.isBusy = true
    const waiting = ["a", "b"].map((text) => actor.submit(post(text)).catch((error: unknown) => error))
    sink.die(new Error("gone"))
    for (const error of await Promise.all(waiting)) expect(error).toBeInstanceOf(LogRefused)
    expect(told.at(-1)).toBe("failure gone")
  })
})

describe("an append that fails", () => {
  it("ends the actor once, with everything that was under way", async () => {
    const actor = await inTurn()
    const one = actor.submit({ _tag: "Pause", reason: "x" })
    const two = actor.submit(post("y"))
    let isDrained = false
    void actor.drained().then(() => {
      isDrained = true
    })
    sink.appends[0]?.fail(new Error("disk full"))
    await expect(one).rejects.toBeInstanceOf(LogRefused)
    await nextTurn()
    expect(isDrained).toBe(false)
    expect(told.filter((line) => line.startsWith("failure"))).toEqual(["failure disk full"])
    await expect(actor.submit(post("z"))).rejects.toMatchObject({ _tag: "LogRefused" })
    sink.appends[1]?.fail(new Error("out of order"))
    await expect(two).rejects.toMatchObject({ _tag: "LogRefused", cause: { message: "disk full" } })
    await nextTurn()
    expect(isDrained).toBe(true)
    expect(told.filter((line) => line.startsWith("failure"))).toEqual(["failure disk full"])
    await expect(actor.settled()).rejects.toBeInstanceOf(LogRefused)
  })

  it("leaves a log from which the same conversation is read again", async () => {
    const actor = await inTurn()
    const before = canonicalHash(fold(sink.landed, conversationId))
    const lost = actor.submit(post("lost")).catch(() => undefined)
    expect(canonicalHash(actor.state)).not.toBe(before)
    sink.appends[0]?.fail(new Error("disk full"))
    await lost
    expect(canonicalHash(fold(sink.landed, conversationId))).toBe(before)
  })

  it("does so also when the log throws instead", async () => {
    const actor = await inTurn()
    sink.onAppend = () => {
      throw new Error("thrown")
    }
    await expect(actor.submit(post("x"))).rejects.toMatchObject({ _tag: "LogRefused", cause: { message: "thrown" } })
  })
})

describe("an actor that retires", () => {
  it("takes no more commands and lets those under way land", async () => {
    const actor = await inTurn()
    const last = actor.submit(post("last"))
    actor.retire()
    await expect(actor.submit(post("late"))).rejects.toBeInstanceOf(ActorRetired)
    sink.landAll()
    expect(await last).toMatchObject({ event_id: 6 })
    expect(actor.isQuiet).toBe(true)
    expect(told.at(-1)).not.toBe("quiet")
  })

  it("turns away those that wait", async () => {
    const actor = await inTurn()
    sink.isBusy = true
    const waiting = actor.submit(post("a"))
    actor.retire()
    await expect(waiting).rejects.toBeInstanceOf(ActorRetired)
    sink.free()
    await nextTurn()
    expect(sink.appends).toEqual([])
  })
})

describe("runes that do not fit into the log", () => {
  it("are refused by name before anything is folded in", async () => {
    const actor = await inTurn()
    const { head } = actor.state
    const refused = actor.submit(post("x".repeat(limits.clientRuneBytesMax)))
    await expect(refused).rejects.toMatchObject({ refusal: { code: "limit_exceeded", data: { limit: 786_432 } } })
    expect(actor.state.head).toBe(head)
    expect(actor.ended).toBeUndefined()
    const next = actor.submit(post("small"))
    sink.landAll()
    await next
  })

  it("are measured as the bytes they are, not as the worst they could be", async () => {
    const actor = await inTurn()
    const plain = actor.submit(post("x".repeat(limits.clientRuneBytesMax - 2000)))
    sink.landAll()
    await plain
    const escaped = "\u0001".repeat(limits.clientRuneBytesMax / 5)
    await expect(actor.submit(post(escaped))).rejects.toMatchObject({ refusal: { code: "limit_exceeded" } })
  })

  it("are limits within those of the log itself", () => {
    expect(limits.runeBytesMax).toBeLessThanOrEqual(runelogLimits.bodyBytesMax)
    expect(limits.batchBytesMax).toBeLessThan(runelogLimits.batchBytesMax)
    expect(limits.clientRuneBytesMax).toBeLessThan(limits.runeBytesMax)
  })

  it("are never larger than their bound", () => {
    for (const value of [null, true, 1.5e300, -0, "plain", "\u0000\ud800é😀", [1, "a", null], { "k\n": [{}], b: {} }]) {
      expect(bytesBound(value)).toBeGreaterThanOrEqual(Buffer.byteLength(JSON.stringify(value)))
    }
  })

  it("are counted together when they are one batch", () => {
    const rune = { kind: "tool.call", payload: { text: "x".repeat(100) } } as unknown as Rune
    const sizes = { runeBytesMax: 1000, batchBytesMax: 500 }
    expect(oversize([rune, rune, rune], sizes)).toBeUndefined()
    expect(oversize([rune, rune, rune, rune], sizes)).toMatchObject({
      code: "limit_exceeded",
      message: expect.stringMatching(/^a batch of/)
    })
  })
})
