/**
 * Goal: what a Codex app-server was recorded to say shows the states it was in; doubled, missing, shuffled and broken messages
 * never throw, never count a token or a tool twice, and leave nobody busy or waiting once the last turn is over.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as FastCheck from "fast-check"
import { describe, expect, it } from "vitest"
import { CodexSession } from "#src/harness/codex/CodexSession.ts"
import type { Heard } from "#src/harness/Port.ts"
import { type MonitorStatus, observe } from "#src/machine/table/Monitor.ts"
import { count, reportCount } from "../../support/counts.ts"
import { seedFor } from "../../support/seed.ts"

interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
}

const fixture = join(import.meta.dirname, "../../fixtures/harness/codex/app-server.jsonl")
const recorded: ReadonlyArray<Message> = readFileSync(fixture, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as { readonly dir: string; readonly m: Message })
  // Answers are to questions of the client that was recorded.
  .filter(({ dir, m }) => dir === "<" && m.method !== undefined)
  .map(({ m }) => m)

class Watched {
  readonly session = new CodexSession()
  status: MonitorStatus = "initialized"
  readonly seen: Array<string> = []
  readonly heard: Array<Heard> = []

  take(message: unknown): Heard {
    const heard = this.session.message(message)
    this.heard.push(heard)
    for (const event of heard.events) {
      this.status = observe(this.status, event)
      if (this.seen.at(-1) !== this.status) this.seen.push(this.status)
    }
    return heard
  }

  play(messages: ReadonlyArray<unknown>): this {
    for (const message of messages) this.take(message)
    return this
  }

  events(type: string) {
    return this.heard.flatMap(({ events }) => events).filter((event) => event.type === type)
  }

  get tokens(): number {
    return this.events("usage_reported").reduce(
      (sum, event) => sum + (event.type === "usage_reported" ? event.input_tokens + event.output_tokens : 0),
      0
    )
  }
}

const turnsOf = (messages: ReadonlyArray<Message>): ReadonlyArray<ReadonlyArray<Message>> => {
  const turns: Array<Array<Message>> = [[]]
  for (const message of messages) {
    turns.at(-1)?.push(message)
    if (message.method === "turn/completed") turns.push([])
  }
  return turns
}

/** What the totals of the recording add up to, per thread. */
const usedByThreads = (): number => {
  const totals = new Map<string, number>()
  for (const { method, params } of recorded) {
    if (method !== "thread/tokenUsage/updated") continue
    const { threadId, tokenUsage } = params as {
      readonly threadId: string
      readonly tokenUsage: { readonly total: { readonly inputTokens: number; readonly outputTokens: number } }
    }
    totals.set(threadId, tokenUsage.total.inputTokens + tokenUsage.total.outputTokens)
  }
  return [...totals.values()].reduce((sum, one) => sum + one, 0)
}

describe("a recorded app-server", () => {
  it("shows the states of its turns", () => {
    const seen: Array<string> = []
    const watched = new Watched()
    for (const turn of turnsOf(recorded)) {
      watched.seen.length = 0
      watched.play(turn)
      seen.push(watched.seen.join(" "))
    }
    expect(seen).toMatchInlineSnapshot(`
      [
        "idle thinking idle",
        "thinking waiting_for_permission tool_use waiting_for_permission tool_use thinking idle",
        "thinking waiting_for_permission tool_use waiting_for_permission thinking idle",
        "thinking waiting_for_permission tool_use waiting_for_permission thinking idle",
        "thinking waiting_for_permission tool_use waiting_for_permission idle",
        "thinking idle",
        "thinking idle",
        "thinking tool_use thinking idle",
        "idle thinking idle",
        "thinking tool_use waiting_for_permission tool_use thinking idle",
        "thinking waiting_for_permission tool_use waiting_for_permission",
      ]
    `)
    // The recording ends with a question that was open when the app-server was killed.
    expect(watched.status).toBe("waiting_for_permission")
  })

  it("tells tokens, prompts and texts once", () => {
    const watched = new Watched().play(recorded)
    expect(watched.tokens).toBe(usedByThreads())
    expect(watched.tokens).toBeGreaterThan(0)
    const twice = new Watched().play(recorded.flatMap((message) => [message, message]))
    expect(twice.tokens).toBe(watched.tokens)
    for (const type of ["user_prompt", "agent_message", "tool_started", "tool_completed", "turn_completed"])
      expect([type, twice.events(type).length]).toEqual([type, watched.events(type).length])
  })

  it("asks about a command with what would run, and about a change of files with the files", () => {
    const questions = new Watched().play(recorded).heard.flatMap(({ question }) => question ?? [])
    expect(questions.map(({ title, toolName }) => [toolName, title])).toMatchInlineSnapshot(`
      [
        [
          "shell",
          "shell: 'touch /home/user/work/acc.txt'",
        ],
        [
          "shell",
          "shell: 'touch /home/user/work/dec.txt'",
        ],
        [
          "shell",
          "shell: 'touch /home/user/work/can.txt'",
        ],
        [
          "shell",
          "shell: 'touch /home/user/work/hold.txt'",
        ],
        [
          "apply_patch",
          "apply_patch: /home/user/work/ro2.txt",
        ],
        [
          "shell",
          "shell: 'touch /home/user/work/k9.txt'",
        ],
      ]
    `)
  })

  it("answers a question once, in the words of the app-server, and not after somebody else did", () => {
    const at = recorded.findIndex(({ method }) => method === "item/commandExecution/requestApproval")
    const watched = new Watched().play(recorded.slice(0, at + 1))
    const { id, params } = recorded[at] ?? {}
    const callId = String(params?.["itemId"])
    expect(watched.session.answer(callId, { _tag: "Allow" })).toEqual([{ id, result: { decision: "accept" } }])
    expect(watched.session.answer(callId, { _tag: "Deny", message: "no" })).toEqual([
      { id, result: { decision: "decline" } }
    ])
    expect(watched.session.answer(callId, { _tag: "Unsaid" })).toEqual([])
    watched.take(recorded.find(({ method }) => method === "serverRequest/resolved"))
    expect(watched.session.answer(callId, { _tag: "Allow" })).toEqual([])
  })

  it("is told a text as a new turn when idle, as steering while it works", () => {
    const started = recorded.findIndex(({ method }) => method === "turn/started")
    const watched = new Watched()
    expect(watched.session.input("too early")).toBeUndefined()
    watched.play(recorded.slice(0, started).filter(({ method }) => method === "thread/started"))
    expect(watched.session.input("go")).toMatchObject([{ method: "turn/start" }])
    watched.play(recorded.slice(0, started + 1))
    const expectedTurnId = expect.stringMatching(/./)
    expect(watched.session.input("go")).toMatchObject([{ method: "turn/steer", params: { expectedTurnId } }])
    expect(watched.session.interrupt()).toMatchObject([{ method: "turn/interrupt" }])
  })

  it("knows a thread that began before it listened, and takes it for the one that is shown", () => {
    const watched = new Watched()
    const [hello] = watched.session.greeting() as ReadonlyArray<{ readonly id: number }>
    const { replies: [, list] = [] } = watched.take({ id: hello?.id, result: {} })
    const { replies = [] } = watched.take({ id: (list as { id: number }).id, result: { data: ["b", 7, "a"] } })
    expect(replies).toMatchObject([{ params: { threadId: "a" } }, { params: { threadId: "b" } }])
    for (const { id } of replies as ReadonlyArray<{ readonly id: number }>)
      watched.take({ id, error: { code: -32600, message: "no rollout found" } })
    expect(watched.seen).toEqual(["idle"])
    expect(watched.session.input("go")).toMatchObject([{ method: "turn/start", params: { threadId: "a" } }])
  })

  it("hides the thread that makes a title", () => {
    const watched = new Watched()
    const thread = { id: "hidden", ephemeral: true, threadSource: "thread_title", status: { type: "idle" } }
    watched.play([
      { method: "thread/started", params: { thread } },
      { method: "thread/status/changed", params: { threadId: "hidden", status: { type: "active", activeFlags: [] } } },
      { method: "thread/tokenUsage/updated", params: { threadId: "hidden", tokenUsage: { total: { inputTokens: 9 } } } }
    ])
    expect([watched.seen, watched.tokens, watched.heard.flatMap(({ replies }) => replies ?? [])]).toEqual([[], 0, []])
  })
})

describe("disorder", () => {
  it("counts nothing twice and leaves nobody busy once the last turn is over, whatever is lost, doubled or broken", () => {
    const turns = turnsOf(recorded).filter((turn) => turn.at(-1)?.method === "turn/completed")
    const breakages = ["keep", "keep", "keep", "drop", "double", "empty", "wrong"] as const
    const runs = count("app-server recordings played in disorder", { fast: 300, soak: 20_000 })
    const property = FastCheck.property(
      FastCheck.array(FastCheck.constantFrom(...breakages), { minLength: recorded.length, maxLength: recorded.length }),
      FastCheck.array(FastCheck.anything(), { maxLength: 5 }),
      (fates, garbage) => {
        const watched = new Watched()
        let at = 0
        for (const turn of turns) {
          for (const message of turn.slice(0, -1)) {
            const fate = fates[at] ?? "keep"
            at += 1
            if (fate !== "drop") watched.take(fate === "wrong" ? { ...message, params: garbage[0] } : message)
            if (fate === "double") watched.take(message)
            if (fate === "empty") watched.take({ method: message.method })
          }
          watched.play(garbage)
          watched.play(turn.slice(-1))
        }
        const done = watched.events("tool_completed").map((event) => JSON.stringify(event))
        expect(new Set(done).size).toBe(done.length)
        expect(watched.tokens).toBeLessThanOrEqual(usedByThreads())
        // The end of a turn is heard where its thread is known.
        if (watched.events("turn_completed").length === turns.length) expect(watched.status).toBe("idle")
      }
    )
    FastCheck.assert(property, { numRuns: runs, seed: seedFor("codex disorder") })
    reportCount("app-server recordings played in disorder", runs)
  })
})
