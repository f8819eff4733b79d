// Carries out one checked request for one principal: role, idempotency, handler, and what went wrong as an error of the
// protocol. The same for a frame and for an HTTP request.

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { describeError, type Log } from "../../contract/ServerLog.ts"
import type { WireFailure } from "../../contract/WireFailure.ts"
import { attempt } from "../../conversation/Attempt.ts"
import { valueAt } from "../../rune/Elements.ts"
import type { WireError } from "../../wire/Codes.ts"
import { operations } from "../../wire/Operations.ts"
import type { Metrics } from "../telemetry/Metrics.ts"
import type { OperationContext, Principal } from "./Context.ts"
import { CurrentOperation, type Operating } from "./CurrentOperation.ts"
import { wireErrorOfRejection } from "./Failures.ts"
import { handlers } from "./Handlers.ts"
import { BadRequest, Unauthorized } from "./OperationErrors.ts"
import { bodyHash, mayAsk, type Request } from "./Requests.ts"

export type Outcome =
  | { readonly _tag: "Done"; readonly ok: unknown }
  | { readonly _tag: "Failed"; readonly error: WireError }

/** What operations share, whoever asks. */
export type Services = Omit<OperationContext, "principal" | "channel" | "connection" | "idempotency">

export interface OperatorOptions {
  readonly services: Services
  readonly log: Log
  readonly metrics: Metrics
  readonly monotonicMs: () => number
}

export interface Caller {
  readonly principal: Principal
  readonly channel: string
  /** The connection itself, where there is one. */
  readonly connection?: object
  /** Carries out what belongs to a connection; absent where there is none. */
  readonly follow?: (request: Request) => Promise<unknown>
}

type AnyHandler = (input: unknown) => Operating<unknown>

export class Operator {
  private readonly options: OperatorOptions

  constructor(options: OperatorOptions) {
    this.options = options
  }

  run(request: Request, caller: Caller): Promise<Outcome> {
    const startedMs = this.options.monotonicMs()
    const outcome = Effect.matchCause(this.perform(request, caller), {
      onFailure: (cause): Outcome => ({ _tag: "Failed", error: this.told(request, Cause.squash(cause)) }),
      onSuccess: (ok): Outcome => ({ _tag: "Done", ok })
    })
    const noted = Effect.map(outcome, (one) => {
      this.note(request, caller, one, this.options.monotonicMs() - startedMs)
      return one
    })
    return Effect.runPromise(noted)
  }

  /** What the client is told of a failure; a defect goes to the log as well. */
  private told({ op }: Request, error: unknown): WireError {
    const wire = wireErrorOfRejection(error)
    if (wire.code === "internal")
      this.options.log.write("error", "an operation failed", { op, cause: describeError(error) })
    return wire
  }

  private perform(request: Request, caller: Caller): Effect.Effect<unknown, WireFailure> {
    const { fields, idempotencyKey, op } = request
    const { channel, connection, follow, principal } = caller
    if (!mayAsk(principal, op))
      return Effect.fail(new Unauthorized(`the role ${principal.role} is not allowed to use ${op}`))
    const { answeredBy, mutates } = operations[op]
    if (answeredBy === "connection")
      return follow === undefined
        ? Effect.fail(new BadRequest(`${op} needs a WebSocket`))
        : attempt(() => follow(request))
    const key = mutates ? idempotencyKey : undefined
    const idempotency = key === undefined ? undefined : { key, hash: bodyHash(op, fields) }
    // The one widening: the handler is looked up by the name under which the fields were checked.
    const handler = valueAt(handlers as Readonly<Record<string, AnyHandler>>, op)
    const context = { ...this.options.services, principal, channel, connection, idempotency }
    return Effect.provideService(handler(fields), CurrentOperation, context)
  }

  private note(request: Request, caller: Caller, outcome: Outcome, durationMs: number): void {
    const { log, metrics } = this.options
    const code = outcome._tag === "Done" ? "ok" : outcome.error.code
    metrics.countOperation(request.op, code, durationMs)
    const sessionError = outcome._tag === "Failed" ? outcome.error.data?.["session_error"] : undefined
    if (typeof sessionError === "string") metrics.count("session_errors_total", { code: sessionError })
    if (log.level !== "debug") return
    const { channel, principal } = caller
    const asked = { op: request.op, principal: principal.name, channel, fields: request.fields }
    log.write("debug", "operation", { ...asked, code, duration_ms: Math.round(durationMs) })
  }
}
