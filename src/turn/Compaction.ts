// Keeps a conversation inside its model's context: when it fills, the oldest part is summed up and the newest kept
// word for word. The summary is the model's own; if that fails it is made from the text itself, so that
// compaction always makes progress, and where nothing can be cut it says so instead of trying again.
import * as Effect from "effect/Effect"
import { compactionPoints } from "../machine/Request.ts"
import { agentOf } from "../machine/Select.ts"
import type { AgentState, ConversationState, TranscriptItem } from "../machine/State.ts"
import { call } from "../provider/Call.ts"
import type { Message } from "../provider/Canonical.ts"
import { type ProviderError, providerError } from "../provider/Errors.ts"
import type { ProviderEvent } from "../provider/Provider.ts"
import type { ResolvedModel } from "../provider/Registry.ts"
import type { IdSource } from "../rune/IdSource.ts"
import { type AgentId, makeRequestId } from "../rune/Ids.ts"
import { type Commands, offer } from "./Commands.ts"
import { limits } from "./Limits.ts"
import { assemble } from "./Messages.ts"
import type { Models } from "./Models.ts"

export interface CompactionOptions {
  readonly commands: Commands
  readonly models: Models
  readonly ids: IdSource
}

const PROMPT =
  "Sum up the conversation so far for the assistant that will continue it: the goal, decisions and their reasons, facts learnt, files and commands that matter, what is done and what is left. Be specific and brief."

const charsOf = (messages: ReadonlyArray<Message>): number =>
  messages.reduce(
    (sum, message) => sum + message.content.reduce((part, one) => part + JSON.stringify(one).length, 0),
    0
  )

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

/** A summary without a model: what was asked, and the start of what was answered. */
export const extract = (items: ReadonlyArray<TranscriptItem>): string => {
  const each = Math.max(80, Math.floor(limits.summaryCharsMax / Math.max(1, items.length)))
  const lines = items.map((item) => {
    const content = typeof item.content === "string" ? item.content : JSON.stringify(item.content)
    return `${item.type}: ${content.slice(0, each)}`
  })
  return lines.join("\n").slice(0, limits.summaryCharsMax).toWellFormed()
}

export class Compaction {
  private readonly options: CompactionOptions

  constructor(options: CompactionOptions) {
    this.options = options
  }

  /** Tokens of the agent's next request, roughly. */
  estimate(state: ConversationState, agent: AgentState): number {
    const { instructions, messages } = assemble(state, agent)
    return Math.ceil(((instructions?.length ?? 0) + charsOf(messages)) / limits.charsPerToken)
  }

  /** Sums up when the context is nearly full; fails when it is full and nothing can be cut. */
  ensureRoom(agentId: AgentId, resolved: ResolvedModel): Effect.Effect<void, ProviderError> {
    return Effect.suspend(() => {
      const state = this.options.commands.state()
      const agent = agentOf(state, agentId)
      const context = this.options.models.catalogue.lookup(resolved.fullName).contextTokens
      if (agent === undefined || this.estimate(state, agent) < context * limits.compactAt) return Effect.void
      return Effect.flatMap(this.force(agentId, resolved), (made) => {
        const now = agentOf(this.options.commands.state(), agentId)
        const fits = now === undefined || this.estimate(this.options.commands.state(), now) < context
        if (made || fits) return Effect.void
        const message = `the conversation does not fit into ${context} tokens and nothing in it can be summed up`
        return Effect.fail(providerError({ kind: "context_exceeded", provider: resolved.provider.name, message }))
      })
    })
  }

  /** Sums up now; false when there is nothing to cut or the cut would not make it smaller. */
  force(agentId: AgentId, resolved: ResolvedModel): Effect.Effect<boolean> {
    return Effect.gen({ self: this }, function* () {
      const { commands, models } = this.options
      const agent = agentOf(commands.state(), agentId)
      if (agent === undefined) return false
      const context = models.catalogue.lookup(resolved.fullName).contextTokens
      const upto = choosePoint(agent, context * limits.compactKeep * limits.charsPerToken)
      if (upto === undefined) return false
      const old = agent.transcript.filter((item) => item.event_id <= upto)
      const before = this.estimate(commands.state(), agent)
      const summary = yield* this.summarise(agent, old, resolved)
      if (summary.length >= old.reduce((sum, item) => sum + itemChars(item), 0)) return false
      return yield* Effect.promise(() =>
        offer(commands, { _tag: "Compact", agent_id: agentId, upto, summary, tokens_before: before })
      )
    })
  }

  private summarise(
    agent: AgentState,
    old: ReadonlyArray<TranscriptItem>,
    resolved: ResolvedModel
  ): Effect.Effect<string> {
    return Effect.gen({ self: this }, function* () {
      const { commands, ids, models } = this.options
      const { instructions, messages } = assemble(commands.state(), { ...agent, transcript: old })
      let text = ""
      const sink = (event: ProviderEvent): void => {
        if (event.type === "assistant_delta" && text.length < limits.summaryCharsMax) text += event.content
      }
      const request = {
        requestId: makeRequestId(ids),
        model: resolved.model,
        messages: [...messages, { role: "user", content: [{ type: "text", text: PROMPT }] }] as ReadonlyArray<Message>,
        ...(instructions === undefined ? {} : { instructions }),
        metadata: { conversationId: commands.conversationId, agentId: agent.agent_id, role: "compaction" }
      }
      yield* Effect.ignore(models.run(resolved.provider.name, call(resolved.provider, request, sink, {})))
      return text.trim() === "" ? extract(old) : text.slice(0, limits.summaryCharsMax).toWellFormed()
    })
  }
}

/** Makes room for the agent's next request if its context is nearly full. */
export const compactIfFull = (
  compaction: Compaction,
  agentId: AgentId,
  resolved: ResolvedModel
): Effect.Effect<void, ProviderError> => compaction.ensureRoom(agentId, resolved)
