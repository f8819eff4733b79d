// Judges a simulated story: keeps what the runtime said and did, and holds the logs against it. Nothing that was told
// or answered for may be missing, nothing may happen before its rune is durable or twice, a stop is never a failure,
// and no model is asked with a call left unanswered.

import * as Result from "effect/Result"
import { expect } from "vitest"
import type { Submitted } from "#src/conversation/Actor.ts"
import type { Command } from "#src/machine/Command.ts"
import type { ConversationState } from "#src/machine/State.ts"
import type { Message, ModelRequest } from "#src/provider/Canonical.ts"
import type { Registry, ResolvedModel } from "#src/provider/Registry.ts"
import type { ConversationId } from "#src/rune/Ids.ts"
import type { AnyRune, Rune } from "#src/rune/Rune.ts"
import type { ToolContext } from "#src/tool/ToolPort.ts"
import { checkRunes } from "./Logs.ts"

/** How an answer of the model begins that ends its turn. */
const LAST_WORDS = "That is all"

/** Ids of calls that the message after them does not answer, all of them and in their order. */
const unanswered = (messages: ReadonlyArray<Message>): ReadonlyArray<string> =>
  messages.flatMap((message, index) => {
    if (message.role !== "assistant") return []
    const calls = message.content.flatMap((part) => (part.type === "tool_call" ? [part.call_id] : []))
    const next = messages[index + 1]
    const answers = next?.role === "tool" ? next.content.map((part) => part.call_id) : []
    return calls.filter((id, at) => answers[at] !== id)
  })

export class Judge {
  private readonly seed: number
  /** What was told to be durable, by conversation, over all lives. */
  private readonly known = new Map<string, Array<AnyRune>>()
  /** The last event that an answer spoke of. */
  private readonly acknowledged = new Map<string, number>()
  private readonly effects = new Map<string, number>()
  private readonly complaints: Array<string> = []

  constructor(seed: number) {
    this.seed = seed
  }

  private about(what: string): string {
    return `seed ${this.seed}: ${what}`
  }

  /** Side effects that happened, however often. */
  get sideEffects(): number {
    return this.effects.size
  }

  sideEffect({ call_id: callId, conversation_id: id }: ToolContext): void {
    const key = `${id} ${callId}`
    this.effects.set(key, (this.effects.get(key) ?? 0) + 1)
  }

  /** Subscribers saw these runes. */
  told(id: ConversationId, runes: ReadonlyArray<AnyRune>): void {
    this.known.set(id, [...(this.known.get(id) ?? []), ...runes])
  }

  answered(id: ConversationId, command: Command, { event_id: eventId, runes }: Submitted): void {
    this.acknowledged.set(id, Math.max(this.acknowledged.get(id) ?? 0, eventId))
    if (command._tag !== "InterruptTurn") return
    const ends = runes.filter(({ kind }) => kind === "turn.interrupted" || kind === "turn.error")
    if (ends.length !== 1 || ends[0]?.kind !== "turn.interrupted")
      this.complaints.push(`a stop ended in ${ends.map(({ kind }) => kind).join(", ") || "nothing"}`)
  }

  afterRestart(id: ConversationId, log: ReadonlyArray<AnyRune>): void {
    const known = this.known.get(id) ?? []
    expect(log.slice(0, known.length), this.about("what was durable is still there")).toEqual(known)
    const acknowledged = this.acknowledged.get(id) ?? 0
    expect(log.length, this.about("what was answered for is still there")).toBeGreaterThanOrEqual(acknowledged)
  }

  recovered(failed: ReadonlyArray<unknown>): void {
    expect(failed.map(String), this.about("every conversation can be taken up again")).toEqual([])
  }

  /** Models through which every request is looked at. */
  watch(registry: Registry): Registry {
    const watched = ({ provider, ...rest }: ResolvedModel): ResolvedModel => ({
      ...rest,
      provider: {
        name: provider.name,
        stream: (request, options) => {
          this.asked(request)
          return provider.stream(request, options)
        }
      }
    })
    return { ...registry, resolve: (fullName) => Result.map(registry.resolve(fullName), watched) }
  }

  private asked({ messages, requestId }: ModelRequest): void {
    for (const callId of unanswered(messages)) this.complaints.push(`${requestId} leaves ${callId} unanswered`)
  }

  atTheEnd(id: ConversationId, log: ReadonlyArray<AnyRune>, live: ConversationState | undefined): void {
    this.afterRestart(id, log)
    checkRunes(id, log, live)
    for (const rune of log as ReadonlyArray<Rune>) {
      if (rune.kind === "turn.error") this.complaints.push(`${id} failed: ${rune.payload.message}`)
      if (rune.kind === "turn.completed" && !rune.payload.final_output.startsWith(LAST_WORDS))
        this.complaints.push(`${rune.turn_id} of ${id} is over before its end: ${rune.payload.final_output}`)
    }
    this.compareEffects(id, log as ReadonlyArray<Rune>)
  }

  /** What ran is on record before it ran, and what is on record as done did run. */
  private compareEffects(id: ConversationId, log: ReadonlyArray<Rune>): void {
    const started = new Set<string>()
    const mutating = new Set<string>()
    for (const rune of log) {
      if (rune.kind === "tool.call" && rune.payload.effect_class !== "pure") mutating.add(rune.payload.call_id)
      if (rune.kind === "tool.started") started.add(`${id} ${rune.payload.call_id}`)
      const isDone = rune.kind === "tool.result" && rune.payload.status === "success"
      if (isDone && mutating.has(rune.payload.call_id) && !this.effects.has(`${id} ${rune.payload.call_id}`))
        this.complaints.push(`${id} ${rune.payload.call_id} is on record and did not run`)
    }
    for (const call of this.effects.keys())
      if (call.startsWith(id) && !started.has(call)) this.complaints.push(`${call} ran and its start is not on record`)
  }

  overAll(crashes: ReadonlyArray<{ readonly work: string; readonly message: string }>): void {
    for (const [call, times] of this.effects) if (times !== 1) this.complaints.push(`${call} ran ${times} times`)
    for (const { work, message } of crashes) this.complaints.push(`${work} crashed: ${message}`)
    if (this.complaints.length > 0) throw new Error(this.about([...new Set(this.complaints)].join("\n")))
  }
}
