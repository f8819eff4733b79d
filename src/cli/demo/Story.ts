// The goal of the demo as it is followed: every rune remembered, those that tell the story shown, the approval answered,
// and the server killed at the worst moment: two workers are at it, one in the middle of a sentence.
import { type AnyRune, type Client, type Gap, RequestFailed, type TailItem } from "../../client/Client.ts"
import { taskRows } from "../goal/PlanView.ts"
import { showRows } from "../Pages.ts"
import { decisionRows } from "../render/Decision.ts"
import { RuneLines } from "../render/RuneLine.ts"
import { isDelta } from "../render/RuneText.ts"
import { oneLine } from "../render/Text.ts"
import type { Terminal } from "../Verb.ts"
import type { Stored } from "./Compare.ts"

export interface StoryOptions {
  readonly client: Client
  readonly terminal: Terminal
  readonly conversationId: string
  readonly signal: AbortSignal
  /** Kills the server and starts another; resolves when that listens. */
  readonly strike: (partialSentence: string, eventId: number) => Promise<void>
}

type Payload = Readonly<Record<string, unknown>>
const payloadOf = (rune: AnyRune): Payload => rune.payload as Payload

interface Question {
  readonly rows: ReadonlyArray<string>
  readonly question: string
  readonly what: string
}

const workersAtOnce = 2
const sentenceCharsMin = 16

const bookkeeping = /_delta$|^agent\.|^turn\.(?!assistant_final$)|^tool\.(started|progress)$|^plan\.task_assigned$/

/** The others are in the log all the same; on a screen they hide the story. */
const isTold = (rune: AnyRune): boolean => !bookkeeping.test(rune.kind)

export class Story {
  /** Everything that was shown, in the order in which it came. */
  readonly seen: Array<AnyRune> = []
  approvals = 0
  outcome: string | undefined
  private readonly options: StoryOptions
  private readonly lines: RuneLines
  private readonly tail: AsyncGenerator<TailItem, void, void>
  private readonly working = new Set<string>()
  private isStruck = false
  /** What each agent is saying right now. */
  private readonly sentences = new Map<string, string>()

  constructor(options: StoryOptions) {
    this.options = options
    this.lines = new RuneLines(options.terminal)
    this.tail = options.client.tail(options.conversationId, { signal: options.signal })
  }

  /** Follows until a rune of this kind has been shown. */
  async until(...kinds: ReadonlyArray<string>): Promise<AnyRune> {
    for (;;) {
      const { done, value } = await this.tail.next()
      if (done === true) throw this.options.signal.reason ?? new Error("the conversation ended too early")
      if (!("rune" in value)) continue
      this.show(value.rune)
      await this.react(value.rune)
      if (kinds.includes(value.rune.kind)) return value.rune
    }
  }

  private show(rune: AnyRune): void {
    const { terminal } = this.options
    this.seen.push(rune)
    const progress = this.lines.progress(rune)
    terminal.status(isDelta(rune) ? progress : undefined)
    const line = this.lines.line(rune)
    if (isTold(rune)) terminal.write(`${line}\n`)
  }

  private async react(rune: AnyRune): Promise<void> {
    const payload = payloadOf(rune)
    if (rune.kind === "tool.approval_requested") return this.decide(String(payload["call_id"]))
    if (rune.kind === "plan.created" && payload["needs_approval"] !== undefined) return this.judge(payload)
    if (rune.kind === "plan.task_started") this.working.add(String(payload["task_id"]))
    const { agent_id: agent = "" } = rune
    if (rune.kind !== "turn.assistant_delta") {
      this.sentences.delete(agent)
      return
    }
    const sentence = `${this.sentences.get(agent) ?? ""}${String(payload["content"])}`
    this.sentences.set(agent, sentence)
    if (this.working.size < workersAtOnce || this.isStruck || sentence.length < sentenceCharsMin) return
    this.isStruck = true
    this.options.terminal.status(undefined)
    await this.options.strike(sentence, rune.event_id)
  }

  private async decide(callId: string): Promise<void> {
    const { client, conversationId, terminal } = this.options
    const { items } = await client.call("approval.list", { conversation_id: conversationId })
    const item = items.find((one) => one.call_id === callId)
    if (item === undefined) return
    const isAllowed = await this.ask({
      rows: decisionRows(item, terminal),
      question: "allow?",
      what: item.tool_name
    })
    try {
      if (isAllowed) {
        const { arguments_hash } = item
        await client.call("approval.approve", {
          conversation_id: conversationId,
          call_id: callId,
          scope: "once",
          arguments_hash
        })
      } else
        await client.call("approval.deny", { conversation_id: conversationId, call_id: callId, reason: "not allowed" })
    } catch (error) {
      // Somebody was faster; the runes say who.
      if (!(error instanceof RequestFailed) || error.code !== "already_decided") throw error
    }
    this.approvals += 1
  }

  /** Its commands are asked about before any of them runs. */
  private async judge({ needs_approval: why, plan_id: planId, revision, tasks }: Payload): Promise<void> {
    const { client, conversationId, terminal } = this.options
    const plan = { conversation_id: conversationId, plan_id: String(planId) }
    terminal.write(`  ${terminal.paint("notice", "?")} the plan waits for a yes: ${oneLine(String(why))}\n`)
    const rows = taskRows(tasks, terminal)
    const isAllowed = await this.ask({ rows, question: "start this plan?", what: "the plan" })
    try {
      if (isAllowed) await client.call("plan.approve", { ...plan, revision: Number(revision) })
      else await client.call("plan.cancel", { ...plan, reason: "not allowed" })
    } catch (error) {
      if (!(error instanceof RequestFailed) || error.code !== "invalid_state") throw error
    }
    this.approvals += 1
  }

  private async ask({ question, rows, what }: Question): Promise<boolean> {
    const { signal, terminal } = this.options
    if ((await showRows(rows, terminal, signal)) === "stopped") return false
    if (!terminal.isAnswered) {
      terminal.write(`    ${terminal.paint("quiet", `nobody is at the terminal, so the demo allows ${what}`)}\n`)
      return true
    }
    const answer = await terminal.ask(`    ${question} [Y]es, [n]o `, signal)
    return answer !== undefined && /^(y(es)?)?$/i.test(answer.trim())
  }
}

/** What the log holds now, from the beginning. */
export const readAll = async (client: Client, conversationId: string, signal: AbortSignal): Promise<Stored> => {
  const runes: Array<AnyRune> = []
  const gaps: Array<Gap> = []
  for await (const item of client.tail(conversationId, { signal })) {
    if ("caught_up" in item) break
    if ("rune" in item) runes.push(item.rune)
    if ("gap" in item) gaps.push(item.gap)
  }
  return { runes, gaps }
}
