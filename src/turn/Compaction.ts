// Keeps a conversation inside its model's context: when it fills, the oldest part is summed up and the newest kept
// word for word, with the input that is being worked on. Where nothing can be cut, or cutting makes no room, it says so
// instead of trying again.

import * as Effect from "effect/Effect"
import { tryCommand } from "../contract/TryCommand.ts"
import { limits as machineLimits } from "../machine/MachineLimits.ts"
import type { AgentState } from "../machine/State.ts"
import { compactionPoints, runningInput } from "../machine/view/Request.ts"
import { agentOf } from "../machine/view/Select.ts"
import type { ModelRequest } from "../provider/Canonical.ts"
import { sizeFromRefusal } from "../provider/ContextSize.ts"
import { estimateInputTokens } from "../provider/Estimate.ts"
import { type ProviderError, providerError } from "../provider/ProviderErrors.ts"
import type { ResolvedModel } from "../provider/Registry.ts"
import { elementAt } from "../rune/Elements.ts"
import type { AgentId } from "../rune/Ids.ts"
import { hasLongMessage, messageCharsMax } from "./LongMessages.ts"
import type { NotWanted } from "./RequestIntent.ts"
import {
  newProgress,
  Summarizer,
  type SummarizerOptions,
  type SummaryCost,
  type SummaryProgress
} from "./Summarizer.ts"
import { itemChars, summaryCharsMax } from "./SummaryText.ts"
import { limits } from "./TurnLimits.ts"

/** Code of the error of a turn whose context cannot be made smaller. */
export const NO_HEADROOM = "compaction_without_headroom"

/** Who needs room, for which model, and who pays. */
export interface CompactionPlace {
  readonly agentId: AgentId
  readonly resolved: ResolvedModel
  readonly attemptCost: SummaryCost
}

/** The latest point to cut at that leaves about `keepChars` of the newest part; nothing when there is none. */
export const choosePoint = (agent: AgentState, keepChars: number): number | undefined => {
  const points = compactionPoints(agent)
  let kept = 0
  for (let index = agent.transcript.length - 1; index >= 0; index--) {
    const item = elementAt(agent.transcript, index)
    kept += itemChars(item)
    if (kept <= keepChars) continue
    const isNewest = index === agent.transcript.length - 1
    const last = isNewest ? item.event_id - 1 : item.event_id
    return points.findLast((point) => point <= last) ?? points.at(0)
  }
  return points.at(0)
}

const tooFull = (resolved: ResolvedModel, contextTokens: number, why: string): ProviderError =>
  providerError({
    kind: "context_exceeded",
    provider: resolved.provider.name,
    code: NO_HEADROOM,
    message: `the conversation does not fit into ${contextTokens} tokens: ${why}; ask for less at once, or use a model with a larger context`
  })

interface Begun {
  readonly upto: number
  readonly progress: SummaryProgress
}

export class Compaction {
  private readonly options: SummarizerOptions
  private readonly summarizer: Summarizer
  /** Agents whose model has said that the context is full, whatever the estimate says. */
  private readonly overfull = new Set<AgentId>()
  /** How far summing up has come, for agents for which it failed half-way. */
  private readonly begun = new Map<AgentId, Begun>()

  constructor(options: SummarizerOptions) {
    this.options = options
    this.summarizer = new Summarizer(options)
  }

  /**
   * The model refused a request as too large: that is learned where nobody knew its size. Tells whether the next one can be
   * smaller, because there is something to sum up, which is done before it, or a message of which less can be sent.
   */
  noteExceeded(agentId: AgentId, resolved: ResolvedModel, error: ProviderError, request: ModelRequest): boolean {
    const { catalog } = this.options.models
    catalog.learnSize(resolved.fullName, sizeFromRefusal(error, estimateInputTokens(request)))
    const agent = agentOf(this.options.commands.state(), agentId)
    const canCut = agent !== undefined && choosePoint(agent, this.keepChars(resolved)) !== undefined
    if (canCut) this.overfull.add(agentId)
    return canCut || hasLongMessage(request, messageCharsMax(catalog, resolved.fullName))
  }

  /**
   * Sums up until the request fits the context with some room; the request to send instead comes back. Fails if nothing
   * can be cut, if cutting makes no room, and with what the model said where summing up has to be tried again.
   */
  ensureRoom(
    place: CompactionPlace,
    request: ModelRequest,
    rebuild: Effect.Effect<ModelRequest>
  ): Effect.Effect<ModelRequest, ProviderError | NotWanted> {
    return Effect.gen({ self: this }, function* () {
      const { agentId, resolved } = place
      const { contextTokens, isSizeAssumed } = this.options.models.catalog.lookup(resolved.fullName)
      let mustCut = this.overfull.has(agentId)
      // A model that nobody knows is asked: only it can say what is too much for it.
      if (!mustCut && isSizeAssumed === true) return request
      let current = request
      let tokens = estimateInputTokens(current)
      if (!mustCut && tokens < contextTokens * limits.compactAt) return current
      do {
        const made = yield* this.force(place, current, contextTokens)
        this.overfull.delete(agentId)
        if (!made) {
          if (!mustCut && tokens < contextTokens) return current
          return yield* tooFull(resolved, contextTokens, "nothing in it can be summarized")
        }
        mustCut = false
        current = yield* rebuild
        tokens = estimateInputTokens(current)
      } while (tokens >= contextTokens)
      return current
    })
  }

  private keepChars(resolved: ResolvedModel): number {
    const { contextTokens } = this.options.models.catalog.lookup(resolved.fullName)
    return contextTokens * limits.compactKeep * limits.charsPerToken
  }

  /** Sums up now; false when there is nothing to cut. */
  private force(
    place: CompactionPlace,
    request: ModelRequest,
    contextTokens: number
  ): Effect.Effect<boolean, ProviderError | NotWanted> {
    return Effect.gen({ self: this }, function* () {
      const { commands } = this.options
      const { agentId, resolved } = place
      const agent = agentOf(commands.state(), agentId)
      const upto = agent === undefined ? undefined : choosePoint(agent, this.keepChars(resolved))
      if (agent === undefined || upto === undefined) return false
      const inRow = agent.turn?.compactions ?? 0
      if (inRow >= machineLimits.compactionsInRowMax) {
        this.overfull.delete(agentId)
        return yield* tooFull(
          resolved,
          contextTokens,
          `it was summarized ${inRow} times in a row and filled up again each time`
        )
      }
      const summary = yield* this.summaryOf(place, agent, { upto, tools: request.tools, contextTokens })
      const tokensBefore = estimateInputTokens(request)
      const cost = { tokens_before: tokensBefore, ...place.attemptCost.takeSettled() }
      const command = { _tag: "Compact", agent_id: agentId, upto, summary, ...cost } as const
      const refusal = yield* Effect.promise(() => tryCommand(commands, command))
      this.begun.delete(agentId)
      return refusal === undefined
    })
  }

  private summaryOf(
    { agentId, attemptCost, resolved }: CompactionPlace,
    agent: AgentState,
    cut: { readonly upto: number; readonly tools: ModelRequest["tools"]; readonly contextTokens: number }
  ): Effect.Effect<string, ProviderError | NotWanted> {
    const { contextTokens, tools, upto } = cut
    const known = this.begun.get(agentId)
    const { progress } = known?.upto === upto ? known : { progress: newProgress() }
    this.begun.set(agentId, { upto, progress })
    // What the agent was told about where it works is told again when it is missing: no summary needs it.
    const old = agent.transcript.filter((item) => item.event_id <= upto && item.type !== "note")
    const input = runningInput(agent)
    const shareChars = Math.floor(contextTokens * limits.summaryShare * limits.charsPerToken)
    // The input stays where it is: no summary stands for it.
    const charsMax = Math.min(shareChars, summaryCharsMax(old.filter((item) => item !== input)))
    return this.summarizer.summarize({ agent, resolved, attemptCost, tools, progress }, old, charsMax)
  }
}
