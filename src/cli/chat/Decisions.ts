// Calls that wait for the person at this chat, one after the other. Everything a question is about is shown before it is
// asked, page by page where it is longer than the window; what somebody else decides meanwhile is no longer asked.
import type { ApprovalItem, Client } from "../../client/Client.ts"
import { decisionRows } from "../render/Decision.ts"
import { choicesText, tellDecision } from "../Turn.ts"
import type { Terminal } from "../Verb.ts"

const rowsMin = 4
/** Rows that the status and the question take. */
const rowsTaken = 6

interface Asked {
  readonly item: ApprovalItem
  readonly rows: ReadonlyArray<string>
  shown: number
}

export class Decisions {
  private readonly client: Client
  private readonly conversationId: string
  private readonly terminal: Terminal
  private readonly waiting: Array<Asked> = []
  private readonly settled = new Set<string>()

  constructor(client: Client, conversationId: string, terminal: Terminal) {
    this.client = client
    this.conversationId = conversationId
    this.terminal = terminal
  }

  get isAsking(): boolean {
    return this.waiting.length > 0
  }

  /** Fetches what waits; calls that are known already stay as they are. */
  async refresh(): Promise<void> {
    const { items } = await this.client.call("approval.list", { conversation_id: this.conversationId })
    for (const item of items) {
      const isKnown = this.settled.has(item.call_id) || this.waiting.some((one) => one.item.call_id === item.call_id)
      if (!isKnown) this.waiting.push({ item, rows: decisionRows(item, this.terminal), shown: 0 })
    }
  }

  /** Somebody decided it, or it is over. */
  forget(callId: string): void {
    this.settled.add(callId)
    const at = this.waiting.findIndex(({ item }) => item.call_id === callId)
    if (at >= 0) this.waiting.splice(at, 1)
  }

  /** Rows of the first question that have not been shown: a page of them at most. */
  nextRows(): ReadonlyArray<string> {
    const [first] = this.waiting
    if (first === undefined || first.shown > 0) return []
    return this.page(first)
  }

  private page(asked: Asked): ReadonlyArray<string> {
    const size = Math.max(rowsMin, this.terminal.rows() - rowsTaken)
    const rows = asked.rows.slice(asked.shown, asked.shown + size)
    asked.shown += rows.length
    return rows
  }

  get question(): string {
    const [first] = this.waiting
    if (first === undefined) return ""
    const { item, rows, shown } = first
    if (shown < rows.length) return `${shown} of ${rows.length} rows: Enter shows more `
    return item.tool_name === "ask_user" ? "your answer: " : `allow? ${choicesText(item)} `
  }

  /** Takes a line; gives back the rows that it shows next. */
  async answer(line: string): Promise<ReadonlyArray<string>> {
    const [first] = this.waiting
    if (first === undefined) return []
    if (first.shown < first.rows.length) return line.trim() === "" ? this.page(first) : []
    const isQuestion = first.item.tool_name === "ask_user"
    const said = isQuestion ? line.trim() : line.trim().toLowerCase()
    if (said === "") return []
    this.forget(first.item.call_id)
    await tellDecision(
      { client: this.client, conversationId: this.conversationId, terminal: this.terminal },
      first.item,
      said
    )
    return []
  }
}
