/**
 * Goal: a rune of streamed text that writes itself is byte for byte what
 * JSON.stringify makes of it, within the room it asked for; whatever is unusual is
 * left to JSON.stringify. Method: random runes beside JSON.stringify, many streams
 * at once, and each way in which a rune can be unusual.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { bytesOf } from "#runelog/Frame.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import { makeAgentId, makeConversationId, makeRequestId, makeRuneId, turnIdOf } from "#src/rune/Ids.ts"
import { encodeCurrent, isCurrent, type Rune, stamp } from "#src/rune/Rune.ts"
import { StreamedText, type TextRune } from "#src/rune/StreamedText.ts"
import { seedFor } from "../support/seed.ts"

const NOW_MS = 1_763_251_200_000
const ids = seededIdSource(7)

interface Stream {
  readonly conversation_id: ReturnType<typeof makeConversationId>
  readonly agent_id: ReturnType<typeof makeAgentId>
  readonly request_id: ReturnType<typeof makeRequestId>
  readonly turn: number
}

const makeStream = (turn = 1): Stream => ({
  conversation_id: makeConversationId(ids),
  agent_id: makeAgentId(ids),
  request_id: makeRequestId(ids),
  turn
})

interface Piece {
  readonly content: string
  readonly event_id?: number
  readonly ts_ms?: number
  readonly kind?: "turn.assistant_delta" | "turn.reasoning_delta"
  readonly visibility?: "public" | "internal" | "secret"
}

const runeOf = (stream: Stream, piece: Piece): Rune => {
  const { content, event_id = 1, kind = "turn.assistant_delta", ts_ms = NOW_MS, visibility } = piece
  return stamp(
    {
      kind,
      agent_id: stream.agent_id,
      turn_id: turnIdOf(stream.turn),
      payload: { content, request_id: stream.request_id },
      ...(visibility === undefined ? {} : { visibility })
    },
    { event_id, rune_id: makeRuneId(ids), conversation_id: stream.conversation_id, ts_ms }
  )
}

const MARGIN = 0xa5

/** The JSON that a rune writes, in a buffer that shows whether it wrote elsewhere. */
const written = (rune: Rune): string => {
  expect(isCurrent(rune)).toBe(true)
  const body = encodeCurrent(rune)
  if (typeof body === "string") throw new Error("it does not write itself")
  const buffer = Buffer.alloc(body.bytesMax + 64, MARGIN)
  const length = body.writeTo(bytesOf(buffer), 32)
  expect(length).toBeLessThanOrEqual(body.bytesMax)
  expect(buffer.subarray(0, 32).every((byte) => byte === MARGIN)).toBe(true)
  expect(buffer.subarray(32 + body.bytesMax).every((byte) => byte === MARGIN)).toBe(true)
  return buffer.toString("utf8", 32, 32 + length)
}

const isWrittenAsJson = (rune: Rune): void => {
  expect(written(rune)).toBe(JSON.stringify(rune))
}

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 80 }),
  fc.string({ unit: "binary", maxLength: 80 }),
  fc.string({ unit: "grapheme-ascii", maxLength: 200 }),
  // Joined from parts, as streamed text is.
  fc.array(fc.string({ unit: "grapheme-ascii", maxLength: 20 }), { maxLength: 12 }).map((parts) => {
    let joined = ""
    for (const part of parts) joined += part
    return joined
  }),
  fc.constantFrom("", '"', "\\", "\u0000\u001f\u007f\u0080", "\ud800", "a\udfff", "😀", "\u2028", "</script>", "ÿ")
)

describe("streamed text that writes itself", () => {
  it("is what JSON.stringify writes, whatever the text, id, time and visibility", () => {
    const streams = [makeStream(), makeStream(12), makeStream(999_999_999)]
    const piece = fc.record({
      content: text,
      event_id: fc.oneof(fc.integer({ min: 1, max: 1e6 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })),
      ts_ms: fc.oneof(fc.integer({ min: NOW_MS, max: NOW_MS + 3 }), fc.integer({ min: 1e12, max: 1e13 - 1 })),
      kind: fc.constantFrom("turn.assistant_delta" as const, "turn.reasoning_delta" as const),
      visibility: fc.constantFrom("public" as const, "internal" as const, "secret" as const)
    })
    fc.assert(
      fc.property(fc.nat(2), piece, (at, random) => isWrittenAsJson(runeOf(streams[at]!, random))),
      { seed: seedFor("streamed text that writes itself"), numRuns: 3_000 }
    )
  })

  it("writes every event id at a border of its digits", () => {
    const stream = makeStream()
    const borders = Array.from({ length: 16 }, (_, digits) => 10 ** digits)
    const others = [2 ** 30 - 1, 2 ** 30, 2 ** 31 - 1, 2 ** 31, 2 ** 32, Number.MAX_SAFE_INTEGER]
    for (const border of [...borders, ...others]) {
      for (const event_id of [border - 1, border, border + 1]) {
        if (event_id >= 1 && Number.isSafeInteger(event_id)) isWrittenAsJson(runeOf(stream, { content: "x", event_id }))
      }
    }
  })

  it("finds every character that needs an escape, wherever it is", () => {
    const stream = makeStream()
    for (let code = 0; code <= 0x17f; code++) {
      for (let before = 0; before < 9; before++) {
        for (const behind of ["", "z", "12345678"]) {
          isWrittenAsJson(runeOf(stream, { content: "x".repeat(before) + String.fromCharCode(code) + behind }))
        }
      }
    }
  })

  it("keeps more streams apart than it remembers", () => {
    const streams = Array.from({ length: 1_200 }, (_, at) => makeStream(at + 1))
    for (const round of [1, 2]) {
      for (const [at, stream] of streams.entries()) {
        isWrittenAsJson(runeOf(stream, { content: `piece ${round}`, event_id: at + 1, ts_ms: NOW_MS + at * round }))
      }
    }
  })

  it("does not take one request of two conversations, agents, turns or kinds for the same", () => {
    const stream = makeStream()
    const twins = [
      stream,
      { ...stream, conversation_id: makeConversationId(ids) },
      { ...stream, agent_id: makeAgentId(ids) },
      { ...stream, turn: 2 }
    ]
    for (const twin of [...twins, ...twins]) isWrittenAsJson(runeOf(twin, { content: "text" }))
    isWrittenAsJson(runeOf(stream, { content: "text", kind: "turn.reasoning_delta" }))
    isWrittenAsJson(runeOf(stream, { content: "text", visibility: "secret" }))
  })

  it("can be written later and more than once, whatever others of its stream said meanwhile", () => {
    const stream = makeStream()
    const first = runeOf(stream, { content: "first", ts_ms: NOW_MS })
    const body = StreamedText.of(first as TextRune)!
    isWrittenAsJson(runeOf(stream, { content: "second", ts_ms: NOW_MS + 5 }))
    for (const start of [0, 100]) {
      const buffer = Buffer.alloc(body.bytesMax + start)
      expect(buffer.toString("utf8", start, start + body.writeTo(bytesOf(buffer), start))).toBe(JSON.stringify(first))
    }
  })
})

describe("JSON.stringify serves", () => {
  const usual = runeOf(makeStream(), { content: "text" })
  const { payload } = usual as TextRune
  const { agent_id: _agent, ...agentless } = usual
  const { turn_id: _turn, ...turnless } = usual

  it.each<[string, object]>([
    ["a cause", { ...usual, cause: 3 }],
    ["an idempotency key", { ...usual, idempotency_key: "k" }],
    ["a key that is not known", { ...usual, other: 1 }],
    ["no agent", agentless],
    ["no agent but another key", { ...agentless, cause: 3 }],
    ["no turn but another key", { ...turnless, cause: 3 }],
    ["no request", { ...usual, payload: { content: "text" } }],
    ["no request but another key", { ...usual, payload: { content: "text", other: 1 } }],
    ["a further key in the payload", { ...usual, payload: { ...payload, other: 1 } }],
    ["another order of keys", { agent_id: usual.agent_id, ...agentless }],
    ["another order in the payload", { ...usual, payload: { request_id: payload.request_id, content: "text" } }],
    ["an agent that is undefined", { ...usual, agent_id: undefined }],
    ["a request that is undefined", { ...usual, payload: { content: "text", request_id: undefined } }],
    ["keys of its prototype", Object.create(usual)],
    ["a payload with keys of its prototype", { ...usual, payload: Object.create(payload) }],
    ["a prototype that knows better", Object.assign(Object.create({ toJSON: () => 1 }), usual)],
    [
      "a hidden key and another",
      Object.defineProperty({ ...agentless, cause: 3 }, "agent_id", { value: usual.agent_id })
    ],
    ["long text", { ...usual, payload: { ...payload, content: "x".repeat(4097) } }],
    ["a time of fewer digits", { ...usual, ts_ms: 1e12 - 1 }],
    ["a time of more digits", { ...usual, ts_ms: 1e13 }]
  ])("a rune with %s", (_name, rune) => {
    expect(StreamedText.of(rune as TextRune)).toBeUndefined()
    if (isCurrent(rune)) expect(encodeCurrent(rune)).toBe(JSON.stringify(rune))
  })
})
