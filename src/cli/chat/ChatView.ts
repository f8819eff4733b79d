// A conversation as it is shown: a fold over runes and live text. Each item gives the rows that stay; what is not settled
// yet (text being written, tools that run, messages that wait) is asked for when the bottom is drawn.
import { AnswerText, type AnyRune, type Live } from "../../client/Client.ts"
import { markdownRows } from "../render/Markdown.ts"
import { contentText, runeText } from "../render/RuneText.ts"
import { duration, fitStart, money, oneLine, safeText } from "../render/Text.ts"
import type { Terminal } from "../Verb.ts"
import { heardOutput, resultRows, runningRows, type ToolRun, toolRunOf } from "./ToolRows.ts"

type View = Pick<Terminal, "columns" | "paint" | "rows">
type Payload = Readonly<Record<string, unknown>>

interface Spent {
  readonly input: number
  readonly output: number
  /** Null once something has no known price. */
  readonly usd: number | null
}

const nothing: Spent = { input: 0, output: 0, usd: 0 }

interface Queued {
  readonly eventId: number
  readonly text: string
  readonly mode: string
}

const noted: ReadonlySet<string> = new Set([
  "tool.approved",
  "tool.denied",
  "turn.interrupted",
  "turn.error",
  "turn.retry_scheduled",
  "turn.compacted",
  "session.paused",
  "session.resumed",
  "session.suspended",
  "session.closed",
  "system.error",
  "system.recovered"
])

const ends: ReadonlySet<string> = new Set(["turn.completed", "turn.interrupted", "turn.error"])
const inputRowsMax = 20
const outputCharsKept = 200_000

const add = (spent: Spent, usage: unknown): Spent => {
  const {
    input_tokens: input = 0,
    output_tokens: output = 0,
    usd
  } = (usage ?? {}) as {
    readonly input_tokens?: number
    readonly output_tokens?: number
    readonly usd?: number
  }
  const cost = typeof usd === "number" ? usd : input + output === 0 ? 0 : null
  return {
    input: spent.input + input,
    output: spent.output + output,
    usd: spent.usd === null || cost === null ? null : spent.usd + cost
  }
}

export class ChatView {
  private readonly view: View
  private readonly rootAgentId: string
  private readonly answers = new Map<string, AnswerText>()
  private readonly roles = new Map<string, string>()
  private readonly tools = new Map<string, ToolRun>()
  private queue: Array<Queued> = []
  /** Text of the root agent that is not complete enough to be painted for good. */
  private saying = ""
  private isSpeaking = false
  private total: Spent = nothing
  private turn: Spent = nothing
  private turnStartedMs: number | undefined
  private doing = "working"
  private toolCount = 0
  private contextTokens = 0
  /** What the last tool said, whole, for `/output`. */
  lastOutput = ""

  constructor(view: View, rootAgentId: string) {
    this.view = view
    this.rootAgentId = rootAgentId
  }

  get isWorking(): boolean {
    return this.turnStartedMs !== undefined
  }

  get queued(): number {
    return this.queue.length
  }

  live(live: Live): ReadonlyArray<string> {
    return live.agent_id === this.rootAgentId ? this.say(this.answerOf(live.agent_id).live(live)) : []
  }

  /** The rows that a rune settles. */
  rune(rune: AnyRune): ReadonlyArray<string> {
    const { agent_id: agent = this.rootAgentId, kind } = rune
    const payload = rune.payload as Payload
    if (kind === "agent.spawning") this.roles.set(String(payload["agent_id"] ?? agent), String(payload["role"] ?? ""))
    if (kind.startsWith("tool.")) return [...this.broken(kind), ...this.tool(rune, payload)]
    if (agent !== this.rootAgentId && kind.startsWith("turn.")) return this.ofHelper(rune, payload)
    if (kind.startsWith("turn.")) return this.ofTurn(rune, payload)
    return noted.has(kind) ? [...this.cut(), this.note(rune)] : []
  }

  private ofTurn(rune: AnyRune, payload: Payload): ReadonlyArray<string> {
    const { kind } = rune
    if (kind === "turn.queued") {
      this.queue.push({ eventId: rune.event_id, text: contentText(payload["input"]), mode: String(payload["mode"]) })
      return []
    }
    if (kind === "turn.dequeued") this.unqueue(payload["event_ids"])
    if (kind === "turn.started") return this.started(rune, payload)
    if (kind === "turn.model_requested") this.doing = "thinking"
    const said = this.say(this.answerOf(this.rootAgentId).rune(rune))
    if (kind === "turn.assistant_final") this.spend(payload["usage"])
    if (ends.has(kind)) return [...said, ...this.cut(), ...this.ended(rune, payload)]
    if (kind === "turn.tools_finished") this.doing = "thinking"
    return noted.has(kind) ? [...said, ...this.cut(), this.note(rune)] : said
  }

  private started(rune: AnyRune, payload: Payload): ReadonlyArray<string> {
    this.unqueue(payload["queued_event_ids"])
    this.turnStartedMs = rune.ts_ms
    this.toolCount = 0
    this.turn = nothing
    return this.inputRows(contentText(payload["input"]))
  }

  /** What a person said; of a long text, its beginning. */
  private inputRows(text: string): ReadonlyArray<string> {
    const { paint } = this.view
    const lines = safeText(text).trimEnd().replaceAll("\t", "  ").split("\n")
    const left = lines.length - inputRowsMax
    const rows = lines
      .slice(0, inputRowsMax)
      .map((line, at) => `${paint("accent", at === 0 ? "›" : " ")} ${paint("strong", line)}`)
    return ["", ...rows, ...(left > 0 ? [paint("quiet", `  … ${left} more line${left === 1 ? "" : "s"}`)] : [])]
  }

  private unqueue(ids: unknown): void {
    const gone = new Set(Array.isArray(ids) ? ids : [])
    this.queue = this.queue.filter(({ eventId }) => !gone.has(eventId))
  }

  private ended(rune: AnyRune, payload: Payload): ReadonlyArray<string> {
    const { paint } = this.view
    this.total = payload["usage"] === undefined ? addTo(this.total, this.turn) : add(this.total, payload["usage"])
    this.turn = nothing
    const took = this.turnStartedMs === undefined ? "" : duration(rune.ts_ms - this.turnStartedMs)
    this.turnStartedMs = undefined
    this.tools.clear()
    this.answers.clear()
    if (rune.kind !== "turn.completed") return [this.note(rune)]
    const tools = this.toolCount === 0 ? "" : `${this.toolCount} tool${this.toolCount === 1 ? "" : "s"} · `
    return [paint("quiet", `  ${tools}${took}`)]
  }

  private spend(usage: unknown): void {
    this.turn = add(this.turn, usage)
    const { input_tokens: input = 0 } = (usage ?? {}) as { readonly input_tokens?: number }
    if (input > 0) this.contextTokens = input
  }

  /** Steered input reaches the model between two requests; it is shown when it stops waiting. */
  private ofHelper(rune: AnyRune, payload: Payload): ReadonlyArray<string> {
    const { paint } = this.view
    const name = this.roles.get(rune.agent_id ?? "") || "agent"
    if (rune.kind === "turn.started")
      return [
        ...this.cut(),
        `  ${paint("model", "▸")} ${paint("quiet", this.fit(`${name}: ${oneLine(contentText(payload["input"]))}`))}`
      ]
    if (rune.kind === "turn.completed")
      return [
        ...this.cut(),
        `  ${paint("model", "◂")} ${paint("quiet", this.fit(`${name}: ${oneLine(String(payload["final_output"] ?? ""))}`))}`
      ]
    return []
  }

  private tool(rune: AnyRune, payload: Payload): ReadonlyArray<string> {
    const callId = String(payload["call_id"])
    const run = this.tools.get(callId)
    if (rune.kind === "tool.call") {
      this.tools.set(callId, toolRunOf(rune))
      this.toolCount += 1
      this.doing = "tools"
    } else if (rune.kind === "tool.started" && run !== undefined) run.startedMs = rune.ts_ms
    else if (rune.kind === "tool.progress" && run !== undefined) heardOutput(run, payload["chunk"])
    else if (rune.kind === "tool.result" && run !== undefined) {
      this.tools.delete(callId)
      this.lastOutput = String(payload["output"] ?? "").slice(-outputCharsKept)
      return resultRows(run, payload, this.view)
    }
    return noted.has(rune.kind) ? [this.note(rune)] : []
  }

  /** What is being said is painted before a tool's line comes. */
  private broken(kind: string): ReadonlyArray<string> {
    return kind === "tool.progress" ? [] : this.cut()
  }

  private answerOf(agentId: string): AnswerText {
    const known = this.answers.get(agentId) ?? new AnswerText()
    this.answers.set(agentId, known)
    return known
  }

  private say(piece: ReturnType<AnswerText["live"]>): ReadonlyArray<string> {
    if (piece === undefined) return []
    const before = piece.fresh ? this.cut() : []
    const lead = this.isSpeaking || piece.text === "" ? [] : [""]
    this.doing = "writing"
    this.saying += piece.text
    if (piece.text !== "") this.isSpeaking = true
    const { rest, rows } = markdownRows(this.saying, piece.isFinal, this.markdown)
    this.saying = rest
    if (piece.isFinal) this.isSpeaking = false
    return [...before, ...lead, ...rows]
  }

  /** Whatever was being said is over. */
  private cut(): ReadonlyArray<string> {
    const { rows } = markdownRows(this.saying, true, this.markdown)
    const said = this.saying === "" ? [] : rows
    this.saying = ""
    this.isSpeaking = false
    return said
  }

  private get markdown() {
    return { paint: this.view.paint, columns: Math.max(20, this.view.columns() - 1) }
  }

  private note(rune: AnyRune): string {
    const { mark, text, tone } = runeText(rune)
    const { paint } = this.view
    return `  ${paint(tone ?? "quiet", mark)} ${paint("quiet", this.fit(text))}`
  }

  private fit(text: string): string {
    return fitStart(text, this.view.columns() - 5)
  }

  /** What is under way: the end of the text being written, tools that run, messages that wait. */
  unsettled(nowMs: number): ReadonlyArray<string> {
    const { paint } = this.view
    const room = Math.max(2, Math.floor(this.view.rows() / 2))
    const saying = this.saying === "" ? [] : markdownRows(this.saying, true, this.markdown).rows
    const tools = [...this.tools.values()].flatMap((run) => runningRows(run, nowMs, this.view))
    const waiting = this.queue.map(({ mode, text }) => {
      const how = mode === "steer" ? "steers after this step" : "queued"
      return `  ${paint("notice", "…")} ${paint("quiet", this.fit(`${how}: ${oneLine(text)}`))}`
    })
    return [...saying.slice(-room), ...tools.slice(-room), ...waiting.slice(-5)]
  }

  /** Tokens, money, time: one row. */
  status(nowMs: number): string {
    const spent = addTo(this.total, this.turn)
    const working = this.turnStartedMs === undefined ? "ready" : this.doing
    const parts = [
      working,
      ...(this.isWorking && this.toolCount > 0 ? [`${this.toolCount} tool${this.toolCount === 1 ? "" : "s"}`] : []),
      `${short(spent.input)} in ${short(spent.output)} out`,
      ...(spent.usd === 0 ? [] : [money(spent.usd)]),
      ...(this.turnStartedMs === undefined ? [] : [duration(Math.max(0, nowMs - this.turnStartedMs))]),
      ...(this.contextTokens === 0 ? [] : [`context ${short(this.contextTokens)}`]),
      ...(this.queue.length === 0 ? [] : [`queue ${this.queue.length}`])
    ]
    return parts.join(" · ")
  }
}

const addTo = (left: Spent, right: Spent): Spent => ({
  input: left.input + right.input,
  output: left.output + right.output,
  usd: left.usd === null || right.usd === null ? null : left.usd + right.usd
})

/** 950, 12.4k, 1.2M. */
export const short = (count: number): string => {
  if (count < 1_000) return String(count)
  return count < 1_000_000 ? `${(count / 1_000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`
}
