// Writes what an outside agent reported into its conversation: one signal at a time, masked, again where the log is busy. What
// the state refuses is no failure of the agent, and is only said in the server's log.
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { CommandRefused, RuntimeClosed } from "../contract/CommandErrors.ts"
import { describeError } from "../contract/ServerLog.ts"
import type { Command } from "../machine/Command.ts"
import type { AgentEvent } from "../rune/AgentEvent.ts"
import type { AgentId, CallId } from "../rune/Ids.ts"
import type { AgentPlace } from "./AgentFiles.ts"
import type { HarnessHost } from "./HarnessHost.ts"
import { maskedValue } from "./Masked.ts"
import type { Settled } from "./Port.ts"

export type Written =
  | { readonly _tag: "Written"; readonly event_id: number }
  | { readonly _tag: "Refused"; readonly refusal: CommandRefused["refusal"] }
  /** The server stops, or the log takes nothing: whoever can, says it again later. */
  | { readonly _tag: "Failed"; readonly error: unknown }

const retriesMax = 8

/** How a decision that was made in the program itself is on record. */
export const agentChannel = "agent"
const inTerminal = { approver: "terminal", channel: agentChannel } as const
const sandbox = { level: "outside" } as const

export class Recorder {
  private readonly place: AgentPlace
  private readonly host: HarnessHost

  constructor(place: AgentPlace, host: HarnessHost) {
    this.place = place
    this.host = host
  }

  get agentId(): AgentId {
    return this.place.agentId as AgentId
  }

  submit(command: Command): Effect.Effect<Written> {
    const { conversationId } = this.place
    const once = Effect.tryPromise({
      try: () => this.host.submit(conversationId, command),
      catch: (error) => error
    })
    const isLasting = (error: unknown): boolean => error instanceof CommandRefused || error instanceof RuntimeClosed
    return once.pipe(
      Effect.retry({
        schedule: Schedule.exponential("50 millis"),
        times: retriesMax,
        while: (error) => !isLasting(error)
      }),
      Effect.match({
        onSuccess: ({ event_id }): Written => ({ _tag: "Written", event_id }),
        onFailure: (error): Written => this.notWritten(command, error)
      })
    )
  }

  private notWritten({ _tag }: Command, error: unknown): Written {
    const fields = { conversation_id: this.place.conversationId, command: _tag, cause: describeError(error) }
    if (error instanceof CommandRefused) {
      this.host.log.write("debug", "a report of an outside agent does not fit", fields)
      return { _tag: "Refused", refusal: error.refusal }
    }
    if (!(error instanceof RuntimeClosed)) this.host.log.write("warn", "a report of an outside agent waits", fields)
    return { _tag: "Failed", error }
  }

  /** What a person is shown: without secrets, bounded. */
  masked<Value>(value: Value): Value {
    return maskedValue(value, this.host.mask) as Value
  }

  events(events: ReadonlyArray<AgentEvent>): Effect.Effect<Written | undefined> {
    if (events.length === 0) return Effect.succeed(undefined)
    return this.submit({ _tag: "RecordHarnessEvents", agent_id: this.agentId, events: this.masked(events) })
  }

  /** A call that was asked about here has ended there: the record follows what was seen. */
  settle({ callId, durationMs, outcome, output }: Settled): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const call_id = callId as CallId
      const state = yield* Effect.promise(() => this.host.state(this.place.conversationId))
      const call = state.calls.find((one) => one.call_id === call_id)
      if (call === undefined || call.result !== null) return
      if (call.status === "awaiting_approval") {
        if (outcome === "not_run") {
          const reason = "refused in the program itself"
          yield* this.submit({ _tag: "DenyCall", call_id, reason, ...inTerminal })
          return
        }
        yield* this.submit({ _tag: "ApproveCall", call_id, scope: "once", ...inTerminal })
      }
      if (outcome === "not_run") {
        yield* this.submit({ _tag: "FinishCall", call_id, status: "cancelled", duration_ms: durationMs })
        return
      }
      if (call.attempt === 0) yield* this.submit({ _tag: "StartCall", call_id, sandbox })
      if (outcome === "started") return
      const told = output === undefined ? {} : { output: this.masked(output) }
      const status = outcome === "ran" ? "success" : "error"
      yield* this.submit({ _tag: "FinishCall", call_id, status, duration_ms: durationMs, ...told })
    })
  }

  started(callId: string): Effect.Effect<Written> {
    return this.submit({ _tag: "StartCall", call_id: callId as CallId, sandbox })
  }

  /** Nobody waits for the answer any more. */
  abandoned(callId: string): Effect.Effect<Written> {
    return this.submit({ _tag: "FinishCall", call_id: callId as CallId, status: "cancelled", duration_ms: 0 })
  }
}
