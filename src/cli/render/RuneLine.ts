// Runes as lines of a terminal: event id, time where there is room, kind and what it says, never wider than the
// terminal; and the line of progress below them while a model speaks.
import type { AnyRune } from "../../client/Client.ts"
import type { Terminal } from "../Verb.ts"
import { contentText, isDelta, runeText } from "./RuneText.ts"
import { clock, fitEnd, fitStart, oneLine, pad, safeText } from "./Text.ts"

const kindColumns = 24
const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
const textKeptMax = 2_000

const namesMax = 1_000

/** The first characters of an id after its prefix, if others have been seen too. */
const shortName = (seen: Set<string>, id: string): string => {
  if (id === "") return ""
  if (seen.size < namesMax) seen.add(id)
  return seen.size > 1 ? `${id.slice(id.indexOf("_") + 1).slice(0, 4)} ` : ""
}

export class RuneLines {
  private readonly terminal: Terminal
  private readonly agents = new Set<string>()
  private readonly conversations = new Set<string>()
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
    const agent = this.tagOf(rune)
    const kind = pad(fitStart(safeText(rune.kind), kindColumns), kindColumns)
    const left = columns - id.length - 1 - time.length - 2 - kindColumns - 1 - agent.length
    const said = fitStart(text, left)
    const shown = tone === undefined ? said : paint(tone, said)
    const sign = tone === undefined ? mark : paint(tone, mark)
    return `${paint("quiet", `${id} ${time}`)}${sign} ${paint("quiet", kind)} ${paint("accent", agent)}${shown}`.trimEnd()
  }

  /** Names the conversation and the agent, each once there is more than one. */
  private tagOf({ agent_id: agent, conversation_id: conversation }: AnyRune): string {
    return `${shortName(this.conversations, conversation)}${shortName(this.agents, agent ?? "")}`
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
