// Goal: a server that is killed with SIGKILL at any step of a turn goes on by itself when it is started again: one result
// per call, nothing that must not run twice ran twice, nothing acknowledged is lost, nothing said is gone. Method: a
// real process on a real directory, killed before, during and after every append of a turn with two
// tools and two hooks; the turn is finished by this process, or by another that is killed as well.
// Verifies: G5, G6, INV-TOOL-TERMINAL, INV-TURN-TERMINAL, INV-REPLAY-DETERMINISTIC, INV-TOOL-APPROVAL-BEFORE-EXEC
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { canonicalHash } from "#src/machine/Canonical.ts"
import { fold } from "#src/machine/evolve/Evolve.ts"
import { assembleRequest } from "#src/machine/view/Request.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import { makeAgentId, makeConversationId } from "#src/rune/Ids.ts"
import type { AnyRune, RuneOf } from "#src/rune/Rune.ts"
import { count, reportCount } from "../support/counts.ts"
import type { CrashPlan } from "../support/runtime/crashChild.ts"
import { crashHooks, crashScenarios, crashTools, finalText, marks } from "../support/runtime/crashWorld.ts"
import { checkRunes, readLog } from "../support/runtime/Logs.ts"
import { Talk, World } from "../support/runtime/World.ts"
import { randomFrom, seedFor } from "../support/seed.ts"

const child = fileURLToPath(new URL("../support/runtime/crashChild.ts", import.meta.url))
const ids = seededIdSource(23)
const conversationId = makeConversationId(ids)
const agentId = makeAgentId(ids)

let home: string
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "echs-crash-"))
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

type Crash = NonNullable<CrashPlan["crash"]>
type Mode = Pick<CrashPlan, "asksFirst">

/** Runs the process to its end; says how it ended. */
const run = (plan: Omit<CrashPlan, "conversationId" | "agentId">): Promise<number | string | null> =>
  new Promise((resolve, reject) => {
    const started = spawn(process.execPath, [child, JSON.stringify({ ...plan, conversationId, agentId })], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, NODE_COMPILE_CACHE: join(home, "compiled") }
    })
    let errors = ""
    started.stderr.on("data", (chunk) => {
      errors += String(chunk)
    })
    started.on("error", reject)
    started.on("exit", (code, signal) => {
      if (code !== null && code !== 0) reject(new Error(`the process ended with ${code}: ${errors}`))
      else resolve(signal ?? code)
    })
  })

const openHere = (directory: string, mode: Mode): Promise<World> =>
  World.open({
    directory: join(directory, "data"),
    idSeed: 77,
    scenarios: crashScenarios,
    tools: crashTools(directory, mode),
    hooks: crashHooks(directory)
  })

/** What clients had been told before the process was killed. */
const acknowledged = (directory: string): ReadonlyArray<readonly [eventId: number, runeId: string]> =>
  existsSync(join(directory, "acks"))
    ? readFileSync(join(directory, "acks"), "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => [Number(line.split(" ")[0]), line.split(" ")[1] ?? ""])
    : []

const isKind =
  <K extends AnyRune["kind"]>(kind: K) =>
  (rune: AnyRune): rune is Extract<AnyRune, { kind: K }> =>
    rune.kind === kind

/** Text of every request that never got its answer is kept by the request that took its place. */
const keepsText = (runes: ReadonlyArray<AnyRune>): void => {
  let heard = ""
  for (const rune of runes) {
    if (rune.kind === "turn.assistant_delta") heard += (rune as RuneOf<"turn.assistant_delta">).payload.content
    if (rune.kind === "turn.assistant_final") {
      expect((rune as RuneOf<"turn.assistant_final">).payload.content.startsWith(heard)).toBe(true)
      heard = ""
    }
    if (rune.kind !== "turn.model_requested") continue
    expect((rune as RuneOf<"turn.model_requested">).payload.partial_output ?? "").toBe(heard)
    heard = ""
  }
}

/** Everything that has to hold once the turn is over, whatever happened on the way. */
const checkEnd = (directory: string, runes: ReadonlyArray<AnyRune>): void => {
  checkRunes(conversationId, runes)
  for (const [eventId, runeId] of acknowledged(directory)) expect(runes[eventId - 1]?.rune_id).toBe(runeId)
  const results = runes.filter(isKind("tool.result")) as ReadonlyArray<RuneOf<"tool.result">>
  expect(results.map(({ payload }) => payload.call_id).sort()).toEqual(["call_1", "call_2"])
  const written = results.find(({ payload }) => payload.call_id === "call_2")?.payload.status
  expect(["success", "unknown"]).toContain(written)
  expect(marks(directory, "written")).toBeLessThanOrEqual(1)
  if (written === "success") expect(marks(directory, "written")).toBe(1)
  expect(marks(directory, "looked")).toBeGreaterThanOrEqual(1)
  expect(marks(directory, "hook-publish")).toBeLessThanOrEqual(1)
  const ends = runes.filter(({ kind }) => /^turn\.(completed|interrupted|error)$/.test(kind))
  expect(ends).toMatchObject([{ kind: "turn.completed", payload: { final_output: finalText } }])
  keepsText(runes)
  const state = fold(runes, conversationId)
  const calls = assembleRequest(state, state.agents[0]!).flatMap((message) =>
    message.role === "assistant" ? message.parts.filter((part) => part.type === "tool_call") : []
  )
  const answers = assembleRequest(state, state.agents[0]!).filter((message) => message.role === "tool")
  expect(answers.map((message) => message.call_id)).toEqual(calls.map((part) => part.call_id))
}

/** Takes over what a killed process left, in this process, until the turn is over. */
const finishHere = async (directory: string, mode: Mode): Promise<ReadonlyArray<AnyRune>> => {
  const world = await openHere(directory, mode)
  try {
    const head = await world.store.headNow(conversationId)
    const talk = new Talk(world, conversationId, agentId)
    if (head === 0) {
      const root = { agent_id: agentId, role: "root", model: "scripted/crash" }
      const config = { model: "scripted/crash" }
      await world.conversations.create({ _tag: "CreateConversation", conversation_id: conversationId, config, root })
    }
    const before = head === 0 ? [] : await readLog(world.store, conversationId)
    expect((await world.conversations.recover([conversationId])).failed).toEqual([])
    const isPosted = before.some(({ kind }) => kind === "turn.started" || kind === "turn.queued")
    if (!isPosted) await talk.post("go")
    const isOver = before.some(({ kind }) => kind === "turn.completed")
    if (mode.asksFirst && !isOver) {
      const wasAnswered = before.some(({ kind }) => kind === "tool.approved")
      const wasAsked = before.some(({ kind }) => kind === "tool.approval_requested")
      if (!wasAnswered) {
        if (!wasAsked) await talk.until("tool.approval_requested")
        await talk.approve("call_2")
      }
    }
    if (!isOver) await talk.turns()
    const live = canonicalHash(await talk.state())
    const runes = await readLog(world.store, conversationId)
    expect(canonicalHash(fold(runes, conversationId))).toBe(live)
    return runes
  } finally {
    await world.close()
  }
}

const inDirectory = async <A>(name: string, use: (directory: string) => Promise<A>): Promise<A> => {
  const directory = mkdtempSync(join(home, name))
  try {
    return await use(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Kills at the given place, finishes here, checks. */
const killAndFinish = (mode: Mode, crash: Crash): Promise<void> =>
  inDirectory("one-", async (directory) => {
    expect(await run({ directory, ...mode, resume: false, crash })).toBe("SIGKILL")
    checkEnd(directory, await finishHere(directory, mode))
  })

interface Undisturbed {
  readonly runes: ReadonlyArray<AnyRune>
  /** The first rune of every append: runes of one append are there together or not at all. */
  readonly appends: ReadonlyArray<number>
}

/** A turn that nobody disturbs. */
const undisturbed = (mode: Mode): Promise<Undisturbed> =>
  inDirectory("whole-", async (directory) => {
    expect(await run({ directory, ...mode, resume: false })).toBe(0)
    const world = await openHere(directory, mode)
    const runes = await readLog(world.store, conversationId)
    await world.close()
    checkEnd(directory, runes)
    const appends = readFileSync(join(directory, "batches"), "utf8").trim().split("\n").map(Number)
    return { runes, appends }
  })

/** Two at a time: the machine has two cores, and a killed process leaves no lock behind. */
const inLanes = async <A>(items: ReadonlyArray<A>, work: (item: A) => Promise<void>): Promise<void> => {
  const queue = items[Symbol.iterator]()
  const lane = async () => {
    for (let next = queue.next(); next.done !== true; next = queue.next()) await work(next.value)
  }
  await Promise.all([lane(), lane()])
}

const moments = ["before", "during", "after"] as const

describe.each([
  { name: "a turn with two tools and two hooks", asksFirst: false },
  { name: "the same with a question to a person", asksFirst: true }
])("$name", ({ asksFirst }) => {
  it("goes on by itself from a kill before, during and after every append", { timeout: 600_000 }, async () => {
    const mode = { asksFirst }
    const { appends, runes } = await undisturbed(mode)
    const all = appends.flatMap((at) => moments.map((when) => ({ at, when })))
    // The question changes only what lies around it; the rest is the first matrix again.
    const from = runes.find(({ kind }) => kind === "tool.approval_requested")?.event_id ?? 1
    const points = asksFirst ? all.filter(({ at }) => at >= from - 2 && at <= from + 3) : all
    await inLanes(points, (crash) => killAndFinish(mode, crash))
    expect(points.length).toBeGreaterThanOrEqual(asksFirst ? 9 : 60)
    reportCount(`kills of a running turn, ${asksFirst ? "around a question" : "at every append"}`, points.length)
  })
})

describe("a server that is killed again and again", () => {
  it("finishes the turn in the end, with nothing done twice", { timeout: 600_000 }, async () => {
    const lives = count("runtime repeated kills", { fast: 4, soak: 200 })
    const random = randomFrom(seedFor("repeated kills"))
    let kills = 0
    await inLanes(Array.from({ length: lives }), () =>
      inDirectory("many-", async (directory) => {
        const mode = { asksFirst: random() < 0.5 }
        const pick = (from: number): Crash => ({
          at: from + Math.floor(random() * 8),
          when: moments[Math.floor(random() * moments.length)]!
        })
        let at = 3
        let resume = false
        for (let life = 0; life < 3; life++) {
          const crash = pick(at)
          const ended = await run({ directory, ...mode, resume, crash })
          if (ended !== "SIGKILL") break
          kills += 1
          resume = true
          at = crash.at + 1
        }
        checkEnd(directory, await finishHere(directory, mode))
      })
    )
    reportCount("kills of a turn that had been killed before", kills)
  })
})
