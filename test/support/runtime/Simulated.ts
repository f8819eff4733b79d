// A whole runtime in a simulated world: a disk that loses power, models that stumble, tools with side effects, people who
// post, interrupt, allow and refuse at random, clocks that are set, and a process that dies at random. One seed is one
// story, the same to the last rune whenever it is told: time passes only as the story says. At the end everything must
// have come to rest, and the judge must find nothing. A defect, if given, breaks one part on purpose.
import type { Disk } from "#runelog/disk/Disk.ts"
import type { Command } from "#src/machine/Command.ts"
import type { ConversationState } from "#src/machine/State.ts"
import { pendingApprovals } from "#src/machine/view/Select.ts"
import type { Registry } from "#src/provider/Registry.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import type { RuneStore } from "#src/store/runes/RuneStore.ts"
import type { ToolContext, ToolPort } from "#src/tool/ToolPort.ts"
import { DiskSim } from "../disk/DiskSim.ts"
import { randomFrom } from "../seed.ts"
import { functionTools } from "../tool/FunctionTools.ts"
import { OwnClock } from "./clocks.ts"
import { Judge } from "./Judge.ts"
import { readLog } from "./Logs.ts"
import { fail, type Play, type ReplySpec, say, scenarios, use } from "./scenarios.ts"
import { nextTurn } from "./sink.ts"
import { effectTool, tool } from "./tools.ts"
import { Talk, World } from "./World.ts"

/** What stands between the runtime and its world, to break a promise there. */
export interface Defect {
  readonly disk?: (disk: Disk) => Disk
  readonly store?: (store: RuneStore) => RuneStore
  readonly registry?: (registry: Registry) => Registry
  readonly tools?: (tools: ToolPort) => ToolPort
}

export interface Story {
  /** Every log there is at the end, in the order in which the conversations were begun. */
  readonly logs: ReadonlyArray<ReadonlyArray<AnyRune>>
  readonly lives: number
  readonly turns: number
  readonly sideEffects: number
}

const STEPS = 24
const CONVERSATIONS_MAX = 3
/** Turns of the loop in which a story that was left alone must come to rest, and what passes in each. */
const REST_TURNS = 20_000
const TURN_MS = 20
/** Turns that a tool takes at most, before it does what it does and after. */
const TOOL_TURNS = 8
/** What a model says comes in pieces, with so much time between them. */
const SLOWLY = { chunk_chars: 4, delay_ms: 2 * TURN_MS }
/** The wall clock is set by up to this much, ahead or back. */
const WALL_SET_MS = 3_600_000

const toolNames = ["look", "write", "ask"] as const

export class Simulated {
  private readonly random: () => number
  private readonly seed: number
  private readonly defect: Defect
  private readonly clock = new OwnClock()
  private readonly judge: Judge
  private disk = new DiskSim()
  private world: World | undefined
  private talks: Array<Talk> = []
  private lives = 0
  private readonly replies: ReadonlyArray<ReplySpec>

  constructor(seed: number, defect: Defect = {}) {
    this.seed = seed
    this.defect = defect
    this.random = randomFrom(seed)
    this.judge = new Judge(seed)
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
      const kind = this.pick(["overloaded", "server_error", "connection", "truncated"])
      if (stumbles) replies.push({ when: { step, attempt: 1 }, play: [say("Well, ", SLOWLY), fail(kind)] })
      const calls: Array<Play> = Array.from({ length: 1 + this.below(3) }, () => use(this.pick(toolNames), { step }))
      replies.push({ when: { step }, play: [say("Let me see. ", SLOWLY), ...calls] })
    }
    replies.push({ play: [say("That is all: {{output}}")] })
    return replies
  }

  /** Resolves after some turns of the loop, and never when the process is gone by then. */
  private async takeTime(life: number): Promise<void> {
    for (let turns = this.below(TOOL_TURNS); turns > 0; turns--) await nextTurn()
    if (life !== this.lives) await new Promise(() => undefined)
  }

  /** Tools that take a while before and after they do what they do. */
  private tools(): ToolPort {
    const life = this.lives
    const write = async (_input: unknown, context: ToolContext): Promise<string> => {
      await this.takeTime(life)
      this.judge.sideEffect(context)
      await this.takeTime(life)
      return "written"
    }
    const look = async (): Promise<string> => {
      await this.takeTime(life)
      return "seen"
    }
    return functionTools([
      tool("look", look),
      effectTool("write", write),
      effectTool("ask", write, { approval: "ask" })
    ])
  }

  private openWorld(): Promise<World> {
    const { defect } = this
    const seed = (this.seed ^ (this.lives * 0x9e37_79b9)) >>> 0
    const bytes = randomFrom(seed)
    const hex = () => Math.floor(bytes() * 256).toString(16)
    const tools = this.tools()
    const registry = (sound: Registry) => this.judge.watch(sound)
    return World.open({
      disk: defect.disk?.(this.disk) ?? this.disk,
      idSeed: seed,
      randomHex: (count) => Array.from({ length: count }, () => hex().padStart(2, "0")).join(""),
      journalFileBytes: 2 * 1024 * 1024,
      clock: this.clock,
      monotonicMs: this.clock.monotonicMs,
      runFork: this.clock.runFork,
      unchecked: true,
      scenarios: scenarios({ work: this.replies }),
      tools: defect.tools?.(tools) ?? tools,
      wrapRegistry: (sound) => registry(defect.registry?.(sound) ?? sound),
      ...(defect.store === undefined ? {} : { wrapStore: defect.store })
    })
  }

  private async begin(): Promise<World> {
    this.lives += 1
    const world = await this.openWorld()
    this.world = world
    this.talks = this.talks.map((talk) => new Talk(world, talk.id, talk.root))
    const there: Array<Talk> = []
    for (const talk of this.talks) {
      const log = (await world.record.headNow(talk.id)) > 0 ? await readLog(world.record, talk.id) : []
      this.judge.afterRestart(talk.id, log)
      if (log.length > 0) there.push(talk)
    }
    this.talks = there
    const { failed } = await world.conversations.recover(this.talks.map(({ id }) => id))
    this.judge.recovered(failed)
    return world
  }

  /** The process ends without a word, with or without the machine. */
  private end(): void {
    const { world } = this
    if (world === undefined) return
    for (const [id, runes] of world.durable) this.judge.told(id, runes)
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
      (answer) => {
        if (world === this.world) this.judge.answered(talk.id, command, answer)
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

  private async turn(): Promise<void> {
    await nextTurn()
    this.clock.pass(TURN_MS)
  }

  private async act(world: World): Promise<void> {
    const talk = this.pick(this.talks)
    const state = await talk.state()
    const choice = this.below(11)
    const mode = this.random() < 0.8 ? "queue" : "steer"
    if (choice < 3) this.send(talk, { _tag: "PostMessage", content: `message ${this.below(1000)}`, mode })
    else if (choice < 6) this.decide(talk, state)
    else if (choice === 6) this.send(talk, { _tag: "InterruptTurn", reason: "never mind" })
    else if (choice === 7)
      this.send(talk, { _tag: state.session.status === "paused" ? "Resume" : "Pause", reason: "so" })
    else if (choice === 8 && this.talks.length < CONVERSATIONS_MAX) this.talks.push(await this.create(world))
    else if (choice === 9) this.clock.setWall(this.below(2 * WALL_SET_MS) - WALL_SET_MS)
    for (let turns = this.below(30); turns > 0; turns--) await this.turn()
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
    return this.finish(world)
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
      await this.turn()
    }
    throw new Error(`seed ${this.seed}: it does not come to rest`)
  }

  private async finish(world: World): Promise<Story> {
    const logs: Array<ReadonlyArray<AnyRune>> = []
    const states = world.conversations.residentStates()
    // A state runs ahead of the disk; once all work is stopped the two must agree.
    await world.conversations.close()
    for (const { id } of this.talks) {
      const live = states.find(({ conversation_id: one }) => one === id)
      const log = await readLog(world.record, id)
      this.judge.atTheEnd(id, log, live)
      logs.push(log)
    }
    this.judge.overAll(world.crashes)
    await world.close()
    const turns = logs.flat().filter(({ kind }) => kind === "turn.started").length
    return { logs, lives: this.lives, turns, sideEffects: this.judge.sideEffects }
  }
}
