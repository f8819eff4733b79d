/** Deciding about input: a message starts a turn, waits for one, or takes one over. */
import { emptyContent, isEmptyContent } from "../../rune/Content.ts"
import { type AgentId, type TurnId, turnIdOf } from "../../rune/Ids.ts"
import type { PayloadOf } from "../../rune/Kinds.ts"
import type { Content, ContentPart } from "../../rune/kinds/shared.ts"
import type { TurnRequest } from "../Command.ts"
import { limits } from "../MachineLimits.ts"
import type { AgentState } from "../State.ts"
import { agent as agentMachine } from "../table/Agent.ts"
import { session } from "../table/Session.ts"
import { type TurnCommand, turn as turnMachine } from "../table/Turn.ts"
import { isAlive } from "../view/Select.ts"
import { outsideInput } from "./agent.ts"
import type { Deciders, Drafting } from "./Drafting.ts"
import { draft, type Writes } from "./Drafts.ts"
import { cancelUnstarted, interruptTurn } from "./Ending.ts"
import { type Running, requireAgent, requireTurn } from "./Require.ts"
import { startRetry } from "./retry.ts"

type Of<Tag extends TurnRequest["_tag"]> = Extract<TurnRequest, { readonly _tag: Tag }>

const takesMessages: ReadonlySet<string> = new Set(["created", "active", "paused", "suspended"])

type Started = Writes<"turn.started"> & { readonly place: { readonly agent_id: AgentId; readonly turn_id: TurnId } }

const withModel = (started: Started): TurnCommand => ({ _tag: "Start", ...started })

/** Starts the next turn of an idle agent, with a model call or with what `begin` makes of it. */
export const startTurn = (
  sheet: Drafting,
  agent: AgentState,
  input: Omit<PayloadOf<"turn.started">, "turn_id" | "agent_id">,
  begin: (started: Started) => TurnCommand = withModel
): undefined => {
  const { status, root_agent_id: root } = sheet.state.session
  const activated = { root_agent_id: root ?? agent.agent_id }
  const admitted = status === "created" ? sheet.step(session, status, { _tag: "Activate", payload: activated }) : status
  sheet.step(session, admitted, { _tag: "AdmitTurn" })
  const turnId = turnIdOf(sheet.state.next_turn)
  const payload = { turn_id: turnId, agent_id: agent.agent_id, ...input }
  const place = { agent_id: agent.agent_id, turn_id: turnId }
  sheet.guard(agentMachine, agent.status, { _tag: "AssignTurn", payload, place })
  sheet.step(turnMachine, "idle", begin({ payload, place }))
}

const canStartNow = (sheet: Drafting, agent: AgentState): boolean => {
  const { status } = sheet.state.session
  return agent.status === "idle" && agent.queue.length === 0 && (status === "active" || status === "created")
}

/** While the model speaks, or waits to be asked again, new input takes over at once. */
const steersAtOnce: ReadonlySet<string> = new Set(["streaming", "processing", "retry_waiting"])

const post = (sheet: Drafting, command: Of<"PostMessage">): undefined => {
  const agent = requireAgent(sheet, command.agent_id)
  if (agent === undefined) return
  const { status } = sheet.state.session
  if (!takesMessages.has(status)) {
    sheet.refuse("invalid_state", `Session is ${status}: it accepts no messages`, { state: status })
  }
  if (!isAlive(agent)) {
    const why = agent.status === "failed" && agent.last_error !== null ? `: ${agent.last_error.message}` : ""
    sheet.refuse("invalid_state", `Agent is ${agent.status}${why}`, { state: agent.status })
  }
  if (agent.harness?.born_outside === true) {
    sheet.refuse("invalid_state", outsideInput, { state: agent.harness.attached ? "attached" : "not attached" })
  }
  if (isEmptyContent(command.content)) sheet.refuse("bad_request", emptyContent)
  const principal = command.principal === undefined ? {} : { principal: command.principal }
  if (canStartNow(sheet, agent)) return startTurn(sheet, agent, { input: command.content, ...principal })
  if (agent.queue.length >= limits.queuedMessagesMax) {
    sheet.refuse("limit_exceeded", `the queue of ${agent.agent_id} is full`, { limit: limits.queuedMessagesMax })
  }
  sheet.write(
    draft("turn.queued", { input: command.content, mode: command.mode, ...principal }, { agent_id: agent.agent_id })
  )
  if (command.mode === "steer" && agent.turn !== null) steer(sheet, { agent, turn: agent.turn }, principal)
}

/** While tools or hooks run they are left to finish, but nothing new starts. */
const steer = (sheet: Drafting, running: Running, principal: { readonly principal?: string }): undefined => {
  if (steersAtOnce.has(running.turn.status)) {
    interruptTurn(sheet, running, { reason: "steer", command: "Steer", ...principal })
  } else {
    cancelUnstarted(sheet, running, "interrupted by new input")
  }
}

const partsOf = (content: Content): ReadonlyArray<ContentPart> =>
  typeof content === "string" ? [{ type: "text", text: content }] : content

/** One input out of several: text is joined, anything else keeps its parts. */
export const mergeInputs = (inputs: ReadonlyArray<Content>): Content => {
  const [first, ...more] = inputs
  if (first !== undefined && more.length === 0) return first
  return inputs.every((input) => typeof input === "string") ? inputs.join("\n\n") : inputs.flatMap(partsOf)
}

/** All messages that steer go first and together; the others one turn each, oldest first. */
const startQueued = (sheet: Drafting, command: Of<"StartQueued">): undefined => {
  const agent = requireAgent(sheet, command.agent_id)
  if (agent === undefined) return
  const steering = agent.queue.filter((one) => one.mode === "steer")
  const next = steering.length > 0 ? steering : agent.queue.slice(0, 1)
  if (next.length === 0) {
    sheet.refuse("invalid_state", `${agent.agent_id} has nothing queued`, { state: agent.status })
    return
  }
  const input = mergeInputs(next.map((one) => one.input))
  startTurn(sheet, agent, { input, queued_event_ids: next.map((one) => one.event_id) })
}

const interrupt = (sheet: Drafting, command: Of<"InterruptTurn">): undefined => {
  const running = requireTurn(sheet, command.agent_id)
  if (running !== undefined) interruptTurn(sheet, running, command)
}

/** A retry that waits is started now; a turn that ended in an error is taken up again. */
const retry = (sheet: Drafting, command: Of<"RetryTurn">): undefined => {
  const agent = requireAgent(sheet, command.agent_id)
  if (agent === undefined) return
  const { turn, last_turn: last } = agent
  if (turn !== null) return startRetry(sheet, { agent, turn })
  if (last === null || last.status !== "error") {
    sheet.refuse("invalid_state", `${agent.agent_id} has no failed turn`, { state: last?.status ?? agent.status })
    return
  }
  startTurn(sheet, agent, { input: "", retry_of: last.turn_id })
}

type MessageCommand = Of<"PostMessage" | "StartQueued" | "InterruptTurn" | "RetryTurn">

export const messageDeciders: Deciders<MessageCommand> = {
  PostMessage: post,
  StartQueued: startQueued,
  InterruptTurn: interrupt,
  RetryTurn: retry
}
