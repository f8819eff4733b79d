/** Deciding about agents that run outside the server. */

import type { AgentId } from "../../rune/Ids.ts"
import type { RuneDraft } from "../../rune/Rune.ts"
import type { HarnessRequest } from "../Command.ts"
import type { AgentState } from "../State.ts"
import { isAlive } from "../view/Select.ts"
import type { Deciders, Drafting } from "./Drafting.ts"
import { draft } from "./Drafts.ts"
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
  if (agent !== undefined) sheet.write(draft("harness.attached", command.payload, { agent_id: agent.agent_id }))
}

export const harnessDeciders: Deciders<HarnessRequest> = {
  AttachHarness: attach,
  RecordHarnessEvent: record(({ event, agent_id }) => draft("harness.event", { event }, { agent_id })),
  RecordHarnessInput: record(({ _tag: _, agent_id, ...payload }) => draft("harness.input_sent", payload, { agent_id })),
  DetachHarness: record(({ payload, agent_id }) => draft("harness.detached", payload, { agent_id })),
  RecoverHarness: record(({ reason, agent_id }) => draft("harness.recovered", { reason }, { agent_id }))
}
