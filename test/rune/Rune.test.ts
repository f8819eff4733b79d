/**
 * Goal: a rune survives the way to JSON and back, in a fixed key order; anything
 * else is a typed refusal or a typed unknown, never an exception.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { envelopeKeys, OpenEnvelope } from "#src/rune/Envelope.ts"
import { acceptsEnvelope, isStreamedText } from "#src/rune/EnvelopeCheck.ts"
import { definitionOf, type Kind, kinds } from "#src/rune/Kinds.ts"
import {
  type AnyRune,
  decode,
  decodeValue,
  encode,
  isKnown,
  type RuneMalformed,
  runeSchema,
  stamp
} from "#src/rune/Rune.ts"
import { exampleRune } from "../support/runeExamples.ts"
import { seedFor } from "../support/seed.ts"

const decoded = (text: string): AnyRune => Result.getOrThrow(decode(text))
const refused = (text: string): RuneMalformed => {
  const outcome = decode(text)
  if (Result.isSuccess(outcome)) throw new Error(`accepted ${text}`)
  return outcome.failure
}
const withFields = (kind: Kind, fields: Record<string, unknown>): string =>
  JSON.stringify({ ...exampleRune(kind), ...fields })

describe("encode and decode", () => {
  it.each(kinds)("%s comes back as it went", (kind) => {
    const rune = exampleRune(kind)
    expect(decoded(encode(rune))).toEqual(rune)
    expect(Schema.is(runeSchema(kind))(rune)).toBe(true)
    expect(isKnown(decoded(encode(rune)))).toBe(true)
  })

  it("writes envelope keys in one order, absent ones left out", () => {
    const full = stamp(
      {
        kind: "turn.completed",
        payload: { final_output: "", usage: { input_tokens: 0, output_tokens: 0 } },
        agent_id: exampleRune("agent.ready").agent_id!,
        turn_id: exampleRune("turn.completed").turn_id!,
        visibility: "secret",
        cause: 3,
        idempotency_key: "k",
        idempotency_hash: "0".repeat(64)
      },
      exampleRune("turn.completed")
    )
    expect(Object.keys(JSON.parse(encode(full)))).toEqual(envelopeKeys)
    const bare = exampleRune("session.resumed")
    expect(Object.keys(bare)).toEqual(
      envelopeKeys.filter(
        (key) => !["agent_id", "turn_id", "cause", "idempotency_key", "idempotency_hash"].includes(key)
      )
    )
    expect(full.visibility).toBe("secret")
    expect(bare.visibility).toBe("public")
  })

  it("ignores and keeps unknown fields in envelope and payload", () => {
    const rune = decoded(withFields("agent.ready", { later: 1, payload: { agent_id: "agt_1111", later: [2] } }))
    expect(isKnown(rune)).toBe(true)
    expect(encode(rune)).toContain('"later":[2]')
  })

  it("carries lone surrogates both ways", () => {
    const text = `broken \ud83d half`
    const rune = stamp({ kind: "turn.assistant_delta", payload: { content: text } }, exampleRune("session.resumed"))
    const bytes = Buffer.from(encode(rune), "utf8")
    expect((decoded(bytes.toString("utf8")).payload as { content: string }).content).toBe(text)
  })

  it("keeps __proto__ an ordinary key and pollutes nothing", () => {
    const text = encode(exampleRune("tool.call")).replace('"path":', '"__proto__":{"polluted":true},"path":')
    const rune = decoded(text)
    expect(encode(rune)).toBe(text)
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined()
    const topLevel = decoded(`{"__proto__":{"event_id":1},${encode(exampleRune("session.resumed")).slice(1)}`)
    expect(Object.getPrototypeOf(topLevel)).toBe(Object.prototype)
  })
})

describe("runes of another build", () => {
  it("an unknown kind decodes to an unknown rune with its bytes intact", () => {
    const text = withFields("agent.ready", { kind: "dream.started", payload: { deep: [1] } })
    const rune = decoded(text)
    expect(isKnown(rune)).toBe(false)
    expect(encode(rune)).toBe(text)
  })

  it("a newer version of a known kind is unknown too", () => {
    const rune = decoded(withFields("tool.result", { schema_version: 9, payload: "anything" }))
    expect(isKnown(rune)).toBe(false)
  })

  it("an older version without a path is refused by name", () => {
    expect(refused(withFields("agent.ready", { schema_version: 0 })).fault).toBe("bad_envelope")
  })
})

describe("refusals", () => {
  const cases: ReadonlyArray<readonly [string, string, RuneMalformed["fault"]]> = [
    ["text that is not JSON", "{", "not_json"],
    ["an empty text", "", "not_json"],
    ["null", "null", "bad_envelope"],
    ["a number", "7", "bad_envelope"],
    ["an array", "[]", "bad_envelope"],
    ["event id 0", withFields("agent.ready", { event_id: 0 }), "bad_envelope"],
    ["a fractional event id", withFields("agent.ready", { event_id: 1.5 }), "bad_envelope"],
    ["a foreign rune id", withFields("agent.ready", { rune_id: "run_XYZ" }), "bad_envelope"],
    [
      "a conversation id with a path in it",
      withFields("agent.ready", { conversation_id: "conv_../../etc" }),
      "bad_envelope"
    ],
    ["a negative time", withFields("agent.ready", { ts_ms: -1 }), "bad_envelope"],
    ["an unknown visibility", withFields("agent.ready", { visibility: "friends" }), "bad_envelope"],
    ["an empty idempotency key", withFields("agent.ready", { idempotency_key: "" }), "bad_envelope"],
    ["a payload of another shape", withFields("agent.ready", { payload: {} }), "bad_payload"],
    ["a missing payload", withFields("agent.ready", { payload: undefined }), "bad_envelope"],
    ["a null payload", withFields("agent.ready", { payload: null }), "bad_payload"],
    [
      "infinite money",
      encode(exampleRune("agent.budget_exhausted")).replace('"used":30', '"used":1e999'),
      "bad_payload"
    ]
  ]
  it.each(cases)("%s", (_, text, fault) => {
    const error = refused(text)
    expect(error.fault).toBe(fault)
    expect(error.message.length).toBeGreaterThan(0)
  })

  it("names kind and event id once the envelope is sound", () => {
    const error = refused(withFields("agent.ready", { payload: { agent_id: 5 } }))
    expect(error).toMatchObject({ kind: "agent.ready", event_id: 42 })
    expect(error.message).toContain("agent_id")
  })

  it("random JSON never throws", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        decodeValue(value)
        decode(JSON.stringify(value))
      }),
      { seed: seedFor("random JSON"), numRuns: 500 }
    )
  })

  it("a damaged rune never throws and is never another kind", () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), fc.nat(), fc.nat({ max: 255 }), (kind, at, byte) => {
        const bytes = Buffer.from(encode(exampleRune(kind)))
        bytes[at % bytes.length] = byte
        const outcome = decode(bytes.toString("utf8"))
        if (Result.isSuccess(outcome) && isKnown(outcome.success)) expect(outcome.success.kind).toBe(kind)
      }),
      { seed: seedFor("damaged runes"), numRuns: 2000 }
    )
  })
})

describe("the fast envelope check", () => {
  const strange = fc.oneof(
    fc.constantFrom<unknown>(
      undefined,
      null,
      "",
      0,
      -1,
      1,
      1.5,
      2 ** 53,
      true,
      "x",
      [],
      {},
      "conv_12345678",
      "agt_1234"
    ),
    fc.constantFrom<unknown>(
      "turn_1",
      "turn_01",
      "run_0123456789abcdef",
      "run_0123456789abcdeF",
      "public",
      "0".repeat(64)
    ),
    fc.string()
  )
  const fields = ["event_id", "rune_id", "conversation_id", "agent_id", "turn_id", "visibility", "ts_ms", "cause"]

  it("agrees with the schema on every mutated envelope", () => {
    const accepts = Schema.is(OpenEnvelope)
    const keys = fc.constantFrom(...fields, "idempotency_key", "idempotency_hash")
    let accepted = 0
    fc.assert(
      fc.property(fc.constantFrom(...kinds), keys, strange, (kind, key, value) => {
        const mutated = JSON.parse(JSON.stringify({ ...exampleRune(kind), [key]: value })) as unknown
        const says = acceptsEnvelope(mutated)
        if (says) accepted++
        expect(says).toBe(accepts(mutated))
      }),
      { seed: seedFor("fast envelope check"), numRuns: 3000 }
    )
    expect(accepted).toBeGreaterThan(100)
  })

  it("calls nothing streamed text that the schemas of the text kinds refuse", () => {
    const texts = (["turn.assistant_delta", "turn.reasoning_delta"] as const).map((kind) => definitionOf(kind).payload)
    const requests = fc.oneof(strange, fc.constantFrom("req_0123456789abcdef", "req_0123456789abcdeF", "req_0"))
    let accepted = 0
    fc.assert(
      fc.property(fc.record({ content: strange, request_id: requests, more: strange }), (payload) => {
        if (!isStreamedText(payload)) return
        accepted++
        for (const schema of texts) expect(Schema.is(schema)(payload)).toBe(true)
      }),
      { seed: seedFor("streamed text"), numRuns: 3000 }
    )
    expect(accepted).toBeGreaterThan(100)
    for (const value of [undefined, null, "text", 1, []]) expect(isStreamedText(value)).toBe(false)
  })

  it("gives every kind the version of its definition", () => {
    for (const kind of kinds) expect(exampleRune(kind).schema_version).toBe(definitionOf(kind).version)
  })
})
