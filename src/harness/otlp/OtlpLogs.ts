// Log records of OTLP over HTTP, as JSON or protobuf, packed with gzip or not. Whatever is not a record is left out; a body
// that unpacks to more than the limit, or is not what it says, is refused.
import { gunzipSync } from "node:zlib"
import { harnessLimits } from "../HarnessLimits.ts"
import type { TelemetryRecord } from "../Port.ts"
import { type Field, fieldsOf, messagesIn, ProtobufInvalid } from "./Protobuf.ts"

export type Decoded =
  | { readonly _tag: "Records"; readonly records: ReadonlyArray<TelemetryRecord>; readonly dropped: number }
  | { readonly _tag: "Refused"; readonly status: 400 | 413 | 415; readonly message: string }

type Scalar = string | number | boolean
type Attributes = Record<string, Scalar>

const refused = (status: 400 | 413 | 415, message: string): Decoded => ({ _tag: "Refused", status, message })

const recordOf = (attributes: Attributes, body: string | undefined): TelemetryRecord => {
  const {
    "event.name": name,
    "event.sequence": sequence,
    "session.id": session,
    "conversation.id": thread
  } = attributes
  const id = session ?? thread
  return {
    name: typeof name === "string" ? name : (body ?? ""),
    sessionId: typeof id === "string" ? id : undefined,
    sequence: typeof sequence === "number" ? sequence : undefined,
    attributes
  }
}

const listOf = (value: unknown): ReadonlyArray<Record<string, unknown>> =>
  Array.isArray(value) ? value.filter((one) => typeof one === "object" && one !== null) : []

const scalarOfJson = (value: unknown): Scalar | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  const { boolValue, doubleValue, intValue, stringValue } = value as Record<string, unknown>
  if (typeof stringValue === "string") return stringValue
  if (typeof boolValue === "boolean") return boolValue
  if (typeof doubleValue === "number") return doubleValue
  // Integers of 64 bits are written as text.
  const int = typeof intValue === "string" && /^-?\d{1,16}$/.test(intValue) ? Number(intValue) : intValue
  return typeof int === "number" ? int : undefined
}

const attributesOfJson = (value: unknown): Attributes => {
  const attributes: Attributes = Object.create(null)
  for (const { key, value: held } of listOf(value)) {
    const scalar = scalarOfJson(held)
    if (typeof key === "string" && scalar !== undefined) attributes[key.slice(0, 200)] = scalar
  }
  return attributes
}

const recordsOfJson = (root: unknown): ReadonlyArray<TelemetryRecord> =>
  listOf((root as Record<string, unknown> | null)?.["resourceLogs"])
    .flatMap((resource) => listOf(resource["scopeLogs"]))
    .flatMap((scope) => listOf(scope["logRecords"]))
    .map((record) => {
      const body = scalarOfJson(record["body"])
      return recordOf(attributesOfJson(record["attributes"]), typeof body === "string" ? body : undefined)
    })

const decoder = new TextDecoder()
const textOf = ({ bytes }: Field): string => (bytes === undefined ? "" : decoder.decode(bytes))

/** AnyValue: 1 text, 2 boolean, 3 integer, 4 double. */
const scalarOfMessage = (bytes: Uint8Array): Scalar | undefined => {
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) return textOf(field)
    if (field.number === 2) return field.value === 1n
    if (field.number === 3 && field.value !== undefined) return Number(BigInt.asIntN(64, field.value))
    if (field.number === 4) return field.double
  }
  return undefined
}

/** LogRecord: 5 body, 6 attributes (KeyValue: 1 key, 2 value). */
const recordOfMessage = (bytes: Uint8Array): TelemetryRecord => {
  const fields = fieldsOf(bytes)
  const attributes: Attributes = Object.create(null)
  for (const pair of messagesIn(fields, 6)) {
    const parts = fieldsOf(pair)
    const key = parts.find(({ number }) => number === 1)
    const [held] = messagesIn(parts, 2)
    const scalar = held === undefined ? undefined : scalarOfMessage(held)
    if (key !== undefined && scalar !== undefined) attributes[textOf(key).slice(0, 200)] = scalar
  }
  const [body] = messagesIn(fields, 5)
  const said = body === undefined ? undefined : scalarOfMessage(body)
  return recordOf(attributes, typeof said === "string" ? said : undefined)
}

/** Request: 1 resource logs; ResourceLogs: 2 scope logs; ScopeLogs: 2 records. */
const recordsOfProtobuf = (bytes: Uint8Array): ReadonlyArray<TelemetryRecord> =>
  messagesIn(fieldsOf(bytes), 1)
    .flatMap((resource) => messagesIn(fieldsOf(resource), 2))
    .flatMap((scope) => messagesIn(fieldsOf(scope), 2))
    .map(recordOfMessage)

const unpacked = (body: Uint8Array, encoding: string): Uint8Array | Decoded => {
  if (encoding === "" || encoding === "identity") return body
  if (encoding !== "gzip") return refused(415, `content-encoding ${encoding.slice(0, 40)} is not supported; use gzip`)
  try {
    return gunzipSync(body, { maxOutputLength: harnessLimits.otlpUnpackedBytesMax })
  } catch (error) {
    const isLarge = (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE"
    return isLarge
      ? refused(413, `the body unpacks to more than ${harnessLimits.otlpUnpackedBytesMax} bytes`)
      : refused(400, "the body is not gzip")
  }
}

export const decodeLogs = (
  body: Uint8Array,
  headers: { readonly type: string; readonly encoding: string }
): Decoded => {
  const bytes = unpacked(body, headers.encoding.toLowerCase())
  if ("_tag" in bytes) return bytes
  try {
    const all = headers.type.startsWith("application/x-protobuf")
      ? recordsOfProtobuf(bytes)
      : recordsOfJson(JSON.parse(decoder.decode(bytes)))
    const records = all.slice(0, harnessLimits.otlpRecordsMax)
    return { _tag: "Records", records, dropped: all.length - records.length }
  } catch (error) {
    if (error instanceof ProtobufInvalid) return refused(400, `the body is not protobuf: ${error.message}`)
    if (error instanceof SyntaxError) return refused(400, "the body is not JSON")
    throw error
  }
}
