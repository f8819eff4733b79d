// What is heard while a model speaks: text and reasoning become runes as they come, calls and figures are kept for
// the end. An answer that grows beyond what the log can hold ends the call.

import * as Effect from "effect/Effect"
import { tryCommand } from "../contract/TryCommand.ts"
import type { PendingWork } from "../machine/work/PendingWork.ts"
import type { Listener } from "../provider/Call.ts"
import type { AssistantFinal, ProviderEvent, ToolCallEvent, Usage } from "../provider/Provider.ts"
import { type ProviderError, providerError } from "../provider/ProviderErrors.ts"
import { textBefore } from "../rune/Elements.ts"
import type { RequestId } from "../rune/Ids.ts"
import type { Usage as RuneUsage } from "../rune/kinds/shared.ts"
import type { AttemptCost } from "./AttemptCost.ts"
import { Coalescer } from "./Coalescer.ts"
import type { Commands } from "./Commands.ts"
import type { Streams } from "./Streams.ts"
import { limits } from "./TurnLimits.ts"

/** What is heard, and who pays for it. */
export interface Heard {
  readonly requestId: RequestId
  readonly attemptCost: Pick<AttemptCost, "told">
}

type CallModel = Extract<PendingWork, { readonly _tag: "CallModel" }>

export interface StreamReaderOptions {
  readonly commands: Commands
  readonly streams: Streams
  /** Gathers deltas for this long; 0 makes every one a rune. */
  readonly deltaEveryMs: number
  /** Text as it streams, before it is durable. */
  readonly onLive?: (live: {
    readonly agent_id: string
    readonly turn_id: string
    readonly request_id: string
    /** Characters of the answer before this text. */
    readonly offset: number
    readonly text: string
  }) => void
}

/** Bytes of a text inside a JSON string. */
const jsonBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2

export class StreamReader {
  private readonly options: StreamReaderOptions
  private readonly pending: CallModel
  private readonly text: Coalescer
  private readonly reasoning: Coalescer
  private bytes = 0
  private textChars = 0
  readonly calls = new Map<string, ToolCallEvent["parsed"]>()
  private readonly requestId: RequestId
  private readonly attemptCost: Pick<AttemptCost, "told">
  private isTold = true
  final: AssistantFinal | undefined
  usage: Usage | undefined
  /** Characters of text and reasoning. */
  chars = 0

  constructor(options: StreamReaderOptions, pending: CallModel, { attemptCost, requestId }: Heard) {
    this.options = options
    this.pending = pending
    this.requestId = requestId
    this.attemptCost = attemptCost
    this.text = this.gather("AppendText")
    this.reasoning = this.gather("AppendReasoning")
    options.streams.add(this)
  }

  private gather(_tag: "AppendText" | "AppendReasoning"): Coalescer {
    return new Coalescer({ everyMs: this.options.deltaEveryMs, send: (content) => this.append(_tag, content) })
  }

  private async append(_tag: "AppendText" | "AppendReasoning", content: string): Promise<void> {
    const { pending, requestId } = this
    const told = this.isTold ? {} : this.told
    this.isTold = true
    await tryCommand(this.options.commands, {
      _tag,
      agent_id: pending.agent_id,
      content,
      request_id: requestId,
      ...told
    })
  }

  /** What the provider has said that the answer uses, as runes carry it. */
  get told(): { readonly usage?: RuneUsage } {
    return this.usage === undefined ? {} : { usage: this.attemptCost.told(this.usage) }
  }

  /** Takes events as they come. Hot path: it makes no effect unless the stream has to wait or is over. */
  readonly hear: Listener<ProviderError> = (events) => this.hearFrom(events, 0)

  private hearFrom(events: ReadonlyArray<ProviderEvent>, from: number): Effect.Effect<void, ProviderError> {
    for (let at = from; at < events.length; at++) {
      const event = events[at]
      if (event === undefined) break
      const wait = this.take(event)
      if (this.bytes > limits.answerBytesMax) return Effect.fail(this.tooLarge())
      // Too many pieces are on their way to the disk.
      if (wait !== undefined)
        return Effect.flatMap(
          Effect.promise(() => wait),
          () => this.hearFrom(events, at + 1)
        )
    }
    return Effect.void
  }

  private take(event: ProviderEvent): undefined | Promise<void> {
    switch (event.type) {
      case "assistant_delta": {
        const { agent_id, turn_id } = this.pending
        const { requestId: request_id, textChars: offset } = this
        this.options.onLive?.({ agent_id, turn_id, request_id, offset, text: event.content })
        this.textChars += event.content.length
        this.chars += event.content.length
        return this.fits(event.content) ? this.text.add(event.content) : undefined
      }
      case "reasoning_delta":
        this.chars += event.content.length
        return this.reasoning.add(event.content)
      case "tool_call":
        this.calls.set(event.call_id, event.parsed)
        return undefined
      case "usage_so_far":
        this.usage = event.usage
        this.isTold = false
        return undefined
      case "usage":
        this.usage = event.usage
        return undefined
      case "assistant_final":
        this.final = event
        return undefined
      default:
        return undefined
    }
  }

  /** What a turn has said must fit into the one rune that ends it. */
  private fits(content: string): boolean {
    this.bytes += jsonBytes(content)
    return this.bytes <= limits.answerBytesMax
  }

  private tooLarge(): ProviderError {
    const message = `the answer is larger than ${limits.answerBytesMax} bytes`
    const provider = textBefore(this.pending.model, "/")
    return providerError({ kind: "malformed_response", provider, message, retryable: false })
  }

  /** Sends off what has gathered. */
  flush(): void {
    this.reasoning.flush()
    this.text.flush()
    if (!this.isTold) void this.append("AppendText", "").catch(() => undefined)
  }

  /** What has gathered becomes durable before the next thing is said about it. */
  async finish(): Promise<void> {
    await this.reasoning.finish()
    await this.text.finish()
  }

  /** Nothing more is heard; what was not sent yet is told by somebody else. */
  close(): void {
    this.options.streams.delete(this)
    this.reasoning.discard()
    this.text.discard()
  }
}
