// Goal: hooks of events run one at a time in a conversation, may send an agent back to work a few times, and end with the
// scope of whoever tells them. Method: conversations of a story, programs that end when the test says so.
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { describe, expect, it, onTestFinished } from "vitest"
import type { EventHook } from "#src/hook/Definition.ts"
import { hookLimits } from "#src/hook/HookLimits.ts"
import { HookLifecycle, type LifecycleOptions } from "#src/hook/Lifecycle.ts"
import { HookPipelines } from "#src/hook/Pipeline.ts"
import type { ProgramEnded } from "#src/hook/Program.ts"
import type { AgentId } from "#src/rune/Ids.ts"
import type { AnyRune } from "#src/rune/Rune.ts"
import { Story } from "../support/story.ts"

const stopHook: EventHook = {
  ...{ name: "watch", event: "Stop", matcher: undefined, command: "true", timeoutMs: 60_000 },
  reach: { network: false, environment: [] }
}

const ended = (exit_code: number | null, stderr = ""): ProgramEnded => ({
  ...{ exit_code, signal: null, aborted: exit_code === null },
  ...{ stdout: "", stderr, output: stderr }
})

interface Program {
  readonly signal: AbortSignal
  readonly end: (how: ProgramEnded) => void
}

const turnOfLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const until = async (isMet: () => boolean): Promise<void> => {
  while (!isMet()) await turnOfLoop()
}

const world = () => {
  const { state } = new Story().ready({ workspace: "/work" })
  const agentId = state.session.root_agent_id as AgentId
  const programs: Array<Program> = []
  const sent: Array<{ readonly content: string; readonly principal: string }> = []
  const troubles: Array<string> = []
  const pipelines = new HookPipelines()
  const options = {
    library: { hooksOf: () => ({ batch: [], events: [stopHook] }) } as unknown as LifecycleOptions["library"],
    conversations: { state: async () => state, submit: async (_id, command) => void sent.push(command) },
    enter: ({ conversation_id, workspace }) => pipelines.take({ conversation_id, directory: workspace }),
    onTrouble: (_id, message) => void troubles.push(message),
    programs: {
      run: ({ signal }) => new Promise<ProgramEnded>((resolve) => programs.push({ signal, end: resolve }))
    },
    variable: () => undefined,
    discard: () => undefined
  } satisfies LifecycleOptions
  const scope = Scope.makeUnsafe()
  const lifecycle = Effect.runSync(Scope.provide(HookLifecycle.make(options), scope))
  const close = (): Promise<void> => Effect.runPromise(Scope.close(scope, Exit.void))
  onTestFinished(async () => {
    for (const program of programs) program.end(ended(0))
    await close()
  })
  const over = (): void => {
    const place = { conversation_id: state.conversation_id, agent_id: agentId, schema_version: 1, event_id: 9 }
    lifecycle.notice([{ ...place, kind: "turn.completed", payload: { final_output: "done" } } as unknown as AnyRune])
  }
  return { programs, sent, troubles, close, over }
}

describe("hooks of events", () => {
  it("run one after the other in a conversation", async () => {
    const { over, programs } = world()
    for (let turn = 0; turn < 3; turn++) over()
    for (let at = 0; at < 3; at++) {
      await until(() => programs.length > at)
      await turnOfLoop()
      expect(programs).toHaveLength(at + 1)
      programs[at]?.end(ended(0))
    }
  })

  it("send an agent back to work, and no more often than is allowed", async () => {
    const { over, programs, sent, troubles } = world()
    for (let turn = 0; turn <= hookLimits.continuationsMax; turn++) {
      over()
      await until(() => programs.length > turn)
      programs[turn]?.end(ended(2, "look again"))
    }
    await until(() => troubles.length > 0)
    expect(sent).toHaveLength(hookLimits.continuationsMax)
    expect(sent[0]).toMatchObject({ content: "look again", principal: "hook:watch" })
    expect(troubles).toEqual([`hook watch sent the agent back ${hookLimits.continuationsMax} times: no more`])
  })

  it("end with their scope: the program under way is told, waited for, and no other begins", async () => {
    const { close, over, programs, sent, troubles } = world()
    over()
    over()
    await until(() => programs.length === 1)
    const order: Array<string> = []
    const closing = close().then(() => order.push("closed"))
    await until(() => programs[0]?.signal.aborted === true)
    over()
    order.push("program gone")
    programs[0]?.end(ended(2, "look again"))
    await closing
    expect(order).toEqual(["program gone", "closed"])
    expect([programs.length, sent, troubles]).toEqual([1, [], []])
  })
})
