// What the frame of a rune says in its header, so that readers can filter and the seal can thin without a parse:
// visibility, family, and the stream that ties deltas to the rune that repeats them in full.
import type { Entry } from "#runelog/commit/Entry.ts"
import { privacyRank } from "../../rune/Envelope.ts"
import type { RuneClass, SupersessionScope } from "../../rune/KindDefinition.ts"
import { lookup } from "../../rune/Kinds.ts"
import type { AnyRune } from "../../rune/Rune.ts"
import { familyNumber, UNKNOWN_FAMILY } from "./Families.ts"

/**
 * Streams are numbers of 32 bits. Turns and calls are counted, so their ordinals serve as they are and never
 * collide; ids that others made are hashed. The two highest bits tell the three apart.
 */
const TURN_STREAM = 0x4000_0000
const CALL_STREAM = 0x8000_0000
const HASHED_STREAM = 0xc000_0000
const ORDINAL_MAX = 0x3fff_ffff

const counted = /^(?:turn|call)_([1-9][0-9]{0,9})$/

/** FNV-1a over the UTF-16 units, both bytes of each. */
const hashed = (text: string): number => {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    hash = Math.imul(hash ^ (unit & 0xff), 0x0100_0193)
    hash = Math.imul(hash ^ (unit >>> 8), 0x0100_0193)
  }
  return hash >>> 0
}

export const streamOf = (scope: SupersessionScope, id: string): number => {
  const ordinal = Number(counted.exec(id)?.[1] ?? 0)
  const isOwn = ordinal > 0 && ordinal <= ORDINAL_MAX && id.startsWith(scope)
  if (isOwn) return (scope === "turn" ? TURN_STREAM : CALL_STREAM) + ordinal
  return HASHED_STREAM + (hashed(`${scope} ${id}`) & ORDINAL_MAX)
}

/** Per kind, what does not depend on the rune. */
interface KindHeader {
  readonly family: number
  readonly runeClass: RuneClass
  readonly scope: SupersessionScope | undefined
  readonly role: "delta" | "supersedes" | undefined
}

const headers = new Map<string, KindHeader>()

const makeHeader = (kind: string): KindHeader => {
  const definition = lookup(kind)
  if (definition === undefined) {
    return { family: UNKNOWN_FAMILY, runeClass: "plain", scope: undefined, role: undefined }
  }
  const { family, runeClass, scope, supersedes } = definition
  const role = scope === undefined ? undefined : runeClass === "delta" ? "delta" : supersedes && "supersedes"
  return { family: familyNumber[family], runeClass, scope, role }
}

export const kindHeader = (kind: string): KindHeader => {
  let header = headers.get(kind)
  if (header === undefined) {
    header = makeHeader(kind)
    // Kinds come from the registry or from a log; an unknown one is not worth remembering.
    if (header.family !== UNKNOWN_FAMILY) headers.set(kind, header)
  }
  return header
}

const scopeId = (scope: SupersessionScope, rune: AnyRune): string | undefined => {
  if (scope === "turn") return rune.turn_id
  const id = (rune.payload as { readonly call_id?: unknown } | null)?.call_id
  return typeof id === "string" ? id : undefined
}

let lastScope: SupersessionScope | undefined
let lastId: string | undefined
let lastStream = 0

/** Deltas come in runs of the same stream, so the newest answer is kept. */
const streamFor = (scope: SupersessionScope, id: string): number => {
  if (id === lastId && scope === lastScope) return lastStream
  lastScope = scope
  lastId = id
  lastStream = streamOf(scope, id)
  return lastStream
}

/** The entry of a rune whose JSON is `body`. */
export const entryOf = (rune: AnyRune, body: Entry["body"]): Entry => {
  const { family, role, scope } = kindHeader(rune.kind)
  const visibility = privacyRank[rune.visibility]
  const id = scope === undefined || role === undefined ? undefined : scopeId(scope, rune)
  if (scope === undefined || role === undefined || id === undefined) return { body, visibility, family }
  return { body, visibility, family, stream: streamFor(scope, id), role }
}

export const isTerminal = (rune: AnyRune): boolean => kindHeader(rune.kind).runeClass === "terminal"
