// Makes the intent to ask a model durable before a byte is sent, with what the call is charged with if its answer never
// comes, and settles the request before it.
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import { tryCommand } from "../contract/TryCommand.ts"
import type { ResolvedModel } from "../provider/Registry.ts"
import type { AgentId, RequestId } from "../rune/Ids.ts"
import type { RequestEstimate } from "../rune/kinds/turn.ts"
import type { AttemptCost } from "./AttemptCost.ts"
import type { Commands } from "./Commands.ts"

/** The machine does not want the call any more: nothing was sent, and nothing went wrong. */
export class NotWanted extends Data.TaggedError("NotWanted") {}

export interface RequestIntent {
  readonly agentId: AgentId
  readonly requestId: RequestId
  readonly resolved: ResolvedModel
  readonly attemptCost: Pick<AttemptCost, "takeSettled">
  readonly estimate: RequestEstimate
  readonly purpose?: "summary"
}

export const recordIntent = (commands: Commands, call: RequestIntent): Effect.Effect<void, NotWanted> =>
  Effect.flatMap(
    Effect.promise(() =>
      tryCommand(commands, {
        _tag: "RequestModel",
        agent_id: call.agentId,
        request_id: call.requestId,
        provider: call.resolved.provider.name,
        model: call.resolved.model,
        estimate: call.estimate,
        ...(call.purpose === undefined ? {} : { purpose: call.purpose }),
        ...call.attemptCost.takeSettled()
      })
    ),
    (refusal) => (refusal === undefined ? Effect.void : Effect.fail(new NotWanted()))
  )
