// One model call of one turn: the intent is durable before a byte is sent, text becomes runes as it streams, and
// the answer with all it asks for is one batch. Ends with the machine told what happened, unless it was
// interrupted: then somebody else has told it already.
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Effect as Pending } from "../machine/Effects.ts"
import { agentOf } from "../machine/Select.ts"
import type { AgentState } from "../machine/State.ts"
import { call } from "../provider/Call.ts"
import type { ModelRequest } from "../provider/Canonical.ts"
import { ProviderError } from "../provider/Errors.ts"
import type { AssistantFinal, ProviderEvent, Usage as ProviderUsage } from "../provider/Provider.ts"
import type { ResolvedModel } from "../provider/Registry.ts"
import { retryPolicy } from "../provider/RetryPolicy.ts"
import type { IdSource } from "../rune/IdSource.ts"
import { makeRequestId, type RequestId } from "../rune/Ids.ts"
import type { Usage } from "../rune/kinds/shared.ts"
import type { ToolPort } from "../tool/Port.ts"
import { Coalescer } from "./Coalescer.ts"
import { type Commands, offer } from "./Commands.ts"
import { type Compaction, compactIfFull } from "./Compaction.ts"
import { assemble, responseItems } from "./Messages.ts"
import type { Models } from "./Models.ts"
import type { Spending } from "./Spending.ts"

export interface ModelCallOptions {
  readonly commands: Commands
  readonly models: Models
  readonly tools: ToolPort
  readonly spending: Spending
  readonly ids: IdSource
  readonly nowMs: () => number
  /** In [0, 1), for the jitter of retries. */
  readonly random: () => number
  /** Gathers deltas for this long; 0 makes every one a rune. */
  readonly deltaEveryMs: number
  /** Text as it streams, before it is durable. */
  readonly onLive?: (live: { readonly agent_id: string; readonly turn_id: string; readonly text: string }) => void
}

type CallModel = Extract<Pending, { readonly _tag: "CallModel" }>

const usageOf = (options: ModelCallOptions, model: string, usage: ProviderUsage | undefined): Usage | undefined => {
  if (usage === undefined) return undefined
  const cost = options.models.catalogue.cost(model, usage)
  return {
    input_tokens: usage.input_tokens,
    output_tokens: usage.output_tokens,
    cached_tokens: usage.cached_input_tokens,
    reasoning_tokens: usage.reasoning_tokens,
    ...(cost._tag === "Known" ? { usd: cost.microUsd / 1_000_000 } : {})
  }
}

/** What is heard while the model speaks. */
interface Heard {
  final: AssistantFinal | undefined
  usage: ProviderUsage | undefined
}

const listen = (options: ModelCallOptions, pending: CallModel, requestId: RequestId, heard: Heard) => {
  const { commands, onLive } = options
  const { agent_id, turn_id } = pending
  const sender = (_tag: "AppendText" | "AppendReasoning") =>
    new Coalescer({
      everyMs: options.deltaEveryMs,
      send: async (content) => {
        await offer(commands, { _tag, agent_id, content, request_id: requestId })
      }
    })
  const text = sender("AppendText")
  const reasoning = sender("AppendReasoning")
  const sink = (event: ProviderEvent): void | Promise<void> => {
    switch (event.type) {
      case "assistant_delta":
        onLive?.({ agent_id, turn_id, text: event.content })
        return text.add(event.content)
      case "reasoning_delta":
        return reasoning.add(event.content)
      case "usage":
        heard.usage = event.usage
        return
      case "assistant_final":
        heard.final = event
        return
      default:
        return
    }
  }
  /** What has gathered becomes durable before the next thing is said about it. */
  const finish = async (): Promise<void> => {
    await reasoning.finish()
    await text.finish()
  }
  const discard = (): void => {
    reasoning.discard()
    text.discard()
  }
  return { sink, finish, discard }
}

const requestOf = (
  options: ModelCallOptions,
  agent: AgentState,
  pending: CallModel,
  model: string,
  requestId: RequestId
): ModelRequest => {
  const state = options.commands.state()
  const { instructions, messages } = assemble(state, agent)
  const tools = options.tools.describe(state, agent.agent_id)
  return {
    requestId,
    model,
    messages,
    ...(instructions === undefined ? {} : { instructions }),
    ...(tools.length === 0 ? {} : { tools }),
    metadata: {
      conversationId: options.commands.conversationId,
      agentId: agent.agent_id,
      role: agent.role,
      turnId: pending.turn_id,
      attempt: pending.attempt
    }
  }
}

/** The call itself, inside the provider's limiter and breaker. */
const speak = (options: ModelCallOptions, pending: CallModel, resolved: ResolvedModel) =>
  Effect.gen(function* () {
    const { commands } = options
    const agent = agentOf(commands.state(), pending.agent_id)
    if (agent === undefined) return
    const requestId = makeRequestId(options.ids)
    const provider = resolved.provider.name
    const announce = {
      _tag: "RequestModel",
      agent_id: pending.agent_id,
      request_id: requestId,
      provider,
      model: resolved.model
    } as const
    if (!(yield* Effect.promise(() => offer(commands, announce)))) return
    const heard: Heard = { final: undefined, usage: undefined }
    const ear = listen(options, pending, requestId, heard)
    const request = requestOf(options, agent, pending, resolved.model, requestId)
    const completed = yield* call(resolved.provider, request, ear.sink, { callMs: pending.timeout_ms }).pipe(
      Effect.onInterrupt(() => Effect.sync(ear.discard)),
      Effect.tapError(() => Effect.promise(() => ear.finish()))
    )
    // The final repeats every word: deltas that were not sent yet need not be.
    ear.discard()
    const parts = heard.final?.items ?? []
    const origin = { provider, model: resolved.model }
    const items = responseItems(parts, origin, (name) => options.tools.facts(commands.state(), pending.agent_id, name))
    const usage = usageOf(options, resolved.fullName, heard.usage)
    yield* Effect.promise(() =>
      offer(commands, {
        _tag: "ReceiveResponse",
        agent_id: pending.agent_id,
        request_id: requestId,
        items,
        stop_reason: completed.stopReason,
        ...(usage === undefined ? {} : { usage })
      })
    )
  })

const reportFailure = (options: ModelCallOptions, pending: CallModel, error: ProviderError): Promise<boolean> => {
  const decision = retryPolicy(error, pending.attempt, options.random())
  return offer(options.commands, {
    _tag: "FailModelCall",
    agent_id: pending.agent_id,
    error: { error_type: error.kind, message: error.message, retryable: decision._tag === "Retry", source: "harness" },
    ...(decision._tag === "Retry" ? { delay_ms: decision.delayMs } : {})
  })
}

const reportExhausted = (
  options: ModelCallOptions,
  pending: CallModel,
  spent: { readonly which: "tokens" | "usd" | "tool_calls" | "wall_ms"; readonly used: number; readonly limit: number }
) =>
  offer(options.commands, {
    _tag: "ExhaustBudget",
    agent_id: pending.agent_id,
    which: spent.which,
    used: spent.used,
    limit: spent.limit,
    consequence: "suspend"
  })

/** Runs the pending model call to its end. */
export const callModel = (options: ModelCallOptions, compaction: Compaction, pending: CallModel): Effect.Effect<void> =>
  Effect.gen(function* () {
    const resolved = options.models.resolve(pending.model)
    if (Result.isFailure(resolved)) {
      yield* Effect.promise(() => reportFailure(options, pending, resolved.failure))
      return
    }
    const agent = agentOf(options.commands.state(), pending.agent_id)
    if (agent === undefined) return
    const estimate = { tokens: compaction.estimate(options.commands.state(), agent), usd: 0, tool_calls: 0 }
    const admission = options.spending.reserve(options.commands.state(), agent, estimate, options.nowMs())
    if (admission._tag === "Exhausted") {
      yield* Effect.promise(() => reportExhausted(options, pending, admission))
      return
    }
    yield* compactIfFull(compaction, pending.agent_id, resolved.success).pipe(
      Effect.andThen(options.models.run(resolved.success.provider.name, speak(options, pending, resolved.success))),
      Effect.catch((error) => recoverFrom(options, compaction, pending, resolved.success, error)),
      Effect.ensuring(Effect.sync(admission.release))
    )
  })

/** A context that turned out too small is summed up once; any other failure goes to the machine. */
const recoverFrom = (
  options: ModelCallOptions,
  compaction: Compaction,
  pending: CallModel,
  resolved: ResolvedModel,
  error: ProviderError
): Effect.Effect<void> => {
  if (error.kind !== "context_exceeded")
    return Effect.asVoid(Effect.promise(() => reportFailure(options, pending, error)))
  return Effect.flatMap(compaction.force(pending.agent_id, resolved), (made) => {
    const report = made ? new ProviderError({ ...error, retryable: true }) : error
    return Effect.asVoid(Effect.promise(() => reportFailure(options, pending, report)))
  })
}
