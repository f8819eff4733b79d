/**
 * A conversation driven command by command in memory: the same decide, stamp and
 * fold as in production, with ids, time and the list of runes in the test's hands.
 */

import type { Command, ResponseItem, ToolFacts } from "#src/machine/Command.ts"
import { advance, stampAll } from "#src/machine/Conversation.ts"
import type { Idempotency, Refusal, Verdict } from "#src/machine/decide/Decide.ts"
import { evolve } from "#src/machine/evolve/Evolve.ts"
import {
  type AgentState,
  type CallState,
  type ConversationState,
  emptyConversation,
  type TurnState
} from "#src/machine/State.ts"
import { agentOf, callOf } from "#src/machine/view/Select.ts"
import { type PendingWork, type PendingWorkTag, pendingWork } from "#src/machine/work/PendingWork.ts"
import { type Resolution, resolveAfterCrash } from "#src/machine/work/Recovery.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import type { AgentId, CallId, ConversationId, TurnId } from "#src/rune/Ids.ts"
import { makeAgentId, makeConversationId, makeRequestId, makeRuneId } from "#src/rune/Ids.ts"
import type { Kind, PayloadOf } from "#src/rune/Kinds.ts"
import type { ConversationConfig } from "#src/rune/kinds/shared.ts"
import type { Rune, RuneDraft } from "#src/rune/Rune.ts"

export const readTool: ToolFacts = { effect_class: "pure", mutating: false }
export const writeTool: ToolFacts = { effect_class: "idempotent", mutating: true }
export const shellTool: ToolFacts = { effect_class: "effect", mutating: true }

export const callItem = (name: string, tool: ToolFacts | undefined, text = "{}", id?: string): ResponseItem => ({
  type: "tool_call",
  tool_name: name,
  arguments_text: text,
  ...(tool === undefined ? {} : { tool }),
  ...(id === undefined ? {} : { provider_call_id: id })
})

export const textItem = (text: string): ResponseItem => ({ type: "text", text })

const sandbox = { level: "none" }

export class Story {
  readonly ids = seededIdSource(7)
  readonly conversationId: ConversationId = makeConversationId(this.ids)
  readonly root: AgentId = makeAgentId(this.ids)
  state: ConversationState = emptyConversation(this.conversationId)
  readonly runes: Array<Rune> = []
  nowMs = 1_763_251_200_000

  /** Takes a command and returns what was decided. */
  send(command: Command, idempotency?: Idempotency): Verdict {
    const { verdict, runes } = advance(this.state, command, {
      at_ms: this.nowMs,
      runeId: () => makeRuneId(this.ids),
      ...(idempotency === undefined ? {} : { idempotency })
    })
    this.runes.push(...runes)
    this.nowMs += 1
    return verdict
  }

  /** Takes a command that must be accepted; returns the kinds it wrote. */
  run(command: Command, idempotency?: Idempotency): ReadonlyArray<string> {
    const verdict = this.send(command, idempotency)
    if (verdict._tag !== "Accepted") throw new Error(`${command._tag}: ${JSON.stringify(verdict)}`)
    return verdict.drafts.map((draft) => draft.kind)
  }

  /** Takes a command that must be refused; returns the refusal. */
  refused(command: Command, idempotency?: Idempotency): Refusal {
    const verdict = this.send(command, idempotency)
    if (verdict._tag !== "Refused") throw new Error(`${command._tag}: ${JSON.stringify(verdict)}`)
    return verdict.refusal
  }

  create(config: ConversationConfig = {}): this {
    const root = { agent_id: this.root, role: "orchestrator", model: "scripted/demo" }
    this.run({ _tag: "CreateConversation", conversation_id: this.conversationId, config, root })
    return this
  }

  /** A conversation whose root agent is ready. */
  ready(config: ConversationConfig = {}): this {
    this.create(config)
    this.run({ _tag: "CompleteAgentInit", agent_id: this.root })
    return this
  }

  post(content: string, mode: "queue" | "steer" = "queue"): ReadonlyArray<string> {
    return this.run({ _tag: "PostMessage", content, mode })
  }

  request(agentId: AgentId = this.root): ReadonlyArray<string> {
    const request_id = makeRequestId(this.ids)
    return this.run({ _tag: "RequestModel", agent_id: agentId, request_id, provider: "scripted", model: "demo" })
  }

  respond(items: ReadonlyArray<ResponseItem>, agentId: AgentId = this.root): ReadonlyArray<string> {
    const usage = { input_tokens: 10, output_tokens: 5, usd: 0.25 }
    return this.run({ _tag: "ReceiveResponse", agent_id: agentId, items, usage })
  }

  /** A conversation in the middle of a batch of calls. */
  inBatch(...items: ReadonlyArray<ResponseItem>): this {
    if (this.state.head === 0) this.ready()
    this.post("go")
    this.request()
    this.respond(items)
    return this
  }

  start(callId: string): ReadonlyArray<string> {
    return this.run({ _tag: "StartCall", call_id: callId as CallId, sandbox })
  }

  finish(callId: string, output = "ok"): ReadonlyArray<string> {
    return this.run({ _tag: "FinishCall", call_id: callId as CallId, status: "success", output, duration_ms: 3 })
  }

  ask(callId: string, expiresMs?: number): ReadonlyArray<string> {
    return this.run({
      _tag: "RequireApproval",
      call_id: callId as CallId,
      policy_reason: "it changes files",
      shown_as: { title: `run ${callId}` },
      ...(expiresMs === undefined ? {} : { expires_ms: expiresMs })
    })
  }

  settle(hooks: Extract<Command, { _tag: "SettleTools" }>["hooks"] = []): ReadonlyArray<string> {
    return this.run({ _tag: "SettleTools", agent_id: this.root, hooks })
  }

  /** Writes a rune that no command would write by itself, for logs that others wrote. */
  tell<K extends Kind>(kind: K, payload: PayloadOf<K>, place: { agent_id?: AgentId; turn_id?: TurnId } = {}): void {
    const turnId = place.turn_id ?? agentOf(this.state, this.root)?.turn?.turn_id
    const draft = {
      kind,
      payload,
      agent_id: place.agent_id ?? this.root,
      ...(turnId === undefined ? {} : { turn_id: turnId })
    }
    const around = { at_ms: this.nowMs, runeId: () => makeRuneId(this.ids) }
    for (const rune of stampAll(this.state, [draft as RuneDraft], around)) {
      evolve(this.state, rune)
      this.runes.push(rune)
    }
  }

  recover(): Resolution {
    const resolution = resolveAfterCrash(this.state, { at_ms: this.nowMs })
    const around = { at_ms: this.nowMs, runeId: () => makeRuneId(this.ids) }
    for (const rune of stampAll(this.state, resolution.drafts, around)) {
      evolve(this.state, rune)
      this.runes.push(rune)
    }
    return resolution
  }

  get agent(): AgentState {
    return agentOf(this.state, this.root)!
  }

  get turn(): TurnState {
    return this.agent.turn!
  }

  call(callId: string): CallState {
    return callOf(this.state, callId as CallId)!
  }

  get effects(): ReadonlyArray<PendingWorkTag> {
    return pendingWork(this.state).map((effect) => effect._tag)
  }

  effect<Tag extends PendingWorkTag>(tag: Tag): Extract<PendingWork, { readonly _tag: Tag }> {
    const found = pendingWork(this.state).find((effect) => effect._tag === tag)
    if (found === undefined) throw new Error(`no ${tag} among ${this.effects.join(", ")}`)
    return found as Extract<PendingWork, { readonly _tag: Tag }>
  }

  get kinds(): ReadonlyArray<string> {
    return this.runes.map((rune) => rune.kind)
  }
}
