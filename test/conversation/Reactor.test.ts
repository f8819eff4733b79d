// Goal: the world follows the state, work that gets nowhere does not spin, and what keeps crashing ends in a suspended
// conversation with a reason a person can read. Method: a conversation told by hand, work that the test ends.
// Verifies: INV-AGENT-SUPERVISED, INV-TURN-TERMINAL
import * as Effect from "effect/Effect"
import { beforeEach, describe, expect, it } from "vitest"
import { Reactor, type ReactorHost } from "#src/conversation/Reactor.ts"
import type { Command } from "#src/machine/Command.ts"
import { checkInvariants } from "#src/machine/invariants/Invariants.ts"
import type { PendingWork } from "#src/machine/work/PendingWork.ts"
import { fiberList } from "#src/supervise/Branch.ts"
import { nextTurn } from "../support/runtime/sink.ts"
import { callItem, readTool, Story, shellTool } from "../support/story.ts"

type Work = (pending: PendingWork) => Effect.Effect<void>

let story: Story
let started: Array<string>
let stopped: Array<string>
let crashed: Array<string>
let idles: number
let work: Work

const untilStopped: Work = (pending) =>
  Effect.onInterrupt(Effect.never, () => Effect.sync(() => stopped.push(pending._tag)))

const reactorOf = (intensity = { restartsMax: 3, withinMs: 5000 }): Reactor => {
  const host: ReactorHost = {
    get state() {
      return story.state
    },
    perform: (pending) => {
      started.push(pending._tag)
      return work(pending)
    },
    insist: async (command: Command) => {
      const verdict = story.send(command)
      if (verdict._tag !== "Accepted") throw new Error(`${command._tag} was refused`)
      reactor.react()
    },
    onCrash: (id) => crashed.push(id),
    onIdle: () => {
      idles += 1
    }
  }
  const reactor: Reactor = new Reactor({ intensity }, host)
  return reactor
}

beforeEach(() => {
  story = new Story().ready()
  started = []
  stopped = []
  crashed = []
  idles = 0
  work = untilStopped
})

const never = (): never => {
  throw new Error("no fiber runs")
}

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 4; turn++) await nextTurn()
}

describe("the reactor", () => {
  it("starts what is pending, once, however often it looks", async () => {
    const reactor = reactorOf()
    story.post("go")
    for (let time = 0; time < 5; time++) reactor.react()
    expect(started).toEqual([])
    await settle()
    reactor.react()
    await settle()
    expect(started).toEqual(["CallModel"])
    expect(reactor.running).toEqual(["model turn_1 0 1"])
    await reactor.stop()
  })

  it("stops what is no longer pending, and starts what is instead", async () => {
    const reactor = reactorOf()
    story.post("go")
    reactor.react()
    await settle()
    story.request()
    story.respond([callItem("a", readTool), callItem("b", readTool)])
    reactor.react()
    await settle()
    expect(stopped).toEqual(["CallModel"])
    expect(started).toEqual(["CallModel", "RouteTool", "RouteTool"])
    expect(crashed).toEqual([])
    await reactor.stop()
    expect(reactor.isIdle).toBe(true)
  })

  it("goes on with a call that moves from being routed to being run", async () => {
    const reactor = reactorOf()
    story.inBatch(callItem("a", readTool))
    reactor.react()
    await settle()
    story.start("call_1")
    reactor.react()
    await settle()
    expect(started).toEqual(["RouteTool"])
    expect(stopped).toEqual([])
    await reactor.stop()
  })

  it("rests when there is nothing to do", async () => {
    const reactor = reactorOf()
    reactor.react()
    expect(reactor.isIdle).toBe(false)
    await settle()
    expect(reactor.isIdle).toBe(true)
    expect(idles).toBe(1)
  })

  it("shows its fibers as a tree: the conversation, agents, turns, and the work of each", async () => {
    const other = "agt_00000000000000c1" as never
    const reactor = reactorOf()
    expect(reactor.fibers).toBeUndefined()
    story.inBatch(callItem("a", readTool), callItem("b", readTool))
    story.run({ _tag: "SpawnAgent", spec: { agent_id: other, role: "w", model: "scripted/echo" } })
    reactor.react()
    await settle()
    const { root, state } = story
    const { items } = fiberList([reactor.fibers ?? never()], 100)
    expect(items.map(({ depth, name }) => `${depth} ${name}`)).toEqual([
      `0 conversation ${state.conversation_id}`,
      `1 agent ${root}`,
      "2 turn turn_1",
      `3 running call_1 in turn_1 of agent ${root}`,
      `3 running call_2 in turn_1 of agent ${root}`,
      `1 agent ${other}`,
      `2 starting agent ${other}`
    ])
    expect(new Set(items.map(({ fiber_id: id }) => id)).size).toBe(items.length)
    await reactor.stop()
  })

  it("interrupts an agent that is killed with all of its work, and no other", async () => {
    const other = "agt_00000000000000c1" as never
    story.run({ _tag: "SpawnAgent", spec: { agent_id: other, role: "w", model: "scripted/echo" } })
    story.run({ _tag: "CompleteAgentInit", agent_id: other })
    story.run({ _tag: "SendAgentMessage", to_agent_id: other, content: "go" })
    story.inBatch(callItem("a", readTool))
    const reactor = reactorOf()
    reactor.react()
    await settle()
    const agents = () => reactor.fibers?.children.map(({ name }) => name)
    expect(agents()).toEqual([`agent ${story.root}`, `agent ${other}`])
    story.run({ _tag: "KillAgent", agent_id: other, reason: "enough", force: true })
    reactor.react()
    await settle()
    expect(stopped).toEqual(["StartQueued"])
    expect(agents()).toEqual([`agent ${story.root}`])
    await reactor.stop()
  })

  it("starts nothing more once it is stopped", async () => {
    const reactor = reactorOf()
    await reactor.stop()
    story.post("go")
    reactor.react()
    await settle()
    expect(started).toEqual([])
  })

  it("wakes who waits for a change, at the change and at their own end, and tells them when there will be none", async () => {
    const reactor = reactorOf()
    const woken: Array<string> = []
    const waiting = new AbortController()
    const wait = (name: string, signal: AbortSignal) =>
      reactor.changed(signal).then(
        () => woken.push(name),
        (error) => woken.push(`${name}: ${error._tag}`)
      )
    void wait("change", new AbortController().signal)
    await settle()
    expect(woken).toEqual([])
    reactor.react()
    await settle()
    expect(woken).toEqual(["change"])
    void wait("aborted", waiting.signal)
    void wait("over", new AbortController().signal)
    waiting.abort()
    await settle()
    expect(woken).toEqual(["change", "aborted"])
    await reactor.stop()
    await settle()
    expect(woken).toEqual(["change", "aborted", "over: ActorRetired"])
    await wait("late", new AbortController().signal)
    await wait("aborted before", waiting.signal)
    expect(woken.slice(3)).toEqual(["late: ActorRetired", "aborted before"])
  })

  it("lets work that waits for a change end by its interruption, not by an error", async () => {
    const ends: Array<string> = []
    const reactor = reactorOf()
    work = () =>
      Effect.promise(async (signal) => {
        const end = await reactor.changed(signal).then(
          () => "woken",
          () => "failed"
        )
        ends.push(`${end}, ${signal.aborted ? "interrupted" : "not interrupted"}`)
      })
    story.post("go")
    reactor.react()
    await settle()
    await reactor.stop()
    expect(ends).toEqual(["woken, interrupted"])
    expect(crashed).toEqual([])
  })
})

describe("a suspended conversation", () => {
  it("lets a model call and a tool that run finish, and starts neither anew", async () => {
    const reactor = reactorOf()
    story.post("go")
    reactor.react()
    await settle()
    story.request()
    story.run({ _tag: "Suspend", reason: "budget" })
    reactor.react()
    await settle()
    expect(stopped).toEqual([])
    expect(reactor.running).toEqual(["model turn_1 0 1"])
    await reactor.stop()
    const afterRestart = reactorOf()
    afterRestart.react()
    await settle()
    expect(afterRestart.running).toEqual([])
    story.run({ _tag: "Unsuspend" })
    afterRestart.react()
    await settle()
    expect(afterRestart.running).toEqual(["model turn_1 0 1"])
    await afterRestart.stop()
  })

  it("does not start a tool that a restart cut off, and starts it when it may go on", async () => {
    story.inBatch(callItem("a", readTool))
    story.start("call_1")
    story.run({ _tag: "Suspend", reason: "budget" })
    const reactor = reactorOf()
    reactor.react()
    await settle()
    expect(started).toEqual([])
    expect(crashed).toEqual([])
    story.run({ _tag: "Unsuspend" })
    reactor.react()
    await settle()
    expect(started).toEqual(["RunTool"])
    await reactor.stop()
  })
})

describe("work that fails", () => {
  const terminals = () => story.runes.filter(({ kind }) => /^turn\.(completed|interrupted|error)$/.test(kind))

  it("for ever is tried as often as the intensity says, ends its turn once, and suspends with a reason", async () => {
    work = (pending) =>
      pending._tag === "CallModel" ? Effect.die(new Error("wires crossed\nat line 5")) : Effect.never
    const reactor = reactorOf()
    story.post("go")
    reactor.react()
    await settle()
    expect(started).toEqual(["CallModel", "CallModel", "CallModel", "CallModel"])
    expect(crashed.length).toBe(4)
    expect(terminals().map(({ kind }) => kind)).toEqual(["turn.error"])
    expect(story.state.session.status).toBe("suspended")
    expect(story.state.session.reason).toBe(
      `calling model scripted/demo for turn_1 of agent ${story.root} failed 4 times within 5 s: wires crossed`
    )
    expect(story.runes.filter(({ kind }) => kind === "session.suspended").length).toBe(1)
    expect(checkInvariants(story.runes)).toEqual([])
    expect(reactor.isIdle).toBe(true)
  })

  it("by getting nowhere counts as failing: it does not spin", async () => {
    work = () => Effect.void
    const reactor = reactorOf()
    story.post("go")
    reactor.react()
    await settle()
    expect(started.length).toBe(4)
    expect(story.state.session.reason).toContain("ended without having done anything")
  })

  it("by getting nowhere is noticed also while others get on", async () => {
    const other = "agt_00000000000000c1" as never
    story.run({ _tag: "SpawnAgent", spec: { agent_id: other, role: "w", model: "scripted/echo" } })
    story.run({ _tag: "CompleteAgentInit", agent_id: other })
    work = () =>
      Effect.sync(() => {
        story.run({ _tag: "SendAgentMessage", to_agent_id: other, content: "busy" })
      })
    const reactor = reactorOf()
    story.post("go")
    reactor.react()
    await settle()
    expect(started.filter((tag) => tag === "CallModel").length).toBe(4)
    expect(story.state.session.status).toBe("suspended")
    await reactor.stop()
  })

  it("is tried again when a person lets the conversation go on", async () => {
    work = (pending) => (pending._tag === "StartQueued" ? Effect.die(new Error("no")) : Effect.never)
    story.run({ _tag: "Pause", reason: "x" })
    story.post("go")
    story.run({ _tag: "Resume" })
    const reactor = reactorOf()
    reactor.react()
    await settle()
    expect(story.state.session.status).toBe("suspended")
    expect(started.length).toBe(4)
    story.run({ _tag: "Unsuspend" })
    reactor.react()
    await settle()
    expect(started.length).toBe(8)
    await reactor.stop()
  })

  it("leaves the calls beside it alone until it is given up", async () => {
    story.inBatch(callItem("a", readTool), callItem("b", shellTool))
    let attempts = 0
    work = (pending) => {
      if (!("call_id" in pending) || pending.call_id !== "call_1") return untilStopped(pending)
      attempts += 1
      return attempts < 3 ? Effect.die(new Error("flaky")) : untilStopped(pending)
    }
    const reactor = reactorOf()
    reactor.react()
    await settle()
    expect(attempts).toBe(3)
    expect(stopped).toEqual([])
    expect([...reactor.running].sort()).toEqual(["call call_1", "call call_2"])
    expect(story.state.session.status).toBe("active")
    await reactor.stop()
  })
})
