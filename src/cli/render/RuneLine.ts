// Runes as lines of a terminal: event id, time where there is room, kind and what it says, never wider than the
// terminal; and the line of progress below them while a model speaks.
import type { AnyRune } from "../../client/Client.ts"
import type { Terminal } from "../Verb.ts"
import { contentText, isDelta, runeText } from "./RuneText.ts"
import { clock, fitEnd, fitStart, oneLine, pad, safeText } from "./Text.ts"

const kindColumns = 24
const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
const textKeptMax = 2_000

export class RuneLines {
  private readonly terminal: Terminal
  private readonly agents = new Map<string, string>()
  private speech = ""
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
    const agent = this.agentTag(rune)
    const kind = pad(fitStart(safeText(rune.kind), kindColumns), kindColumns)
    const left = columns - id.length - 1 - time.length - 2 - kindColumns - 1 - agent.length
    const said = fitStart(text, left)
    const shown = tone === undefined ? said : paint(tone, said)
    const sign = tone === undefined ? mark : paint(tone, mark)
    return `${paint("quiet", `${id} ${time}`)}${sign} ${paint("quiet", kind)} ${paint("accent", agent)}${shown}`.trimEnd()
  }

  /** Names the agent once there is more than one. */
  private agentTag(rune: AnyRune): string {
    const { agent_id: id } = rune
    if (id === undefined) return ""
    if (!this.agents.has(id)) this.agents.set(id, id.slice(4, 8))
    return this.agents.size > 1 ? `${this.agents.get(id) ?? ""} ` : ""
  }

  /** Follows the conversation for the line of progress; undefined when there is nothing under way. */
  progress(rune: AnyRune): string | undefined {
    this.listen(rune)
    if (this.speech === "") return undefined
    this.spun = (this.spun + 1) % spinner.length
    const { paint, columns } = this.terminal
    // One column stays free, or the cursor would wrap and the line could not be erased.
    return `${paint("model", spinner[this.spun] ?? "·")} ${paint("quiet", fitEnd(oneLine(this.speech), columns() - 4))}`
  }

  private listen(rune: AnyRune): void {
    if (!isDelta(rune)) this.speech = ""
    else {
      const { content, chunk } = rune.payload as { readonly content?: unknown; readonly chunk?: unknown }
      this.speech = `${this.speech}${contentText(content ?? chunk)}`.slice(-textKeptMax)
    }
  }
}
