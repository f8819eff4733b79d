// A whole runtime in a simulated world: a disk that loses power, models that stumble, tools with side effects, people who
// post, interrupt, allow and refuse at random, and a process that dies at random. One seed is one story. At the end
// everything must have come to rest, and every log must say so.
import { expect } from "vitest"
import { DiskSim } from "#runelog/DiskSim.ts"
import type { Command } from "#src/machine/Command.ts"
import { pendingApprovals } from "#src/machine/Select.ts"
import type { ConversationState } from "#src/machine/State.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import { randomFrom } from "../seed.ts"
import { fastRunFork } from "./clocks.ts"
import { checkRunes, readLog } from "./Logs.ts"
import { fail, type Play, type ReplySpec, say, scenarios, use } from "./scenarios.ts"
import { nextTurn } from "./sink.ts"
import { effectTool, tool } from "./tools.ts"
import { Talk, World } from "./World.ts"

export interface Story {
  readonly runes: number
  readonly lives: number
  readonly turns: number
  readonly sideEffects: number
}

const STEPS = 24
const CONVERSATIONS_MAX = 3
/** Turns of the loop in which a story that was left alone must come to rest. */
const REST_TURNS = 200_000

const toolNames = ["look", "write", "ask"] as const

export class Simulated {
  private readonly random: () => number
  private readonly seed: number
  private disk = new DiskSim()
  private world: World | undefined
  private talks: Array<Talk> = []
  private lives = 0
  /** What was told to be durable, by conversation, over all lives. */
  private readonly known = new Map<string, Array<AnyRune>>()
  /** The last event that an answer spoke of. */
  private readonly acknowledged = new Map<string, number>()
  private readonly sideEffects = new Map<string, number>()
  private readonly replies: ReadonlyArray<ReplySpec>

  constructor(seed: number) {
    this.seed = seed
    this.random = randomFrom(seed)
    this.replies = this.makeReplies()
  }

  private below(count: number): number {
    return Math.floor(this.random() * count)
  }

  private pick<A>(from: ReadonlyArray<A>): A {
    return from[this.below(from.length)]!
  }

  /** A few steps with tools, some of which the provider stumbles over at first; then an end. */
  private makeReplies(): ReadonlyArray<ReplySpec> {
    const steps = 1 + this.below(3)
    const replies: Array<ReplySpec> = []
    for (let step = 1; step <= steps; step++) {
      const stumbles = this.random() < 0.3
      const kind = this.pick(["overloaded", "server", "network"])
      if (stumbles) replies.push({ when: { step, attempt: 1 }, play: [say("Well, "), fail(kind)] })
      const calls: Array<Play> = Array.from({ length: 1 + this.below(3) }, () => use(this.pick(toolNames), { step }))
      replies.push({ when: { step }, play: [say("Let me see. "), ...calls] })
    }
    replies.push({ play: [say("That is all: {{output}}")] })
    return replies
  }

  private async begin(): Promise<World> {
    this.lives += 1
    const count = async (
      _input: unknown,
      { call_id: callId, conversation_id: id }: SideEffectPlace
    ): Promise<string> => {
      const key = `${id} ${callId}`
      this.sideEffects.set(key, (this.sideEffects.get(key) ?? 0) + 1)
      return "written"
    }
    const world = await World.open({
      disk: this.disk,
      idSeed: (this.seed ^ (this.lives * 0x9e37_79b9)) >>> 0,
      journalFileBytes: 2 * 1024 * 1024,
      runFork: fastRunFork(2000),
      unchecked: true,
      scenarios: scenarios({ work: this.replies }),
      tools: [
        tool("look", async () => "seen"),
        effectTool("write", count as never),
        effectTool("ask", count as never, { approval: "ask" })
      ]
    })
    this.world = world
    this.talks = this.talks.map((talk) => new Talk(world, talk.id, talk.root))
    for (const talk of this.talks) await this.expectNothingLost(talk)
    const there: Array<Talk> = []
    for (const talk of this.talks) if ((await world.store.headNow(talk.id)) > 0) there.push(talk)
    this.talks = there
    await world.conversations.recover(this.talks.map(({ id }) => id))
    return world
  }

  private async expectNothingLost(talk: Talk): Promise<void> {
    const known = this.known.get(talk.id) ?? []
    if (known.length === 0) return
    const log = await readLog(talk.world.store, talk.id)
    expect(log.slice(0, known.length), `seed ${this.seed}: what was durable is still there`).toEqual(known)
    expect(log.length).toBeGreaterThanOrEqual(this.acknowledged.get(talk.id) ?? 0)
  }

  /** The process ends without a word, with or without the machine. */
  private end(): void {
    const { world } = this
    if (world === undefined) return
    for (const [id, runes] of world.durable) this.known.set(id, [...(this.known.get(id) ?? []), ...runes])
    const next = this.random() < 0.5 ? this.disk.crash(this.below(2 ** 32)) : this.disk.killProcess()
    this.disk.powerOff()
    this.disk = next
    world.conversations.close().catch(() => undefined)
    this.world = undefined
  }

  /** An answer that comes is remembered; a refusal is an answer too, and a life that ends gives none. */
  private send(talk: Talk, command: Command): void {
    const { world } = this
    talk.submit(command).then(
      ({ event_id: eventId }) => {
        if (world !== this.world) return
        this.acknowledged.set(talk.id, Math.max(this.acknowledged.get(talk.id) ?? 0, eventId))
      },
      () => undefined
    )
  }

  private decide(talk: Talk, state: ConversationState): void {
    const call = pendingApprovals(state)[0]
    if (call === undefined) return
    const who = { call_id: call.call_id, approver: "ada", channel: "test" } as const
    this.send(
      talk,
      this.random() < 0.7 ? { _tag: "ApproveCall", ...who, scope: "once" } : { _tag: "DenyCall", ...who, reason: "no" }
    )
  }

  private async act(world: World): Promise<void> {
    const talk = this.pick(this.talks)
    const state = await talk.state()
    const choice = this.below(10)
    const mode = this.random() < 0.8 ? "queue" : "steer"
    if (choice < 3) this.send(talk, { _tag: "PostMessage", content: `message ${this.below(1000)}`, mode })
    else if (choice < 6) this.decide(talk, state)
    else if (choice === 6) this.send(talk, { _tag: "InterruptTurn", reason: "never mind" })
    else if (choice === 7)
      this.send(talk, { _tag: state.session.status === "paused" ? "Resume" : "Pause", reason: "so" })
    else if (choice === 8 && this.talks.length < CONVERSATIONS_MAX) this.talks.push(await this.create(world))
    for (let turns = this.below(30); turns > 0; turns--) await nextTurn()
  }

  private create(world: World): Promise<Talk> {
    return world.create({ model: "scripted/work" })
  }

  async run(): Promise<Story> {
    let world = await this.begin()
    this.talks.push(await this.create(world))
    for (let step = 0; step < STEPS; step++) {
      await this.act(world)
      if (this.random() < 0.12) {
        this.end()
        world = await this.begin()
        if (this.talks.length === 0) this.talks.push(await this.create(world))
      }
    }
    await this.rest()
    return this.judge(world)
  }

  /** Everybody is answered and nobody asks for more: what is under way must end. */
  private async rest(): Promise<void> {
    for (let turn = 0; turn < REST_TURNS; turn++) {
      let isWorking = false
      for (const talk of this.talks) {
        const state = await talk.state()
        if (state.session.status === "paused") this.send(talk, { _tag: "Resume", reason: "go on" })
        this.decide(talk, state)
        isWorking ||= state.agents.some(({ queue, turn: open }) => open !== null || queue.length > 0)
      }
      if (!isWorking) return
      await nextTurn()
    }
    throw new Error(`seed ${this.seed}: it does not come to rest`)
  }

  private async judge(world: World): Promise<Story> {
    let runes = 0
    let turns = 0
    const states = world.conversations.residentStates()
    // A state runs ahead of the disk; once all work is stopped the two must agree.
    await world.conversations.close()
    for (const talk of this.talks) {
      const live = states.find(({ conversation_id: id }) => id === talk.id)
      const log = await readLog(world.store, talk.id)
      checkRunes(talk.id, log, live)
      runes += log.length
      turns += log.filter(({ kind }) => kind === "turn.started").length
    }
    for (const [call, times] of this.sideEffects) expect(times, `seed ${this.seed}: ${call}`).toBe(1)
    expect(world.crashes, `seed ${this.seed}`).toEqual([])
    await world.close()
    return { runes, lives: this.lives, turns, sideEffects: this.sideEffects.size }
  }
}

interface SideEffectPlace {
  readonly conversation_id: string
  readonly call_id: string
}
