// An expected failure that a client can be told about. The class carries its code: an error without one is not a failure of
// an operation, and the compiler says so.
import type { ErrorCode } from "../wire/Codes.ts"

export type WireCode = ErrorCode

export interface WireFailure extends Error {
  readonly _tag: string
  readonly wireCode: WireCode
  /** `data` of the wire error. A class that does not declare it gets what follows from its code. */
  readonly wireData?: Readonly<Record<string, unknown>> | undefined
}

/** A union of failures; a member without a code does not compile. */
export type WireFailures<Failure extends WireFailure> = Failure

export const isWireFailure = (error: unknown): error is WireFailure =>
  error instanceof Error && "_tag" in error && "wireCode" in error
