/** Deciding about agents that run outside the server. */

import type { AgentId } from "../../rune/Ids.ts"
import type { Budget, BudgetMeasure, Usage } from "../../rune/kinds/shared.ts"
import type { RuneDraft } from "../../rune/Rune.ts"
import { addTo, type Totals } from "../../rune/UsageTotals.ts"
import type { HarnessRequest } from "../Command.ts"
import type { AgentState } from "../State.ts"
import { monitorView, observe } from "../table/Monitor.ts"
import { session } from "../table/Session.ts"
import { usageOfEvent } from "../view/OutsideUsage.ts"
import { isAlive, isOpen } from "../view/Select.ts"
import { agentDeciders } from "./agent.ts"
import type { Deciders, Drafting } from "./Drafting.ts"
import { draft } from "./Drafts.ts"
import { endCall } from "./Ending.ts"
import { requireAgent } from "./Require.ts"

type Of<Tag extends HarnessRequest["_tag"]> = Extract<HarnessRequest, { readonly _tag: Tag }>

/** The agent a harness command speaks of, alive and attached or not as wanted. */
const requireHarness = (
  sheet: Drafting,
  agentId: AgentId,
  wanted: "attached" | "not attached"
): AgentState | undefined => {
  const agent = requireAgent(sheet, agentId)
  if (agent === undefined) return undefined
  if (!isAlive(agent)) return sheet.refuse("invalid_state", `Agent is ${agent.status}`, { state: agent.status })
  const actual = agent.harness?.attached === true ? "attached" : "not attached"
  if (actual === wanted) return agent
  return sheet.refuse("invalid_state", `${agentId} is ${actual} to an outside agent`, { state: actual })
}

/** Writes one rune about an outside agent that is attached. */
const record =
  <One extends HarnessRequest>(runeOf: (command: One) => RuneDraft) =>
  (sheet: Drafting, command: One): undefined => {
    const agent = requireHarness(sheet, command.agent_id, "attached")
    if (agent !== undefined) sheet.write(runeOf(command))
  }

const attach = (sheet: Drafting, command: Of<"AttachHarness">): undefined => {
  const agent = requireHarness(sheet, command.agent_id, "not attached")
  if (agent === undefined) return
  const { root_agent_id: root, status } = sheet.state.session
  if (status === "created")
    sheet.step(session, status, { _tag: "Activate", payload: { root_agent_id: root ?? agent.agent_id } })
  sheet.write(draft("harness.attached", command.payload, { agent_id: agent.agent_id }))
}

/** Nothing of what an agent that is gone had asked for can still be answered. */
const detach = (sheet: Drafting, { agent_id, payload }: Of<"DetachHarness">): undefined => {
  const agent = requireHarness(sheet, agent_id, "attached")
  if (agent === undefined) return
  for (const call of sheet.state.calls)
    if (call.agent_id === agent_id && call.turn_id === null && isOpen(call))
      endCall(sheet, call, "the agent has ended", "lose_effects")
  sheet.write(draft("harness.detached", payload, { agent_id }))
}

interface Limit {
  readonly which: BudgetMeasure
  readonly used: number
  readonly limit: number
}

type Used = Pick<Totals, "input_tokens" | "output_tokens" | "usd">

const usedUp = (used: Used, budget: Budget | null | undefined): Limit | undefined => {
  const tokens = used.input_tokens + used.output_tokens
  if (budget?.tokens !== undefined && tokens >= budget.tokens)
    return { which: "tokens", used: tokens, limit: budget.tokens }
  if (budget?.usd !== undefined && used.usd >= budget.usd) return { which: "usd", used: used.usd, limit: budget.usd }
  return undefined
}

/** What an outside agent used counts against the same limits; it is said once. */
const charge = (sheet: Drafting, agent: AgentState, spent: ReadonlyArray<Usage>): undefined => {
  if (spent.length === 0 || agent.exhausted) return
  const { session: own, usage } = sheet.state
  const sum = (totals: Totals): Used => {
    const all = { ...totals }
    for (const one of spent) addTo(all, one)
    return all
  }
  const limit = usedUp(sum(agent.usage), agent.budget) ?? usedUp(sum(usage), own.config.budget)
  if (limit === undefined) return
  agentDeciders.ExhaustBudget(sheet, {
    _tag: "ExhaustBudget",
    agent_id: agent.agent_id,
    ...limit,
    consequence: "suspend"
  })
}

/** An event is written as it is, a change of state where the monitor shows another one after it. */
const recordEvents = (sheet: Drafting, { agent_id, events }: Of<"RecordHarnessEvents">): undefined => {
  const agent = requireHarness(sheet, agent_id, "attached")
  if (agent === undefined || agent.harness === null) return
  let shown = agent.harness.monitor
  const spent: Array<Usage> = []
  for (const event of events) {
    if (event.type !== "state_change") sheet.write(draft("harness.event", { event }, { agent_id }))
    const next = observe(shown, event)
    if (next !== shown) sheet.write(draft("agent.state_changed", monitorView(next), { agent_id }))
    shown = next
    const usage = usageOfEvent(event)
    if (usage !== undefined) spent.push(usage)
  }
  charge(sheet, agent, spent)
}

export const harnessDeciders: Deciders<HarnessRequest> = {
  AttachHarness: attach,
  RecordHarnessEvents: recordEvents,
  RecordHarnessInput: record(({ _tag: _, agent_id, ...payload }) => draft("harness.input_sent", payload, { agent_id })),
  DetachHarness: detach,
  RecoverHarness: record(({ reason, agent_id }) => draft("harness.recovered", { reason }, { agent_id }))
}
