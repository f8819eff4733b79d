// Failures of endpoints. A handler fails with the same classes as an operation; the status, the headers and the body of the
// answer follow from the code that the class carries. The schemas show them in the OpenAPI document.
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import { isWireFailure, type WireFailure } from "../../contract/WireFailure.ts"
import { type ErrorCode, errorCodes } from "../../wire/Codes.ts"
import { ErrorBody } from "../../wire/Frames.ts"
import { wireErrorOf } from "../operations/Failures.ts"

const codesOf = (status: number): ReadonlyArray<ErrorCode> =>
  (Object.keys(errorCodes) as ReadonlyArray<ErrorCode>).filter((code) => errorCodes[code].http === status)

/** The failures that are answered with this status. */
const failuresOf = (status: number) => {
  const codes = codesOf(status)
  const is = (value: unknown): value is WireFailure => isWireFailure(value) && codes.includes(value.wireCode)
  const error = Schema.Struct({ ...ErrorBody.fields, code: Schema.Literals(codes) })
  const body = Schema.Struct({ error }).annotate({ identifier: `Error${status}` })
  return Schema.declare(is).pipe(
    Schema.encodeTo(body, {
      decode: SchemaGetter.forbidden(() => "a failure is only ever written"),
      encode: SchemaGetter.transform((failure) => ({ error: wireErrorOf(failure) as (typeof body)["Type"]["error"] }))
    }),
    HttpApiSchema.status(status)
  )
}

const statuses = [...new Set(Object.values(errorCodes).map(({ http }) => http))].sort((left, right) => left - right)

/** Every failure that a client can be told about, by status. */
export const wireFailures = statuses.map(failuresOf)
