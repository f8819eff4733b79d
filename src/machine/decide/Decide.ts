/**
 * The one decider: state and command in, rune drafts or a refusal out. Pure and
 * total: no clock, no randomness, no I/O. A command that comes with a key it came
 * with before is answered with its first outcome.
 */
import { elementAt } from "../../rune/Elements.ts"
import type { RuneDraft } from "../../rune/Rune.ts"
import type { Command } from "../Command.ts"
import { isExpired, outcomesBeyond } from "../Idempotency.ts"
import { limits } from "../MachineLimits.ts"
import type { ConversationState, Outcome } from "../State.ts"
import { endQuestions } from "../view/Questions.ts"
import { agentDeciders } from "./agent.ts"
import { hookDeciders, settleTools } from "./batch.ts"
import { checkpointDeciders } from "./checkpoint.ts"
import { type Deciders, Drafting, type Moment, type Refusal } from "./Drafting.ts"
import { messageDeciders } from "./message.ts"
import { modelDeciders } from "./model.ts"
import { harnessDeciders } from "./outside.ts"
import { planDeciders } from "./plan.ts"
import { sessionDeciders } from "./session.ts"
import { toolDeciders } from "./tool.ts"

export type { Moment, Refusal, RefusalCode } from "./Drafting.ts"

/** The key a client gave a command, and the hash of the command's body. */
export interface Idempotency {
  readonly key: string
  readonly hash: string
}

export type Verdict =
  | { readonly _tag: "Accepted"; readonly drafts: ReadonlyArray<RuneDraft> }
  | { readonly _tag: "Refused"; readonly refusal: Refusal }
  /** The same command was accepted before; this is what came of it. */
  | { readonly _tag: "Repeated"; readonly outcome: Outcome }

const deciders: Deciders<Command> = {
  ...sessionDeciders,
  ...agentDeciders,
  ...messageDeciders,
  ...modelDeciders,
  ...toolDeciders,
  ...hookDeciders,
  ...harnessDeciders,
  ...checkpointDeciders,
  ...planDeciders,
  SettleTools: settleTools
}

const route = (sheet: Drafting, command: Command): void => {
  // The one widening: the decider is looked up by the very tag that the command carries.
  const decider = deciders[command._tag] as (sheet: Drafting, command: Command) => undefined
  decider(sheet, command)
}

/** What became of the command with this key, if it is still remembered. */
export const outcomeOf = (state: ConversationState, key: string, atMs: number): Outcome | undefined =>
  state.outcomes.find((outcome) => outcome.key === key && !isExpired(outcome, atMs))

/** Why no further key can be remembered, if that is so. */
const keysFull = (state: ConversationState, { key }: Idempotency, atMs: number): Refusal | undefined => {
  if (outcomesBeyond(state.outcomes, key) === 0) return undefined
  const kept = state.outcomes.filter((outcome) => !isExpired(outcome, atMs))
  if (outcomesBeyond(kept, key) === 0) return undefined
  const retryAfterMs = elementAt(kept, 0).ts_ms + limits.idempotencyTtlMs - atMs
  const message = `the space for idempotency keys is full (${kept.length} commands within a day); send the command without a key, or in ${Math.ceil(retryAfterMs / 1000)} s`
  return { code: "limit_exceeded", message, data: { retry_after_ms: retryAfterMs } }
}

const refused = (refusal: Refusal): Verdict => ({ _tag: "Refused", refusal })

/** Every rune of the command repeats its key, so the outcome can be found from the log alone. */
const withKey = (drafts: ReadonlyArray<RuneDraft>, { key, hash }: Idempotency): ReadonlyArray<RuneDraft> =>
  drafts.map((one) => ({ ...one, idempotency_key: key, idempotency_hash: hash }))

export const decide = (
  state: ConversationState,
  command: Command,
  moment: Moment,
  idempotency?: Idempotency
): Verdict => {
  const known = idempotency === undefined ? undefined : outcomeOf(state, idempotency.key, moment.at_ms)
  if (known !== undefined) {
    if (known.hash === idempotency?.hash) return { _tag: "Repeated", outcome: known }
    const message = "the key was used for another command"
    return refused({ code: "idempotency_conflict", message, data: { event_id: known.last_event_id } })
  }
  if (state.head === 0 && command._tag !== "CreateConversation") {
    return refused({ code: "not_found", message: "no such conversation" })
  }
  const full = idempotency === undefined ? undefined : keysFull(state, idempotency, moment.at_ms)
  if (full !== undefined) return refused(full)
  const sheet = new Drafting(state, moment)
  route(sheet, command)
  endQuestions(sheet)
  if (sheet.refusal !== undefined) return refused(sheet.refusal)
  const drafts = idempotency === undefined ? sheet.drafts : withKey(sheet.drafts, idempotency)
  return { _tag: "Accepted", drafts }
}
