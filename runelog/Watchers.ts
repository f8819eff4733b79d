// Who wants to hear of new durable events. A watcher is told that there is something, never what: it reads from the log
// at its own pace, so there is no queue to fill.

export class Watchers {
  private readonly byLog = new Map<string, Set<() => void>>()
  private readonly everywhere = new Set<(log: string) => void>()

  /** Calls `listener` whenever the log changes; returns how to stop. */
  add(log: string, listener: () => void): () => void {
    const listeners = this.byLog.get(log) ?? new Set()
    this.byLog.set(log, listeners)
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.byLog.get(log) === listeners) this.byLog.delete(log)
    }
  }

  /** As `add`, for every log. */
  addEverywhere(listener: (log: string) => void): () => void {
    this.everywhere.add(listener)
    return () => void this.everywhere.delete(listener)
  }

  /** Tells those who watch a single log, whichever it is: they wait for something that will not come. */
  tellAll(): void {
    for (const listeners of this.byLog.values()) for (const listener of listeners) listener()
  }

  get isEmpty(): boolean {
    return this.byLog.size === 0 && this.everywhere.size === 0
  }

  tell(log: string): void {
    for (const listener of this.byLog.get(log) ?? []) listener()
    for (const listener of this.everywhere) listener(log)
  }
}
