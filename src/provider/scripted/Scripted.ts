// A provider that needs no key and no network: it plays scenarios. Same port, same assembly of answers, same typed
// errors as the real ones; token counts are a fixed function of the text, so every run is the same run.
import * as Result from "effect/Result"
import { Assembly, type RawPart } from "../Assembly.ts"
import type { ModelRequest } from "../Canonical.ts"
import { requestChars } from "../Estimate.ts"
import {
  type ModelProvider,
  type Outcome,
  originOf,
  type ProviderClock,
  type StreamOptions,
  type Usage
} from "../Provider.ts"
import { type ProviderError, providerError, type ScenarioInvalid } from "../ProviderErrors.ts"
import type { Action, Reply, Scenario } from "./Scenario.ts"
import { fill, fillDeep, type Situation, selectReply, situationOf } from "./Selection.ts"

export const reasoningFormat = "scripted.reasoning"

export type LoadScenario = (name: string) => Promise<Result.Result<Scenario, ScenarioInvalid>>

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

const wallClock: ProviderClock = {
  nowMs: Date.now,
  sleep: (delayMs, signal) =>
    new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener("abort", done)
        resolve()
      }
      const timer = setTimeout(done, delayMs)
      signal.addEventListener("abort", done)
    })
}

/** Resolves when the signal aborts, and not before. */
const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener("abort", () => resolve(), { once: true })
  })

const offered = (tool: string | ReadonlyArray<string>, request: ModelRequest): string => {
  if (typeof tool === "string") return tool
  return tool.find((name) => (request.tools ?? []).some((definition) => definition.name === name)) ?? tool[0] ?? ""
}

class Player {
  readonly #parts: Array<RawPart> = []
  readonly #request: ModelRequest
  readonly #situation: Situation
  readonly #assembly: Assembly
  readonly #provider: string
  readonly #signal: AbortSignal
  readonly #clock: ProviderClock
  #outputChars = 0
  #reasoningChars = 0
  #usage: Usage | undefined

  constructor(
    provider: string,
    request: ModelRequest,
    situation: Situation,
    assembly: Assembly,
    options: StreamOptions
  ) {
    this.#provider = provider
    this.#request = request
    this.#situation = situation
    this.#assembly = assembly
    this.#signal = options.signal
    this.#clock = options.clock ?? wallClock
  }

  get #over(): boolean {
    return this.#signal.aborted || this.#assembly.outcome !== undefined
  }

  fail(error: ProviderError): void {
    this.#assembly.fail(error)
  }

  async play(reply: Reply): Promise<void> {
    for (const action of reply.play) {
      await this.#act(action)
      if (this.#over) return
    }
    this.#assembly.usage = this.#usage ?? this.#computedUsage()
    const stopReason = reply.stop ?? "end_turn"
    const { requestId, messages: history } = this.#request
    this.#assembly.complete({ parts: this.#parts, stopReason, requestId, history })
  }

  async #act(action: Action): Promise<void> {
    if ("text" in action) await this.#text(action)
    else if ("reasoning" in action) await this.#reasoning(action)
    else if ("tool" in action) this.#tool(action)
    else if ("usage" in action) {
      this.#usage = { cached_input_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, ...action.usage }
      this.#assembly.noteUsage(this.#usage)
    } else if ("wait_ms" in action) await this.#clock.sleep(action.wait_ms, this.#signal)
    else if ("error" in action) this.#error(action.error)
    else if ("stall" in action) await aborted(this.#signal)
    else
      this.fail(
        providerError({ kind: "truncated", provider: this.#provider, message: "the scenario cuts the stream here" })
      )
  }

  async #stream(
    text: string,
    pace: { readonly chunk_chars?: number; readonly delay_ms?: number },
    send: (piece: string) => void
  ): Promise<void> {
    for (const piece of pieces(text, pace.chunk_chars ?? chunkCharsDefault)) {
      if (this.#over) return
      send(piece)
      if (this.#assembly.backlog !== undefined) await this.#assembly.drained()
      if (pace.delay_ms !== undefined && pace.delay_ms > 0) await this.#clock.sleep(pace.delay_ms, this.#signal)
    }
  }

  async #text(action: Extract<Action, { readonly text: string }>): Promise<void> {
    const text = fill(action.text, this.#situation)
    this.#outputChars += text.length
    this.#parts.push({ type: "text", text })
    await this.#stream(text, action, (piece) => this.#assembly.assistantDelta(piece))
  }

  async #reasoning(action: Extract<Action, { readonly reasoning: string }>): Promise<void> {
    const text = fill(action.reasoning, this.#situation)
    this.#reasoningChars += text.length
    const origin = originOf(this.#provider, this.#request.model)
    this.#parts.push({ type: "opaque", format: reasoningFormat, origin, json: JSON.stringify({ reasoning: text }) })
    await this.#stream(text, action, (piece) => this.#assembly.reasoningDelta(piece))
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

const perform = async (
  player: Player,
  request: ModelRequest,
  situation: Situation,
  name: string,
  load: LoadScenario
) => {
  const loaded = await load(request.model)
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
  await player.play(reply)
}

export const makeScripted = (config: ScriptedConfig): ModelProvider => {
  const name = config.name ?? "scripted"
  return {
    name,
    modelIssue: async (model) => {
      const loaded = await config.load(model)
      return Result.isFailure(loaded) ? loaded.failure.message : undefined
    },
    stream: async (request, sink, options): Promise<Outcome> => {
      const assembly = new Assembly(name, sink)
      const situation = situationOf(request)
      const player = new Player(name, request, situation, assembly, options)
      if (!options.signal.aborted) await perform(player, request, situation, name, config.load)
      if (assembly.backlog !== undefined) await assembly.drained()
      return assembly.outcome ?? { _tag: "Interrupted" }
    }
  }
}
