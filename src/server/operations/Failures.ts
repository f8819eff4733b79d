// Failures as errors of the protocol. The code is on the class of the failure; anything without one is a defect, which a
// client sees as `internal` and without details.
import type { WireFailure } from "../../contract/WireFailure.ts"
import { failureOf } from "../../conversation/ConversationErrors.ts"
import type { WireError } from "../../wire/Codes.ts"

export const internalError: WireError = {
  code: "internal",
  message: "the server failed to do this; its log says why"
}

const busyRetryMs = 50

/** `data` of a failure whose class declares none. */
const dataFor = ({ message, wireCode }: WireFailure): WireError["data"] => {
  if (wireCode === "busy") return { retry_after_ms: busyRetryMs }
  if (wireCode === "read_only") return { reason: message }
  return wireCode === "invalid_state" ? { session_error: "state_transition_invalid" } : undefined
}

export const wireErrorOf = (failure: WireFailure): WireError => {
  const { message, wireCode: code } = failure
  if (code === "internal") return internalError
  const data = "wireData" in failure ? failure.wireData : dataFor(failure)
  return data === undefined ? { code, message } : { code, message, data }
}

/** The same for what a promise was rejected with. */
export const wireErrorOfRejection = (error: unknown): WireError => {
  const failure = failureOf(error)
  return failure === undefined ? internalError : wireErrorOf(failure)
}
