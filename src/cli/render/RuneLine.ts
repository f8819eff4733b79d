// Runes as lines of a terminal: event id, time where there is room, kind and what it says, never wider than the
// terminal; and the line of progress below them while a model speaks.
import { AnswerText, type AnyRune, type Live } from "../../client/Client.ts"
import type { Terminal } from "../Verb.ts"
import { objectOf } from "./Describing.ts"
import { contentText, isDelta, runeText } from "./RuneText.ts"
import { clock, fitEnd, fitStart, oneLine, pad, safeText } from "./Text.ts"

const kindColumns = 24
const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
const textKeptMax = 2_000

const namesMax = 1_000
const nameColumns = 12

/** The first characters of an id after its prefix, if others have been seen too. */
const shortName = (seen: Set<string>, id: string): string => {
  if (id === "") return ""
  if (seen.size < namesMax) seen.add(id)
  return seen.size > 1 ? `${id.slice(id.indexOf("_") + 1).slice(0, 4)} ` : ""
}

export class RuneLines {
  private readonly terminal: Terminal
  private readonly agents = new Set<string>()
  private readonly names = new Map<string, string>()
  private readonly conversations = new Set<string>()
  /** What each agent is saying right now. */
  private readonly speech = new Map<string, string>()
  private readonly answers = new Map<string, AnswerText>()
  private spun = 0

  constructor(terminal: Terminal) {
    this.terminal = terminal
  }

  line(rune: AnyRune): string {
    const columns = this.terminal.columns()
    const { paint } = this.terminal
    const { mark, text, tone } = runeText(rune)
    const id = String(rune.event_id).padStart(5)
    const time = columns >= 100 ? `${clock(rune.ts_ms)} ` : ""
    const agent = this.tagOf(rune)
    const kind = pad(fitStart(safeText(rune.kind), kindColumns), kindColumns)
    const left = columns - id.length - 1 - time.length - 2 - kindColumns - 1 - agent.length
    const said = fitStart(text, left)
    const shown = tone === undefined ? said : paint(tone, said)
    const sign = tone === undefined ? mark : paint(tone, mark)
    return `${paint("quiet", `${id} ${time}`)}${sign} ${paint("quiet", kind)} ${paint("accent", agent)}${shown}`.trimEnd()
  }

  /** Names the conversation and the agent, each once there is more than one. */
  private tagOf(rune: AnyRune): string {
    this.learn(rune)
    const { agent_id: agent = "", conversation_id: conversation } = rune
    const short = shortName(this.agents, agent)
    const name = short === "" ? undefined : this.names.get(agent)
    return `${shortName(this.conversations, conversation)}${name === undefined ? short : `${name} `}`
  }

  /** An agent is called by the task it has, else by its role. */
  private learn({ agent_id: agent, kind, payload }: AnyRune): void {
    const { agent_id: named, role, task_id: task } = objectOf(payload)
    const name = kind === "agent.spawning" ? role : kind === "plan.task_assigned" ? task : undefined
    if (typeof name !== "string" || this.names.size >= namesMax) return
    const id = typeof named === "string" ? named : (agent ?? "")
    // A worker is spawned for a task, so the role it comes with says less.
    if (kind === "agent.spawning" && this.names.has(id)) return
    this.names.set(id, fitStart(oneLine(name), nameColumns))
  }

  /** Follows the conversation for the line of progress; undefined when there is nothing under way. */
  progress(rune: AnyRune): string | undefined {
    return this.progressText(this.listen(rune))
  }

  /** The same for text that is not durable yet. */
  liveProgress(live: Live): string | undefined {
    const { agent_id: agent } = live
    return this.progressText(this.append(agent, this.answerOf(agent).live(live)?.text ?? ""))
  }

  private progressText(speech: string): string | undefined {
    if (speech === "") return undefined
    this.spun = (this.spun + 1) % spinner.length
    const { paint, columns } = this.terminal
    // One column stays free, or the cursor would wrap and the line could not be erased.
    return `${paint("model", spinner[this.spun] ?? "·")} ${paint("quiet", fitEnd(oneLine(speech), columns() - 4))}`
  }

  private listen(rune: AnyRune): string {
    const { agent_id: agent = "" } = rune
    // Live text of a request may have come before the rune that says it was made.
    if (rune.kind === "turn.model_requested") return this.speech.get(agent) ?? ""
    if (!isDelta(rune)) {
      this.speech.delete(agent)
      this.answers.delete(agent)
      return ""
    }
    const { content, chunk } = objectOf(rune.payload)
    const isAnswer = rune.kind === "turn.assistant_delta"
    return this.append(agent, isAnswer ? (this.answerOf(agent).rune(rune)?.text ?? "") : contentText(content ?? chunk))
  }

  private append(agent: string, text: string): string {
    const speech = `${this.speech.get(agent) ?? ""}${text}`.slice(-textKeptMax)
    if (this.speech.size < namesMax) this.speech.set(agent, speech)
    return speech
  }

  private answerOf(agent: string): AnswerText {
    const known = this.answers.get(agent) ?? new AnswerText()
    if (this.answers.size < namesMax) this.answers.set(agent, known)
    return known
  }
}
