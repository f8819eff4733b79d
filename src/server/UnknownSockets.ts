// Sockets of those who have not said who they are. They are few, and the oldest makes room for the newest: whoever opens
// sockets and says nothing cannot keep out those who have something to say.
import type { Duplex } from "node:stream"

export class UnknownSockets {
  private readonly socketsMax: number
  private readonly sockets = new Set<Duplex>()

  constructor(socketsMax: number) {
    this.socketsMax = socketsMax
  }

  get size(): number {
    return this.sockets.size
  }

  add(socket: Duplex): void {
    this.sockets.add(socket)
    socket.once("close", () => this.sockets.delete(socket))
    if (this.sockets.size <= this.socketsMax) return
    const [oldest] = this.sockets
    if (oldest === undefined) return
    this.sockets.delete(oldest)
    oldest.destroy()
  }

  /** Who it is has been said, and was true. */
  known(socket: Duplex): void {
    this.sockets.delete(socket)
  }
}
