// Goal: a failure carries the code that a client is told, one without a code cannot be a failure of an operation, and a
// defect says nothing of the inside. Method: every error class of the log, the store, conversations and operations.
import * as Data from "effect/Data"
import { describe, expect, it } from "vitest"
import * as runelogErrors from "#runelog/RunelogErrors.ts"
import * as importErrors from "#runelog/recovery/Import.ts"
import * as commandErrors from "#src/contract/CommandErrors.ts"
import { isWireFailure, type WireFailure } from "#src/contract/WireFailure.ts"
import * as conversationErrors from "#src/conversation/ConversationErrors.ts"
import * as readProgress from "#src/server/feed/ReadProgress.ts"
import { internalError, wireErrorOfRejection } from "#src/server/operations/Failures.ts"
import * as operationErrors from "#src/server/operations/OperationErrors.ts"
import * as storeErrors from "#src/store/StoreErrors.ts"
import { errorCodes } from "#src/wire/Codes.ts"

const rooms = [
  runelogErrors,
  importErrors,
  storeErrors,
  commandErrors,
  conversationErrors,
  operationErrors,
  readProgress
] as const

type AnyErrorClass = new (fields: Record<string, unknown>) => Error

const isErrorClass = (value: unknown): value is AnyErrorClass =>
  typeof value === "function" && value.prototype instanceof Error

const fields = {
  refusal: { code: "not_found", message: "m" },
  log: "log",
  cause: new Error("c"),
  code: "bad_request"
}

const classes = rooms.flatMap((room) =>
  Object.entries(room).flatMap(([name, value]) => (isErrorClass(value) ? [[name, value] as const] : []))
)

/** As clients have always been told. */
const codes: Readonly<Record<string, keyof typeof errorCodes>> = {
  ActorRetired: "busy",
  AppendsWaiting: "busy",
  ArchiveDamaged: "read_only",
  ArchiveUnsupported: "read_only",
  BlobUnknown: "not_found",
  Busy: "busy",
  ConversationBusy: "busy",
  ConversationUnknown: "not_found",
  ConversationUnreadable: "read_only",
  CursorBeyondEnd: "bad_request",
  DiskFailed: "read_only",
  DiskFull: "read_only",
  ForeignFile: "read_only",
  ForkInvalid: "bad_request",
  FormatUnsupported: "read_only",
  JournalCorrupt: "read_only",
  ListInvalid: "bad_request",
  LogDamaged: "read_only",
  LogExists: "invalid_state",
  LogNameInvalid: "not_found",
  LogRefused: "read_only",
  LogUnknown: "not_found",
  NotArchivable: "invalid_state",
  ReadInvalid: "bad_request",
  ResourcesScarce: "busy",
  RuneUnreadable: "read_only",
  RuntimeClosed: "busy",
  SegmentCorrupt: "read_only",
  WriterClosed: "read_only",
  WriterPoisoned: "read_only"
}

class WithoutCode extends Data.TaggedError("WithoutCode")<{ readonly fact: string }> {}

describe("an error class", () => {
  it.each(classes)("%s carries a code of the wire", (_name, ErrorClass) => {
    const error = new ErrorClass(fields)
    expect(isWireFailure(error) && Object.keys(errorCodes).includes(error.wireCode)).toBe(true)
  })

  it("is told under the code it always had, or as internal", () => {
    const ofOperations = new Set(["CommandRefused", "DescriptorsScarce", ...Object.keys(operationErrors)])
    const told = classes
      .filter(([name]) => !ofOperations.has(name))
      .map(([name, ErrorClass]) => [name, wireErrorOfRejection(new ErrorClass(fields)).code])
      .filter(([, code]) => code !== "internal")
    expect(Object.fromEntries(told)).toEqual(codes)
  })

  it("without a code is not a failure of an operation, for the compiler and at run time", () => {
    const forTheCompiler: WithoutCode extends WireFailure ? "failure" : "defect" = "defect"
    expect(forTheCompiler).toBe("defect")
    expect(wireErrorOfRejection(new WithoutCode({ fact: "secret" }))).toEqual(internalError)
  })
})

describe("an error of the wire", () => {
  const conversation_id = "conv_0000000000000001"

  it("has the data that its class declares, or that follows from its code", () => {
    const { ConversationBusy, ConversationUnknown } = conversationErrors
    expect(wireErrorOfRejection(new ConversationBusy({ conversation_id, retryAfterMs: 70 }))).toEqual({
      code: "busy",
      message: `${conversation_id} has too many commands waiting`,
      data: { retry_after_ms: 70 }
    })
    expect(wireErrorOfRejection(new ConversationUnknown({ conversation_id })).data).toEqual({
      session_error: "session_not_found"
    })
    expect(wireErrorOfRejection(new commandErrors.RuntimeClosed({ conversation_id })).data).toEqual({
      retry_after_ms: 50
    })
    const full = new runelogErrors.DiskFull({ path: "p", reason: "r" })
    expect(wireErrorOfRejection(full).data).toEqual({ reason: full.message })
    expect(wireErrorOfRejection(new storeErrors.NotArchivable({ conversationId: "c", reason: "r" })).data).toEqual({
      session_error: "state_transition_invalid"
    })
  })

  it("of a refusal is the refusal, and names an invalid transition", () => {
    const refused = (code: "invalid_state" | "not_found") =>
      wireErrorOfRejection(
        new commandErrors.CommandRefused({ command: "c", refusal: { code, message: "m", data: { state: "s" } } })
      )
    expect(refused("not_found")).toEqual({ code: "not_found", message: "m", data: { state: "s" } })
    expect(refused("invalid_state")).toEqual({
      code: "invalid_state",
      message: "m",
      data: { state: "s", session_error: "state_transition_invalid" }
    })
  })

  it("of an operation has the data that it was given, and no other", () => {
    expect(wireErrorOfRejection(new operationErrors.InvalidState("m"))).toEqual({ code: "invalid_state", message: "m" })
    const busy = new operationErrors.ServerBusy("m", { retry_after_ms: 7 })
    expect(wireErrorOfRejection(busy)).toEqual({ code: "busy", message: "m", data: { retry_after_ms: 7 } })
  })

  it("asks to try again where descriptors ran out for a moment, whatever that kept from being done", () => {
    const scarce = Object.assign(new Error("too many open files"), { code: "EMFILE" })
    const cause = new runelogErrors.ResourcesScarce({ path: "p", cause: scarce })
    const retry = { code: "busy", data: { retry_after_ms: 1_000 } }
    const { ConversationUnreadable, LogRefused } = conversationErrors
    for (const error of [
      scarce,
      cause,
      new LogRefused({ conversation_id, cause }),
      new Error("outer", { cause: scarce })
    ])
      expect(wireErrorOfRejection(error)).toEqual({ ...retry, message: error.message })
    expect(wireErrorOfRejection(new ConversationUnreadable({ conversation_id, after: 3, cause }))).toMatchObject(retry)
  })

  it("asks to try again where a failure without a code of its own was caused by it", () => {
    const cause = Object.assign(new Error("too many open files"), { code: "EMFILE" })
    const error = new runelogErrors.SyncFailed({ path: "p", cause })
    const retry = { code: "busy", message: error.message, data: { retry_after_ms: 1_000 } }
    expect(wireErrorOfRejection(error)).toEqual(retry)
  })

  it("does not ask to try again where the writer is poisoned for want of a descriptor", () => {
    const scarce = Object.assign(new Error("too many open files"), { code: "EMFILE" })
    const cause = new runelogErrors.WriterPoisoned({ path: "p", cause: scarce })
    expect(wireErrorOfRejection(new conversationErrors.LogRefused({ conversation_id, cause })).code).toBe("read_only")
  })

  it.each([new TypeError("secret"), "secret", null, undefined, { _tag: "Busy", wireCode: "busy", message: "secret" }])(
    "of a defect says nothing of the inside: %s",
    (defect) => expect(wireErrorOfRejection(defect)).toEqual(internalError)
  )
})
