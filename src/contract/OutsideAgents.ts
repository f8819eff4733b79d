// Outside agents as the server sees them: programs of other people that are watched, answered and spoken to.
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { AgentId, ConversationId } from "../rune/Ids.ts"
import type { WireCode, WireFailure } from "./WireFailure.ts"

/** Marks calls that another program runs, and was only asked about here. */
export const outsideProvenance = "outside"

export interface OutsideAgentInfo {
  readonly conversation_id: string
  readonly agent_id: string
  readonly harness: string
  readonly pid: number | null
  readonly attached: boolean
  readonly state: string
  readonly attention: string
  readonly workspace: string
  /** Where its holder is reached. */
  readonly directory: string
}

export interface LaunchOrder {
  readonly conversationId: ConversationId
  readonly agentId: AgentId
  readonly harness: string
  readonly command: ReadonlyArray<string>
  readonly workspace: string
}

/** What whoever starts the program starts it with. */
export interface PreparedLaunch {
  readonly directory: string
  readonly command: string
  readonly prepend_args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  readonly versions: ReadonlyArray<string>
}

/** A request of the program itself, authenticated by the token that it was given. */
export interface OutsideRequest {
  readonly path: string
  readonly authorization: string | undefined
  readonly contentType: string
  readonly contentEncoding: string
  readonly body: Uint8Array
}

export interface OutsideAnswer {
  readonly status: number
  readonly json: unknown
}

/** Nobody is there, or not in a state to take it. */
export class OutsideAgentRefused extends Data.TaggedError("OutsideAgentRefused")<{
  readonly message: string
  readonly wireCode: Extract<WireCode, "not_found" | "invalid_state" | "limit_exceeded" | "bad_request">
}> {}

/** Whoever looks at a terminal is told what comes, in order. */
export interface TerminalListener {
  readonly output: (bytes: Uint8Array) => void
  /** Both are null where nobody can say how the program ended. */
  readonly ended: (exit: { readonly exit_code: number | null; readonly signal: number | null }) => void
}

export interface TerminalRequest {
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  readonly isWatching: boolean
}

/** The terminal of an outside agent, as one viewer holds it. Nothing is told before `resume`. */
export interface AttachedTerminal {
  readonly role: "typist" | "viewer"
  readonly columns: number
  readonly rows: number
  readonly input: (bytes: Uint8Array) => void
  readonly resize: (size: { readonly columns: number; readonly rows: number }) => void
  /** Takes nothing for a while; whoever types makes the program wait with it. */
  readonly pause: () => void
  readonly resume: () => void
  readonly leave: () => void
}

export interface OutsideAgents {
  readonly terminal: (
    conversationId: string,
    request: TerminalRequest,
    listener: TerminalListener
  ) => Effect.Effect<AttachedTerminal, WireFailure>
  readonly prepare: (order: LaunchOrder) => Effect.Effect<PreparedLaunch, WireFailure>
  /** The program runs: its holder can be reached. */
  readonly attach: (conversationId: string) => Effect.Effect<{ readonly event_id: number }, WireFailure>
  readonly list: (conversationId?: string) => Effect.Effect<ReadonlyArray<OutsideAgentInfo>, WireFailure>
  readonly send: (
    conversationId: string,
    text: string,
    principal: string
  ) => Effect.Effect<{ readonly event_id: number }, WireFailure>
  readonly interrupt: (
    conversationId: string,
    principal: string
  ) => Effect.Effect<{ readonly event_id: number }, WireFailure>
  /** Agents whose program runs, or is about to. */
  readonly count: () => number
  /** Whether the program of this conversation runs and is followed. */
  readonly isRunning: (conversationId: string) => boolean
  /** Whether a path is one that programs report to. */
  readonly answers: (path: string) => boolean
  /** Whether the header names the token of an agent. */
  readonly knows: (authorization: string | undefined) => boolean
  /** The body may have so many bytes. */
  readonly bytesMax: number
  /** The answer to a program; interrupted when the program does not wait for it any more. */
  readonly receive: (request: OutsideRequest) => Effect.Effect<OutsideAnswer>
}

/** Agents of other programs, for whoever lets people see and answer them. */
export class OutsideAgentAccess extends Context.Service<OutsideAgentAccess, OutsideAgents>()(
  "echs/OutsideAgentAccess"
) {}
