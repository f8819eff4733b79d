// Goal: a conversation is in memory once or not at all, comes back as it was, and no failure of the log makes two of it.
// Method: the real runtime on a disk in memory that the test reopens, fills up and breaks.
// Verifies: INV-REPLAY-DETERMINISTIC, INV-SNAPSHOT-INTEGRITY, INV-EVENTID-MONOTONIC

import * as Result from "effect/Result"
import { describe, expect, it, vi } from "vitest"
import type { Runelog } from "#runelog/Runelog.ts"
import { LogDamaged } from "#runelog/RunelogErrors.ts"
import { CommandRefused, RuntimeClosed } from "#src/contract/CommandErrors.ts"
import { ConversationUnknown, ConversationUnreadable, LogRefused } from "#src/conversation/ConversationErrors.ts"
import { limits } from "#src/conversation/ConversationLimits.ts"
import type { ReportChannel } from "#src/conversation/ConversationReports.ts"
import { snapshotShape } from "#src/conversation/SnapshotStore.ts"
import { canonicalHash } from "#src/machine/Canonical.ts"
import type { Registry } from "#src/provider/Registry.ts"
import { makeConversationId } from "#src/rune/Ids.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import type { RuneStore } from "#src/store/runes/RuneStore.ts"
import { Snapshots } from "#src/store/Snapshots.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import { channelTo } from "../support/runtime/channelTo.ts"
import { always, say, scenarios, stall, step, use } from "../support/runtime/scenarios.ts"
import { nextTurn } from "../support/runtime/sink.ts"
import { Gate, tool } from "../support/runtime/tools.ts"
import { type Talk, useWorlds, type World } from "../support/runtime/World.ts"

const worlds = useWorlds()

const hashOf = async (talk: Talk): Promise<string> => canonicalHash(await talk.state())

/** Waits until no work and no append is under way. */
const quiet = async (): Promise<void> => {
  for (let turn = 0; turn < 6; turn++) await nextTurn()
}

const turnOf = async (talk: Talk, text: string, turns = 1): Promise<void> => {
  await talk.post(text)
  await talk.turns(turns)
  await quiet()
}

/** A registry that tells of every request a model gets. */
const counting = (registry: Registry, onRequest: () => void): Registry => ({
  ...registry,
  resolve: (name) =>
    Result.map(registry.resolve(name), (resolved) => ({
      ...resolved,
      provider: {
        ...resolved.provider,
        stream: (...call) => {
          onRequest()
          return resolved.provider.stream(...call)
        }
      }
    }))
})

/** A store whose appends fail while the test says so. */
const failing = () => {
  const fault: { error: unknown; matches: (runes: ReadonlyArray<AnyRune>) => boolean; times: number } = {
    error: undefined,
    matches: () => true,
    times: Number.POSITIVE_INFINITY
  }
  const wrapStore = (store: RuneStore): RuneStore => {
    const appendNow: RuneStore["appendNow"] = (id, runes, options) => {
      if (fault.error === undefined || fault.times === 0 || !fault.matches(runes))
        return store.appendNow(id, runes, options)
      fault.times -= 1
      return Promise.reject(fault.error)
    }
    return new Proxy(store, {
      get: (target, name) => {
        if (name === "appendNow") return appendNow
        const member = Reflect.get(target, name) as unknown
        return typeof member === "function" ? member.bind(target) : member
      }
    })
  }
  return { fault, wrapStore }
}

const diskFull = Object.assign(new Error("no space left"), { _tag: "DiskFull" })

const onRefusal = (hear: (error: LogRefused) => unknown): ReportChannel =>
  channelTo((report) => {
    if (report._tag === "LogRefused") hear(report.error)
  })

describe("creating", () => {
  it("makes a conversation that is there for everybody", async () => {
    const world = await worlds.open()
    const talk = await world.create({ title: "first" })
    expect((await talk.state()).session.config.title).toBe("first")
  })

  it("twice is refused, also when the first has left memory, and by two at once", async () => {
    const world = await worlds.open()
    const talk = await world.create()
    await quiet()
    const again = {
      _tag: "CreateConversation",
      conversation_id: talk.id,
      config: {},
      root: { agent_id: talk.root, role: "root", model: "scripted/echo" }
    } as const
    await expect(world.conversations.create(again)).rejects.toBeInstanceOf(CommandRefused)
    expect(world.conversations.unload(talk.id)).toBe(true)
    await expect(world.conversations.create(again)).rejects.toBeInstanceOf(CommandRefused)
    const fresh = { ...again, conversation_id: makeConversationId(world.ids) }
    const both = await Promise.allSettled([world.conversations.create(fresh), world.conversations.create(fresh)])
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"])
  })

  it("twice with the same key is one conversation, also after a restart", async () => {
    const disk = makeDiskMemory()
    const world = await worlds.open({ disk })
    const id = makeConversationId(world.ids)
    const command = {
      _tag: "CreateConversation",
      conversation_id: id,
      config: {},
      root: { agent_id: "agt_00000000000000aa" as never, role: "root", model: "scripted/echo" }
    } as const
    const key = { key: "k", hash: "a".repeat(64) }
    const first = await world.conversations.create(command, key)
    await quiet()
    await world.close()
    const next = await worlds.open({ disk, idSeed: 8 })
    const repeated = await next.conversations.create(command, key)
    expect(repeated).toMatchObject({ event_id: first.event_id, repeated: { key: "k" } })
  })

  it("that is refused leaves nothing behind", async () => {
    const world = await worlds.open()
    const id = makeConversationId(world.ids)
    const refused = world.conversations.create({
      _tag: "CreateConversation",
      conversation_id: id,
      config: { title: "x".repeat(2_000_000) },
      root: { agent_id: "agt_00000000000000aa" as never, role: "root", model: "scripted/echo" }
    })
    await expect(refused).rejects.toMatchObject({ refusal: { code: "limit_exceeded" } })
    expect(world.conversations.resident).toBe(0)
    await expect(world.conversations.state(id)).rejects.toBeInstanceOf(ConversationUnknown)
    const bad = {
      _tag: "CreateConversation",
      conversation_id: "../etc" as never,
      config: {},
      root: {} as never
    } as const
    await expect(world.conversations.create(bad)).rejects.toMatchObject({ refusal: { code: "bad_request" } })
  })
})

describe("loading", () => {
  it("gives back what was there, and happens once for many who ask at once", async () => {
    let reads = 0
    const world = await worlds.open({
      wrapStore: (store) =>
        new Proxy(store, {
          get: (target, name) => {
            if (name === "pagesNow") reads += 1
            const member = Reflect.get(target, name) as unknown
            return typeof member === "function" ? member.bind(target) : member
          }
        })
    })
    const talk = await world.create()
    await turnOf(talk, "hello")
    const before = await hashOf(talk)
    expect(world.conversations.unload(talk.id)).toBe(true)
    expect(world.conversations.resident).toBe(0)
    const states = await Promise.all(Array.from({ length: 20 }, () => talk.state()))
    expect(new Set(states).size).toBe(1)
    expect(reads).toBe(1)
    expect(await hashOf(talk)).toBe(before)
  })

  it("what is not there, or cannot be a name, is a typed error", async () => {
    const world = await worlds.open()
    for (const id of [makeConversationId(world.ids), "conv_x", "", "../../etc/passwd"]) {
      await expect(world.conversations.state(id)).rejects.toBeInstanceOf(ConversationUnknown)
    }
    expect(world.conversations.resident).toBe(0)
  })

  it("what cannot be read says where it ends, and is tried again by the next who asks", async () => {
    let isBroken = false
    const world = await worlds.open({
      wrapStore: (store) =>
        new Proxy(store, {
          get: (target, name) => {
            if (name === "pagesNow" && isBroken) throw new Error("bad sector")
            const member = Reflect.get(target, name) as unknown
            return typeof member === "function" ? member.bind(target) : member
          }
        })
    })
    const talk = await world.create()
    await quiet()
    world.conversations.unload(talk.id)
    isBroken = true
    const error = await talk.state().catch((cause: unknown) => cause)
    expect(error).toBeInstanceOf(ConversationUnreadable)
    expect(error).toMatchObject({ after: 0, message: expect.stringContaining("bad sector") })
    isBroken = false
    expect((await talk.state()).session.status).toBe("active")
  })

  it("keeps commands in the order in which they came", async () => {
    const world = await worlds.open()
    const talk = await world.create()
    await talk.submit({ _tag: "Pause", reason: "collect" })
    await quiet()
    world.conversations.unload(talk.id)
    await Promise.all(Array.from({ length: 20 }, (_, index) => talk.post(`m${index}`)))
    const { queue } = await talk.agent()
    expect(queue.map(({ input }) => input)).toEqual(Array.from({ length: 20 }, (_, index) => `m${index}`))
  })
})

describe("leaving", () => {
  it("is for those without work, the longest unused first", async () => {
    const world = await worlds.open({
      residentMax: 3,
      scenarios: scenarios({ hang: [always(say("…"), stall)] })
    })
    const busy = await world.create({ model: "scripted/hang" })
    await busy.post("go")
    await busy.until("turn.assistant_delta")
    const talks: Array<Talk> = []
    for (let index = 0; index < 6; index++) {
      talks.push(await world.create({ title: String(index) }))
      await quiet()
    }
    expect(world.conversations.resident).toBe(3)
    const resident = world.conversations.residentStates().map(({ conversation_id }) => conversation_id)
    expect(resident).toContain(busy.id)
    expect(resident).toContain(talks[5]!.id)
    expect(resident).not.toContain(talks[0]!.id)
    for (const [index, talk] of talks.entries()) expect((await talk.state()).session.config.title).toBe(String(index))
    await busy.interrupt()
  })

  it("comes by itself after a while without use", async () => {
    let now = 0
    const world = await worlds.open({ monotonicMs: () => now })
    const idle = await world.create()
    await quiet()
    now = 1000
    const used = await world.create()
    await quiet()
    world.conversations.sweep(1000)
    expect(world.conversations.residentStates().map(({ conversation_id }) => conversation_id)).toEqual([used.id])
    expect((await idle.state()).session.status).toBe("active")
  })

  it("never while a question waits, a tool runs or an append is under way", async () => {
    const gate = new Gate()
    const world = await worlds.open({
      scenarios: scenarios({ ask: [step(1, use("risky")), step(2, say("ok"))] }),
      tools: [tool("risky", gate.run, { approval: "ask" })]
    })
    const talk = await world.create({ model: "scripted/ask" })
    await talk.post("go")
    expect(world.conversations.unload(talk.id)).toBe(false)
    await talk.until("tool.approval_requested")
    await quiet()
    expect(world.conversations.unload(talk.id)).toBe(false)
    await talk.approve("call_1")
    await gate.started
    expect(world.conversations.unload(talk.id)).toBe(false)
    gate.end("done")
    await talk.turns()
    await quiet()
    expect(world.conversations.unload(talk.id)).toBe(true)
  })

  it("does not lose or double a command that comes in that moment", async () => {
    const world = await worlds.open({ residentMax: 1 })
    const talks = [await world.create(), await world.create(), await world.create()]
    for (const talk of talks) await talk.submit({ _tag: "Pause", reason: "collect" })
    await quiet()
    const posts: Array<Promise<unknown>> = []
    for (let index = 0; index < 60; index++) posts.push(talks[index % 3]!.post(`m${index}`))
    await Promise.all(posts)
    for (const talk of talks) expect((await talk.agent()).queue.length).toBe(20)
  })
})

describe("snapshots", () => {
  const grown = async (world: World): Promise<Talk> => {
    const talk = await world.create()
    for (let turn = 1; talk.runes.length < limits.snapshotEveryRunes; turn++) await turnOf(talk, `turn ${turn}`, turn)
    return talk
  }

  it("are taken when the log has grown, and the conversation goes on from them as from the beginning", async () => {
    const disk = makeDiskMemory()
    const world = await worlds.open({ disk, snapshots: true })
    const talk = await grown(world)
    await quiet()
    const before = await hashOf(talk)
    await world.close()
    expect((await world.snapshots!.list(talk.id)).length).toBe(1)
    const next = await worlds.open({ disk, snapshots: true, idSeed: 8 })
    const again = next.talk(talk)
    expect(await hashOf(again)).toBe(before)
    await turnOf(again, "one more")
    await next.close()
    const last = await worlds.open({ disk, idSeed: 9 })
    expect((await last.talk(talk).agent()).transcript.at(-1)).toMatchObject({ content: "one more" })
  })

  it("that are damaged, from elsewhere or ahead of the log are not used", async () => {
    const disk = makeDiskMemory()
    const world = await worlds.open({ disk, snapshots: true })
    const talk = await grown(world)
    const other = await world.create({ title: "other" })
    await quiet()
    const before = await hashOf(talk)
    const foreign = await other.state()
    const directory = "/data/snapshots"
    const planted = new Snapshots({ disk, directory, shape: snapshotShape, eventSum: async () => 1 })
    await planted.save(talk.id, talk.runes.length, { ...foreign })
    await planted.save(talk.id, 100_000, { ...foreign, conversation_id: talk.id, head: 100_000 })
    await world.close()
    const next = await worlds.open({ disk, snapshots: true, idSeed: 8 })
    expect(await hashOf(next.talk(talk))).toBe(before)
  })

  it("of what the log refused are never taken, also when it happens while everything closes", async () => {
    const disk = makeDiskMemory()
    const refusals: Array<() => void> = []
    let refuses = false
    const wrapStore = (store: RuneStore): RuneStore =>
      new Proxy(store, {
        get: (target, name) => {
          if (name === "appendNow" && refuses) {
            return () => new Promise((_resolve, reject) => refusals.push(() => reject(diskFull)))
          }
          const member = Reflect.get(target, name) as unknown
          return typeof member === "function" ? member.bind(target) : member
        }
      })
    const world = await worlds.open({ disk, snapshots: true, wrapStore, unchecked: true })
    const talk = await world.create()
    for (let turn = 1; talk.runes.length < limits.snapshotEveryRunes - 40; turn++)
      await turnOf(talk, `turn ${turn}`, turn)
    await talk.submit({ _tag: "Pause", reason: "x" })
    await quiet()
    // Enough refused messages to make a snapshot due, then the end of the process while they are under way.
    refuses = true
    const refused = Array.from({ length: 60 }, (_, index) => talk.post(`refused ${index}`))
    refused.push(talk.submit({ _tag: "Close", reason: "x" }))
    const settled = Promise.allSettled(refused)
    const closing = world.close()
    await quiet()
    expect(refusals.length).toBeGreaterThan(60)
    for (const refuse of refusals) refuse()
    expect((await settled).map(({ status }) => status)).toEqual(refused.map(() => "rejected"))
    await closing
    expect(await world.snapshots!.list(talk.id)).toEqual([])
    const next = await worlds.open({ disk, snapshots: true, idSeed: 8 })
    expect((await next.talk(talk).state()).session.status).toBe("paused")
    // The log goes on past the event that the refused ones reached.
    for (let index = 0; index < 80; index++) await next.talk(talk).post(`taken ${index}`)
    next.conversations.unload(talk.id)
    const { queue } = await next.talk(talk).agent()
    expect(queue.map(({ input }) => input)).toEqual(Array.from({ length: 80 }, (_, index) => `taken ${index}`))
  })

  it("that cannot be written cost nothing but time", async () => {
    const failed: Array<unknown> = []
    const reports: ReportChannel = channelTo((report) => {
      if (report._tag === "SnapshotFailed") failed.push(report.cause)
    })
    const world = await worlds.open({ snapshots: true, reports })
    vi.spyOn(world.snapshots!, "save").mockRejectedValue(diskFull)
    const talk = await grown(world)
    await quiet()
    expect(failed).toEqual([diskFull])
    const before = await hashOf(talk)
    world.conversations.unload(talk.id)
    expect(await hashOf(talk)).toBe(before)
  })
})

describe("a log that refuses runes", () => {
  it("is read again for whoever speaks next, as if the refused had never been said", async () => {
    const { fault, wrapStore } = failing()
    const refused: Array<string> = []
    const world = await worlds.open({ wrapStore, reports: onRefusal((error) => refused.push(error.conversation_id)) })
    const talk = await world.create()
    await turnOf(talk, "one")
    const before = await hashOf(talk)
    fault.error = diskFull
    await expect(talk.submit({ _tag: "Pause", reason: "x" })).rejects.toBeInstanceOf(LogRefused)
    expect(refused).toEqual([talk.id])
    fault.error = undefined
    expect(await hashOf(talk)).toBe(before)
    await turnOf(talk, "two", 2)
    expect(talk.of("turn.completed").length).toBe(2)
  })

  it("in the middle of a turn stops it there, and it goes on by itself when there is room", async () => {
    const { fault, wrapStore } = failing()
    fault.matches = (runes) => runes.some(({ kind }) => kind === "turn.assistant_final")
    fault.error = diskFull
    fault.times = 2
    const residents: Array<number> = []
    const reports = onRefusal(() => residents.push(world.conversations.resident))
    const world = await worlds.open({ wrapStore, reloadAfterMs: [5, 10], reports })
    const talk = await world.create()
    await talk.post("hello")
    expect(await talk.turns()).toMatchObject({ kind: "turn.completed", payload: { final_output: "hello" } })
    expect(residents).toEqual([0, 0])
    expect(talk.of("turn.model_requested").length).toBe(3)
  })

  it("for good is not asked again", async () => {
    const { fault, wrapStore } = failing()
    fault.error = Object.assign(new Error("sync failed"), { _tag: "WriterPoisoned" })
    fault.matches = (runes) => runes.some(({ kind }) => kind === "turn.model_requested")
    let onRefused: () => void = () => undefined
    const refused = new Promise<void>((resolve) => {
      onRefused = resolve
    })
    const world = await worlds.open({ wrapStore, reloadAfterMs: [0], reports: onRefusal(() => onRefused()) })
    const talk = await world.create()
    await talk.post("hello")
    await refused
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(world.conversations.resident).toBe(0)
  })

  it("for good can be looked at as often as one likes: no work begins, nothing is tried, every command is told why", async () => {
    const { fault, wrapStore } = failing()
    const damage = new LogDamaged({ log: "a", file: "a.seg", offset: 7, reason: "checksum mismatch" })
    let isDamaged = false
    let requests = 0
    const refused: Array<unknown> = []
    const world = await worlds.open({
      unchecked: true,
      scenarios: scenarios({ waits: [always(stall)] }),
      wrapStore: (store) =>
        new Proxy(wrapStore(store), {
          get: (target, name) => {
            if (name === "refusalNow") return async () => (isDamaged ? damage : undefined)
            return Reflect.get(target, name) as unknown
          }
        }),
      wrapRegistry: (registry) => counting(registry, () => (requests += 1)),
      reloadAfterMs: [0],
      reports: onRefusal(({ cause }) => refused.push(cause))
    })
    const talk = await world.create({ model: "scripted/waits" })
    await talk.post("hello")
    await talk.until("turn.model_requested")
    await quiet()
    expect(requests).toBe(1)
    isDamaged = true
    fault.error = damage
    world.conversations.stopWriting(damage, "somebody else")
    expect(refused).toEqual([])
    world.conversations.stopWriting(damage, talk.id)
    world.conversations.stopWriting(damage)
    expect(refused).toEqual([damage])
    for (let round = 0; round < 5; round++) {
      expect((await talk.state()).agents[0]?.turn).not.toBeNull()
      for (const command of [talk.interrupt(), talk.post("more"), talk.submit({ _tag: "Pause", reason: "x" })]) {
        await expect(command).rejects.toMatchObject({ _tag: "LogRefused", cause: damage })
      }
      await quiet()
    }
    const readOnly = await world.conversations.load(talk.id)
    await expect(readOnly.changed(new AbortController().signal)).rejects.toMatchObject({ cause: damage })
    expect(requests).toBe(1)
    expect(talk.of("turn.model_requested").length).toBe(1)
    // It is no reason to stay in memory.
    expect(world.conversations.unload(talk.id)).toBe(true)
    expect(await world.conversations.recover([talk.id])).toEqual({ loaded: 1, resumed: 0, failed: [] })
  })

  it("is not read again before what was sent after the refused has been refused too", async () => {
    const late: Array<{ readonly reject: (error: unknown) => void }> = []
    let holds = false
    const world = await worlds.open({
      wrapStore: (store) =>
        new Proxy(store, {
          get: (target, name) => {
            if (name === "appendNow" && holds) return () => new Promise((_resolve, reject) => late.push({ reject }))
            const member = Reflect.get(target, name) as unknown
            return typeof member === "function" ? member.bind(target) : member
          }
        })
    })
    const talk = await world.create()
    await talk.submit({ _tag: "Pause", reason: "collect" })
    await quiet()
    holds = true
    const lost = [talk.post("a"), talk.post("b")].map((one) => one.catch((error: unknown) => error))
    await quiet()
    late[0]!.reject(diskFull)
    await lost[0]
    holds = false
    let isRead = false
    const read = talk.state().then((state) => {
      isRead = true
      return state
    })
    await quiet()
    expect(isRead).toBe(false)
    late[1]!.reject(diskFull)
    expect((await read).agents[0]?.queue).toEqual([])
    for (const error of await Promise.all(lost)) expect(error).toBeInstanceOf(LogRefused)
  })
})

describe("a conversation with runes of a newer build", () => {
  const withNewer = async (change: { readonly kind?: string; readonly schema_version?: number }) => {
    const disk = makeDiskMemory()
    const first = await worlds.open({ disk, snapshots: true, unchecked: true })
    const talk = await first.create()
    await turnOf(talk, "one")
    const last = talk.runes.at(-1)!
    const rune = { ...last, event_id: last.event_id + 1, payload: { from: "the future" }, ...change } as AnyRune
    await appendRaw(first.record, talk.id, rune)
    await first.close()
    const world = await worlds.open({ disk, snapshots: true, unchecked: true, idSeed: 9 })
    return { world, talk: world.talk(talk), eventId: rune.event_id }
  }

  /** As a newer build would write it: this one refuses to. */
  const appendRaw = (store: RuneStore, id: string, rune: AnyRune): Promise<void> => {
    const { runelog } = store as unknown as { readonly runelog: Runelog }
    return runelog.append(id, rune.event_id, [{ body: JSON.stringify(rune), family: 1 }])
  }

  it.each([
    ["a kind that it does not know", { kind: "turn.reconsidered", schema_version: 1 }],
    ["a newer version of a kind", { kind: "turn.completed", schema_version: 7 }]
  ])("is read-only where there is %s, with the reason", async (_what, change) => {
    const { eventId, talk, world } = await withNewer(change)
    for (let round = 0; round < 2; round++) {
      expect(await talk.state()).toMatchObject({ head: eventId, unknown_runes: 1 })
      const error = await talk.post("two").catch((refusal: unknown) => refusal)
      expect(error).toMatchObject({
        _tag: "LogRefused",
        cause: { _tag: "RuneNewer", event_id: eventId, ...change },
        message: expect.stringContaining("use the build that wrote it")
      })
      await quiet()
      expect(world.conversations.unload(talk.id)).toBe(true)
    }
    expect(await world.record.headNow(talk.id)).toBe(eventId)
  })

  it("goes on where all it does not know are notes of the system", async () => {
    const { talk } = await withNewer({ kind: "system.observed", schema_version: 1 })
    await turnOf(talk, "two")
    expect(talk.of("turn.completed").length).toBe(1)
  })
})

describe("closing", () => {
  it("stops work where it is, takes nothing more, and the next process goes on", async () => {
    const disk = makeDiskMemory()
    const gate = new Gate()
    const calls = scenarios({ calls: [step(1, say("working. "), use("look")), step(2, say("done"))] })
    const world = await worlds.open({ disk, scenarios: calls, tools: [tool("look", gate.run)] })
    const talk = await world.create({ model: "scripted/calls" })
    await talk.post("go")
    await gate.started
    await world.conversations.close()
    expect(gate.aborted).toBe(true)
    await expect(talk.post("late")).rejects.toBeInstanceOf(RuntimeClosed)
    await expect(world.conversations.close()).resolves.toBeUndefined()
    await world.close()
    const next = await worlds.open({ disk, scenarios: calls, tools: [tool("look", async () => "seen")], idSeed: 8 })
    const recovered = await next.conversations.recover([talk.id])
    expect(recovered).toEqual({ loaded: 1, resumed: 1, failed: [] })
    expect((await next.talk(talk).turns()).kind).toBe("turn.completed")
  })
})

describe("recovering", () => {
  it("loads everything, keeps what has work, lets the rest leave, and reports what it could not read", async () => {
    const disk = makeDiskMemory()
    const named = scenarios({ hang: [{ when: { attempt: 1, turn: 1 }, play: [say("half "), stall] }] })
    const world = await worlds.open({ disk, scenarios: named })
    const idle: Array<Talk> = []
    const busy: Array<Talk> = []
    for (let index = 0; index < 20; index++) idle.push(await world.create())
    for (let index = 0; index < 5; index++) {
      const talk = await world.create({ model: "scripted/hang" })
      await talk.post("go")
      await talk.until("turn.assistant_delta")
      busy.push(talk)
    }
    await quiet()
    await world.close()
    const next = await worlds.open({
      disk,
      idSeed: 8,
      scenarios: scenarios({ hang: [always(say("whole"))] })
    })
    const unknown = makeConversationId(next.ids)
    const ids = [...idle, ...busy].map(({ id }) => id)
    const recovered = await next.conversations.recover([...ids, unknown])
    expect(recovered).toMatchObject({ loaded: 25, resumed: 5 })
    expect(recovered.failed).toEqual([new ConversationUnknown({ conversation_id: unknown })])
    for (const talk of busy) {
      const there = next.talk(talk)
      expect(await there.turns()).toMatchObject({ payload: { final_output: "whole" } })
      expect(there.of("turn.model_requested")[0]?.payload).toMatchObject({ partial_output: "half " })
    }
    expect(next.conversations.resident).toBe(5)
  })
})
