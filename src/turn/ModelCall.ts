// One model call of one turn: the intent is durable before a byte is sent, text becomes runes as it streams, and
// the answer with all it asks for is one batch. Ends with the machine told what happened, unless it was
// interrupted: then somebody else has told it already.
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { tryCommand } from "../contract/TryCommand.ts"
import { effectiveLimits, llmRetryDelayMs } from "../machine/MachineLimits.ts"
import { agentOf } from "../machine/view/Select.ts"
import type { PendingWork } from "../machine/work/PendingWork.ts"
import type { PromptPort } from "../prompt/PromptPort.ts"
import { call } from "../provider/Call.ts"
import type { ModelRequest } from "../provider/Canonical.ts"
import type { StopReason } from "../provider/Provider.ts"
import { type ProviderError, providerError, traitsOf } from "../provider/ProviderErrors.ts"
import type { ResolvedModel } from "../provider/Registry.ts"
import { retryDelayMs } from "../provider/RetryPolicy.ts"
import type { IdSource } from "../rune/IdSource.ts"
import { makeRequestId, type RequestId } from "../rune/Ids.ts"
import type { Usage } from "../rune/kinds/shared.ts"
import type { ToolPort } from "../tool/ToolPort.ts"
import { AttemptCost } from "./AttemptCost.ts"
import { type BudgetReservation, withBudgetReservation } from "./BudgetReservation.ts"
import { chargeOf } from "./Charge.ts"
import { type Compaction, NO_HEADROOM } from "./Compaction.ts"
import { type KeepText, messageCharsMax, withShortMessages } from "./LongMessages.ts"
import { hasAttachments } from "./MediaParts.ts"
import { responseItems } from "./Messages.ts"
import { turnRequest } from "./ModelRequests.ts"
import type { Models } from "./Models.ts"
import { recordIntent } from "./RequestIntent.ts"
import { StreamReader, type StreamReaderOptions } from "./StreamReader.ts"
import { offerComplaints, offerTools, type ToolOffer } from "./ToolOffer.ts"

export interface ModelCallOptions extends StreamReaderOptions, BudgetReservation {
  readonly models: Models
  readonly tools: ToolPort
  /** What agents are told about where they work; nothing, without one. */
  readonly prompts?: PromptPort
  readonly compaction: Compaction
  readonly ids: IdSource
  /** Keeps all of a message of which a request has only some; there may be no such place. */
  readonly keepOutput?: KeepText
  /** In [0, 1), for the jitter of retries. */
  readonly random: () => number
}

type CallModel = Extract<PendingWork, { readonly _tag: "CallModel" }>

/** One attempt at the call, and what it has heard so far. */
interface Attempt {
  readonly pending: CallModel
  readonly resolved: ResolvedModel
  readonly requestId: RequestId
  readonly attemptCost: AttemptCost
  /** What the model is offered, and people were told of. */
  readonly tools: ToolOffer["offered"]
}

const buildRequest = (options: ModelCallOptions, { pending, requestId, resolved, tools }: Attempt): ModelRequest => {
  const state = options.commands.state()
  const agent = agentOf(state, pending.agent_id)
  // An agent that is gone sends nothing: the request is only measured, and refused when it is announced.
  if (agent === undefined) return { requestId, model: resolved.model, messages: [] }
  const { attempt, turn_id: turnId } = pending
  const { files = false, images = false } = options.models.catalog.lookup(resolved.fullName)
  const sight = { files, images }
  return turnRequest(state, agent, { requestId, resolved, tools, turnId, attempt, sight })
}

/** The request with less of a message that is too long for the model. */
const shortened = (
  { keepOutput, models }: ModelCallOptions,
  { fullName }: ResolvedModel,
  request: ModelRequest
): Promise<ModelRequest> => withShortMessages(request, messageCharsMax(models.catalog, fullName), keepOutput)

/** Makes the answer durable, with everything it asks for. */
const receive = (options: ModelCallOptions, attempt: Attempt, heard: StreamReader, stopReason: StopReason) =>
  Effect.gen(function* () {
    const { pending, resolved, requestId } = attempt
    const { commands, tools } = options
    const origin = { provider: resolved.provider.name, model: resolved.model }
    const items = responseItems(heard.final?.items ?? [], origin, heard.calls, (name) =>
      tools.facts(commands.state(), pending.agent_id, name)
    )
    const refusal = yield* Effect.promise(() =>
      tryCommand(commands, {
        _tag: "ReceiveResponse",
        agent_id: pending.agent_id,
        request_id: requestId,
        items,
        stop_reason: stopReason,
        ...heard.told
      })
    )
    if (refusal?.code !== "limit_exceeded") return
    if (heard.usage !== undefined) attempt.attemptCost.settle(attempt.attemptCost.told(heard.usage))
    const message = `the answer cannot be stored: ${refusal.message}`
    return yield* providerError({ kind: "malformed_response", provider: origin.provider, message, retryable: false })
  })

interface Spoken {
  readonly heard: StreamReader
  readonly stopReason: StopReason
}

/** The call itself, inside the provider's limiter and breaker. */
const speak = (options: ModelCallOptions, attempt: Attempt, request: ModelRequest) =>
  Effect.gen(function* () {
    const { pending, attemptCost, requestId, resolved } = attempt
    const estimate = attemptCost.requestEstimate(request)
    yield* recordIntent(options.commands, { agentId: pending.agent_id, resolved, attemptCost, requestId, estimate })
    const heard = new StreamReader(options, pending, attempt)
    const { llmFirstEventMs: firstEventMs, llmIdleMs: idleMs } = effectiveLimits(
      options.commands.state().session.config
    )
    const within = { callMs: pending.timeout_ms, firstEventMs, idleMs }
    return yield* call(resolved.provider, request, heard.hear, within).pipe(
      // The final repeats every word; after a failure the words so far are all there is.
      Effect.tapError((error) => {
        const { chars, told } = heard
        attemptCost.settle(chargeOf(error, { estimate, told: told.usage ?? null, chars }))
        return Effect.promise(() => heard.finish())
      }),
      Effect.ensuring(Effect.sync(() => heard.close())),
      Effect.map(({ stopReason }): Spoken => ({ heard, stopReason }))
    )
  })

const isSomething = (usage: Usage | undefined): boolean =>
  usage !== undefined && usage.input_tokens + usage.output_tokens > 0

/** Tells the machine, which decides whether the call is tried again and who has to be waited for. */
const reportFailure = (
  options: ModelCallOptions,
  pending: CallModel,
  error: ProviderError,
  used: { readonly usage?: Usage } = {}
): Effect.Effect<void> => {
  const { kind, message, provider, retryable } = error
  const { needsPerson, outage } = traitsOf(kind)
  const command = {
    _tag: "FailModelCall",
    agent_id: pending.agent_id,
    error: { error_type: kind, message, retryable, source: "harness" },
    delay_ms: retryDelayMs(error, llmRetryDelayMs(pending.attempt), options.random()),
    provider,
    ...(outage === true ? { outage } : {}),
    ...(kind === "circuit_open" ? { held: true } : {}),
    ...(needsPerson === true ? { waits_for: "person" as const } : {}),
    ...(isSomething(used.usage) ? used : {})
  } as const
  return Effect.asVoid(Effect.promise(() => tryCommand(options.commands, command)))
}

/** A refusal that names what was attached; without attachments it is about something else. */
const isAboutAttachments = ({ kind, message }: ProviderError, request: ModelRequest): boolean =>
  kind === "invalid_request" &&
  /\b(?:images?|image_url|documents?|pdfs?|files?|media|multimodal|vision)\b/iu.test(message) &&
  request.messages.some(hasAttachments)

/** A context that turned out too small is summed up before the next attempt, if there is anything to sum up. */
const judged = (
  options: ModelCallOptions,
  { pending, resolved }: Attempt,
  error: ProviderError,
  request: ModelRequest
): ProviderError => {
  if (isAboutAttachments(error, request)) {
    const { provider, message, status, code } = error
    return providerError({ kind: "attachment_refused", provider, message, status, code })
  }
  const isFinal = error.kind !== "context_exceeded" || error.code === NO_HEADROOM
  if (isFinal || !options.compaction.noteExceeded(pending.agent_id, resolved, error, request)) return error
  const { provider, message, status, code } = error
  return providerError({ kind: error.kind, provider, message, status, code, retryable: true })
}

/** Tools that come from elsewhere may take a moment to be there. */
const toolsReady = ({ commands, tools }: ModelCallOptions, pending: CallModel): Effect.Effect<void> =>
  tools.ready?.(commands.state(), pending.agent_id) ?? Effect.void

/** Tools that cannot be offered are told of before the model is asked without them. */
const offerAndTell = (
  { commands, tools }: ModelCallOptions,
  { agent_id: agentId }: CallModel
): Effect.Effect<ToolOffer["offered"]> =>
  Effect.promise(async () => {
    const state = commands.state()
    const offered = offerTools(tools, state, agentId)
    for (const payload of offerComplaints(state, offered))
      await tryCommand(commands, { _tag: "RecordSystemError", agent_id: agentId, payload })
    return offered.offered
  })

/** Puts on record what the agent has not been told yet about where it works; its requests are made of the record. */
const instructed = (options: ModelCallOptions, pending: CallModel, fullName: string): Effect.Effect<void> => {
  const { commands, models, prompts } = options
  if (prompts === undefined) return Effect.void
  const { agent_id: agentId } = pending
  const { contextTokens } = models.catalog.lookup(fullName)
  return Effect.promise(async (signal) => {
    const told = await prompts.news({ state: commands.state(), agentId, contextTokens, signal })
    if (told !== undefined && !signal.aborted)
      await tryCommand(commands, { _tag: "InstructAgent", agent_id: agentId, ...told })
  })
}

/** Nothing is spent from a budget in dollars where nobody knows how much that is. */
const priceUnknown = ({ fullName, provider }: ResolvedModel): ProviderError =>
  providerError({
    kind: "invalid_request",
    provider: provider.name,
    code: "price_unknown",
    message: `a budget in dollars cannot be enforced for ${fullName}, because its price is unknown: set its price under models in config.json, or give a budget in tokens`
  })

/** Runs the pending model call to its end. */
export const callModel = (options: ModelCallOptions, pending: CallModel): Effect.Effect<void> =>
  Effect.gen(function* () {
    const found = options.models.resolve(pending.model)
    if (Result.isFailure(found)) return yield* reportFailure(options, pending, found.failure)
    const resolved = found.success
    const attemptCost = new AttemptCost(options, { agentId: pending.agent_id, fullName: resolved.fullName })
    if (attemptCost.isUnheld) return yield* reportFailure(options, pending, priceUnknown(resolved))
    yield* toolsReady(options, pending)
    const tools = yield* offerAndTell(options, pending)
    const attempt: Attempt = { pending, resolved, requestId: makeRequestId(options.ids), attemptCost, tools }
    // Summing up takes notes with it: what they said is told again.
    const build = Effect.map(instructed(options, pending, resolved.fullName), () =>
      buildRequest(options, attempt)
    ).pipe(Effect.flatMap((made) => Effect.promise(() => shortened(options, resolved, made))))
    const request = yield* build
    const place = { agentId: pending.agent_id, resolved, attemptCost }
    const spoken = options.compaction.ensureRoom(place, request, build).pipe(
      Effect.flatMap((fitting) =>
        options.models.run(resolved.provider.name, options.commands.conversationId, speak(options, attempt, fitting))
      ),
      // Outside of the breaker: once the answer is on record this work is over and stopped, which says nothing about
      // the provider. It did answer.
      Effect.flatMap(({ heard, stopReason }) => receive(options, attempt, heard, stopReason)),
      Effect.catchTags({
        NotWanted: () => Effect.void,
        ProviderError: (error) =>
          reportFailure(options, pending, judged(options, attempt, error, request), attemptCost.takeSettled())
      }),
      Effect.ensuring(Effect.sync(() => attemptCost.close()))
    )
    yield* withBudgetReservation(options, pending.agent_id, attemptCost.estimate(request), spoken)
  })
