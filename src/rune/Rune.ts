/**
 * The rune: a typed union over all kinds, its draft before it has a place in the
 * log, and the way to and from JSON. Encoding is one JSON.stringify in a fixed key
 * order; decoding is one JSON.parse and one compiled check. Runes of a newer build
 * decode to an UnknownRune: they are carried, never guessed at, never a crash.
 */
import * as Data from "effect/Data"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"
import { type Envelope, envelopeFields, OpenEnvelope, type Visibility } from "./Envelope.ts"
import { acceptsEnvelope, isStreamedText } from "./EnvelopeCheck.ts"
import type { AgentId, ConversationId, RuneId, TurnId } from "./Ids.ts"
import { type AnyDefinition, definitionOf, type Kind, lookup, type PayloadOf } from "./Kinds.ts"
import { StreamedText } from "./StreamedText.ts"
import { upcast } from "./Upcaster.ts"

export type RuneOf<K extends Kind> = K extends Kind ? Envelope<K, PayloadOf<K>> : never
export type Rune = RuneOf<Kind>

declare const unknownKind: unique symbol
/** A rune of a kind or version this build does not know; its envelope is sound. */
export type UnknownRune = Envelope<string & { readonly [unknownKind]: true }, unknown>
export type AnyRune = Rune | UnknownRune

/** A rune that has not been given its place yet. */
export interface DraftOf<K extends Kind> {
  readonly kind: K
  readonly payload: PayloadOf<K>
  readonly agent_id?: AgentId
  readonly turn_id?: TurnId
  readonly visibility?: Visibility
  readonly cause?: number
  readonly idempotency_key?: string
  readonly idempotency_hash?: string
}
export type RuneDraft = { readonly [K in Kind]: DraftOf<K> }[Kind]

export interface Stamp {
  readonly event_id: number
  readonly rune_id: RuneId
  readonly conversation_id: ConversationId
  readonly ts_ms: number
}

const isUncaused = (draft: RuneDraft): boolean =>
  draft.cause === undefined && draft.idempotency_key === undefined && draft.idempotency_hash === undefined

/** Gives a draft its place in the log. */
export const stamp = (draft: RuneDraft, place: Stamp): Rune => {
  const definition = definitionOf(draft.kind)
  const isOfTurn = draft.agent_id !== undefined && draft.turn_id !== undefined
  return isOfTurn && isUncaused(draft) ? stampOfTurn(draft, place, definition) : stampAny(draft, place, definition)
}

/** As `stampAny`, for what most runes have: an object written down at once costs half of one put together. */
const stampOfTurn = (draft: RuneDraft, place: Stamp, definition: AnyDefinition): Rune =>
  ({
    event_id: place.event_id,
    rune_id: place.rune_id,
    conversation_id: place.conversation_id,
    agent_id: draft.agent_id,
    turn_id: draft.turn_id,
    kind: draft.kind,
    visibility: draft.visibility ?? definition.visibility,
    ts_ms: place.ts_ms,
    schema_version: definition.version,
    payload: draft.payload
  }) as Rune

const stampAny = (draft: RuneDraft, place: Stamp, definition: AnyDefinition): Rune =>
  ({
    event_id: place.event_id,
    rune_id: place.rune_id,
    conversation_id: place.conversation_id,
    ...(draft.agent_id === undefined ? undefined : { agent_id: draft.agent_id }),
    ...(draft.turn_id === undefined ? undefined : { turn_id: draft.turn_id }),
    kind: draft.kind,
    visibility: draft.visibility ?? definition.visibility,
    ts_ms: place.ts_ms,
    schema_version: definition.version,
    ...(draft.cause === undefined ? undefined : { cause: draft.cause }),
    ...(draft.idempotency_key === undefined ? undefined : { idempotency_key: draft.idempotency_key }),
    ...(draft.idempotency_hash === undefined ? undefined : { idempotency_hash: draft.idempotency_hash }),
    payload: draft.payload
  }) as Rune

/** Whether this build knows the rune's kind at the rune's version. */
export const isKnown = (rune: AnyRune): rune is Rune => lookup(rune.kind)?.version === rune.schema_version

export type DecodeFault = "not_json" | "bad_envelope" | "bad_payload"

export class RuneMalformed extends Data.TaggedError("RuneMalformed")<{
  readonly fault: DecodeFault
  readonly kind?: string
  readonly event_id?: number
  readonly message: string
}> {}

/** The rune as it goes to disk and over the wire; `stamp` has set its keys in envelope order. */
export const encode = (rune: AnyRune): string => JSON.stringify(rune)

/** As `encode`, of a rune that `isCurrent`; what there is most of writes itself, which takes half as long. */
export const encodeCurrent = (rune: Rune): string | StreamedText =>
  (isTextRune(rune) ? StreamedText.of(rune) : undefined) ?? JSON.stringify(rune)

type TextKind = "turn.assistant_delta" | "turn.reasoning_delta"

/** Four of five runes are of these. */
const isTextKind = (kind: Kind): kind is TextKind => kind === "turn.assistant_delta" || kind === "turn.reasoning_delta"

const isTextRune = (rune: Rune): rune is RuneOf<TextKind> => isTextKind(rune.kind)

interface Checker {
  readonly accepts: (input: unknown) => boolean
  readonly explain: (input: unknown) => string
}

const makeChecker = (schema: Schema.ConstraintCodec<unknown, unknown>): Checker => {
  SchemaJITCompiler.enable(schema.ast)
  const decode = Schema.decodeUnknownResult(schema)
  return {
    accepts: Schema.is(schema),
    explain: (input) => String(Result.merge(decode(input)))
  }
}

/** The schema of a whole rune of one kind at its current version. */
export const runeSchema = (kind: Kind) => {
  const definition = definitionOf(kind)
  return Schema.Struct({
    ...envelopeFields,
    kind: Schema.Literal(kind),
    schema_version: Schema.Literal(definition.version),
    payload: definition.payload
  })
}

// Checkers are built on first use: a command that only prints help compiles none.
const checkers = new Map<string, Checker>()
let openChecker: Checker | undefined

const checkerOf = (kind: Kind): Checker => {
  let checker = checkers.get(kind)
  if (checker === undefined) {
    const { accepts, explain } = makeChecker(definitionOf(kind).payload)
    checker = isTextKind(kind)
      ? { accepts: (input) => isStreamedText(input) || accepts(input), explain }
      : { accepts, explain }
    checkers.set(kind, checker)
  }
  return checker
}

const fail = (fault: DecodeFault, message: string, at?: OpenEnvelope): Result.Result<AnyRune, RuneMalformed> =>
  Result.fail(
    new RuneMalformed({ fault, message, ...(at === undefined ? {} : { kind: at.kind, event_id: at.event_id }) })
  )

/** What is asked of a rune of a kind that this build knows. */
interface Known {
  readonly kind: string
  readonly version: number
  readonly accepts: (payload: unknown) => boolean
}

const known = new Map<string, Known>()
let lastKnown: Known | undefined

/** Runes come in runs of the same kind, so the newest answer is kept. */
const knownOf = (kind: unknown): Known | undefined => {
  if (lastKnown !== undefined && kind === lastKnown.kind) return lastKnown
  if (typeof kind !== "string") return undefined
  const found = known.get(kind) ?? learn(kind)
  if (found !== undefined) lastKnown = found
  return found
}

const learn = (kind: string): Known | undefined => {
  const definition = lookup(kind)
  if (definition === undefined) return undefined
  const { accepts } = checkerOf(definition.kind)
  const learnt = { kind: definition.kind, version: definition.version, accepts }
  known.set(kind, learnt)
  return learnt
}

/** Whether a value is a rune of this build, as almost all are. */
export const isCurrent = (value: unknown): value is Rune => {
  const open = value as OpenEnvelope | null | undefined
  const kind = knownOf(open?.kind)
  return (
    kind !== undefined && open?.schema_version === kind.version && acceptsEnvelope(value) && kind.accepts(open.payload)
  )
}

/** Checks a value that came out of JSON.parse and lifts it to the current version. */
export const decodeValue = (value: unknown): Result.Result<AnyRune, RuneMalformed> =>
  isCurrent(value) ? Result.succeed(value) : decodeUncommon(value)

/** Everything that is not a rune of the current build: old, newer, unknown or broken. */
const decodeUncommon = (value: unknown): Result.Result<AnyRune, RuneMalformed> => {
  openChecker ??= makeChecker(OpenEnvelope)
  if (!openChecker.accepts(value)) return fail("bad_envelope", openChecker.explain(value))
  const open = value as OpenEnvelope
  const definition = lookup(open.kind)
  if (definition === undefined || open.schema_version > definition.version) {
    return Result.succeed(open as UnknownRune)
  }
  const lifted = upcast(open.kind, open.schema_version, open.payload)
  if (lifted._tag === "Refused") {
    return fail("bad_payload", `the payload is not version ${lifted.version} of ${open.kind}`, open)
  }
  const checker = checkerOf(definition.kind)
  if (!checker.accepts(lifted.payload)) return fail("bad_payload", checker.explain(lifted.payload), open)
  return Result.succeed({ ...open, schema_version: definition.version, payload: lifted.payload } as unknown as Rune)
}

/** Decodes one stored rune. */
export const decode = (text: string): Result.Result<AnyRune, RuneMalformed> => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return fail("not_json", (error as SyntaxError).message)
  }
  return decodeValue(value)
}
