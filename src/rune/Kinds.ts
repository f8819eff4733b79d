/**
 * The registry of every kind of rune. Adding a kind means adding it to its family file; the
 * compiler then names every table that has to know it.
 */
import { mappedTo } from "./Elements.ts"
import type { KindDefinition, PayloadSchema, View } from "./KindDefinition.ts"
import { agentKinds } from "./kinds/agent.ts"
import { checkpointKinds } from "./kinds/checkpoint.ts"
import { harnessKinds } from "./kinds/harness.ts"
import { hookKinds } from "./kinds/hook.ts"
import { planKinds } from "./kinds/plan.ts"
import { planTaskKinds } from "./kinds/planTask.ts"
import { sessionKinds } from "./kinds/session.ts"
import { systemKinds } from "./kinds/system.ts"
import { toolKinds } from "./kinds/tool.ts"
import { turnKinds } from "./kinds/turn.ts"

export const definitions = [
  ...sessionKinds,
  ...agentKinds,
  ...turnKinds,
  ...toolKinds,
  ...hookKinds,
  ...planKinds,
  ...planTaskKinds,
  ...harnessKinds,
  ...checkpointKinds,
  ...systemKinds
] as const

export type Definition = (typeof definitions)[number]
export type Kind = Definition["kind"]
export type PayloadOf<K extends Kind> = Extract<Definition, { readonly kind: K }>["payload"]["Type"]

/** The kinds that change a view. */
export type KindIn<V extends View> = Definition extends infer D
  ? D extends { readonly kind: infer K extends Kind; readonly views: ReadonlyArray<infer Shown> }
    ? V extends Shown
      ? K
      : never
    : never
  : never

/** Definitions with their types forgotten, for code that treats all kinds alike. */
export type AnyDefinition = KindDefinition<Kind, PayloadSchema>

const byKind: ReadonlyMap<string, AnyDefinition> = new Map(
  definitions.map((definition): [string, AnyDefinition] => [definition.kind, definition])
)

export const kinds: ReadonlyArray<Kind> = definitions.map((definition) => definition.kind)

export const isKind = (kind: string): kind is Kind => byKind.has(kind)

/** The definition of a kind known to this build, or nothing. */
export const lookup = (kind: string): AnyDefinition | undefined => byKind.get(kind)

export const definitionOf = (kind: Kind): AnyDefinition => mappedTo(byKind, kind)
