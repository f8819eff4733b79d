// One hook at a time: in a conversation, whoever of its agents it is for, and in a workspace, whoever's conversation it is.
// Whoever wants to run one takes a ticket and waits for it; tickets that have nothing in common do not wait for each
// other, the rest are served in the order in which they were taken. There are never more of them than turns that run.
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { hookLimits } from "./HookLimits.ts"

export interface HookPlace {
  readonly conversation_id: string
  /** Where the hook runs, by the one name that all who share the place have for it. */
  readonly directory: string
}

export interface HookTicket {
  /** Resolves when it is the holder's turn. */
  readonly ready: Promise<void>
  /** Lets the next one in. */
  readonly leave: () => void
  /** Lets the next one in as soon as what still runs is over; does not wait for that. */
  readonly leaveAfter: (running: Fiber.Fiber<unknown>) => Effect.Effect<void>
}

interface Waiting {
  readonly place: HookPlace
  readonly admit: () => void
  isAdmitted: boolean
}

const isWithin = (inner: string, outer: string): boolean =>
  inner === outer || inner.startsWith(outer.endsWith("/") ? outer : `${outer}/`)

const isShared = (left: HookPlace, right: HookPlace): boolean =>
  left.conversation_id === right.conversation_id ||
  isWithin(left.directory, right.directory) ||
  isWithin(right.directory, left.directory)

/** Done when the work is over; a program that outlives its end by far holds nobody up for ever. */
const over = (running: Fiber.Fiber<unknown>): Effect.Effect<unknown> =>
  Effect.timeoutOption(Fiber.await(running), hookLimits.leaveWithinMs)

export class HookPipelines {
  private readonly waiting: Array<Waiting> = []

  /** Joins the queue at once. */
  take(place: HookPlace): HookTicket {
    let admit = (): void => undefined
    const ready = new Promise<void>((resolve) => {
      admit = resolve
    })
    const own: Waiting = { place, admit, isAdmitted: false }
    this.waiting.push(own)
    this.serve()
    const leave = (): void => {
      const at = this.waiting.indexOf(own)
      if (at >= 0) this.waiting.splice(at, 1)
      this.serve()
    }
    const leaveAfter: HookTicket["leaveAfter"] = (running) =>
      running.pollUnsafe() === undefined
        ? Effect.asVoid(Effect.forkDetach(Effect.interruptible(Effect.andThen(over(running), Effect.sync(leave)))))
        : Effect.sync(leave)
    return { ready, leave, leaveAfter }
  }

  private serve(): void {
    for (const [at, one] of this.waiting.entries()) {
      if (one.isAdmitted) continue
      if (this.waiting.slice(0, at).some((earlier) => isShared(earlier.place, one.place))) continue
      one.isAdmitted = true
      one.admit()
    }
  }
}
