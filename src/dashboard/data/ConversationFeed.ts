// One conversation, followed live or looked at in the past. It opens at its end and pages backwards by cursor, so that a
// long one opens as fast as a short one; new runes are painted a few times a second; what is kept is bounded.
import { signal } from "@preact/signals"
import type { AnyRune, ConversationSummary } from "../../client/Client.ts"
import { Transcript, transcriptOf } from "../state/Transcript.ts"
import { client, failureText, lastHeardMs } from "./Connection.ts"

/** Runes of one page backwards, and how many are kept; older ones are asked for again. */
const pageRunes = 400
const keptRunesMax = 20_000
const summaryEveryMs = 250
const paintEveryMs = 40
const drawEveryMs = 500

/** Kinds after which the summary is asked for again. */
const isStructural = (kind: string): boolean => !/_delta$|\.progress$/.test(kind)

export class ConversationFeed {
  readonly id: string
  /** Goes up with every change of the transcript. */
  readonly version = signal(0)
  /** The same, less often, for what is drawn of all runes. */
  readonly drawing = signal(0)
  readonly summary = signal<ConversationSummary | undefined>(undefined)
  readonly head = signal(0)
  readonly failure = signal("")
  /** The first event that is loaded. */
  readonly from = signal(1)
  /** The event it is looked at; live when undefined. */
  readonly at: number | undefined
  transcript = new Transcript()
  private readonly closing = new AbortController()
  private paintTimer: ReturnType<typeof setTimeout> | undefined
  private drawTimer: ReturnType<typeof setTimeout> | undefined
  private summaryTimer: ReturnType<typeof setTimeout> | undefined

  constructor(id: string, at: number | undefined) {
    this.id = id
    this.at = at
    void this.run().catch((error: unknown) => {
      if (!this.closing.signal.aborted) this.failure.value = failureText(error)
    })
  }

  close(): void {
    this.closing.abort()
    for (const timer of [this.paintTimer, this.drawTimer, this.summaryTimer]) clearTimeout(timer)
  }

  private async run(): Promise<void> {
    const { conversation_id: _id, last_event_id: head } = await this.loadSummary()
    this.head.value = head
    if (this.at !== undefined) return this.runPast(this.at)
    this.from.value = Math.max(1, head - pageRunes + 1)
    const after = this.from.value - 1
    for await (const item of client().tail(this.id, { after, signal: this.closing.signal })) {
      if (!("rune" in item)) continue
      this.transcript.apply(item.rune)
      lastHeardMs.value = Date.now()
      this.head.value = Math.max(this.head.value, item.rune.event_id)
      if (isStructural(item.rune.kind) && item.rune.event_id > head) this.askSummary()
      this.trim()
      this.paint()
    }
  }

  /** Up to the moment; the state of it comes from the server's own fold. */
  private async runPast(at: number): Promise<void> {
    this.from.value = Math.max(1, at - pageRunes + 1)
    this.transcript = transcriptOf(await this.read(this.from.value - 1, at))
    this.paint()
    for await (const item of client().tail(this.id, { after: "tail", signal: this.closing.signal }))
      if ("rune" in item) this.head.value = item.rune.event_id
  }

  private async loadSummary(): Promise<ConversationSummary> {
    const now = await client().call("conversation.get", { conversation_id: this.id })
    if (this.at === undefined) {
      this.summary.value = now
      return now
    }
    const at_event_id = Math.max(1, Math.min(this.at, now.last_event_id))
    this.summary.value = await client().call("conversation.get", { conversation_id: this.id, at_event_id })
    return now
  }

  private askSummary(): void {
    this.summaryTimer ??= setTimeout(() => {
      this.summaryTimer = undefined
      void this.loadSummary().catch(failureText)
    }, summaryEveryMs)
  }

  private async read(after: number, upto: number): Promise<ReadonlyArray<AnyRune>> {
    const runes: Array<AnyRune> = []
    for await (const item of client().tail(this.id, { after, signal: this.closing.signal })) {
      if ("caught_up" in item) break
      if ("gap" in item && item.gap.to >= upto) break
      if (!("rune" in item)) continue
      if (item.rune.event_id <= upto) runes.push(item.rune)
      if (item.rune.event_id >= upto) break
    }
    return runes
  }

  /** One page further back. */
  async loadEarlier(): Promise<void> {
    const upto = this.from.value - 1
    if (upto < 1) return
    const after = Math.max(0, upto - pageRunes)
    const older = await this.read(after, upto)
    const streaming = this.transcript.entries.filter((entry) => entry.type === "answer" && entry.isStreaming)
    this.transcript = transcriptOf([...older, ...this.transcript.runes])
    for (const entry of streaming) this.transcript.put(entry)
    this.from.value = after + 1
    this.paint()
  }

  private trim(): void {
    const { runes } = this.transcript
    if (runes.length <= keptRunesMax || this.transcript.entries.some((one) => one.type === "answer" && one.isStreaming))
      return
    const kept = runes.slice(-keptRunesMax / 2)
    this.from.value = kept[0]?.event_id ?? 1
    this.transcript = transcriptOf(kept)
  }

  /** Text moves 25 times a second, what is drawn of all runes twice: the rest of every frame is for scrolling. */
  private paint(): void {
    this.paintTimer ??= setTimeout(() => {
      this.paintTimer = undefined
      this.version.value += 1
    }, paintEveryMs)
    this.drawTimer ??= setTimeout(
      () => {
        this.drawTimer = undefined
        this.drawing.value += 1
      },
      this.drawing.value === 0 ? paintEveryMs : drawEveryMs
    )
  }
}
