/**
 * The JSON of a rune of streamed text, written straight to where it goes: byte for
 * byte what JSON.stringify would give. Four of five runes are of this kind, and the
 * runes of one request differ in four places, so the rest is kept as bytes. Their
 * text was joined from fragments, over which JSON.stringify takes long.
 */
import { type Envelope, envelopeKeys } from "./Envelope.ts"

/** Where it is written: a buffer and the view of it. */
interface Bytes {
  readonly buffer: Buffer
  readonly view: DataView
}

export type TextRune = Envelope<string, { readonly content: string; readonly request_id?: string }>

/** What the runes of a request have in common, and the JSON it amounts to. */
interface Template {
  readonly conversation_id: string
  readonly agent_id: string | undefined
  readonly turn_id: string | undefined
  readonly kind: string
  readonly visibility: string
  readonly schema_version: number
  /** From behind the event id to the text, with its opening quote. */
  readonly front: Buffer
  /** Where in it the time is, and which time that is now. */
  readonly timeAt: number
  timeMs: number
  /** From the closing quote of the text to the end. */
  readonly back: Buffer
}

/** Streams that run at once, roughly; with more of them their templates are made anew. */
const TEMPLATES_MAX = 512
/** Longer text is rare, and not worth the room that its worst case asks for. */
const TEXT_CHARS_MAX = 4096
/** The most bytes that JSON takes for one unit of text. */
const ESCAPE_BYTES = 6
const EVENT_DIGITS_MAX = 16
/** Times of thirteen digits: from 2001 on, for a while. */
const TIME_MS_MIN = 1e12
const TIME_MS_END = 1e13
const ZERO = 48

const HEAD = Buffer.from('{"event_id":')
const BEFORE_RUNE_ID = ',"rune_id":"'
const NO_RUNE_ID = "run_0000000000000000"

const templates = new Map<string, Template>()

const makeTemplate = (rune: TextRune, requestId: string): Template => {
  const { agent_id, conversation_id, kind, schema_version, ts_ms, turn_id, visibility } = rune
  const ids = `"conversation_id":"${conversation_id}","agent_id":"${agent_id}","turn_id":"${turn_id}"`
  const beforeTime = `${BEFORE_RUNE_ID}${NO_RUNE_ID}",${ids},"kind":"${kind}","visibility":"${visibility}","ts_ms":`
  const front = `${beforeTime}${ts_ms},"schema_version":${schema_version},"payload":{"content":"`
  const template = {
    conversation_id,
    agent_id,
    turn_id,
    kind,
    visibility,
    schema_version,
    front: Buffer.from(front),
    timeAt: beforeTime.length,
    timeMs: ts_ms,
    back: Buffer.from(`","request_id":"${requestId}"}}`)
  }
  if (templates.size === TEMPLATES_MAX) templates.clear()
  templates.set(requestId, template)
  return template
}

const isTemplateOf = (rune: TextRune, template: Template): boolean =>
  rune.conversation_id === template.conversation_id &&
  rune.agent_id === template.agent_id &&
  rune.turn_id === template.turn_id &&
  rune.kind === template.kind &&
  rune.visibility === template.visibility &&
  rune.schema_version === template.schema_version

const templateOf = (rune: TextRune, requestId: string): Template => {
  const kept = templates.get(requestId)
  return kept !== undefined && isTemplateOf(rune, kept) ? kept : makeTemplate(rune, requestId)
}

/** Writes a whole number in decimal; returns where it ends. */
const putInteger = (buffer: Uint8Array, start: number, value: number): number => {
  let end = start + 1
  for (let bound = 10; bound <= value; bound *= 10) end += 1
  let at = end
  // Division of small integers is many times faster than of large ones.
  let rest = value
  for (; rest > 0x3fff_ffff; rest = Math.floor(rest / 10)) buffer[--at] = ZERO + (rest % 10)
  let small = rest | 0
  while (at > start) {
    const tenth = (small / 10) | 0
    buffer[--at] = ZERO + small - tenth * 10
    small = tenth
  }
  return end
}

/** None of the bytes needs an escape: no control character, quote or backslash. All of them are below 128. */
const isPlain = (view: DataView, start: number, end: number): boolean => {
  let at = start
  // Four at a time: a byte from which too much is taken away borrows the highest bit.
  for (const stop = end - 3; at < stop; at += 4) {
    const four = view.getInt32(at, true)
    const controls = four - 0x20202020
    const quotes = (four ^ 0x22222222) - 0x01010101
    const backslashes = (four ^ 0x5c5c5c5c) - 0x01010101
    if (((controls | quotes | backslashes) & 0x80808080) !== 0) return false
  }
  for (; at < end; at++) {
    const byte = view.getUint8(at)
    if (byte < 0x20 || byte === 0x22 || byte === 0x5c) return false
  }
  return true
}

/** Writes a text between quotes that are already there, `start` being behind the first; returns where the second is. */
const putText = ({ buffer, view }: Bytes, start: number, text: string): number => {
  const end = start + buffer.write(text, start, "utf8")
  if (end === start + text.length && isPlain(view, start, end)) return end
  return start - 2 + buffer.write(JSON.stringify(text), start - 1, "utf8")
}

const uncommon = new Set(["cause", "idempotency_key", "idempotency_hash"])
const ENVELOPE_KEYS = envelopeKeys.filter((key) => !uncommon.has(key))
const PAYLOAD_KEYS = ["content", "request_id"]

/** JSON.stringify would write these keys, all of them and in this order. */
const hasKeys = (value: object, keys: ReadonlyArray<string>): boolean => {
  if (Object.getPrototypeOf(value) !== Object.prototype) return false
  let at = 0
  for (const key in value) {
    if (key !== keys[at]) return false
    at += 1
  }
  return at === keys.length
}

/** The body of one rune, ready to be written. */
export class StreamedText {
  private readonly rune: TextRune
  private readonly template: Template
  private readonly text: string
  readonly bytesMax: number

  private constructor(rune: TextRune, template: Template) {
    this.rune = rune
    this.template = template
    this.text = rune.payload.content
    const fixed = HEAD.length + EVENT_DIGITS_MAX + template.front.length + template.back.length
    this.bytesMax = fixed + this.text.length * ESCAPE_BYTES
  }

  /**
   * Of a rune that passed its check, which says that no id in it needs an escape. Nothing when it has other keys than
   * streamed text of a turn has, or is unusual in another way; JSON.stringify serves for those.
   */
  static of(rune: TextRune): StreamedText | undefined {
    if (!hasKeys(rune, ENVELOPE_KEYS) || !hasKeys(rune.payload, PAYLOAD_KEYS)) return undefined
    const { content, request_id } = rune.payload
    // Keys that are there and hold nothing are left out of JSON.
    if (rune.agent_id === undefined || rune.turn_id === undefined || request_id === undefined) return undefined
    const isUsual = content.length <= TEXT_CHARS_MAX && rune.ts_ms >= TIME_MS_MIN && rune.ts_ms < TIME_MS_END
    return isUsual ? new StreamedText(rune, templateOf(rune, request_id)) : undefined
  }

  /** Writes the JSON at `start`; returns its length. */
  writeTo(bytes: Bytes, start: number): number {
    const { rune, template } = this
    const { buffer } = bytes
    if (template.timeMs !== rune.ts_ms) {
      putInteger(template.front, template.timeAt, rune.ts_ms)
      template.timeMs = rune.ts_ms
    }
    for (let at = 0; at < HEAD.length; at++) buffer[start + at] = HEAD[at] ?? 0
    const front = putInteger(buffer, start + HEAD.length, rune.event_id)
    buffer.set(template.front, front)
    const runeId = front + BEFORE_RUNE_ID.length
    for (let at = 0; at < NO_RUNE_ID.length; at++) buffer[runeId + at] = rune.rune_id.charCodeAt(at)
    const back = putText(bytes, front + template.front.length, this.text)
    buffer.set(template.back, back)
    return back + template.back.length - start
  }
}
