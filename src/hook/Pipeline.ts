// One hook at a time: in a conversation, whoever of its agents it is for, and in a workspace, whoever's conversation it is.
// Whoever wants to run one takes a ticket and waits for it; tickets that have nothing in common do not wait for each
// other, the rest are served in the order in which they were taken. There are never more of them than turns that run.
import { hookLimits } from "./HookLimits.ts"

export interface HookPlace {
  readonly conversation_id: string
  /** Where the hook runs, by the one name that all who share the place have for it. */
  readonly directory: string
}

export interface HookTicket {
  /** Resolves when it is the holder's turn. */
  readonly ready: Promise<void>
  /** Lets the next one in, as soon as what still runs is over. */
  readonly leave: (running?: Promise<unknown>) => void
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

/** Resolves when the work is over; a program that outlives its end by far holds nobody up for ever. */
const over = async (running: Promise<unknown>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, hookLimits.leaveWithinMs)
  })
  await Promise.race([running.catch(() => undefined), late])
  clearTimeout(timer)
}

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
    const remove = (): void => {
      const at = this.waiting.indexOf(own)
      if (at >= 0) this.waiting.splice(at, 1)
      this.serve()
    }
    return { ready, leave: (running) => (running === undefined ? remove() : void over(running).then(remove)) }
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
