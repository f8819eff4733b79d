// Goal: a fork is the conversation as it was at an event, with ids of its own, every reference moved along, and nothing
// of the original's work taken up twice; it is there whole or not at all. Method: forks at every event held against
// the machine's fold, the registry searched for references, the simulated disk cut at every step.
import * as fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { fold } from "#src/machine/evolve/Evolve.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import type { CallId } from "#src/rune/Ids.ts"
import type { Kind } from "#src/rune/Kinds.ts"
import { definitions } from "#src/rune/Kinds.ts"
import type { AnyRune, Rune } from "#src/rune/Rune.ts"
import { supersededDeltas } from "#src/rune/Supersession.ts"
import { type ForkRequest, fork } from "#src/store/runes/Fork.ts"
import { Renumber } from "#src/store/runes/Renumber.ts"
import { RuneStore } from "#src/store/runes/RuneStore.ts"
import { dropSuperseded } from "#src/store/runes/Thin.ts"
import { DiskSim } from "../../support/disk/DiskSim.ts"
import { payloadExamples } from "../../support/runeExamples.ts"
import { seedFor } from "../../support/seed.ts"
import { agent, conversationIdOf, type Place, places, Scribe, smallLimits } from "../support.ts"

const readAll = async (store: RuneStore, id: string): Promise<Array<AnyRune>> => {
  const runes: Array<AnyRune> = []
  for await (const page of store.pagesNow(id, { after: 0 })) runes.push(...page.runes)
  return runes
}

const original = (): Scribe => {
  const scribe = new Scribe(1).begin({ title: "original" }).turn()
  const queued = scribe.add("turn.queued", { input: "next", mode: "queue" }, { agent_id: agent })
  const place = { turn_id: "turn_5" as never, agent_id: agent }
  scribe.add(
    "turn.started",
    { ...place, input: "next", queued_event_ids: [queued.event_id] },
    { ...place, cause: queued.event_id }
  )
  scribe.answer(place, "two words", 2)
  scribe.endTurn(place, "two words")
  scribe.add("turn.compacted", { upto: queued.event_id, summary: "s" }, { agent_id: agent })
  return scribe.turn()
}

const request = (scribe: Scribe, atEventId: number, change: Partial<ForkRequest> = {}): ForkRequest => ({
  from: scribe.conversationId,
  atEventId,
  conversationId: conversationIdOf(500 + atEventId),
  ids: seededIdSource(7),
  nowMs: 1_800_000_000_000,
  ...change
})

describe.each(places)("a fork on %s", (_name, makePlace) => {
  let place: Place
  let runelog: Runelog
  let store: RuneStore

  beforeEach(async () => {
    place = makePlace()
    runelog = await Runelog.open({ ...place, limits: smallLimits })
    store = new RuneStore({ runelog })
  })
  afterEach(async () => {
    await runelog.close()
    place.dispose()
  })

  it("at any event folds to the state the original had there", async () => {
    const scribe = original()
    await store.appendNow(scribe.conversationId, scribe.runes)
    for (let at = 1; at <= scribe.runes.length; at += 3) {
      const forked = await fork({ runelog, runes: store }, request(scribe, at))
      const runes = await readAll(store, forked.conversationId)
      expect(forked.eventId).toBe(runes.length)
      expect(runes.map((rune) => rune.event_id)).toEqual(runes.map((_, index) => index + 1))
      expect(runes[0]).toMatchObject({
        kind: "session.forked",
        payload: { from: scribe.conversationId, at_event_id: at }
      })
      expect(runes.every((rune) => rune.conversation_id === forked.conversationId)).toBe(true)
      expect(new Set(runes.map((rune) => rune.rune_id)).size).toBe(runes.length)
      const was = fold(scribe.runes.slice(0, at), scribe.conversationId)
      const is = fold(runes, forked.conversationId)
      expect(is.agents.map(({ transcript }) => transcript.map(({ event_id: _, ...item }) => item))).toEqual(
        was.agents.map(({ transcript }) => transcript.map(({ event_id: _, ...item }) => item))
      )
      expect(is.agents.map(({ status, turn, queue }) => [status, turn?.partial, queue.length])).toEqual(
        was.agents.map(({ status, turn, queue }) => [status, turn?.partial, queue.length])
      )
      expect(is.usage).toEqual(was.usage)
      expect(is.session.forked_from).toBe(scribe.conversationId)
    }
  })

  it("holds no delta that a later rune repeats, and times and words as they were", async () => {
    const scribe = original()
    await store.appendNow(scribe.conversationId, scribe.runes)
    const { conversationId } = await fork({ runelog, runes: store }, request(scribe, scribe.runes.length))
    const [, ...copies] = await readAll(store, conversationId)
    const superseded = new Set(supersededDeltas(scribe.runes))
    const kept = scribe.runes.filter((rune) => !superseded.has(rune.event_id))
    expect(superseded.size).toBeGreaterThan(5)
    expect(copies.map(({ kind, ts_ms: atMs, visibility }) => [kind, atMs, visibility])).toEqual(
      kept.map(({ kind, ts_ms: atMs, visibility }) => [kind, atMs, visibility])
    )
    const started = copies.find((rune) => rune.turn_id === "turn_5" && rune.kind === "turn.started") as Rune
    const queued = copies.find(({ kind }) => kind === "turn.queued")
    expect(started).toMatchObject({ cause: queued?.event_id, payload: { queued_event_ids: [queued?.event_id] } })
    expect(copies.find(({ kind }) => kind === "turn.compacted")?.payload).toMatchObject({ upto: queued?.event_id })
  })

  it("ends as whoever asked for it says, and carries the key of the command that asked", async () => {
    const scribe = new Scribe(1)
    scribe.add("session.created", { config: {} }, { idempotency_key: "original", idempotency_hash: "a".repeat(64) })
    await store.appendNow(scribe.conversationId, scribe.runes)
    const observed: Array<string> = []
    const idempotency = { key: "fork-1", hash: "b".repeat(64) }
    const { conversationId, eventId } = await fork(
      { runelog, runes: store },
      request(scribe, 1, {
        idempotency,
        observe: ({ kind }) => observed.push(kind),
        finish: () => [{ kind: "config.updated", payload: { changes: { title: "copy" } } }]
      })
    )
    const runes = await readAll(store, conversationId)
    expect(runes.map(({ kind }) => kind)).toEqual(["session.forked", "session.created", "config.updated"])
    expect(observed).toEqual(runes.map(({ kind }) => kind))
    expect(eventId).toBe(3)
    expect(runes[0]).toMatchObject({
      idempotency_key: "fork-1",
      idempotency_hash: "b".repeat(64),
      ts_ms: 1_800_000_000_000
    })
    expect(runes[1]).not.toHaveProperty("idempotency_key")
    await store.appendNow(conversationId, [{ ...(runes[2] as Rune), event_id: 4 }])
    await expect(fork({ runelog, runes: store }, request(scribe, 1))).rejects.toMatchObject({ _tag: "LogExists" })
  })

  it("of what is not there is refused", async () => {
    const scribe = original()
    const missing = fork({ runelog, runes: store }, request(scribe, 1))
    await expect(missing).rejects.toMatchObject({ _tag: "ConversationUnknown" })
    await store.appendNow(scribe.conversationId, scribe.runes)
    for (const at of [0, -1, 1.5, scribe.runes.length + 1, Number.NaN]) {
      const refused = fork({ runelog, runes: store }, request(scribe, at, { conversationId: conversationIdOf(9) }))
      await expect(refused).rejects.toMatchObject({ _tag: "ForkInvalid" })
    }
    expect(await runelog.list()).toEqual([scribe.conversationId])
  })

  it("of a thinned original skips the gaps", async () => {
    const scribe = original()
    await store.appendNow(scribe.conversationId, scribe.runes)
    await runelog.seal(scribe.conversationId)
    const delta = scribe.runes.find(({ kind }) => kind === "turn.assistant_delta")!
    const { conversationId } = await fork({ runelog, runes: store }, request(scribe, delta.event_id))
    const runes = await readAll(store, conversationId)
    expect(runes.at(-1)?.kind).toBe("turn.model_requested")
  })
})

describe("a crash in a fork", () => {
  it("leaves no fork or all of it", async () => {
    const seed = seedFor("fork crash")
    const run = async (step: number) => {
      const disk = new DiskSim()
      const runelog = await Runelog.open({ disk, directory: "/data", limits: smallLimits })
      const store = new RuneStore({ runelog })
      const scribe = new Scribe(1).begin().turn()
      await store.appendNow(scribe.conversationId, scribe.runes)
      const from = disk.operationCount
      disk.onOperation = ({ index }) => {
        if (index - from === step) disk.powerOff()
      }
      const forked = await fork({ runelog, runes: store }, request(scribe, 12)).catch(() => undefined)
      const steps = disk.operationCount - from
      const whole = step === Number.POSITIVE_INFINITY ? await readAll(store, conversationIdOf(512)) : []
      await runelog.close().catch(() => undefined)
      return { disk, forked, steps, whole }
    }
    const { steps, whole } = await run(Number.POSITIVE_INFINITY)
    let none = 0
    let all = 0
    for (let step = 0; step <= steps; step++) {
      const { disk, forked } = await run(step)
      for (let draw = 0; draw < 3; draw++) {
        const runelog = await Runelog.open({
          disk: disk.crash(seed + step * 10 + draw),
          directory: "/data",
          limits: smallLimits
        })
        const store = new RuneStore({ runelog })
        const head = await store.headNow(conversationIdOf(512))
        if (forked !== undefined) expect(head).toBe(forked.eventId)
        if (head === 0) none += 1
        else {
          expect(await readAll(store, conversationIdOf(512))).toEqual(whole)
          all += 1
        }
        expect(await store.headNow(conversationIdOf(1))).toBeGreaterThan(0)
        await runelog.close()
      }
    }
    expect(none).toBeGreaterThan(0)
    expect(all).toBeGreaterThan(0)
  })
})

describe("references to events", () => {
  const isEventField = (key: string): boolean =>
    /(^|_)event_ids?$/.test(key) || ["upto", "revoked_grants"].includes(key)

  /** Every place in an example that names an event. */
  const found = (value: unknown, path: ReadonlyArray<string> = []): ReadonlyArray<string> => {
    if (Array.isArray(value)) return value.flatMap((item) => found(item, [...path, "*"]))
    if (value === null || typeof value !== "object") return []
    return Object.entries(value).flatMap(([key, item]) => {
      if (!isEventField(key)) return found(item, [...path, key])
      return [[...path, key, ...(Array.isArray(item) ? ["*"] : [])].join(".")]
    })
  }

  it("are all known: a payload that names an event is in the table", () => {
    const known = definitions.flatMap(({ kind, references }) => references.map((path) => `${kind} ${path.join(".")}`))
    const inExamples = Object.entries(payloadExamples).flatMap(([kind, payload]) => [
      ...new Set(found(payload).map((path) => `${kind} ${path}`))
    ])
    const foreign = ["session.forked at_event_id"]
    expect(new Set(inExamples.filter((one) => !foreign.includes(one)))).toEqual(
      new Set(known.filter((one) => !one.startsWith("system.thinned")))
    )
  })

  it("move with the events, or to the last one before that came along", () => {
    const scribe = original()
    fc.assert(
      fc.property(fc.subarray(scribe.runes, { minLength: 1 }), fc.integer({ min: 1, max: 5 }), (kept, first) => {
        const renumber = new Renumber({
          conversationId: conversationIdOf(2),
          ids: seededIdSource(1),
          firstEventId: first
        })
        const moved = kept.map((rune) => renumber.move({ ...rune, cause: rune.event_id } as Rune))
        expect(moved.map((rune) => rune.event_id)).toEqual(kept.map((_, index) => first + index))
        for (const rune of moved) expect(rune.cause).toBe(rune.event_id)
        for (const rune of scribe.runes) {
          const before = kept.filter((one) => one.event_id <= rune.event_id).length
          expect(renumber.eventId(rune.event_id)).toBe(before === 0 ? 0 : first + before - 1)
        }
      }),
      { seed: seedFor("renumber") }
    )
  })

  it("are left alone where they are no event ids", () => {
    const renumber = new Renumber({ conversationId: conversationIdOf(2), ids: seededIdSource(1), firstEventId: 1 })
    const [first] = original().runes as [Rune]
    const move = (kind: Kind, payload: unknown): unknown =>
      renumber.move({ ...first, kind, payload } as unknown as Rune).payload
    expect(move("turn.compacted", { upto: "x" })).toEqual({ upto: "x" })
    expect(move("turn.compacted", null)).toBe(null)
    expect(move("turn.started", { queued_event_ids: 7 })).toEqual({ queued_event_ids: 7 })
    expect(move("turn.started", {})).toEqual({})
    expect(move("turn.compacted", { upto: 0 })).toEqual({ upto: 1 })
    expect(renumber.move({ ...first, event_id: 90, cause: 0 } as Rune)).not.toHaveProperty("cause")
  })
})

describe("thinning on the way", () => {
  const through = async (runes: ReadonlyArray<AnyRune>, windowChars?: number): Promise<Array<AnyRune>> => {
    async function* source() {
      yield* runes
    }
    const kept: Array<AnyRune> = []
    for await (const rune of dropSuperseded(source(), windowChars === undefined ? {} : { windowChars })) kept.push(rune)
    return kept
  }

  it("drops exactly what the registry calls superseded, and keeps the order", async () => {
    const writer = (order: ReadonlyArray<number>): Scribe => {
      const scribe = new Scribe(1).begin()
      const turns = [1, 2, 3].map((number) => ({ turn_id: `turn_${number}` as never, agent_id: agent }))
      for (const choice of order) {
        const turn = turns[choice % 3]!
        const callId = `call_${choice % 3}` as CallId
        const kind = Math.floor(choice / 3) % 5
        if (kind === 0) scribe.add("turn.assistant_delta", { content: "x" }, turn)
        else if (kind === 1) scribe.add("tool.progress", { call_id: callId, stream: "stdout", chunk: "y" }, turn)
        else if (kind === 2) scribe.add("turn.assistant_final", { content: "x", items: [] }, turn)
        else if (kind === 3) scribe.add("tool.result", { call_id: callId, status: "success", duration_ms: 1 }, turn)
        else scribe.add("session.paused", { reason: "r" })
      }
      return scribe
    }
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(14), { maxLength: 80 }), async (order) => {
        const { runes } = writer(order)
        const superseded = new Set(supersededDeltas(runes))
        expect(await through(runes)).toEqual(runes.filter((rune) => !superseded.has(rune.event_id)))
        const bounded = await through(runes, 600)
        expect(bounded.filter((rune) => !superseded.has(rune.event_id))).toEqual(await through(runes))
        expect(bounded.map((rune) => rune.event_id)).toEqual(
          bounded.map((rune) => rune.event_id).toSorted((left, right) => left - right)
        )
      }),
      { seed: seedFor("thinning"), numRuns: 60 }
    )
  })

  it("lets through what it cannot hold", async () => {
    const scribe = new Scribe(1).begin()
    const turn = scribe.startTurn("long")
    for (let delta = 0; delta < 200; delta++) scribe.add("turn.assistant_delta", { content: "x".repeat(100) }, turn)
    scribe.add("turn.assistant_final", { content: "x", items: [] }, turn)
    const kept = await through(scribe.runes, 10_000)
    expect(kept.length).toBeGreaterThan(100)
    expect(kept.length).toBeLessThan(scribe.runes.length)
  })
})
