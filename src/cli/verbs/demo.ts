// `echs demo`: starts a real server process, submits a goal with parallel workers, kills the server with kill -9 in the
// middle of a sentence, and proves that the goal is met and nothing was lost. Needs no key and no network; works in a
// temporary directory that it removes.
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client, type Endpoint, type Fields, NoServer, RequestFailed, SentAway } from "../../client/Client.ts"
import { compare } from "../demo/Compare.ts"
import { ServerFailed, type ServerProcess, startServerProcess } from "../demo/ServerProcess.ts"
import { readAll, Story } from "../demo/Story.ts"
import { duration, number, oneLine } from "../render/Text.ts"
import { exitCode, type Terminal, type Verb } from "../Verb.ts"
import { makeVerb } from "../VerbSpec.ts"
import type { VerifyReport } from "./verify.ts"

export interface DemoParts {
  /** Program and arguments that start this CLI again. */
  readonly command: ReadonlyArray<string>
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly version: string
  readonly localEndpoint: (dataDirectory: string) => Promise<Endpoint | undefined>
  /** Lays out the workspace of the demo's goal; answers with the goal to submit. */
  readonly prepareDemo: (workspace: string) => Promise<Fields<"goal.submit">>
  readonly verify: (dataDirectory: string) => Promise<VerifyReport | "missing">
}

export interface DemoReport {
  readonly survived: boolean
  readonly outcome: string
  readonly runes: number
  readonly runes_before_kill: number
  /** Runes that were shown but are missing from the log or differ in it. */
  readonly lost: number
  readonly repeated: number
  readonly approvals: number
  readonly back_in_ms: number
  readonly archived: boolean
  readonly problems: number
  readonly took_ms: number
}

const timeoutMs = 60_000

export const make = (parts: DemoParts): Verb =>
  makeVerb({
    name: "demo",
    options: {},
    example: "echs demo",
    notes: ["Takes a few seconds. At a terminal it asks you for approvals; otherwise it approves by itself."],
    run: async ({ answer, terminal, values }) => {
      const interruption = terminal.interruption()
      const view = values.json === true ? silent(terminal) : terminal
      try {
        const report = await demonstrate(parts, view, interruption)
        answer(report, () => verdict(report, terminal))
        return report.survived ? exitCode.done : exitCode.failed
      } catch (error) {
        terminal.status(undefined)
        if (interruption.aborted) return exitCode.interrupted
        const reason = expectedFailure(error)
        if (reason === undefined) throw error
        terminal.complain(`echs demo: ${reason}\n`)
        return exitCode.failed
      }
    }
  })

const silent = (terminal: Terminal): Terminal => ({ ...terminal, isAnswered: false, write: () => {}, status: () => {} })

/** The message shown instead of a stack trace; undefined for a defect. */
const expectedFailure = (error: unknown): string | undefined => {
  const isOurs = [ServerFailed, NoServer, RequestFailed, SentAway].some((kind) => error instanceof kind)
  if (isOurs && error instanceof Error) return error.message
  const isTimeout = error instanceof Error && (error.name === "TimeoutError" || error.name === "AbortError")
  return isTimeout ? `not finished after ${timeoutMs / 1_000} s` : undefined
}

const demonstrate = async (parts: DemoParts, terminal: Terminal, interruption: AbortSignal): Promise<DemoReport> => {
  const place = await mkdtemp(join(tmpdir(), "echs-demo-"))
  // People take their time to answer; a demo that nobody answers must end.
  const limits = terminal.isAnswered ? [interruption] : [interruption, AbortSignal.timeout(timeoutMs)]
  const stage = new Stage({ parts, terminal, place, signal: AbortSignal.any(limits) })
  try {
    return await stage.play()
  } finally {
    await stage.clear()
    await rm(place, { recursive: true, force: true })
  }
}

interface StageOptions {
  readonly parts: DemoParts
  readonly terminal: Terminal
  readonly place: string
  readonly signal: AbortSignal
}

class Stage {
  private readonly options: StageOptions
  private readonly dataDirectory: string
  private readonly workspace: string
  private readonly startedMs = performance.now()
  private server: ServerProcess | undefined
  private client: Client | undefined
  private killedAt = 0
  private backInMs = 0

  constructor(options: StageOptions) {
    this.options = options
    this.dataDirectory = join(options.place, "data")
    this.workspace = join(options.place, "workspace")
  }

  async play(): Promise<DemoReport> {
    this.title()
    const goal = await this.options.parts.prepareDemo(this.workspace)
    this.server = await this.start()
    this.say("good", "▸", `a server listens on ${this.server.url}, process ${this.server.pid}`)
    this.client = await Client.connect({
      endpoint: () => this.options.parts.localEndpoint(this.dataDirectory),
      client: { name: "echs demo", version: this.options.parts.version }
    })
    const { conversation_id: id } = await this.client.call("goal.submit", goal)
    return this.follow(this.client, id)
  }

  private async follow(client: Client, id: string): Promise<DemoReport> {
    const { signal, terminal } = this.options
    const strike = (sentence: string, eventId: number): Promise<void> => this.strike(sentence, eventId)
    const story = new Story({ client, terminal, conversationId: id, signal, strike })
    const end = await story.until("plan.goal_met", "plan.stopped")
    await client.call("conversation.close", { conversation_id: id, reason: "the demo is over" })
    await story.until("session.closed")
    const stored = await readAll(client, id, signal)
    const { lost, repeated } = compare(story.seen, stored)
    const isMet = end.kind === "plan.goal_met"
    const { evidence = [] } = end.payload as { readonly evidence?: ReadonlyArray<unknown> }
    this.check(
      isMet,
      `the goal is ${isMet ? "met" : "not met"}, ${this.killedAt === 0 ? "without a kill" : "by itself, after the kill"}: ${evidence.length} checks run by the server`
    )
    this.check(
      lost === 0 && repeated === 0,
      `${number(stored.runes.length)} runes in the log; ${lost} shown runes lost, ${repeated} repeated`
    )
    const { state } = await this.archive(client, id)
    const problems = await this.verify()
    return {
      survived: isMet && lost + repeated + problems === 0 && this.killedAt > 0 && state === "archived",
      outcome: end.kind,
      runes: stored.runes.length,
      runes_before_kill: this.killedAt,
      lost,
      repeated,
      approvals: story.approvals,
      back_in_ms: Math.round(this.backInMs),
      archived: state === "archived",
      problems,
      took_ms: Math.round(performance.now() - this.startedMs)
    }
  }

  private async archive(client: Client, id: string): Promise<{ readonly state: string }> {
    await client.call("conversation.archive", { conversation_id: id })
    const { items } = await client.call("conversation.list", { limit: 10 })
    const state = items.find((item) => item.conversation_id === id)?.state ?? "missing"
    this.check(state === "archived", `the conversation is ${state}`)
    return { state }
  }

  private async verify(): Promise<number> {
    await this.client?.close()
    await this.server?.end("SIGTERM")
    this.server = undefined
    const report = await this.options.parts.verify(this.dataDirectory)
    if (report === "missing") throw new ServerFailed("the server left no data")
    this.check(report.problems.length === 0, `every byte of the log read back: ${report.problems.length} problems`)
    return report.problems.length
  }

  private async strike(sentence: string, eventId: number): Promise<void> {
    const { server } = this
    if (server === undefined) return
    await server.end("SIGKILL")
    this.killedAt = eventId
    const struckMs = performance.now()
    this.say("bad", "⚡", `kill -9 ${server.pid}, in the middle of a sentence: “${oneLine(sentence)}”`)
    this.server = await this.start()
    this.backInMs = performance.now() - struckMs
    this.say(
      "good",
      "▸",
      `a new server, process ${this.server.pid}, after ${duration(this.backInMs)}: it reads the log and continues`
    )
  }

  private start(): Promise<ServerProcess> {
    const { command, variables } = this.options.parts
    return startServerProcess({
      command,
      environment: variables,
      dataDirectory: this.dataDirectory,
      signal: this.options.signal
    })
  }

  async clear(): Promise<void> {
    await this.client?.close()
    await this.server?.end("SIGKILL")
  }

  private title(): void {
    const { paint, write } = this.options.terminal
    write(`\n  ${paint("strong", "One goal, one kill -9")}\n`)
    write(
      `  ${paint("quiet", "A goal is planned, worked on in parallel, reviewed and verified; no key, no network. Each line")}\n`
    )
    write(
      `  ${paint("quiet", "is a rune, on disk before it is shown. The server is killed in mid-sentence; another one takes over.")}\n\n`
    )
  }

  private say(tone: "good" | "bad", mark: string, text: string): void {
    const { paint, write } = this.options.terminal
    write(`  ${paint(tone, `${mark} ${text}`)}\n`)
  }

  private check(isSo: boolean, text: string): void {
    this.say(isSo ? "good" : "bad", isSo ? "✓" : "✗", text)
  }
}

const verdict = (report: DemoReport, { paint }: Terminal): string =>
  report.survived
    ? `\n  ${paint("good", "Nothing that was acknowledged is lost.")} ${paint("quiet", duration(report.took_ms))}\n\n`
    : `\n  ${paint("bad", "The demo failed.")}\n\n`
