// A program of which nothing is known but its terminal. What it says of itself there (OSC 7501) is believed; where it says
// nothing, output means work and silence means idle.
import type { AgentEvent } from "../../rune/AgentEvent.ts"
import type { HarnessSession, Heard, ProgramStatus } from "../Port.ts"
import { nothingHeard } from "../Port.ts"

const working: AgentEvent = { type: "state_change", state: "active", sub_state: "thinking" }
const blocked: AgentEvent = { type: "state_change", state: "active", sub_state: "waiting_for_permission" }
const idle: AgentEvent = { type: "state_change", state: "idle" }

export class GenericSession implements HarnessSession {
  private shown: ProgramStatus["state"] | undefined
  private speaks = false

  hook(name: string): Heard {
    return { ...nothingHeard, ignored: `the hook ${name.slice(0, 80)} belongs to no program that is known` }
  }

  telemetry(): Heard {
    return nothingHeard
  }

  status({ source, state }: ProgramStatus): Heard {
    if (source === "osc") this.speaks = true
    // One that speaks for itself may be silent while it works.
    else if (this.speaks) return nothingHeard
    const before = this.shown
    this.shown = state
    if (before === state) return nothingHeard
    if (state === "working") return { events: [working] }
    return { events: [state === "blocked" ? blocked : idle] }
  }

  decided(): Heard {
    return nothingHeard
  }

  interrupted(): Heard {
    this.shown = "idle"
    return { events: [idle] }
  }

  isBusy(): boolean {
    return this.shown === "working" || this.shown === "blocked"
  }
}
