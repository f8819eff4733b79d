/**
 * Lifts stored payloads of older versions to the current shape, one version at a
 * time. A released schema never changes: a new shape is a new version and one more
 * step here. Steps are pure, so a log decodes the same for ever.
 */
import * as Schema from "effect/Schema"
import type { PayloadSchema } from "./KindDefinition.ts"
import { lookup } from "./Kinds.ts"
import { ToolResultV1 } from "./kinds/tool.result.v1.ts"

export interface UpcastStep {
  readonly kind: string
  readonly fromVersion: number
  /** The released schema of `fromVersion`. */
  readonly payload: PayloadSchema
  readonly accepts: (payload: unknown) => boolean
  readonly lift: (payload: unknown) => unknown
}

const step = <S extends PayloadSchema>(options: {
  readonly kind: string
  readonly fromVersion: number
  readonly payload: S
  readonly lift: (payload: S["Type"]) => unknown
}): UpcastStep => {
  const accepts = Schema.is(options.payload)
  return { ...options, accepts, lift: (payload) => options.lift(payload as S["Type"]) }
}

/** A version 1 error had no code; the status is the only typed fact it came with. */
const errorCodeOfStatus: Readonly<Record<ToolResultV1["status"], string>> = {
  success: "tool_execution_failed",
  error: "tool_execution_failed",
  timeout: "tool_timeout",
  cancelled: "tool_cancelled",
  denied: "tool_denied",
  unknown: "tool_outcome_unknown",
  sandbox_violation: "sandbox_violation"
}

export const steps: ReadonlyArray<UpcastStep> = [
  step({
    kind: "tool.result",
    fromVersion: 1,
    payload: ToolResultV1,
    lift: ({ error, ...rest }) =>
      error === undefined ? rest : { ...rest, error: { code: errorCodeOfStatus[rest.status], message: error } }
  })
]

const stepOf: ReadonlyMap<string, UpcastStep> = new Map(
  steps.map((one): [string, UpcastStep] => [`${one.kind}@${one.fromVersion}`, one])
)

export type Upcast =
  | { readonly _tag: "Current"; readonly payload: unknown }
  | { readonly _tag: "Lifted"; readonly payload: unknown; readonly version: number }
  /** There is no step from this version, or the payload was never of it. */
  | { readonly _tag: "Refused"; readonly version: number }

/** Lifts a payload of a known kind as far as the current version. */
export const upcast = (kind: string, version: number, payload: unknown): Upcast => {
  const current = lookup(kind)?.version ?? version
  if (version === current) return { _tag: "Current", payload }
  let lifted = payload
  for (let at = version; at < current; at++) {
    const next = stepOf.get(`${kind}@${at}`)
    if (next === undefined || !next.accepts(lifted)) return { _tag: "Refused", version: at }
    lifted = next.lift(lifted)
  }
  return { _tag: "Lifted", payload: lifted, version: current }
}
