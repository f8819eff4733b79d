// Keeps a conversation inside its model's context: when it fills, the oldest part is summed up and the newest kept
// word for word. The summary is the model's own, paid for like any call; if that fails, or the budget has no room for
// it, it is made from the text itself, so that compaction always makes progress, and where nothing can be cut it
// says so instead of trying again.
import * as Effect from "effect/Effect"
import { compactionPoints } from "../machine/Request.ts"
import { agentOf } from "../machine/Select.ts"
import type { AgentState, TranscriptItem } from "../machine/State.ts"
import { call } from "../provider/Call.ts"
import type { ModelRequest } from "../provider/Canonical.ts"
import { type ProviderError, providerError } from "../provider/Errors.ts"
import { estimateInputTokens } from "../provider/Estimate.ts"
import type { ProviderEvent, Usage } from "../provider/Provider.ts"
import type { ResolvedModel } from "../provider/Registry.ts"
import type { IdSource } from "../rune/IdSource.ts"
import { type AgentId, makeRequestId } from "../rune/Ids.ts"
import { type Commands, offer } from "./Commands.ts"
import { limits } from "./Limits.ts"
import { asideRequest } from "./ModelRequests.ts"
import type { Models } from "./Models.ts"
import type { Purse } from "./Purse.ts"

/** Who needs room, for which model, and who pays. */
export interface CompactionPlace {
  readonly agentId: AgentId
  readonly resolved: ResolvedModel
  readonly purse: Pick<Purse, "hasRoomFor" | "spend">
}

export interface CompactionOptions {
  readonly commands: Commands
  readonly models: Models
  readonly ids: IdSource
}

const PROMPT =
  "Sum up the conversation so far for the assistant that will continue it: the goal, decisions and their reasons, facts learnt, files and commands that matter, what is done and what is left. Be specific and brief."

const itemChars = (item: TranscriptItem): number => JSON.stringify(item).length

/** The latest point to cut at that leaves about `keepChars` of the newest part; nothing when there is none. */
export const choosePoint = (agent: AgentState, keepChars: number): number | undefined => {
  const points = compactionPoints(agent)
  let kept = 0
  for (let index = agent.transcript.length - 1; index >= 0; index--) {
    const item = agent.transcript[index]!
    kept += itemChars(item)
    if (kept > keepChars) return points.filter((point) => point < item.event_id).at(-1) ?? points.at(0)
  }
  return points.at(0)
}

/** The longest summary of these items: a fixed size, and never more than half of what it stands for. */
export const summaryCharsMax = (items: ReadonlyArray<TranscriptItem>): number =>
  Math.min(limits.summaryCharsMax, Math.floor(items.reduce((sum, item) => sum + itemChars(item), 0) / 2))

/** A summary without a model: what was asked, and the start of what was answered. */
export const extract = (items: ReadonlyArray<TranscriptItem>): string => {
  const charsMax = summaryCharsMax(items)
  const each = Math.max(20, Math.floor(charsMax / Math.max(1, items.length)) - 20)
  const lines = items.map((item) => {
    const content = typeof item.content === "string" ? item.content : JSON.stringify(item.content)
    return `${item.type}: ${content.slice(0, each)}`
  })
  return lines.join("\n").slice(0, charsMax).toWellFormed()
}

const tooFull = (resolved: ResolvedModel, contextTokens: number): ProviderError =>
  providerError({
    kind: "context_exceeded",
    provider: resolved.provider.name,
    message: `the conversation does not fit into ${contextTokens} tokens and nothing in it can be summed up`
  })

export class Compaction {
  private readonly options: CompactionOptions
  /** Agents whose model has said that the context is full, whatever the estimate says. */
  private readonly overfull = new Set<AgentId>()

  constructor(options: CompactionOptions) {
    this.options = options
  }

  /** The model refused a request as too large. Tells whether summing up can help; it is done before the next one. */
  noteExceeded(agentId: AgentId, resolved: ResolvedModel): boolean {
    const agent = agentOf(this.options.commands.state(), agentId)
    const canCut = agent !== undefined && choosePoint(agent, this.keepChars(resolved)) !== undefined
    if (canCut) this.overfull.add(agentId)
    return canCut
  }

  /**
   * Sums up if the request is nearly too large for the context; the request to send instead comes back. Fails if it
   * is too large and nothing can be cut.
   */
  ensureRoom(
    place: CompactionPlace,
    request: ModelRequest,
    rebuild: () => ModelRequest
  ): Effect.Effect<ModelRequest, ProviderError> {
    return Effect.suspend(() => {
      const { agentId, resolved } = place
      const { contextTokens } = this.options.models.catalogue.lookup(resolved.fullName)
      const mustCut = this.overfull.delete(agentId)
      const tokens = estimateInputTokens(request)
      if (!mustCut && tokens < contextTokens * limits.compactAt) return Effect.succeed(request)
      return Effect.flatMap(this.force(place, tokens), (made) => {
        if (made) return Effect.sync(rebuild)
        const fits = !mustCut && tokens < contextTokens
        return fits ? Effect.succeed(request) : Effect.fail(tooFull(resolved, contextTokens))
      })
    })
  }

  private keepChars(resolved: ResolvedModel): number {
    const { contextTokens } = this.options.models.catalogue.lookup(resolved.fullName)
    return contextTokens * limits.compactKeep * limits.charsPerToken
  }

  /** Sums up now; false when there is nothing to cut. */
  private force(place: CompactionPlace, tokensBefore: number): Effect.Effect<boolean> {
    return Effect.gen({ self: this }, function* () {
      const { commands } = this.options
      const { agentId, resolved } = place
      const agent = agentOf(commands.state(), agentId)
      const upto = agent === undefined ? undefined : choosePoint(agent, this.keepChars(resolved))
      if (agent === undefined || upto === undefined) return false
      const old = agent.transcript.filter((item) => item.event_id <= upto)
      const summary = yield* this.summarise(agent, old, place)
      const command = { _tag: "Compact", agent_id: agentId, upto, summary, tokens_before: tokensBefore } as const
      return yield* Effect.promise(() => offer(commands, command))
    })
  }

  private summarise(
    agent: AgentState,
    old: ReadonlyArray<TranscriptItem>,
    { purse, resolved }: CompactionPlace
  ): Effect.Effect<string> {
    return Effect.gen({ self: this }, function* () {
      const { commands, ids, models } = this.options
      let text = ""
      let usage: Usage | undefined
      const sink = (event: ProviderEvent): undefined => {
        if (event.type === "usage") usage = event.usage
        if (event.type === "assistant_delta" && text.length < limits.summaryCharsMax) text += event.content
      }
      const about = { ...agent, transcript: old }
      const aside = { requestId: makeRequestId(ids), model: resolved.model, role: "compaction", prompt: PROMPT }
      const request = asideRequest(commands.state(), about, aside)
      if (!purse.hasRoomFor(request)) return extract(old)
      const told = yield* Effect.option(models.run(resolved.provider.name, call(resolved.provider, request, sink)))
      purse.spend(usage)
      const isWhole = told._tag === "Some" && text.trim() !== ""
      return isWhole ? text.slice(0, summaryCharsMax(old)).toWellFormed() : extract(old)
    })
  }
}
