/**
 * Everything the registry knows about one kind of rune: what it means, its payload schema
 * and version, who may see it by default, how storage treats it, which events of its own
 * conversation it names, and which views it changes.
 */
import type * as Schema from "effect/Schema"
import type { Visibility } from "./Envelope.ts"

export type Family =
  | "session"
  | "agent"
  | "turn"
  | "tool"
  | "hook"
  | "plan"
  | "harness"
  | "checkpoint"
  | "config"
  | "system"

/**
 * delta: a fragment that a later rune repeats in full; superseding: makes earlier
 * deltas of its scope worthless; terminal: ends the life of something, so storage
 * keeps a reserve for it (it may supersede too); plain: everything else.
 */
export type RuneClass = "delta" | "superseding" | "terminal" | "plain"

/** What a delta belongs to, and what a superseding rune covers. */
export type SupersessionScope = "turn" | "call"

/**
 * What is derived from runes one kind at a time: the rows of listings, the two event streams,
 * the traces. A view must handle exactly the kinds that name it, or it does not compile.
 */
export type View = "catalog" | "state_events" | "agent_events" | "trace"

/** A way into a payload; "*" stands for every item of a list. */
export type Path = ReadonlyArray<string>

export interface KindDefinition<Kind extends string, Payload extends PayloadSchema, Shown extends View = View> {
  readonly kind: Kind
  /** One sentence for people. */
  readonly meaning: string
  readonly views: ReadonlyArray<Shown>
  /** Where the payload names events of its own conversation, so that a copy can renumber them. */
  readonly references: ReadonlyArray<Path>
  readonly family: Family
  readonly version: number
  readonly visibility: Visibility
  readonly runeClass: RuneClass
  /** For a delta, the scope it belongs to; for a rune that supersedes, the scope it covers. */
  readonly scope?: SupersessionScope
  /** Delta kinds of its scope that become worthless once this rune is durable. */
  readonly supersedes?: ReadonlyArray<string>
  readonly payload: Payload
}

/** Payloads are plain JSON: what is decoded is what was encoded, so nothing is ever rebuilt. */
export type PayloadSchema = Schema.ConstraintCodec<unknown, unknown>

type FamilyOf<Kind extends string> = Kind extends `${infer F extends Family}.${string}` ? F : never

interface KindOptions<Payload, Shown extends View> {
  readonly meaning: string
  readonly views?: ReadonlyArray<Shown>
  readonly references?: ReadonlyArray<Path>
  readonly payload: Payload
  readonly version?: number
  readonly visibility?: Visibility
  readonly runeClass?: RuneClass
  readonly scope?: SupersessionScope
  readonly supersedes?: ReadonlyArray<string>
}

export const defineKind = <
  const Kind extends `${Family}.${string}`,
  const Payload extends PayloadSchema,
  const Shown extends View = never
>(
  kind: Kind,
  options: KindOptions<Payload, Shown>
): KindDefinition<Kind, Payload, Shown> => ({
  kind,
  meaning: options.meaning,
  views: options.views ?? [],
  references: options.references ?? [],
  family: kind.slice(0, kind.indexOf(".")) as FamilyOf<Kind>,
  version: options.version ?? 1,
  visibility: options.visibility ?? "public",
  runeClass: options.runeClass ?? "plain",
  ...(options.scope === undefined ? {} : { scope: options.scope }),
  ...(options.supersedes === undefined ? {} : { supersedes: options.supersedes }),
  payload: options.payload
})
