/**
 * Where a reader is: what to ask for when a subscription is opened again, and what of the frames that come it has had
 * already. It moves with what the reader was handed, never with what only arrived.
 */
import { RequestFailed } from "./ClientErrors.ts"
import { clientLimits } from "./ClientLimits.ts"
import type { PushedFrame, TailItem, WireError } from "./Wire.ts"

export interface Place {
  readonly after: number | "tail"
  readonly cursors?: Readonly<Record<string, number>>
  readonly since_ms?: number
}

export interface Position {
  readonly place: () => Place
  /** The subscription is open; this was the last event then, or the time. */
  readonly opened: (head: number, sinceMs?: number) => void
  /** What the reader is handed for a frame; undefined for what it has had. */
  readonly take: (frame: PushedFrame) => TailItem | undefined
}

/** In the runes of one conversation: ids are dense and each comes once. */
export class RunePosition implements Position {
  private cursor: number | "tail"

  constructor(after: number | "tail") {
    this.cursor = after
  }

  place(): Place {
    return { after: this.cursor }
  }

  opened(head: number): void {
    if (this.cursor === "tail") this.cursor = head
  }

  take(frame: PushedFrame): TailItem | undefined {
    const before = this.cursor === "tail" ? 0 : this.cursor
    if (frame.rune !== undefined) {
      if (frame.rune.event_id <= before) return undefined
      this.cursor = frame.rune.event_id
      return { rune: frame.rune }
    }
    if (frame.gap !== undefined) {
      if (frame.gap.to <= before) return undefined
      this.cursor = frame.gap.to
      return { gap: frame.gap }
    }
    if (frame.caught_up !== undefined) {
      this.cursor = Math.max(before, frame.caught_up.head)
      return { caught_up: frame.caught_up }
    }
    return frame.live === undefined ? undefined : { live: frame.live }
  }
}

/**
 * In a derived view: one rune may mean several events, numbered `rune.index`, so the last rune is asked for again and the
 * events of it that were taken are left out.
 */
export class ViewPosition implements Position {
  private cursor: number | "tail"
  private last: readonly [rune: number, index: number] = [0, -1]

  constructor(after: number | "tail") {
    this.cursor = after
  }

  place(): Place {
    return { after: this.cursor }
  }

  opened(head: number): void {
    if (this.cursor === "tail") this.cursor = head
  }

  take(frame: PushedFrame): TailItem | undefined {
    if (frame.event !== undefined) return this.takeEvent(frame.event)
    if (frame.caught_up !== undefined) return { caught_up: frame.caught_up }
    return frame.gap === undefined ? undefined : { gap: frame.gap }
  }

  private takeEvent(event: NonNullable<PushedFrame["event"]>): TailItem | undefined {
    const [rune = 0, index = 0] = String(event.event_id ?? event.eventId)
      .split(".")
      .map(Number)
    const [lastRune, lastIndex] = this.last
    if (rune < lastRune || (rune === lastRune && index <= lastIndex)) return undefined
    this.last = [rune, index]
    this.cursor = Math.max(0, rune - 1)
    return { event }
  }
}

/**
 * In all conversations: a cursor each. What a subscription is opened with names those heard of last; of the others the
 * server sends again what came since listening began, and what was had of it is left out here.
 */
export class AllPosition implements Position {
  private readonly after: number | "tail"
  /** The last event of each conversation, the longest unheard of first. */
  private readonly heard = new Map<string, number>()
  private sinceMs: number | undefined

  constructor(after: number | "tail") {
    this.after = after
  }

  place(): Place {
    const cursors = Object.fromEntries([...this.heard].slice(-clientLimits.cursorsNamedMax))
    const since = this.after === "tail" && this.sinceMs !== undefined ? { since_ms: this.sinceMs } : {}
    return { after: this.after, cursors, ...since }
  }

  opened(_head: number, sinceMs?: number): void {
    this.sinceMs ??= sinceMs
  }

  take(frame: PushedFrame): TailItem | undefined {
    if (frame.rune !== undefined) {
      const { conversation_id: id, event_id: eventId } = frame.rune
      return this.isNew(id, eventId) ? { rune: frame.rune } : undefined
    }
    if (frame.gap !== undefined) {
      const { conversation_id: id, to } = frame.gap
      return id === undefined || this.isNew(id, to) ? { gap: frame.gap } : undefined
    }
    if (frame.caught_up !== undefined) return { caught_up: frame.caught_up }
    if (frame.error !== undefined) return this.takeFailure(frame.conversation_id, frame.error)
    return frame.live === undefined ? undefined : { live: frame.live }
  }

  /** Whether the event lies behind what was had of its conversation; then it is the last one that was. */
  private isNew(id: string, eventId: number): boolean {
    if (eventId <= (this.heard.get(id) ?? 0)) return false
    this.heard.delete(id)
    if (this.heard.size >= clientLimits.cursorsMax) throw tooMany()
    this.heard.set(id, eventId)
    return true
  }

  /** One conversation does not come, or not from where it was asked for. Others go on. */
  private takeFailure(id: string | undefined, error: WireError): TailItem {
    if (id === undefined) throw new RequestFailed("subscribe", error)
    const head = error.data?.["head"]
    // The log is shorter than what was heard of it, as after a restore from a backup: what comes next is new all the same.
    if (error.code === "not_found") this.heard.delete(id)
    else if (typeof head === "number" && head < (this.heard.get(id) ?? 0)) this.heard.set(id, head)
    return { failed: { conversation_id: id, error } }
  }
}

const tooMany = (): RequestFailed =>
  new RequestFailed("subscribe", {
    code: "limit_exceeded",
    message: `a tail of everything remembers its place in ${clientLimits.cursorsMax} conversations; follow fewer kinds, or one conversation at a time`
  })
