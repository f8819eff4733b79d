/**
 * Whether a log always folds to the same state: straight through, and interrupted by
 * snapshots that are written and read back. `echs verify` feeds it every rune of a log.
 */
import type { ConversationId } from "../../rune/Ids.ts"
import type { AnyRune } from "../../rune/Rune.ts"
import { canonicalHash } from "../Canonical.ts"
import { evolve, fold } from "../evolve/Evolve.ts"
import { type ConversationState, emptyConversation } from "../State.ts"
import type { Violation } from "./World.ts"

/** What a snapshot holds: plain JSON, nothing shared with the state it was taken of. */
export const snapshotOf = (state: ConversationState): string => JSON.stringify(state)

export const restoreSnapshot = (text: string): ConversationState => JSON.parse(text) as ConversationState

export interface ReplayOptions {
  readonly conversation_id: ConversationId
  /** Take a snapshot after every this many runes; 0 takes none. */
  readonly snapshotEvery: number
  /** The fold that goes through snapshots; a test gives one that lies. */
  readonly evolve?: typeof evolve
}

export interface Replay {
  readonly hash: string
  readonly violations: ReadonlyArray<Violation>
}

/**
 * Two folds of one log, fed rune by rune: one straight, one that goes through a snapshot
 * now and then. A caller that gives each fold a copy of its own also finds a fold that
 * changes what it was given.
 */
export class ReplayChecker {
  readonly #options: ReplayOptions
  #straight: ConversationState
  #restored: ConversationState
  #count = 0
  #head = 0
  readonly #violations: Array<Violation> = []

  constructor(options: ReplayOptions) {
    this.#options = options
    this.#straight = emptyConversation(options.conversation_id)
    this.#restored = emptyConversation(options.conversation_id)
  }

  /** The state so far; read it, and do not keep it. */
  get state(): ConversationState {
    return this.#straight
  }

  add(rune: AnyRune, copy: AnyRune = rune): void {
    this.#straight = evolve(this.#straight, rune)
    this.#restored = (this.#options.evolve ?? evolve)(this.#restored, copy)
    this.#head = rune.event_id
    this.#count += 1
    const { snapshotEvery } = this.#options
    if (snapshotEvery > 0 && this.#count % snapshotEvery === 0) this.#throughSnapshot()
  }

  #throughSnapshot(): void {
    const before = canonicalHash(this.#restored)
    this.#restored = restoreSnapshot(snapshotOf(this.#restored))
    if (canonicalHash(this.#restored) === before) return
    this.#violate("INV-SNAPSHOT-INTEGRITY", "a snapshot reads back differently")
  }

  #violate(invariant: Violation["invariant"], detail: string): void {
    this.#violations.push({ invariant, event_id: this.#head, detail })
  }

  /** Compares the folds; call it after the last rune. */
  finish(): Replay {
    const hash = canonicalHash(this.#straight)
    if (canonicalHash(this.#restored) !== hash) {
      this.#violate("INV-REPLAY-IDEMPOTENT", "the fold through snapshots differs from the direct one")
    }
    return { hash, violations: this.#violations }
  }
}

/** Folds the log in every way that has to agree. */
export const checkReplay = (runes: ReadonlyArray<AnyRune>, options: ReplayOptions): Replay => {
  const checker = new ReplayChecker(options)
  for (const rune of runes) checker.add(rune)
  const { hash, violations } = checker.finish()
  if (canonicalHash(fold(runes, options.conversation_id)) === hash) return { hash, violations }
  const head = runes.at(-1)?.event_id ?? 0
  const differs: Violation = { invariant: "INV-REPLAY-DETERMINISTIC", event_id: head, detail: "two folds differ" }
  return { hash, violations: [differs, ...violations] }
}
