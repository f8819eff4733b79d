/**
 * Where a reader is: what to ask for when a subscription is opened again, and what of the frames that come it has had
 * already. It moves with what the reader was handed, never with what only arrived.
 */
import { clientLimits } from "./Limits.ts"
import type { PushedFrame, TailItem } from "./Wire.ts"

export interface Place {
  readonly after: number | "tail"
  readonly cursors?: Readonly<Record<string, number>>
}

export interface Position {
  readonly place: () => Place
  /** The subscription is open; this was the last event then. */
  readonly opened: (head: number) => void
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

/** In all conversations: a cursor each, the longest unheard of given up first when there are too many. */
export class EverythingPosition implements Position {
  private readonly after: number | "tail"
  private readonly cursors = new Map<string, number>()

  constructor(after: number | "tail") {
    this.after = after
  }

  place(): Place {
    return { after: this.after, cursors: Object.fromEntries(this.cursors) }
  }

  opened(): void {}

  take(frame: PushedFrame): TailItem | undefined {
    if (frame.rune !== undefined) {
      const { conversation_id: id, event_id: eventId } = frame.rune
      if (eventId <= (this.cursors.get(id) ?? 0)) return undefined
      this.cursors.delete(id)
      this.cursors.set(id, eventId)
      if (this.cursors.size > clientLimits.cursorsMax) this.cursors.delete(this.cursors.keys().next().value ?? "")
      return { rune: frame.rune }
    }
    if (frame.gap !== undefined) return { gap: frame.gap }
    if (frame.caught_up !== undefined) return { caught_up: frame.caught_up }
    return frame.live === undefined ? undefined : { live: frame.live }
  }
}
