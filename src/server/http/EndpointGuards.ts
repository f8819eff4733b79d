// What endpoints have in common, as middleware: the token of a request, and failures as errors of the protocol. The token
// is looked up before a request is routed; the middleware hands the principal to the handler.
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpServerError from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { HttpApiSchemaError } from "effect/http-api/HttpApiError"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as Layer from "effect/Layer"
import { isWireFailure, type WireFailure } from "../../contract/WireFailure.ts"
import type { Principal } from "../operations/Context.ts"
import { wireErrorOf } from "../operations/Failures.ts"
import { BadRequest, Unauthorized } from "../operations/OperationErrors.ts"
import { reasonOf } from "../operations/Requests.ts"
import { errorAnswer } from "./EndpointAnswers.ts"
import { wireFailures } from "./EndpointErrors.ts"
import { NodeRequest } from "./NodeRequest.ts"

/** Whose token the request has. */
export class CurrentPrincipal extends Context.Service<CurrentPrincipal, Principal>()("echs/http/CurrentPrincipal") {}

/** Without it an endpoint answers everybody. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentPrincipal }>()(
  "echs/http/Authorization",
  { security: { bearer: HttpApiSecurity.bearer }, error: wireFailures }
) {}

/** Failures with a code, and input that does not fit its schema, become answers. */
export class WireErrors extends HttpApiMiddleware.Service<WireErrors>()("echs/http/WireErrors", {
  error: wireFailures
}) {}

const authorized = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
  request instanceof NodeRequest && request.principal !== undefined
    ? Effect.succeed(request.principal)
    : Effect.fail(new Unauthorized("the token is missing or wrong"))
)

const authorization: Layer.Layer<Authorization> = Layer.succeed(Authorization, {
  bearer: (answer) => Effect.provideServiceEffect(answer, CurrentPrincipal, authorized)
})

/** What a body could not be read for, where a client can be told. */
const failureOfBody = (error: unknown): WireFailure | undefined => {
  if (!HttpServerError.isHttpServerError(error)) return undefined
  const { cause } = error.reason
  if (isWireFailure(cause)) return cause
  return error.reason._tag === "RequestParseError" ? new BadRequest("the body cannot be read") : undefined
}

const failureOfEndpoint = (error: unknown): WireFailure | undefined => {
  if (isWireFailure(error)) return error
  if (!HttpApiSchemaError.is(error)) return failureOfBody(error)
  const isOurs = error.kind === "Body" || error.kind === "ResponseHeaders"
  return isOurs ? undefined : new BadRequest(reasonOf(error.cause))
}

const refusedType = new BadRequest("the content type of the body is not supported here")

const wireErrors: Layer.Layer<WireErrors> = Layer.succeed(WireErrors, (answer) =>
  Effect.matchCauseEffect(answer, {
    onFailure: (cause) => {
      const error = Cause.squash(cause)
      const failure = failureOfEndpoint(error)
      return failure === undefined ? Effect.die(error) : Effect.succeed(errorAnswer(wireErrorOf(failure)))
    },
    onSuccess: (answered) => Effect.succeed(answered.status === 415 ? errorAnswer(wireErrorOf(refusedType)) : answered)
  })
)

export const guards = Layer.mergeAll(authorization, wireErrors)
