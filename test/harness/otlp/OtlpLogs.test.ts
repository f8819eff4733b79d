/** Goal: telemetry is read as JSON, protobuf and gzip alike, each model call is counted once, and bombs and garbage are refused. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import * as FastCheck from "fast-check"
import { describe, expect, it } from "vitest"
import { ClaudeSession } from "#src/harness/claude/ClaudeSession.ts"
import { harnessLimits } from "#src/harness/HarnessLimits.ts"
import { decodeLogs } from "#src/harness/otlp/OtlpLogs.ts"
import { count } from "../../support/counts.ts"
import { seedFor } from "../../support/seed.ts"

const sample = join(import.meta.dirname, "../../fixtures/harness/claude/tty-perm-dialog-yes.otlp.jsonl")
const exports = readFileSync(sample, "utf8")
  .split("\n")
  .filter((line) => line.trim() !== "")
  .map((line) => JSON.parse(line))
  .filter(({ path }) => path === "/v1/logs")
  .map(({ body }) => body)

const json = { type: "application/json", encoding: "" }
const protobuf = { type: "application/x-protobuf", encoding: "" }
const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

const recordsOf = (body: Uint8Array, headers: typeof json) => {
  const decoded = decodeLogs(body, headers)
  if (decoded._tag === "Refused") throw new Error(decoded.message)
  return decoded.records
}

/** The wire format, written by hand: what the decoder is held to is not made by it. */
const varint = (value: bigint): Buffer => {
  const bytes: Array<number> = []
  for (let rest = value; ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)])
    bytes.push(Number(rest & 127n) | 128)
  }
}
const field = (number: number, content: Buffer): Buffer =>
  Buffer.concat([varint(BigInt((number << 3) | 2)), varint(BigInt(content.length)), content])
const text = (number: number, value: string): Buffer => field(number, Buffer.from(value))
const integer = (number: number, value: bigint): Buffer =>
  Buffer.concat([varint(BigInt(number << 3)), varint(BigInt.asUintN(64, value))])
const double = (number: number, value: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return Buffer.concat([varint(BigInt((number << 3) | 1)), bytes])
}
const pair = (key: string, value: Buffer): Buffer => field(6, Buffer.concat([text(1, key), field(2, value)]))

const request = field(
  1,
  field(
    2,
    field(
      2,
      Buffer.concat([
        field(5, text(1, "claude_code.api_request")),
        pair("event.name", text(1, "api_request")),
        pair("session.id", text(1, "s1")),
        pair("event.sequence", integer(3, 46n)),
        pair("input_tokens", integer(3, 10n)),
        pair("output_tokens", text(1, "5")),
        pair("cost_usd", double(4, 0.000105)),
        pair("below", integer(3, -3n)),
        pair("yes", integer(2, 1n))
      ])
    )
  )
)

describe("telemetry", () => {
  it("gives tokens and cost of every model call, once, however often it is sent", () => {
    const session = new ClaudeSession()
    const all = exports.flatMap((body) => recordsOf(bytesOf(body), json))
    expect(all.length).toBeGreaterThan(10)
    const first = session.telemetry(all).events
    expect(first).toContainEqual({
      type: "usage_reported",
      input_tokens: 10,
      output_tokens: 5,
      cached_tokens: 0,
      cost_usd: 0.000105,
      model: "claude-sonnet-4-5"
    })
    expect(session.telemetry(all).events).toEqual([])
  })

  it("reads protobuf and gzip as it reads JSON", () => {
    const expected = [
      {
        name: "api_request",
        sessionId: "s1",
        sequence: 46,
        attributes: {
          "event.name": "api_request",
          "session.id": "s1",
          "event.sequence": 46,
          input_tokens: 10,
          output_tokens: "5",
          cost_usd: 0.000105,
          below: -3,
          yes: true
        }
      }
    ]
    expect(recordsOf(request, protobuf)).toEqual(expected)
    expect(recordsOf(gzipSync(request), { ...protobuf, encoding: "gzip" })).toEqual(expected)
    const [body] = exports
    expect(recordsOf(gzipSync(bytesOf(body)), { ...json, encoding: "GZIP" })).toEqual(recordsOf(bytesOf(body), json))
    expect(new ClaudeSession().telemetry(expected).events).toMatchObject([{ input_tokens: 10, output_tokens: 5 }])
  })

  it("refuses a bomb, what is not gzip, what is not JSON and what it cannot unpack", () => {
    const bomb = gzipSync(Buffer.alloc(harnessLimits.otlpUnpackedBytesMax + 1))
    expect(bomb.length).toBeLessThan(harnessLimits.otlpBytesMax)
    expect(decodeLogs(bomb, { ...json, encoding: "gzip" })).toMatchObject({ _tag: "Refused", status: 413 })
    expect(decodeLogs(Buffer.from("x"), { ...json, encoding: "gzip" })).toMatchObject({ status: 400 })
    expect(decodeLogs(Buffer.from("{"), json)).toMatchObject({ status: 400, message: "the body is not JSON" })
    expect(decodeLogs(request, { ...protobuf, encoding: "br" })).toMatchObject({ status: 415 })
    expect(decodeLogs(request.subarray(0, request.length - 1), protobuf)).toMatchObject({ status: 400 })
  })

  it("leaves out what is of a wrong type and takes the rest", () => {
    const attributes = [
      { key: "event.name", value: { stringValue: "api_request" } },
      { key: "input_tokens", value: { intValue: "12" } },
      { key: "output_tokens", value: { doubleValue: "many" } },
      { key: 5, value: null },
      null
    ]
    const body = { resourceLogs: [7, { scopeLogs: [{ logRecords: [null, { attributes }, { attributes: {} }] }] }] }
    const records = recordsOf(bytesOf(body), json)
    expect(new ClaudeSession().telemetry(records).events).toMatchObject([{ input_tokens: 12, output_tokens: 0 }])
  })

  it("takes so many records of one export and says how many it left out", () => {
    const logRecords = Array.from({ length: harnessLimits.otlpRecordsMax + 3 }, () => ({}))
    const body = bytesOf({ resourceLogs: [{ scopeLogs: [{ logRecords }] }] })
    expect(decodeLogs(body, json)).toMatchObject({ _tag: "Records", dropped: 3 })
  })

  it("never throws on garbage", () => {
    const bytes = FastCheck.oneof(
      FastCheck.uint8Array({ maxLength: 300 }),
      FastCheck.nat({ max: request.length }).map((at) => Buffer.concat([request.subarray(0, at), Buffer.from([255])])),
      FastCheck.jsonValue().map(bytesOf)
    )
    const property = FastCheck.property(bytes, FastCheck.constantFrom(json, protobuf), (body, headers) => {
      expect(["Records", "Refused"]).toContain(decodeLogs(body, headers)._tag)
    })
    const numRuns = count("garbage as telemetry", { fast: 1_000, soak: 50_000 })
    FastCheck.assert(property, { seed: seedFor("garbage as telemetry"), numRuns })
  })
})
