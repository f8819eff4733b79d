// Goal: whatever happens to a conversation, every request that leaves is one the real API takes. Method: `echs serve` in a
// process of its own, models in the three wire formats that answer at random with text, calls good and bad, outages, cut
// streams and refusals; people who attach images, interrupt, steer, retry and fork; a server that is killed again and again. Each
// body that arrived is judged by rules that were written from the documentation of the APIs.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { count, reportCount } from "../support/counts.ts"
import { gif, pdf, png } from "../support/media.ts"
import { type Answer, type AnswerCall, plainAnswer, toolAnswer } from "../support/provider-server/Answer.ts"
import { type Format, formats } from "../support/provider-server/Formats.ts"
import {
  type Exchange,
  type ProviderServer,
  serverKey,
  startProviderServer,
  type WireRequest
} from "../support/provider-server/Server.ts"
import { randomFrom, seedFor } from "../support/seed.ts"
import { type ServerProcess, startProcess } from "../support/server/Process.ts"
import { type Json, Socket } from "../support/server/Socket.ts"
import { problemsOf } from "../support/wire-rules/Rules.ts"

const wanted = count("request bodies judged", { fast: 1_000, soak: 50_000 })
const perFormat = 8
const ends: ReadonlySet<unknown> = new Set(["turn.completed", "turn.error", "turn.interrupted"])

let models: ProviderServer
let root: string
beforeAll(async () => {
  models = await startProviderServer()
  root = mkdtempSync(join(tmpdir(), "echs-wire-"))
})
afterAll(async () => {
  await models.close()
  rmSync(root, { recursive: true, force: true })
})

const settings = () => {
  const http = (adapter: string, baseUrl: string) => ({ adapter, baseUrl, keyVariable: "TEST_KEY" })
  const able = { images: true, files: true, context_tokens: 24_000, max_output_tokens: 2_000 }
  return {
    providers: {
      responses: http("openai-responses", `${models.url}/v1`),
      chat: http("openai-chat", `${models.url}/v1`),
      messages: http("anthropic", models.url)
    },
    models: { "responses/test-model": able, "chat/test-model": able, "messages/test-model": able }
  }
}

/** What a model may do next, each so often. */
class Model {
  readonly done = { outages: 0, cuts: 0, refusals: 0, calls: 0, images: 0, summaries: 0 }
  private readonly random: () => number

  constructor(random: () => number) {
    this.random = random
  }

  private pick<T>(list: ReadonlyArray<T>): T {
    return list[Math.floor(this.random() * list.length)]!
  }

  private call(): AnswerCall {
    const path = this.pick(["shot.png", "anim.gif", "paper.pdf", "notes.txt", "long.txt", "nowhere.txt"])
    const odd = this.pick(['{"path":', "[1]", "", '{"path":7}'])
    const written = this.random() < 0.85 ? JSON.stringify({ path }) : odd
    const id = this.pick([
      "",
      "call_1",
      "call 1",
      `c${Math.floor(this.random() * 1e9)}`,
      `c${Math.floor(this.random() * 1e9)}`
    ])
    return {
      id,
      name: this.random() < 0.95 ? "read_file" : this.pick(["no_such_tool", "odd name!"]),
      arguments: written
    }
  }

  private answer(): Answer {
    if (this.random() < 0.55)
      return { ...plainAnswer, text: `Done. ${"and more ".repeat(Math.floor(this.random() * 200))}` }
    this.done.calls += 1
    const calls = Array.from({ length: 1 + Math.floor(this.random() * 3) }, () => this.call())
    return { ...(this.random() < 0.5 ? toolAnswer : plainAnswer), calls, stop: "calls" }
  }

  private refusal(format: Format, status: number, message: string, kind: "overloaded" | "too_long"): Exchange {
    return { status, headers: { "content-type": "application/json" }, body: format.errorBody(message, kind) }
  }

  exchange({ bodyText, format: name }: WireRequest): Exchange {
    const format = formats.find((one) => one.name === name)!
    const hasImage = /"(?:image|image_url|input_image|document|input_file)"/.test(bodyText)
    if (hasImage) this.done.images += 1
    if (bodyText.includes("Sum up the conversation")) this.done.summaries += 1
    const dice = this.random()
    if (dice < 0.04) {
      this.done.outages += 1
      return this.refusal(format, 503, "Overloaded", "overloaded")
    }
    if (dice < 0.07) {
      this.done.cuts += 1
      const body = format.stream(this.answer())
      return { body, cutAfter: Math.floor(body.length * this.random()), ending: this.pick(["reset", "clean"]) }
    }
    if (dice < 0.09) {
      this.done.refusals += 1
      return this.refusal(format, 400, "prompt is too long: 99999 tokens > 24000 maximum", "too_long")
    }
    if (dice < 0.11 && hasImage) {
      this.done.refusals += 1
      const { body, ...rest } = this.refusal(format, 400, "Could not process image", "too_long")
      return { ...rest, body: String(body).replaceAll("context_length_exceeded", "invalid_image") }
    }
    return { body: format.stream(this.answer()) }
  }
}

interface Person {
  readonly id: string
  /** Turns that have to end. */
  posts: number
}

/** A server that is killed and started again on the same data, and the people who speak with it. */
class Stage {
  readonly done = { kills: 0, interrupts: 0, steers: 0, forks: 0, attached: 0, retries: 0 }
  private readonly random: () => number
  private readonly data = join(root, "data")
  private readonly workspace = join(root, "workspace")
  private server: ServerProcess | undefined
  private socket: Socket | undefined
  private readonly endsOf = new Map<string, number>()
  private looked = 0
  people: Array<Person> = []

  constructor(random: () => number) {
    this.random = random
    mkdirSync(this.data)
    mkdirSync(this.workspace)
    writeFileSync(join(this.data, "config.json"), JSON.stringify(settings()), { mode: 0o600 })
    writeFileSync(join(this.workspace, "shot.png"), png(40, 9))
    writeFileSync(join(this.workspace, "anim.gif"), gif)
    writeFileSync(join(this.workspace, "paper.pdf"), pdf)
    writeFileSync(join(this.workspace, "notes.txt"), "remember the milk\n")
    writeFileSync(join(this.workspace, "long.txt"), "a long line of words\n".repeat(600))
  }

  private get line(): Socket {
    return this.socket!
  }

  async open(): Promise<void> {
    this.server = await startProcess(this.data, { env: { TEST_KEY: serverKey } })
    this.socket = await Socket.open(this.server.url)
    await this.socket.hello(this.server.token)
    this.looked = 0
    this.endsOf.clear()
    for (const { id } of this.people) await this.line.ok("subscribe", { conversation_id: id })
  }

  async kill(): Promise<void> {
    this.done.kills += 1
    await this.server!.end("SIGKILL")
    await this.open()
  }

  async close(): Promise<void> {
    await this.line.close()
    await this.server?.end("SIGTERM")
  }

  async create(model: string): Promise<void> {
    const limits = { max_llm_retries: 4 }
    const id = await this.line.create({ workspace: this.workspace, model, limits })
    await this.line.ok("subscribe", { conversation_id: id })
    this.people.push({ id, posts: 0 })
  }

  private content(): unknown {
    if (this.random() > 0.3) return `Look into it. ${"please ".repeat(Math.floor(this.random() * 400))}`
    this.done.attached += 1
    const attached = this.random() < 0.8 ? png(8, Math.floor(this.random() * 255)) : pdf
    return [
      { type: "text", text: this.random() < 0.5 ? "what is this?" : "" },
      { type: "file", name: "a", data: attached.toString("base64") }
    ]
  }

  private async post(person: Person, mode: "queue" | "steer"): Promise<void> {
    await this.line.ok("message.post", { conversation_id: person.id, content: this.content(), mode })
    person.posts += 1
  }

  /** One thing that a person does. */
  async act(person: Person): Promise<void> {
    await this.post(person, "queue")
    const dice = this.random()
    if (dice < 0.12) {
      this.done.interrupts += 1
      await this.line.ask("turn.interrupt", { conversation_id: person.id })
    } else if (dice < 0.24) {
      this.done.steers += 1
      await this.post(person, "steer")
    }
  }

  /** A person has the newest call that failed run again. */
  async retry(person: Person): Promise<void> {
    const { agents } = await this.line.ok("conversation.get", { conversation_id: person.id })
    const [root] = agents as ReadonlyArray<{ readonly failed_runs: ReadonlyArray<Json> }>
    const failed = root?.failed_runs.at(-1)
    if (failed === undefined) return
    const asked = { conversation_id: person.id, call_id: failed["id"], repeat_effect: true }
    const { error } = await this.line.ask("tool.retry", asked)
    if (error !== undefined) return
    person.posts += 1
    this.done.retries += 1
  }

  /** The conversation goes on in a copy; the original is left alone. */
  async fork(at: number): Promise<void> {
    const person = this.people[at]!
    const { last_event_id: head } = await this.line.ok("conversation.get", { conversation_id: person.id })
    const asked = { conversation_id: person.id, at_event_id: head }
    const { conversation_id: id } = (await this.line.ok("conversation.fork", asked)) as { conversation_id: string }
    this.people[at] = { id, posts: person.posts }
    await this.line.ok("subscribe", { conversation_id: id })
    this.done.forks += 1
  }

  /** Everything that was said has been dealt with. */
  settled(): Promise<void> {
    return this.line.until(() => {
      const { pushed } = this.line
      for (; this.looked < pushed.length; this.looked++) {
        const rune = pushed[this.looked]!["rune"] as Json | undefined
        if (rune === undefined || !ends.has(rune["kind"])) continue
        const id = String(rune["conversation_id"])
        this.endsOf.set(id, (this.endsOf.get(id) ?? 0) + 1)
      }
      return this.people.every(({ id, posts }) => (this.endsOf.get(id) ?? 0) >= posts)
    })
  }
}

it("every request body is one that the API takes, whatever happened before", { timeout: 1_800_000 }, async () => {
  const random = randomFrom(seedFor("bodies on the wire"))
  const model = new Model(random)
  models.respond((request) => model.exchange(request))
  const stage = new Stage(random)
  await stage.open()
  for (const { name } of formats) for (let at = 0; at < perFormat; at++) await stage.create(`${name}/test-model`)
  for (let round = 1; models.requests.length < wanted; round++) {
    await Promise.all(stage.people.map((person) => stage.act(person)))
    if (round % 3 === 0) await stage.kill()
    await stage.settled()
    if (round % 2 === 0) {
      await Promise.all(stage.people.map((person) => stage.retry(person)))
      await stage.settled()
    }
    if (round % 4 === 0) await stage.fork(Math.floor(random() * stage.people.length))
  }
  await stage.close()
  const wrong = models.requests.flatMap(({ bodyText, format }, index) =>
    problemsOf(format, bodyText).map((problem) => `${format} ${index}: ${problem}`)
  )
  expect(wrong.slice(0, 20)).toEqual([])
  for (const { name } of formats) {
    reportCount(`${name} bodies judged`, models.requests.filter(({ format }) => format === name).length)
  }
  for (const [what, times] of Object.entries({ ...model.done, ...stage.done })) {
    reportCount(`${what} while bodies were judged`, times)
    expect(times, what).toBeGreaterThan(0)
  }
})
