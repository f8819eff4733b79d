// A provider that needs no key and no network: it plays scenarios. Same port, same assembly of answers, same typed
// errors as the real ones; token counts are a fixed function of the text, so every run is the same run.
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type Answer, answerStream } from "../AnswerStream.ts"
import type { RawPart } from "../Assembly.ts"
import type { ModelRequest } from "../Canonical.ts"
import { requestChars } from "../Estimate.ts"
import { type ModelProvider, originOf, type Usage } from "../Provider.ts"
import { type ProviderError, providerError, type ScenarioInvalid } from "../ProviderErrors.ts"
import type { Action, Reply, Scenario } from "./Scenario.ts"
import { fill, fillDeep, type Situation, selectReply, situationOf } from "./Selection.ts"

export const reasoningFormat = "scripted.reasoning"

export type LoadScenario = (name: string) => Effect.Effect<Scenario, ScenarioInvalid>

export interface ScriptedConfig {
  readonly name?: string
  readonly load: LoadScenario
}

const chunkCharsDefault = 24

const tokens = (chars: number): number => Math.ceil(chars / 4)

/** Pieces of at most `size` characters, never splitting one. */
function* pieces(text: string, size: number): Generator<string> {
  const characters = [...text]
  for (let at = 0; at < characters.length; at += size) yield characters.slice(at, at + size).join("")
}

const offered = (tool: string | ReadonlyArray<string>, request: ModelRequest): string => {
  if (typeof tool === "string") return tool
  return tool.find((name) => (request.tools ?? []).some((definition) => definition.name === name)) ?? tool[0] ?? ""
}

class Player {
  readonly #parts: Array<RawPart> = []
  readonly #request: ModelRequest
  readonly #situation: Situation
  readonly #answer: Answer
  readonly #provider: string
  #outputChars = 0
  #reasoningChars = 0
  #usage: Usage | undefined

  constructor(provider: string, request: ModelRequest, situation: Situation, answer: Answer) {
    this.#provider = provider
    this.#request = request
    this.#situation = situation
    this.#answer = answer
  }

  get #isOver(): boolean {
    return this.#answer.assembly.outcome !== undefined
  }

  fail(error: ProviderError): void {
    this.#answer.assembly.fail(error)
  }

  play(reply: Reply): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      for (const action of reply.play) {
        yield* this.#act(action)
        if (this.#isOver) return
      }
      const { assembly } = this.#answer
      assembly.usage = this.#usage ?? this.#computedUsage()
      const stopReason = reply.stop ?? "end_turn"
      const { requestId, messages: history } = this.#request
      assembly.complete({ parts: this.#parts, stopReason, requestId, history })
    })
  }

  #act(action: Action): Effect.Effect<void> {
    if ("text" in action) return this.#text(action)
    if ("reasoning" in action) return this.#reasoning(action)
    if ("wait_ms" in action) return Effect.sleep(action.wait_ms)
    if ("stall" in action) return Effect.never
    return Effect.sync(() => this.#note(action))
  }

  /** Actions that take no time. */
  #note(action: Exclude<Action, { readonly text: string } | { readonly reasoning: string }>): void {
    if ("tool" in action) this.#tool(action)
    else if ("usage" in action) {
      this.#usage = { cached_input_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, ...action.usage }
      this.#answer.assembly.noteUsage(this.#usage)
    } else if ("error" in action) this.#error(action.error)
    else
      this.fail(
        providerError({ kind: "truncated", provider: this.#provider, message: "the scenario cuts the stream here" })
      )
  }

  #stream(
    text: string,
    pace: { readonly chunk_chars?: number; readonly delay_ms?: number },
    send: (piece: string) => void
  ): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const delayMs = pace.delay_ms ?? 0
      for (const piece of pieces(text, pace.chunk_chars ?? chunkCharsDefault)) {
        if (this.#isOver) return
        send(piece)
        if (this.#answer.isFull()) yield* this.#answer.room
        if (delayMs > 0) yield* Effect.sleep(delayMs)
      }
    })
  }

  #text(action: Extract<Action, { readonly text: string }>): Effect.Effect<void> {
    const text = fill(action.text, this.#situation)
    this.#outputChars += text.length
    this.#parts.push({ type: "text", text })
    return this.#stream(text, action, (piece) => this.#answer.assembly.assistantDelta(piece))
  }

  #reasoning(action: Extract<Action, { readonly reasoning: string }>): Effect.Effect<void> {
    const text = fill(action.reasoning, this.#situation)
    this.#reasoningChars += text.length
    const origin = originOf(this.#provider, this.#request.model)
    this.#parts.push({ type: "opaque", format: reasoningFormat, origin, json: JSON.stringify({ reasoning: text }) })
    return this.#stream(text, action, (piece) => this.#answer.assembly.reasoningDelta(piece))
  }

  #tool(action: Extract<Action, { readonly tool: unknown }>): void {
    const written = action.raw_arguments ?? JSON.stringify(fillDeep(action.arguments ?? {}, this.#situation))
    this.#outputChars += written.length
    this.#parts.push({
      type: "raw_call",
      callId: action.call_id ?? "",
      toolName: offered(action.tool, this.#request),
      arguments: written,
      argumentsChars: written.length,
      incomplete: false
    })
  }

  #error(error: Extract<Action, { readonly error: unknown }>["error"]): void {
    this.fail(
      providerError({
        kind: error.kind,
        provider: this.#provider,
        message: error.message ?? `the scenario plays the error ${error.kind}`,
        retryAfterMs: error.retry_after_ms
      })
    )
  }

  #computedUsage(): Usage {
    const reasoning = tokens(this.#reasoningChars)
    return {
      input_tokens: tokens(requestChars(this.#request)),
      cached_input_tokens: 0,
      cache_write_tokens: 0,
      output_tokens: tokens(this.#outputChars) + reasoning,
      reasoning_tokens: reasoning
    }
  }
}

const invalid = (provider: string, message: string) => providerError({ kind: "invalid_request", provider, message })

const perform = Effect.fnUntraced(function* (
  answer: Answer,
  request: ModelRequest,
  name: string,
  load: LoadScenario
): Effect.fn.Return<void> {
  const situation = situationOf(request)
  const player = new Player(name, request, situation, answer)
  const loaded = yield* Effect.result(load(request.model))
  if (Result.isFailure(loaded)) {
    player.fail(invalid(name, loaded.failure.message))
    return
  }
  const reply = selectReply(loaded.success, request, situation)
  if (reply === undefined) {
    const where = `turn ${situation.turn}, step ${situation.step}, role ${request.metadata?.role ?? "none"}`
    player.fail(invalid(name, `scenario "${loaded.success.name}" has no reply for ${where}`))
    return
  }
  yield* player.play(reply)
})

export const makeScripted = (config: ScriptedConfig): ModelProvider => {
  const name = config.name ?? "scripted"
  return {
    name,
    modelIssue: (model) =>
      Effect.match(config.load(model), { onFailure: ({ message }) => message, onSuccess: () => undefined }),
    stream: (request) => answerStream({ provider: name, feed: (answer) => perform(answer, request, name, config.load) })
  }
}
