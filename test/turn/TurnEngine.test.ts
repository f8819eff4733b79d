// Goal: each kind of pending work does its step through commands, in their order, and the machine then wants the next.
// Method: the real machine in memory, brought to where the work is pending; then the engine performs that one effect and
// nothing else. Every tag has its case, and a list that misses one does not compile.
// Verifies: INV-TURN-ORDER, INV-TOOL-APPROVAL-BEFORE-EXEC
import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import { CommandRefused } from "#src/contract/CommandErrors.ts"
import type { HookPort } from "#src/hook/HookPort.ts"
import type { Command } from "#src/machine/Command.ts"
import { stampAll } from "#src/machine/Conversation.ts"
import { decide } from "#src/machine/decide/Decide.ts"
import { evolve } from "#src/machine/evolve/Evolve.ts"
import { emptyConversation } from "#src/machine/State.ts"
import { pendingWork, type TurnWork } from "#src/machine/work/PendingWork.ts"
import { makeRegistry } from "#src/provider/Registry.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import { makeAgentId, makeConversationId, makeRuneId } from "#src/rune/Ids.ts"
import { Compaction } from "#src/turn/Compaction.ts"
import { Models } from "#src/turn/Models.ts"
import { Spending } from "#src/turn/Spending.ts"
import { Streams } from "#src/turn/Streams.ts"
import { type EngineOptions, perform } from "#src/turn/TurnEngine.ts"
import { attempt, fail, say, scenarios, step, use } from "../support/runtime/scenarios.ts"
import { effectTool, tool } from "../support/runtime/tools.ts"
import { functionTools } from "../support/tool/FunctionTools.ts"

type Tag = TurnWork["_tag"]

const tools = [
  tool("look", async () => "seen"),
  effectTool("write", async () => "written"),
  effectTool("ask", async () => "allowed", { approval: "ask" })
]

const played = scenarios({
  talk: [{ play: [say("Hello.")] }],
  look: [step(1, use("look")), step(2, say("done"))],
  write: [step(1, use("write")), step(2, say("done"))],
  ask: [step(1, use("ask")), step(2, say("done"))],
  stumble: [attempt(1, fail("overloaded")), { play: [say("now")] }]
})

const hooks: HookPort = {
  choose: () => [
    { hook_name: "lint", failure_policy: { type: "warn_continue" }, timeout_ms: 1000, effect_class: "idempotent" }
  ],
  run: () => Effect.succeed({ status: "succeeded", exit_code: 0 })
}

/** A conversation that lives in memory and writes down what it was told. */
class Stage {
  readonly state
  readonly told: Array<Command["_tag"]> = []
  readonly kinds: Array<string> = []
  nowMs = 1_763_251_200_000
  /** Of this command only the first rune is there, as in a log that an older writer left. */
  halved: Command["_tag"] | undefined
  private readonly ids = seededIdSource(5)
  readonly root = makeAgentId(this.ids)
  private readonly engine: EngineOptions

  constructor(model: string) {
    const conversationId = makeConversationId(this.ids)
    this.state = emptyConversation(conversationId)
    const models = new Models(makeRegistry({ key: () => undefined, scenarios: played }))
    const commands = {
      conversationId,
      state: () => this.state,
      submit: async (command: Command) => this.tell(command),
      settled: async () => undefined
    }
    const streams = new Streams()
    this.engine = {
      commands,
      models,
      tools: functionTools(tools),
      hooks,
      ids: this.ids,
      nowMs: () => this.nowMs,
      monotonicMs: () => performance.now(),
      random: () => 0,
      deltaEveryMs: 0,
      streams,
      spending: new Spending(),
      compaction: new Compaction({ commands, models, ids: this.ids, streams }),
      changed: () => new Promise((resolve) => setImmediate(resolve))
    }
    const root = { agent_id: this.root, role: "root", model: `scripted/${model}` }
    const config = { limits: { approval_timeout_ms: 600_000 } }
    this.tell({ _tag: "CreateConversation", conversation_id: conversationId, config, root })
  }

  tell(command: Command): void {
    this.told.push(command._tag)
    const verdict = decide(this.state, command, { at_ms: this.nowMs })
    if (verdict._tag === "Refused") throw new CommandRefused({ refusal: verdict.refusal, command: command._tag })
    const drafts = verdict._tag === "Accepted" ? verdict.drafts : []
    const kept = command._tag === this.halved ? drafts.slice(0, 1) : drafts
    for (const rune of stampAll(this.state, kept, { at_ms: this.nowMs, runeId: () => makeRuneId(this.ids) })) {
      evolve(this.state, rune)
      this.kinds.push(rune.kind)
    }
  }

  post(): this {
    this.tell({ _tag: "PostMessage", content: "go", mode: "queue" })
    return this
  }

  get pending(): ReadonlyArray<TurnWork> {
    return pendingWork(this.state).filter((effect): effect is TurnWork => effect._tag !== "PlanWork")
  }

  async perform(effect: TurnWork): Promise<ReadonlyArray<Command["_tag"]>> {
    const before = this.told.length
    await Effect.runPromise(perform(this.engine, effect))
    return this.told.slice(before)
  }

  /** Performs whatever is pending until work of this kind is, and hands that over. */
  async until(tag: Tag): Promise<TurnWork> {
    for (let steps = 0; steps < 20; steps++) {
      const found = this.pending.find((effect) => effect._tag === tag)
      if (found !== undefined) return found
      const [next] = this.pending
      if (next === undefined) break
      await this.perform(next)
    }
    throw new Error(`${tag} never became pending: ${this.kinds.join(" ")}`)
  }
}

interface Case {
  readonly stage: () => Stage
  /** What the work tells the conversation, in this order. */
  readonly tells: ReadonlyArray<Command["_tag"]>
  /** What the machine wants afterwards. */
  readonly wants: ReadonlyArray<Tag>
  readonly before?: (stage: Stage) => void
}

const cases: { readonly [T in Tag]: Case } = {
  StartAgent: { stage: () => new Stage("talk"), tells: ["CompleteAgentInit"], wants: [] },
  StartQueued: { stage: () => new Stage("talk").post(), tells: ["StartQueued"], wants: ["CallModel"] },
  CallModel: {
    stage: () => new Stage("talk").post(),
    tells: ["RequestModel", "AppendText", "ReceiveResponse"],
    wants: []
  },
  FinaliseResponse: { stage: () => new Stage("talk").post(), tells: ["FinaliseResponse"], wants: [] },
  RouteTool: { stage: () => new Stage("look").post(), tells: ["StartCall", "FinishCall"], wants: ["SettleTools"] },
  AwaitApproval: {
    stage: () => new Stage("ask").post(),
    tells: ["ExpireApproval"],
    wants: ["SettleTools"],
    before: (stage) => {
      stage.nowMs += 10 * 24 * 3_600_000
    }
  },
  RunTool: { stage: () => new Stage("ask").post(), tells: ["StartCall", "FinishCall"], wants: ["SettleTools"] },
  SettleTools: { stage: () => new Stage("write").post(), tells: ["SettleTools"], wants: ["RunHook"] },
  RunHook: { stage: () => new Stage("write").post(), tells: ["StartHook", "FinishHook"], wants: ["CallModel"] },
  RetryAfter: {
    stage: () => new Stage("stumble").post(),
    tells: ["RetryDue"],
    wants: ["CallModel"],
    before: (stage) => {
      stage.nowMs += 60_000
    }
  },
  FinishClosing: { stage: () => new Stage("talk"), tells: ["FinishClosing"], wants: [] }
}

const prepare: { readonly [T in Tag]?: (stage: Stage) => Promise<void> } = {
  FinaliseResponse: async (stage) => {
    stage.halved = "ReceiveResponse"
  },
  RunTool: async (stage) => {
    const waiting = await stage.until("AwaitApproval")
    if (waiting._tag !== "AwaitApproval") throw new Error("no question was asked")
    const who = { approver: "ada", channel: "test", scope: "once" } as const
    stage.tell({ _tag: "ApproveCall", call_id: waiting.call_id, ...who })
  },
  FinishClosing: async (stage) => {
    await stage.perform(await stage.until("StartAgent"))
    stage.tell({ _tag: "Close", reason: "done" })
  }
}

describe("the engine", () => {
  it.each(Object.entries(cases) as ReadonlyArray<[Tag, Case]>)("performs %s", async (tag, wanted) => {
    const stage = wanted.stage()
    await prepare[tag]?.(stage)
    const effect = await stage.until(tag)
    wanted.before?.(stage)
    expect(await stage.perform(effect)).toEqual(wanted.tells)
    expect(stage.pending.map(({ _tag }) => _tag)).toEqual(wanted.wants)
  })

  it("ends without a word when the machine does not want the work any more", async () => {
    const stage = new Stage("look").post()
    const route = await stage.until("RouteTool")
    stage.tell({ _tag: "InterruptTurn", reason: "never mind" })
    const kinds = stage.kinds.length
    await stage.perform(route)
    expect(stage.kinds.length).toBe(kinds)
  })
})
