/**
 * How a copy of a conversation begins. Whatever the original had under way is ended in
 * the copy by runes that say so: two conversations must not do the same work. Whoever
 * asks for it gets a copy that goes on instead, as after a restart. Either way it can
 * be spoken to, also where the original was closed.
 */
import type { AgentId } from "../../rune/Ids.ts"
import type { RuneDraft } from "../../rune/Rune.ts"
import type { Command } from "../Command.ts"
import { advance, type Surroundings, stampAll } from "../Conversation.ts"
import { evolve } from "../evolve/Evolve.ts"
import type { ConversationState } from "../State.ts"
import { autonomy } from "../table/Autonomy.ts"
import { aliveAgents, familyOf } from "../view/Select.ts"
import { pendingWork } from "../work/PendingWork.ts"
import { resolveAfterCrash } from "../work/Recovery.ts"
import { orchestratorIdOf } from "./TaskSchedule.ts"

export interface CopyStart extends Surroundings {
  /** What the runes give as the reason. */
  readonly reason: "forked"
  readonly work: "ended" | "continued"
  /** Of the root that a closed conversation needs to be spoken to again. */
  readonly root_agent_id: AgentId
}

/** Each is asked for when those before it are folded in. */
function* endings(state: ConversationState, reason: CopyStart["reason"]): Generator<Command> {
  yield { _tag: "EndWork", reason }
  const { plan } = state
  if (plan === null) return
  const { plan_id } = plan
  if (!autonomy.terminal.includes(plan.status)) {
    yield { _tag: "AdvancePlan", plan_id, step: { _tag: "Cancel", payload: { plan_id, reason } } }
  }
  for (const { agent_id } of familyOf(state, orchestratorIdOf(plan_id))) {
    yield { _tag: "KillAgent", agent_id, reason: "work_is_over", force: true }
  }
}

/** From wherever its end was cut to where it takes messages again. */
function* openings(state: ConversationState, rootAgentId: AgentId): Generator<Command> {
  if (state.session.status === "closing") {
    // Those that were spawned later end first.
    for (const { agent_id } of aliveAgents(state).toReversed()) {
      yield { _tag: "KillAgent", agent_id, reason: "session_closing", force: true }
    }
    yield { _tag: "FinishClosing" }
  }
  if (state.session.status === "archived") yield { _tag: "Restore", root_agent_id: rootAgentId }
  if (state.session.status === "closed") yield { _tag: "Reopen", root_agent_id: rootAgentId }
}

/** A copy that could not be made sound is not made at all. */
function insist(isSo: boolean, why: () => string): asserts isSo {
  if (!isSo) throw new Error(`the copy could not start: ${why()}`)
}

const takeAll = (
  state: ConversationState,
  commands: Iterable<Command>,
  around: Surroundings
): ReadonlyArray<RuneDraft> => {
  const drafts: Array<RuneDraft> = []
  for (const command of commands) {
    const { verdict } = advance(state, command, around)
    insist(verdict._tag === "Accepted", () => `${command._tag} gave ${JSON.stringify(verdict)}`)
    drafts.push(...verdict.drafts)
  }
  return drafts
}

/** What may have happened in the original does not happen again in a copy that goes on. */
const loseStarted = (state: ConversationState, around: Surroundings): ReadonlyArray<RuneDraft> => {
  const { drafts } = resolveAfterCrash(state, around, {
    why: "the conversation was forked while the call ran",
    clients: "gone"
  })
  for (const rune of stampAll(state, drafts, around)) evolve(state, rune)
  return drafts
}

/** The runes that follow the copied ones; the state is that of the copy, and has them folded in afterwards. */
export const beginCopy = (state: ConversationState, start: CopyStart): ReadonlyArray<RuneDraft> => {
  const isEnded = start.work === "ended"
  const first = isEnded ? takeAll(state, endings(state, start.reason), start) : loseStarted(state, start)
  const drafts = [...first, ...takeAll(state, openings(state, start.root_agent_id), start)]
  const left = isEnded ? pendingWork(state) : []
  insist(
    left.length === 0,
    () =>
      `one.key).join(", ")} => unfinished work is left: ${left.map((one) => one.key).join(", ")} => one.key).join(", ")}`
  )
  return drafts
}
