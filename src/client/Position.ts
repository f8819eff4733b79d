/**
 * Where a reader is: what to ask for when a subscription is opened again, and what of the frames that come it has had
 * already. It moves with what the reader was handed, never with what only arrived.
 */
import { clientLimits } from "./Limits.ts"
import type { PushedFrame, TailItem } from "./Wire.ts"

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
      this.cursor = Math.max(before, frame.gap.to)
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

interface Heard {
  readonly eventId: number
  readonly tsMs: number
}

/**
 * In all conversations: a cursor each, and for those not heard of the time at which listening began. The longest unheard
 * of is given up when there are too many; listening to it then begins again behind its last rune.
 */
export class EverythingPosition implements Position {
  private readonly after: number | "tail"
  private readonly heard = new Map<string, Heard>()
  private sinceMs: number | undefined

  constructor(after: number | "tail") {
    this.after = after
  }

  place(): Place {
    const cursors = Object.fromEntries([...this.heard].map(([id, { eventId }]) => [id, eventId]))
    const since = this.after === "tail" && this.sinceMs !== undefined ? { since_ms: this.sinceMs } : {}
    return { after: this.after, cursors, ...since }
  }

  opened(_head: number, sinceMs?: number): void {
    this.sinceMs ??= sinceMs
  }

  take(frame: PushedFrame): TailItem | undefined {
    if (frame.rune !== undefined) {
      const { conversation_id: id, event_id: eventId, ts_ms: tsMs } = frame.rune
      if (eventId <= (this.heard.get(id)?.eventId ?? 0)) return undefined
      this.heard.delete(id)
      this.heard.set(id, { eventId, tsMs })
      if (this.heard.size > clientLimits.cursorsMax) this.forgetOldest()
      return { rune: frame.rune }
    }
    if (frame.gap !== undefined) return { gap: frame.gap }
    if (frame.caught_up !== undefined) return { caught_up: frame.caught_up }
    return frame.live === undefined ? undefined : { live: frame.live }
  }

  private forgetOldest(): void {
    const [oldest] = this.heard
    if (oldest === undefined) return
    const [id, { tsMs }] = oldest
    this.heard.delete(id)
    if (this.sinceMs !== undefined) this.sinceMs = Math.max(this.sinceMs, tsMs + 1)
  }
}
