// Has a model sum up a part of a conversation: in one request, or in pieces that fit and then their summaries together.
// An error that waiting may mend is passed on, so that the call is tried again like any other; the stand-in is for a model
// that cannot do it: it refuses, says nothing, or there is no budget for it.
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { tryCommand } from "../contract/TryCommand.ts"
import { canonicalHash } from "../machine/Canonical.ts"
import { outageMs } from "../machine/decide/model.ts"
import { type Known, settlementOf } from "../machine/decide/Settlement.ts"
import { shortened } from "../machine/evolve/DoneEffects.ts"
import { effectiveLimits, limits as machineLimits } from "../machine/MachineLimits.ts"
import type { AgentState, ConversationState, TranscriptItem } from "../machine/State.ts"
import { call, type Listener } from "../provider/Call.ts"
import type { ModelRequest } from "../provider/Canonical.ts"
import { estimateInputTokens } from "../provider/Estimate.ts"
import type { ProviderEvent, Usage } from "../provider/Provider.ts"
import { type ProviderError, traitsOf } from "../provider/ProviderErrors.ts"
import type { ResolvedModel } from "../provider/Registry.ts"
import type { IdSource } from "../rune/IdSource.ts"
import { makeRequestId, type RequestId } from "../rune/Ids.ts"
import type { RequestEstimate } from "../rune/kinds/turn.ts"
import type { AttemptCost } from "./AttemptCost.ts"
import { chargeOf, nothingUsed } from "./Charge.ts"
import type { Commands } from "./Commands.ts"
import { asideRequest } from "./ModelRequests.ts"
import type { Models } from "./Models.ts"
import { type NotWanted, recordIntent } from "./RequestIntent.ts"
import type { Streams } from "./Streams.ts"
import {
  asText,
  extract,
  hasCalls,
  type Items,
  type Measure,
  piecesOf,
  summaryCharsMax,
  textItem
} from "./SummaryText.ts"
import { limits } from "./TurnLimits.ts"

export interface SummarizerOptions {
  readonly commands: Commands
  readonly models: Models
  readonly ids: IdSource
  readonly streams: Streams
}

export type SummaryCost = Pick<AttemptCost, "hasRoomFor" | "requestEstimate" | "told" | "settle" | "takeSettled">

/** What is summed up, for whom, and who pays. */
export interface SummaryJob {
  readonly agent: AgentState
  readonly resolved: ResolvedModel
  readonly attemptCost: SummaryCost
  readonly tools: ModelRequest["tools"]
  readonly progress: SummaryProgress
}

/** Kept over a failure, so that nothing is paid for twice. */
export interface SummaryProgress {
  /** Summaries of pieces that are made already. */
  readonly made: Map<string, string>
  /** The model takes no piece larger than this, as far as it has said. */
  pieceTokensMax: number
}

export const newProgress = (): SummaryProgress => ({ made: new Map(), pieceTokensMax: Number.POSITIVE_INFINITY })

/** How large a request may be, how long its answer, and how often summaries may still be summed up. */
interface Bounds extends Measure {
  readonly charsMax: number
  readonly levels: number
}

const promptOf = (charsMax: number): string =>
  `Sum up the conversation so far for the assistant that will continue it: the goal, decisions and their reasons, facts learned, files and commands that matter, every action with its outcome, what is done and what is left. Keep every fact of earlier summaries that still matters. Be specific and brief: at most ${charsMax} characters. Answer with text only and call no tool.`

/**
 * Whether a failed summary is tried again with its model call. Where that would end the turn the stand-in is used, and
 * in an outage after half of the time that it is waited out: a request that always fails must not fail every turn.
 */
const isTriedAgain = (state: ConversationState, agent: AgentState, error: ProviderError): boolean => {
  const { needsPerson, outage } = traitsOf(error.kind)
  // Nothing was sent where the circuit is open: the whole call is held.
  if (needsPerson === true || error.kind === "circuit_open") return true
  if (!error.retryable || agent.turn === null) return false
  const { failing_since_ms: sinceMs, llm_failures: failures } = agent.turn
  const usual = outage === true ? undefined : machineLimits.maxLlmRetries
  const retriesMax = effectiveLimits(state.session.config).maxLlmRetries ?? usual
  if (retriesMax !== undefined) return failures < retriesMax
  return state.last_ms - (sinceMs ?? state.last_ms) < outageMs(state) / 2
}

export class Summarizer {
  private readonly options: SummarizerOptions

  constructor(options: SummarizerOptions) {
    this.options = options
  }

  /** A summary of the items that is shorter than they are. */
  summarize(job: SummaryJob, items: Items, charsMax: number): Effect.Effect<string, ProviderError | NotWanted> {
    return Effect.suspend(() => {
      const { contextTokens } = this.options.models.catalog.lookup(job.resolved.fullName)
      const room = Math.floor(contextTokens * limits.summaryAt)
      const bare = estimateInputTokens(this.requestFor({ ...job, tools: undefined }, [], charsMax))
      const full = estimateInputTokens(this.requestFor(job, [], charsMax))
      // Tools that would take most of the room are left out, and calls are told as text.
      const isRoomy = job.tools !== undefined && full - bare <= room * limits.summaryToolsShare
      const fitting = isRoomy ? job : { ...job, tools: undefined }
      const fixed = isRoomy ? full : bare
      const tokensOf = (item: TranscriptItem) => estimateInputTokens(this.requestFor(fitting, [item], charsMax)) - fixed
      const bounds = { tokensMax: room - fixed, tokensOf, charsMax, levels: limits.summaryLevelsMax }
      return this.inPieces(fitting, isRoomy ? items : items.map(asText), bounds)
    })
  }

  private requestFor({ agent, resolved, tools }: SummaryJob, items: Items, charsMax: number): ModelRequest {
    const { commands, ids } = this.options
    const about = { ...agent, transcript: items, effects: [] }
    const requestId = makeRequestId(ids)
    const aside = { requestId, model: resolved.model, role: "compaction", prompt: promptOf(charsMax), tools }
    return asideRequest(commands.state(), about, aside)
  }

  private inPieces(job: SummaryJob, items: Items, bounds: Bounds): Effect.Effect<string, ProviderError | NotWanted> {
    return Effect.gen({ self: this }, function* () {
      const { charsMax, levels, tokensOf } = bounds
      const tokensMax = Math.min(bounds.tokensMax, job.progress.pieceTokensMax)
      if (tokensMax < limits.summaryPieceTokensMin) return extract(items, charsMax)
      const pieces = piecesOf(items, { tokensMax, tokensOf })
      const share = Math.floor(charsMax / Math.max(1, pieces.length))
      const texts: Array<string> = []
      for (const [index, piece] of pieces.entries()) {
        const isBeyond = pieces.length - index > limits.summaryPiecesMax
        texts.push(isBeyond ? extract(piece, share) : yield* this.ofPiece(job, piece, bounds))
      }
      const joined = texts.join("\n\n")
      if (joined.length <= charsMax) return joined
      if (pieces.length === 1) return joined.slice(0, charsMax).toWellFormed()
      if (levels === 0) return texts.map((text) => shortened(text, Math.max(0, share - 2))).join("\n\n")
      const summaries = texts.map((text) => textItem(0, `Summary of one part:\n\n${text}`))
      return yield* this.inPieces(job, summaries, { ...bounds, levels: levels - 1 })
    })
  }

  /** A piece that the model finds too large is summed up in smaller ones. */
  private ofPiece(job: SummaryJob, piece: Items, bounds: Bounds): Effect.Effect<string, ProviderError | NotWanted> {
    return Effect.gen({ self: this }, function* () {
      const { progress } = job
      const key = canonicalHash(piece)
      const known = progress.made.get(key)
      if (known !== undefined) return known
      const tokens = piece.reduce((sum, item) => sum + bounds.tokensOf(item), 0)
      if (tokens > progress.pieceTokensMax) return yield* this.inPieces(job, piece, bounds)
      const charsMax = Math.min(bounds.charsMax, Math.max(limits.summaryPieceCharsMin, summaryCharsMax(piece)))
      const request = this.requestFor(hasCalls(piece) ? job : { ...job, tools: undefined }, piece, charsMax)
      if (!job.attemptCost.hasRoomFor(request)) return extract(piece, charsMax)
      const told = yield* Effect.result(this.ask(job, request))
      const { commands } = this.options
      if (Result.isFailure(told)) {
        const error = told.failure
        if (error._tag === "NotWanted") return yield* error
        if (isTriedAgain(commands.state(), job.agent, error)) return yield* error
        if (error.kind !== "context_exceeded") return extract(piece, charsMax)
        progress.pieceTokensMax = Math.floor(tokens / 2)
        return yield* this.inPieces(job, piece, bounds)
      }
      const text =
        told.success.trim() === "" ? extract(piece, charsMax) : told.success.slice(0, charsMax).toWellFormed()
      progress.made.set(key, text)
      return text
    })
  }

  /** Announced and charged like any call: what it used is on record with the next request, or with the summary. */
  private ask(job: SummaryJob, request: ModelRequest): Effect.Effect<string, ProviderError | NotWanted> {
    const { commands, models, streams } = this.options
    const { attemptCost, resolved } = job
    const { agent_id: agentId } = job.agent
    const requestId = request.requestId as RequestId
    const estimate = attemptCost.requestEstimate(request)
    const heard = new SummaryText()
    const known = () => heard.known(estimate, attemptCost)
    const used = () => settlementOf(known()) ?? nothingUsed
    const gathering = {
      flush: () => {
        const soFar = { content: "", request_id: requestId, usage: used() }
        void tryCommand(commands, { _tag: "AppendText", agent_id: agentId, ...soFar }).catch(() => undefined)
      }
    }
    const { llmFirstEventMs, llmIdleMs, llmTimeoutMs } = effectiveLimits(commands.state().session.config)
    const within = { callMs: llmTimeoutMs, firstEventMs: llmFirstEventMs, idleMs: llmIdleMs }
    const answered = Effect.suspend(() => {
      streams.add(gathering)
      return call(resolved.provider, request, heard.hear, within)
    }).pipe(
      Effect.tap(() => Effect.sync(() => attemptCost.settle(known().told ?? used()))),
      Effect.tapError((error) => Effect.sync(() => attemptCost.settle(chargeOf(error, known())))),
      Effect.ensuring(Effect.sync(() => streams.delete(gathering)))
    )
    const announced = recordIntent(commands, {
      agentId,
      requestId,
      resolved,
      attemptCost,
      estimate,
      purpose: "summary"
    })
    return Effect.map(
      models.run(resolved.provider.name, commands.conversationId, Effect.andThen(announced, answered)),
      () => heard.text
    )
  }
}

/** What is heard of a summary while it is made. */
class SummaryText {
  text = ""
  private chars = 0
  private usage: Usage | undefined

  readonly hear: Listener = (events) =>
    Effect.sync(() => {
      for (const event of events) this.take(event)
    })

  private take(event: ProviderEvent): void {
    if (event.type === "usage" || event.type === "usage_so_far") this.usage = event.usage
    if (event.type !== "assistant_delta" && event.type !== "reasoning_delta") return
    this.chars += event.content.length
    if (event.type === "assistant_delta" && this.text.length < limits.summaryCharsMax) this.text += event.content
  }

  known(estimate: RequestEstimate, attemptCost: Pick<AttemptCost, "told">): Known {
    return { estimate, told: this.usage === undefined ? null : attemptCost.told(this.usage), chars: this.chars }
  }
}
