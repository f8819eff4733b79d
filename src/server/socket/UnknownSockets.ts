// Sockets of those who have not said who they are. They are few, and the oldest makes room for the newest: whoever opens
// sockets and says nothing cannot keep out those who have something to say.
import type { Duplex } from "node:stream"

export class UnknownSockets {
  private readonly socketsMax: number
  /** Each with what is done when it closes. */
  private readonly sockets = new Map<Duplex, () => void>()

  constructor(socketsMax: number) {
    this.socketsMax = socketsMax
  }

  get size(): number {
    return this.sockets.size
  }

  add(socket: Duplex): void {
    const forget = (): void => void this.sockets.delete(socket)
    this.sockets.set(socket, forget)
    socket.on("close", forget)
    if (this.sockets.size <= this.socketsMax) return
    const [oldest] = this.sockets.keys()
    if (oldest === undefined) return
    this.known(oldest)
    oldest.destroy()
  }

  /** Who it is has been said, and was true. */
  known(socket: Duplex): void {
    const forget = this.sockets.get(socket)
    if (forget === undefined) return
    // A connection may last for days: nothing of this is kept for it.
    socket.off("close", forget)
    this.sockets.delete(socket)
  }
}
