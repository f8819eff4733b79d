// Restart intensity: a sliding window over crash times. Pure: times come in, a verdict comes out.
import type { RestartIntensity } from "./ChildSpec.ts"

export type RestartVerdict =
  | { readonly _tag: "Restart"; readonly crashes: ReadonlyArray<number> }
  | { readonly _tag: "GiveUp"; readonly crashes: ReadonlyArray<number> }

/** Adds a crash at `nowMs` to those before; gives up once the window holds more than it may. */
export const noteCrash = (
  intensity: RestartIntensity,
  before: ReadonlyArray<number>,
  nowMs: number
): RestartVerdict => {
  const crashes = [...before.filter((crashMs) => nowMs - crashMs < intensity.withinMs), nowMs]
  return crashes.length > intensity.restartsMax ? { _tag: "GiveUp", crashes } : { _tag: "Restart", crashes }
}
