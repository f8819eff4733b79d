// The streams of one conversation that have gathered text which is not a rune yet. A command that ends a turn sends
// it off first, so that what had been heard by then is part of what the turn had said.
import type { Command } from "../machine/Command.ts"

export interface Gathering {
  readonly flush: () => void
}

const endsTurn = (command: Command): boolean => {
  switch (command._tag) {
    case "InterruptTurn":
    case "KillAgent":
    case "Close":
    case "FailTurn":
    case "DenyCall":
      return true
    case "AdvancePlan":
      return command.dismiss !== undefined || command.step._tag === "ExhaustBudget"
    case "ExhaustBudget":
      return command.consequence === "terminate"
    case "PostMessage":
      return command.mode === "steer"
    default:
      return false
  }
}

export class Streams {
  private readonly open = new Set<Gathering>()

  add(stream: Gathering): void {
    this.open.add(stream)
  }

  delete(stream: Gathering): void {
    this.open.delete(stream)
  }

  beforeDecision(command: Command): void {
    if (this.open.size > 0 && endsTurn(command)) for (const stream of this.open) stream.flush()
  }
}
