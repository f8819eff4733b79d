// Errors of the protocol as answers of the router.
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { errorCodes, type WireError } from "../../wire/Codes.ts"
import { errorBody, errorHeaders } from "./HttpAnswer.ts"

export const errorAnswer = (error: WireError, id?: string): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(errorBody(error, id), {
    status: errorCodes[error.code].http,
    headers: errorHeaders(error)
  })
