/**
 * A checker over any sequence of runes: it names every broken promise with the
 * event id that broke it. It knows nothing of the decider; what it accepts, it
 * accepts because the runes themselves are in order.
 */
import { privacyRank } from "../../rune/Envelope.ts"
import { type AnyRune, isKnown, type Rune } from "../../rune/Rune.ts"
import { checkLifecycle } from "./Lifecycle.ts"
import { type Violation, World } from "./World.ts"

export type { InvariantName, Violation } from "./World.ts"
export { invariantNames } from "./World.ts"

/** Ids rise by one; only a thinned range may be missing. */
const checkOrder = (world: World, rune: AnyRune): void => {
  const expected = world.head + 1
  const thinned = isKnown(rune) && rune.kind === "system.thinned" ? rune.payload : undefined
  if (rune.event_id < expected) {
    const isSame = world.runeIdAt.get(rune.event_id) === rune.rune_id
    world.violate(isSame ? "INV-RESUME-NO-DUPLICATES" : "INV-EVENTID-MONOTONIC", rune, `${expected} was expected`)
  }
  const covers = thinned !== undefined && thinned.from <= expected && rune.event_id <= thinned.to
  if (rune.event_id > expected && !covers) {
    world.violate("INV-RESUME-NO-GAPS", rune, `${expected} to ${rune.event_id - 1} are missing`)
  }
  world.head = Math.max(world.head, thinned === undefined ? rune.event_id : thinned.to, rune.event_id)
}

/** A rune id names one rune for ever. */
const checkIdentity = (world: World, rune: AnyRune): void => {
  const other = world.eventOfRune.get(rune.rune_id)
  if (other !== undefined && other !== rune.event_id) {
    world.violate("INV-RUNE-IMMUTABLE", rune, `${rune.rune_id} is also event ${other}`)
  }
  world.eventOfRune.set(rune.rune_id, rune.event_id)
  world.runeIdAt.set(rune.event_id, rune.rune_id)
}

/** What a call tells must be at least as private as the call itself. */
const checkPrivacy = (world: World, rune: Rune): void => {
  const callId = (rune.payload as { readonly call_id?: unknown }).call_id
  const call = typeof callId === "string" ? world.calls.get(callId) : undefined
  if (call !== undefined && privacyRank[rune.visibility] < privacyRank[call.visibility]) {
    world.violate("INV-SECRET-PRIVACY", rune, `${call.call_id} is ${call.visibility}, this rune is ${rune.visibility}`)
  }
}

const checkCause = (world: World, rune: AnyRune): void => {
  if (rune.cause !== undefined && rune.cause >= rune.event_id) {
    world.violate("INV-EVENTID-MONOTONIC", rune, `its cause ${rune.cause} comes after it`)
  }
}

/** Feeds runes one by one, in the order of the log. */
export class InvariantChecker {
  readonly #world = new World()

  check(rune: AnyRune): void {
    checkOrder(this.#world, rune)
    checkIdentity(this.#world, rune)
    checkCause(this.#world, rune)
    if (!isKnown(rune)) return
    checkLifecycle(this.#world, rune)
    checkPrivacy(this.#world, rune)
  }

  /** Ids that a log no longer has and says so. A range that does not follow on is no excuse for what is missing. */
  skip({ from, to }: { readonly from: number; readonly to: number }): void {
    const world = this.#world
    if (from <= world.head + 1) world.head = Math.max(world.head, to)
  }

  get violations(): ReadonlyArray<Violation> {
    return this.#world.violations
  }
}

export const checkInvariants = (runes: Iterable<AnyRune>): ReadonlyArray<Violation> => {
  const checker = new InvariantChecker()
  for (const rune of runes) checker.check(rune)
  return checker.violations
}
