// Goal: those who do not say who they are make room for each other and for nobody else. Method: streams in memory.
import { PassThrough } from "node:stream"
import { describe, expect, it } from "vitest"
import { UnknownSockets } from "#src/server/socket/UnknownSockets.ts"

describe("sockets of unknown people", () => {
  it("are few: the oldest goes, those who are known stay, those who leave are forgotten", async () => {
    const unknown = new UnknownSockets(2)
    const sockets = Array.from({ length: 5 }, () => new PassThrough())
    const destroyed = (): ReadonlyArray<boolean> => sockets.map((socket) => socket.destroyed)
    unknown.add(sockets[0]!)
    unknown.add(sockets[1]!)
    unknown.known(sockets[0]!)
    unknown.add(sockets[2]!)
    expect(destroyed()).toEqual([false, false, false, false, false])
    unknown.add(sockets[3]!)
    expect(destroyed()).toEqual([false, true, false, false, false])
    const closed = new Promise((resolve) => sockets[2]!.once("close", resolve))
    sockets[2]!.destroy()
    await closed
    expect(unknown.size).toBe(1)
    unknown.add(sockets[4]!)
    expect(destroyed()).toEqual([false, true, true, false, false])
  })
})
