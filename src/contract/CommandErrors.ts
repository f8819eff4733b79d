// Why a conversation does not carry out a command, for whoever gives commands: turns, goals, hooks and operations.
import * as Data from "effect/Data"
import type { Refusal } from "../machine/decide/Decide.ts"
import type { WireCode } from "./WireFailure.ts"

/** The state machine refused. Nothing was written. */
export class CommandRefused extends Data.TaggedError("CommandRefused")<{
  readonly refusal: Refusal
  readonly command: string
}> {
  get wireCode() {
    return this.refusal.code satisfies WireCode
  }

  get wireData() {
    const { code, data } = this.refusal
    return code === "invalid_state" ? { ...data, session_error: "state_transition_invalid" } : data
  }

  override get message() {
    return this.refusal.message
  }
}

/** The server is stopping. Nothing was written. */
export class RuntimeClosed extends Data.TaggedError("RuntimeClosed")<{ readonly conversation_id: string }> {
  readonly wireCode = "busy" as const satisfies WireCode

  override get message() {
    return `${this.conversation_id} takes no more commands: the server is stopping`
  }
}
