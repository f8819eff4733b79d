// Expected failures of operations, one class for each code of the wire that an operation itself answers with. Failures of
// conversations and of the store have classes of their own; the error channel of a handler takes both.
import type * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import type { RegistryAnswer } from "../../contract/RemoteTools.ts"
import type { WireCode } from "../../contract/WireFailure.ts"

type Details = Readonly<Record<string, unknown>>

interface OperationFailure<Tag extends string, Code extends WireCode> extends Cause.YieldableError {
  readonly _tag: Tag
  readonly wireCode: Code
  readonly wireData: Details | undefined
}

type OperationErrorClass<Tag extends string, Code extends WireCode> = new (
  message: string,
  wireData?: Details
) => OperationFailure<Tag, Code>

// The type is written down because the declarations of the package cannot name the inferred one.
const operationError = <Tag extends string, Code extends WireCode>(
  tag: Tag,
  code: Code
): OperationErrorClass<Tag, Code> =>
  class extends Data.TaggedError(tag)<{ readonly message: string; readonly wireData: Details | undefined }> {
    readonly wireCode = code

    constructor(message: string, wireData?: Details) {
      super({ message, wireData })
    }
  }

export class BadRequest extends operationError("BadRequest", "bad_request") {}
export class Unauthorized extends operationError("Unauthorized", "unauthorized") {}
export class NotFound extends operationError("NotFound", "not_found") {}
export class InvalidState extends operationError("InvalidState", "invalid_state") {}
export class AlreadyDecided extends operationError("AlreadyDecided", "already_decided") {}
export class LimitExceeded extends operationError("LimitExceeded", "limit_exceeded") {}
export class ServerBusy extends operationError("ServerBusy", "busy") {}

/** The registry of client-run tools refused; it names the code itself. */
export class RegistrationRefused extends Data.TaggedError("RegistrationRefused")<{
  readonly message: string
  readonly code: Extract<RegistryAnswer<unknown>, { readonly _tag: "Refused" }>["code"]
}> {
  readonly wireData = undefined

  get wireCode() {
    return this.code satisfies WireCode
  }
}
