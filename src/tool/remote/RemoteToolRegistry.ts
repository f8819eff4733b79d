// Tools that clients of the server run themselves. A client registers them for a conversation; calls wait for its
// results; whoever goes away has a while to come back, and takes up the calls that wait. A tool belongs to the principal
// that registered it, and its results are taken from the connection that registered it last.

import * as Effect from "effect/Effect"
import { after, type Cancel } from "../../contract/Timers.ts"
import { unknownDefinition } from "../../contract/ToolAccess.ts"
import type { CallState, ConversationState } from "../../machine/State.ts"
import { runsInClient } from "../../machine/view/Select.ts"
import type { AgentId } from "../../rune/Ids.ts"
import { definitionOf } from "../Definition.ts"
import { promisedOutcome } from "../PromiseWork.ts"
import type { Input, Tool, ToolSource } from "../Tool.ts"
import type { SignalContext, ToolOutcome } from "../ToolPort.ts"
import { answerHash, type RemoteResult, type WaitingCall, WaitingCalls } from "./PendingCalls.ts"
import { remoteLimits } from "./RemoteToolLimits.ts"
import { type RemoteSpec, specsOf } from "./Spec.ts"

/** Who speaks: a principal on a connection. A connection is known by identity alone. */
export interface RemoteOwner {
  readonly principal: string
  readonly connection: object
}

export type RegistryAnswer<Ok> =
  | ({ readonly _tag: "Ok" } & Ok)
  | {
      readonly _tag: "Refused"
      readonly code: "bad_request" | "invalid_state" | "limit_exceeded" | "unauthorized"
      readonly message: string
    }

const refused = (code: Extract<RegistryAnswer<unknown>, { _tag: "Refused" }>["code"], message: string) =>
  ({ _tag: "Refused", code, message }) as const

interface Registered {
  readonly spec: RemoteSpec
  readonly principal: string
  /** Nobody, while its client is away. */
  connection: object | undefined
}

interface ConversationStore {
  readonly tools: Map<string, Registered>
  /** Ends the stay of tools whose client does not come back, by their name. */
  readonly timers: Map<string, Cancel>
}

export interface RemoteToolRegistryOptions {
  /** Names that belong to others, such as the built-in tools. */
  readonly isReserved: (name: string) => boolean
  readonly returnWithinMs?: number
}

type OpenCall = Pick<CallState, "call_id" | "tool_name" | "origin">

const originOf = (principal: string): string => `a client of ${principal}`

/** After a restart nobody holds the tool of a call that waits; its name stays with whoever had it. */
const waitsForOther = (
  { principal }: RemoteOwner,
  specs: ReadonlyArray<RemoteSpec>,
  open: ReadonlyArray<OpenCall>
): Extract<RegistryAnswer<unknown>, { _tag: "Refused" }> | undefined => {
  const isOther = ({ origin, tool_name: toolName }: OpenCall): boolean =>
    origin !== undefined && origin !== originOf(principal) && specs.some(({ name }) => name === toolName)
  const call = open.find(isOther)
  return call && refused("invalid_state", `${call.tool_name}: ${call.call_id} waits for a result of ${call.origin}`)
}

const title = "is run by a client of the server, on its machine"

export class RemoteToolRegistry implements ToolSource {
  private readonly options: RemoteToolRegistryOptions
  private readonly returnWithinMs: number
  private readonly shelves = new Map<string, ConversationStore>()
  private readonly calls = new WaitingCalls()

  constructor(options: RemoteToolRegistryOptions) {
    this.options = options
    this.returnWithinMs = options.returnWithinMs ?? remoteLimits.returnWithinMs
  }

  /** The connection's tools of a conversation are these from now on. Answers with the calls that wait for them. */
  register(
    conversationId: string,
    owner: RemoteOwner,
    values: ReadonlyArray<unknown>,
    open: ReadonlyArray<OpenCall> = []
  ): RegistryAnswer<{ readonly tools: ReadonlyArray<string>; readonly waiting: ReadonlyArray<WaitingCall> }> {
    const specs = specsOf(values)
    if (typeof specs === "string") return refused("bad_request", specs)
    const problem = this.problemWith(conversationId, owner, specs) ?? waitsForOther(owner, specs, open)
    if (problem !== undefined) return problem
    const names = new Set(specs.map(({ name }) => name))
    this.withdraw(conversationId, owner, names)
    if (specs.length > 0) this.put(conversationId, owner, specs)
    return { _tag: "Ok", tools: [...names], waiting: this.calls.of(conversationId, (name) => names.has(name)) }
  }

  private problemWith(conversationId: string, owner: RemoteOwner, specs: ReadonlyArray<RemoteSpec>) {
    const shelf = this.shelves.get(conversationId)
    if (shelf === undefined && this.shelves.size >= remoteLimits.conversationsMax)
      return refused("limit_exceeded", "too many conversations have tools of clients")
    const reserved = specs.find(({ name }) => this.options.isReserved(name))
    if (reserved !== undefined) return refused("invalid_state", `${reserved.name} is the name of another tool`)
    const foreign = specs.find(({ name }) => name.includes("__"))
    if (foreign !== undefined)
      return refused("invalid_state", `${foreign.name}: names with two _ in a row belong to tools of MCP servers`)
    const taken = specs.find(({ name }) => {
      const holder = shelf?.tools.get(name)
      return holder !== undefined && holder.principal !== owner.principal
    })
    if (taken !== undefined) return refused("invalid_state", `${taken.name} was registered by somebody else`)
    const others = [...(shelf?.tools.values() ?? [])].filter(({ connection }) => connection !== owner.connection)
    const isFull = others.length + specs.length > remoteLimits.toolsPerConversationMax
    return isFull ? refused("limit_exceeded", `more than ${remoteLimits.toolsPerConversationMax} tools`) : undefined
  }

  /** What the connection had registered before and does not name again. */
  private withdraw(conversationId: string, owner: RemoteOwner, kept: ReadonlySet<string>): void {
    const shelf = this.shelves.get(conversationId)
    for (const [name, { connection }] of shelf?.tools ?? []) {
      if (connection === owner.connection && !kept.has(name)) this.drop(conversationId, name, "no longer offers it")
    }
  }

  private put(conversationId: string, owner: RemoteOwner, specs: ReadonlyArray<RemoteSpec>): void {
    const shelf = this.shelves.get(conversationId) ?? { tools: new Map(), timers: new Map() }
    this.shelves.set(conversationId, shelf)
    for (const spec of specs) {
      shelf.timers.get(spec.name)?.()
      shelf.timers.delete(spec.name)
      shelf.tools.set(spec.name, { spec, principal: owner.principal, connection: owner.connection })
    }
  }

  private drop(conversationId: string, name: string, why: string): void {
    const shelf = this.shelves.get(conversationId)
    shelf?.timers.get(name)?.()
    shelf?.timers.delete(name)
    shelf?.tools.delete(name)
    if (shelf?.tools.size === 0) this.shelves.delete(conversationId)
    this.calls.giveUp(conversationId, name, why)
  }

  readonly answerHash = answerHash

  /** A client's result of a call that is not over. Taken, it is the outcome, unless the call ends otherwise before. */
  result(conversationId: string, owner: RemoteOwner, call: CallState, result: RemoteResult): RegistryAnswer<object> {
    const { call_id: callId, tool_name: toolName } = call
    const holder = this.shelves.get(conversationId)?.tools.get(toolName)
    if (!runsInClient(call)) return refused("invalid_state", `${callId} waits for no result of a client`)
    if (holder === undefined) return refused("invalid_state", `register ${toolName} before you answer for it`)
    const isOwner = holder.connection === owner.connection
    if (!isOwner && holder.connection === undefined && holder.principal === owner.principal)
      return refused("invalid_state", `register ${toolName} on this connection before you answer for it`)
    if (!isOwner) return refused("unauthorized", `${callId} is for the connection that registered its tool`)
    if (call.origin !== undefined && call.origin !== originOf(holder.principal))
      return refused("unauthorized", `${callId} is for ${call.origin}`)
    if (!this.isAsApproved(call, holder))
      return refused("invalid_state", `${toolName} is not defined as it was when ${callId} was approved`)
    if (call.status !== "executing" || call.attempt === 0)
      return refused("invalid_state", `${callId} has not started, and waits for no result`)
    this.calls.settle(conversationId, call, result)
    return { _tag: "Ok" }
  }

  /** Whoever comes back with another tool of the same name does not answer for what was approved of the first. */
  private isAsApproved(call: CallState, { principal, spec }: Registered): boolean {
    const asked = call.approval?.shown_as.definition
    if (asked === undefined || asked === unknownDefinition) return true
    return asked === definitionOf(this.toolOf(spec, principal))
  }

  /** A connection ended: its client has a while to come back. */
  gone(connection: object): void {
    for (const [conversationId, shelf] of this.shelves) {
      for (const [name, holder] of shelf.tools) {
        if (holder.connection !== connection) continue
        holder.connection = undefined
        shelf.timers.set(
          name,
          after(this.returnWithinMs, () => this.drop(conversationId, name, "has gone away"))
        )
      }
    }
  }

  readonly tools: ToolSource["tools"] = (state) =>
    [...(this.shelves.get(state.conversation_id)?.tools.values() ?? [])].map((holder) =>
      this.toolOf(holder.spec, holder.principal)
    )

  /** Also a tool whose client is away, as long as a call of it is open. */
  readonly find = (state: ConversationState, _agentId: AgentId, name: string): Tool | undefined => {
    const holder = this.shelves.get(state.conversation_id)?.tools.get(name)
    if (holder !== undefined) return this.toolOf(holder.spec, holder.principal)
    const open = state.calls.find((call) => call.tool_name === name && runsInClient(call) && call.result === null)
    return open === undefined ? undefined : this.toolOf(specOfCall(open))
  }

  /** Without a principal, the tool of a call whose client is away: what it says of itself is not known. */
  private toolOf(spec: RemoteSpec, principal?: string): Tool {
    return {
      ...spec,
      provenance: "remote",
      ...(principal === undefined ? { isUnknown: true } : { origin: originOf(principal) }),
      access: () => ({}),
      preview: (input) => Effect.succeed({ title: `${spec.name} ${title}`, detail: JSON.stringify(input, null, 2) }),
      run: (input, context) => promisedOutcome(context, (signaled) => this.run(spec, input, signaled))
    }
  }

  private async run(spec: RemoteSpec, input: Input, context: SignalContext): Promise<ToolOutcome> {
    const { conversation_id: conversationId } = context
    const { name } = spec
    const isThere = (): boolean => this.shelves.get(conversationId)?.tools.has(name) ?? false
    // After a restart the client has to find its way back first.
    const cancel = isThere()
      ? undefined
      : after(this.returnWithinMs, () => {
          if (!isThere()) this.calls.giveUp(conversationId, name, "has not come back")
        })
    try {
      return await this.calls.wait(spec, input, context)
    } finally {
      cancel?.()
    }
  }

  /** Waits for nobody any more. What runs is ended by those who run it. */
  close(): void {
    for (const { timers } of this.shelves.values()) for (const cancel of timers.values()) cancel()
    this.shelves.clear()
  }
}

/** What the log still knows of a tool whose client is away. */
const specOfCall = (call: CallState): RemoteSpec => ({
  name: call.tool_name,
  description: "",
  parameters: { type: "object" },
  mutating: call.mutating,
  effect_class: call.effect_class,
  ...(call.timeout_ms === null ? {} : { timeout_ms: call.timeout_ms })
})
