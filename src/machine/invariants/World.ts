/** What the invariant checker remembers of the runes it has seen. */
import type { Visibility } from "../../rune/Envelope.ts"
import type { AnyRune } from "../../rune/Rune.ts"
import type { SessionStatus } from "../table/Session.ts"

export const invariantNames = [
  "INV-EVENTID-MONOTONIC",
  "INV-RUNE-IMMUTABLE",
  "INV-RESUME-NO-DUPLICATES",
  "INV-RESUME-NO-GAPS",
  "INV-TURN-SEQUENTIAL",
  "INV-TURN-TERMINAL",
  "INV-TURN-ORDER",
  "INV-TOOL-TERMINAL",
  "INV-TOOL-CALL-BEFORE-RESULT",
  "INV-TOOL-APPROVAL-BEFORE-EXEC",
  "INV-TOOL-SANDBOX",
  "INV-AGENT-SUPERVISED",
  "INV-AGENT-BUDGET",
  "INV-SECRET-PRIVACY",
  "INV-READY-NO-PENDING-TOOLS",
  "INV-HOOKS-NEVER-OVERLAP",
  "INV-ONE-MODEL-CALL-PER-AGENT",
  "INV-TASK-ORDER",
  "INV-GOAL-EVIDENCE",
  "INV-REPLAY-DETERMINISTIC",
  "INV-REPLAY-IDEMPOTENT",
  "INV-SNAPSHOT-INTEGRITY"
] as const
export type InvariantName = (typeof invariantNames)[number]

export interface Violation {
  readonly invariant: InvariantName
  readonly event_id: number
  readonly detail: string
}

export interface SeenCall {
  readonly call_id: string
  readonly agent_id: string | undefined
  readonly turn_id: string | undefined
  readonly visibility: Visibility
  asked: boolean
  approved: boolean
  denied: boolean
  started: boolean
  result: boolean
}

export interface SeenAgent {
  readonly agent_id: string
  readonly parent_id: string | undefined
  isAlive: boolean
  isExhausted: boolean
  turn_id: string | undefined
  request_id: string | undefined
  hook_run_id: string | undefined
}

/** A task of the plan that is pursued. */
export interface SeenTask {
  readonly after: ReadonlyArray<string>
  isStarted: boolean
  /** Completed, or no longer wanted. */
  isDone: boolean
}

export class World {
  head = 0
  lastTurn = 0
  session: SessionStatus = "created"
  readonly runeIdAt = new Map<number, string>()
  readonly eventOfRune = new Map<string, number>()
  readonly agents = new Map<string, SeenAgent>()
  readonly calls = new Map<string, SeenCall>()
  readonly tasks = new Map<string, SeenTask>()
  readonly violations: Array<Violation> = []
  readonly #openCalls = new Map<string, Set<SeenCall>>()

  violate(invariant: InvariantName, rune: AnyRune, detail: string): void {
    this.violations.push({ invariant, event_id: rune.event_id, detail: `${rune.kind}: ${detail}` })
  }

  /** Calls of the turn that have no result yet. */
  openCallsOf(turnId: string | undefined): ReadonlyArray<SeenCall> {
    const open = turnId === undefined ? undefined : this.#openCalls.get(turnId)
    return open === undefined ? [] : [...open]
  }

  addCall(call: SeenCall): void {
    this.calls.set(call.call_id, call)
    if (call.turn_id === undefined) return
    const open = this.#openCalls.get(call.turn_id)
    if (open === undefined) this.#openCalls.set(call.turn_id, new Set([call]))
    else open.add(call)
  }

  settleCall(call: SeenCall): void {
    call.result = true
    if (call.turn_id !== undefined) this.#openCalls.get(call.turn_id)?.delete(call)
  }

  /** What a turn left open is reported once, at its end. */
  forgetTurn(turnId: string): void {
    this.#openCalls.delete(turnId)
  }
}
