// The listener as a service: made of what operations use, open for as long as the scope. It stops in the order that loses
// nothing: what is under way is answered, conversations stop where they are, what became durable is handed out, and then
// everybody is told to come back later.
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Attention } from "../attention/Attention.ts"
import { MediaBlobs, OutputBlobs } from "../contract/Blobs.ts"
import { CallGates } from "../contract/CallGates.ts"
import { DurableNotices } from "../contract/DurableNotices.ts"
import { LiveTexts } from "../contract/LiveText.ts"
import { OutsideAgentAccess } from "../contract/OutsideAgents.ts"
import { ClientTools } from "../contract/RemoteTools.ts"
import { ModelFacts, SandboxFacts, StoreFacts } from "../contract/ServerFacts.ts"
import { ServerLog } from "../contract/ServerLog.ts"
import { ServerReady } from "../contract/ServerReady.ts"
import { StopRequest } from "../contract/StopRequest.ts"
import {
  ApprovalService,
  ConversationService,
  PromptViewService,
  StoredConversations,
  UndoService
} from "../conversation/ConversationService.ts"
import { PolicyService } from "../conversation/Policies.ts"
import { Ids } from "../rune/IdSource.ts"
import { limits } from "../wire/WireLimits.ts"
import { HttpListener, type HttpListenerOptions } from "./HttpListener.ts"
import { type Administration, type OperationContext, TokenAdministration } from "./operations/Context.ts"
import { ServerMetrics } from "./telemetry/Metrics.ts"

export type ListenerOptions = Pick<HttpListenerOptions, "host" | "port" | "tokens" | "version"> &
  Partial<
    Pick<
      HttpListenerOptions,
      | "hostNames"
      | "page"
      | "origins"
      | "stalledMs"
      | "helloWithinMs"
      | "headersWithinMs"
      | "pingEveryMs"
      | "connectionsMax"
      | "socketsMax"
    >
  > & {
    /** Lays out the workspace of the demo and answers with its goal. */
    readonly prepareDemo?: OperationContext["prepareDemo"]
  }

export class BindRefused extends Error {
  override readonly name = "BindRefused"

  constructor(host: string) {
    super(`refusing to listen on ${host}: other machines on the network could connect; set your own token to allow it`)
  }
}

const loopback: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "localhost"])
export const defaultHost = "127.0.0.1"
export const defaultPort = 4600

/** Throws BindRefused for an address that other machines reach: the token of the directory is for this one. */
export const requireLoopback = (host = defaultHost): void => {
  if (!loopback.has(host)) throw new BindRefused(host)
}

const operationServices = Effect.gen(function* () {
  const ids = yield* Ids
  const { defaultModel, sight } = yield* ModelFacts
  const { beforePrompt } = yield* CallGates
  const remoteTools = yield* ClientTools
  return {
    conversations: yield* ConversationService,
    conversationStore: yield* StoredConversations,
    approvals: yield* ApprovalService,
    attention: yield* Attention,
    prompts: yield* PromptViewService,
    policies: yield* PolicyService,
    undo: yield* UndoService,
    attachments: { ...(yield* MediaBlobs), sight },
    outsideAgents: yield* OutsideAgentAccess,
    newId: () => ids.hex16(),
    defaultModel,
    ...(beforePrompt === undefined ? {} : { beforePrompt }),
    ...(remoteTools === undefined ? {} : { remoteTools })
  }
})

const administration = Effect.gen(function* () {
  const tokens = yield* TokenAdministration
  const request = yield* StopRequest
  const stop: Administration["stop"] = (reason) => void Deferred.doneUnsafe(request, Effect.succeed(reason))
  return tokens === undefined ? {} : { administration: { ...tokens, stop } }
})

const listen = Effect.fnUntraced(function* ({ prepareDemo, ...options }: ListenerOptions) {
  const { figures, writeRefusal } = yield* StoreFacts
  const sandbox = yield* SandboxFacts
  const given: HttpListenerOptions = {
    ...options,
    ...(yield* administration),
    services: { ...(yield* operationServices), ...(prepareDemo === undefined ? {} : { prepareDemo }) },
    notices: yield* DurableNotices,
    liveTexts: yield* LiveTexts,
    log: yield* ServerLog,
    metrics: yield* ServerMetrics,
    sandbox,
    blobs: yield* OutputBlobs,
    writable: writeRefusal,
    figures,
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now()
  }
  return yield* HttpListener.open(given)
})

type Needs =
  | Effect.Services<typeof operationServices>
  | Effect.Services<typeof administration>
  | StoreFacts
  | SandboxFacts
  | OutputBlobs
  | DurableNotices
  | LiveTexts
  | ServerLog
  | ServerMetrics
  | ServerReady

export class Listener extends Context.Service<Listener, HttpListener>()("echs/Listener") {
  static readonly layer = (options: ListenerOptions): Layer.Layer<Listener, Error, Needs> =>
    Layer.effect(
      Listener,
      Effect.gen(function* () {
        const conversations = yield* ConversationService
        const listener = yield* listen(options)
        // Before the listener itself closes: what conversations still say is handed out.
        yield* Effect.addFinalizer(() => Effect.andThen(listener.quiesce(limits.answerWithinMs), conversations.stop))
        yield* (yield* ServerReady).open
        return listener
      })
    )
}
