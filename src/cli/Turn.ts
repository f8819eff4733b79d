// A turn as a person follows it: text as the model writes it, tools as they run, questions asked where they come up.
// Ends with the turn, whatever became of the connection meanwhile.
import {
  type AnswerPiece,
  AnswerText,
  type AnyRune,
  type ApprovalItem,
  type Client,
  type Live,
  RequestFailed
} from "../client/Client.ts"
import { showRows } from "./Pages.ts"
import { decisionRows } from "./render/Decision.ts"
import { runeText } from "./render/RuneText.ts"
import { fitStart, oneLine, safeText } from "./render/Text.ts"
import type { Terminal } from "./Verb.ts"

export interface TurnOutcome {
  readonly kind: "turn.completed" | "turn.interrupted" | "turn.error"
  readonly event_id: number
  readonly output: string
}

export interface FollowOptions {
  readonly client: Client
  readonly terminal: Terminal
  readonly conversationId: string
  /** The event after which to listen. */
  readonly after: number
  /** The turn to wait for; the next one that ends when left out. */
  readonly turnId?: string
  readonly signal: AbortSignal
}

/** The same terminal without standard output, for `--json`. */
export const withoutOutput = (terminal: Terminal): Terminal => ({ ...terminal, write: () => {} })

const ends: ReadonlySet<string> = new Set(["turn.completed", "turn.interrupted", "turn.error"])

/** Follows until the turn ends; undefined when the signal came first. */
export const followTurn = async (options: FollowOptions): Promise<TurnOutcome | undefined> => {
  const { client, conversationId, after, signal, turnId, terminal } = options
  const speech = new Speech(terminal)
  for await (const item of client.tail(conversationId, { after, live: true, signal })) {
    if ("live" in item) speech.hear(item.live)
    if (!("rune" in item)) continue
    const { rune } = item
    speech.show(rune)
    if (rune.kind === "tool.approval_requested") await decide(options, String(payloadOf(rune)["call_id"]))
    const isEnd = ends.has(rune.kind) && (turnId === undefined || rune.turn_id === turnId)
    if (isEnd) speech.endLine()
    if (isEnd) return { kind: rune.kind as TurnOutcome["kind"], event_id: rune.event_id, output: outputOf(rune) }
  }
  return undefined
}

const payloadOf = (rune: AnyRune): Readonly<Record<string, unknown>> =>
  rune.payload as Readonly<Record<string, unknown>>

const outputOf = (rune: AnyRune): string => {
  const payload = payloadOf(rune)
  return String(payload["final_output"] ?? payload["partial_output"] ?? payload["message"] ?? "")
}

/** Writes the answers of the agents, each character once, with the tools between them. */
class Speech {
  private readonly terminal: Terminal
  private readonly answers = new Map<string, AnswerText>()
  private isLineOpen = false

  constructor(terminal: Terminal) {
    this.terminal = terminal
  }

  hear(live: Live): void {
    this.say(this.answerOf(live.agent_id).live(live))
  }

  show(rune: AnyRune): void {
    this.say(this.answerOf(rune.agent_id ?? "").rune(rune))
    this.note(rune)
  }

  private answerOf(agentId: string): AnswerText {
    const known = this.answers.get(agentId) ?? new AnswerText()
    this.answers.set(agentId, known)
    return known
  }

  private say(piece: AnswerPiece | undefined): void {
    if (piece === undefined) return
    if (piece.fresh) this.endLine()
    const shown = safeText(piece.text)
    if (shown === "") return
    this.terminal.write(shown)
    this.isLineOpen = !shown.endsWith("\n")
  }

  endLine(): void {
    if (this.isLineOpen) this.terminal.write("\n")
    this.isLineOpen = false
  }

  private note(rune: AnyRune): void {
    if (!noted.has(rune.kind)) return
    this.endLine()
    const { mark, text, tone } = runeText(rune)
    const line = fitStart(text, this.terminal.columns() - 5)
    const { paint } = this.terminal
    this.terminal.write(`  ${paint(tone ?? "quiet", mark)} ${paint("quiet", line)}\n`)
  }
}

const noted: ReadonlySet<string> = new Set([
  "tool.call",
  "tool.approved",
  "tool.denied",
  "tool.result",
  "turn.interrupted",
  "turn.error",
  "turn.retry_scheduled",
  "system.error",
  "system.recovered"
])

/** Asks about a call that waits, unless somebody else has decided it by now. */
export const decide = async (
  { client, conversationId, terminal, signal }: Omit<FollowOptions, "turnId">,
  callId: string
): Promise<void> => {
  const { items } = await client.call("approval.list", { conversation_id: conversationId })
  const item = items.find((one) => one.call_id === callId)
  if (item === undefined) return
  const rows = decisionRows(item, terminal)
  if (!terminal.isAnswered) {
    terminal.complain(`${rows.join("\n")}\n`)
    terminal.complain(laterText(item))
    return
  }
  if ((await showRows(rows, terminal, signal)) === "stopped") {
    terminal.complain(laterText(item))
    return
  }
  const isQuestion = item.tool_name === "ask_user"
  const answer = await terminal.ask(isQuestion ? "  your answer: " : `  allow? ${choicesText(item)} `, signal)
  if (answer === undefined) return
  await tellDecision(
    { client, conversationId, terminal },
    item,
    isQuestion ? answer.trim() : answer.trim().toLowerCase()
  )
}

const laterText = ({ call_id: callId, conversation_id: id }: ApprovalItem): string =>
  `waiting for a decision: echs approve ${id} ${callId}, or echs deny ${id} ${callId}\n`

export const choicesText = (item: ApprovalItem): string =>
  item.choices.includes("session") ? "[y]es, [a]lways in this conversation, [n]o" : "[y]es, [n]o"

/** Somebody else decided it, or ended what asked, while the question stood here. */
const overtaken: ReadonlySet<string> = new Set(["already_decided", "not_found", "invalid_state"])

/** Only the words that were offered: whatever else is said is a no, and goes on record as its reason. */
const isYes = (item: ApprovalItem, answer: string): boolean =>
  /^y(es)?$/.test(answer) || (/^a(lways)?$/.test(answer) && item.choices.includes("session"))

export const tellDecision = async (
  to: Pick<FollowOptions, "client" | "conversationId" | "terminal">,
  item: ApprovalItem,
  answer: string
): Promise<void> => {
  const call = { conversation_id: to.conversationId, call_id: item.call_id }
  try {
    if (item.tool_name === "ask_user" && answer !== "") {
      const edited = { ...(item.arguments as object), answer }
      await to.client.call("approval.approve", {
        ...call,
        scope: "once",
        arguments: edited,
        arguments_hash: item.arguments_hash
      })
    } else if (isYes(item, answer)) {
      const scope = /^a/.test(answer) ? "session" : "once"
      await to.client.call("approval.approve", { ...call, scope, arguments_hash: item.arguments_hash })
    } else
      await to.client.call("approval.deny", {
        ...call,
        reason: /^no?$/.test(answer) ? "not allowed" : oneLine(answer) || "not allowed"
      })
  } catch (error) {
    if (!(error instanceof RequestFailed) || !overtaken.has(error.code)) throw error
    to.terminal.complain(`${error.message}\n`)
  }
}

/** A yes starts the plan that was shown; anything else refuses it, with that as the reason. */
export const tellPlan = async (
  { client, terminal }: Pick<FollowOptions, "client" | "terminal">,
  plan: { readonly conversation_id: string; readonly plan_id: string; readonly revision?: number },
  answer: string
): Promise<void> => {
  try {
    if (/^y(es)?$/i.test(answer)) await client.call("plan.approve", plan)
    else await client.call("plan.reject", { ...plan, reason: answer })
  } catch (error) {
    if (!(error instanceof RequestFailed) || error.code !== "invalid_state") throw error
    terminal.complain(`${error.message}\n`)
  }
}
