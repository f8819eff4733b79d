// Carries out one checked request for one principal: role, idempotency, handler, and what went wrong as an error of the
// protocol. The same for a frame and for an HTTP request.

import { describeError, type Log } from "../../contract/ServerLog.ts"
import type { WireError } from "../../wire/Codes.ts"
import { operations } from "../../wire/Operations.ts"
import type { Metrics } from "../telemetry/Metrics.ts"
import type { OperationContext, Principal } from "./Context.ts"
import { wireErrorOfRejection } from "./Failures.ts"
import { type ConnectionOperation, handlers } from "./Handlers.ts"
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

type AnyHandler = (fields: unknown, context: OperationContext) => Promise<unknown>

const ofConnection: Readonly<Record<ConnectionOperation, true>> = {
  subscribe: true,
  unsubscribe: true,
  "attention.subscribe": true
}

export class Operator {
  private readonly options: OperatorOptions

  constructor(options: OperatorOptions) {
    this.options = options
  }

  async run(request: Request, caller: Caller): Promise<Outcome> {
    const startedMs = this.options.monotonicMs()
    const outcome = await this.attempt(request, caller)
    this.note(request, caller, outcome, this.options.monotonicMs() - startedMs)
    return outcome
  }

  private async attempt(request: Request, caller: Caller): Promise<Outcome> {
    try {
      return { _tag: "Done", ok: await this.perform(request, caller) }
    } catch (error) {
      const wire = wireErrorOfRejection(error)
      if (wire.code === "internal") {
        this.options.log.write("error", "an operation failed", { op: request.op, cause: describeError(error) })
      }
      return { _tag: "Failed", error: wire }
    }
  }

  private perform(request: Request, caller: Caller): Promise<unknown> {
    const { fields, idempotencyKey, op } = request
    const { channel, connection, follow, principal } = caller
    if (!mayAsk(principal, op)) {
      throw new Unauthorized(`the role ${principal.role} may not ask for ${op}`)
    }
    if (op in ofConnection) {
      if (follow === undefined) throw new BadRequest(`${op} needs a WebSocket`)
      return follow(request)
    }
    const key = operations[op].mutates ? idempotencyKey : undefined
    const idempotency = key === undefined ? undefined : { key, hash: bodyHash(op, fields) }
    // The one widening: the handler is looked up by the name under which the fields were checked.
    const handler = (handlers as Readonly<Record<string, AnyHandler>>)[op]!
    return handler(fields, { ...this.options.services, principal, channel, connection, idempotency })
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
