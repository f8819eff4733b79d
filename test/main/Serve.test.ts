// Goal: a server is one graph in which a room can be replaced; it stops in the order that loses nothing, and a start that
// fails leaves nothing open. Method: the real rooms, with a finalizer beside each that writes down when it ran.

import { once } from "node:events"
import { createServer } from "node:net"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { afterEach, describe, expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { readServerInfo } from "#src/config/LocalServer.ts"
import { ModelFacts } from "#src/contract/ServerFacts.ts"
import { ServerLog } from "#src/contract/ServerLog.ts"
import { type Rooms, roomsOf } from "#src/main/Rooms.ts"
import { ModelProviders, makeRegistry } from "#src/provider/Registry.ts"
import { bareRooms, startTestServer, testEnvironment, testVersion } from "../support/server/graph.ts"
import { Socket } from "../support/server/Socket.ts"
import { useServers } from "../support/server/TestServer.ts"

const { directory } = useServers()
let closes: Array<() => Promise<void>> = []
afterEach(async () => {
  for (const close of closes) await close()
  closes = []
})

const start: typeof startTestServer = async (...given) => {
  const server = await startTestServer(...given)
  closes.push(server.close)
  return server
}

/** The same rooms, each of which writes down its end. */
const watched = (rooms: Rooms, ended: Array<string>): Rooms => {
  const entries = Object.entries(rooms).map(([name, room]) => {
    const end = Layer.effectDiscard(Effect.addFinalizer(() => Effect.sync(() => void ended.push(name))))
    return [name, Layer.provideMerge(room as Layer.Layer<never>, end)]
  })
  return Object.fromEntries(entries)
}

describe("the graph of a server", () => {
  it("uses the room that a test puts in the place of another", async () => {
    const registry = makeRegistry({ key: () => undefined, scenarios: {}, model: "scripted/echo" })
    const facts = { defaultModel: () => "scripted/replaced", sight: () => ({ images: false, files: false }) }
    const providers = Layer.merge(Layer.succeed(ModelProviders, registry), Layer.succeed(ModelFacts, facts))
    const server = await start({ dataDirectory: directory() }, { ...bareRooms(), providers })
    const socket = await Socket.open(server.url)
    await socket.hello(server.token)
    expect(await socket.ok("server.info", {})).toMatchObject({ model: "scripted/replaced", version: testVersion })
    await socket.close()
  })

  it("ends its rooms from the top down: nobody is served by a room that is gone", async () => {
    const ended: Array<string> = []
    const given = { dataDirectory: directory(), version: testVersion, environment: testEnvironment(), port: 0 }
    const rooms = { ...roomsOf({ ...given, writeLine: () => undefined }), ...bareRooms() }
    const server = await startTestServer(given, watched(rooms, ended))
    await server.close()
    await server.close()
    expect(ended.toSorted()).toEqual(Object.keys(rooms).toSorted())
    const order = ["listener", "followers", "conversations", "agents", "providers", "store", "directory", "log"]
    expect(ended.filter((name) => order.includes(name))).toEqual(order)
  })
})

describe("a start that fails", () => {
  it("leaves nothing open: the directory can be used at once", async () => {
    const taken = createServer().listen(0, "127.0.0.1")
    await once(taken, "listening")
    const dataDirectory = directory()
    const { port } = taken.address() as { readonly port: number }
    await expect(startTestServer({ dataDirectory, port }, bareRooms())).rejects.toMatchObject({ code: "EADDRINUSE" })
    expect(readServerInfo(dataDirectory)).toBeUndefined()
    await (await Runelog.open({ directory: dataDirectory })).close()
    taken.close()
  })

  it("because another server of this process has the directory leaves that one findable", async () => {
    const dataDirectory = directory()
    const first = await start({ dataDirectory }, bareRooms())
    await expect(startTestServer({ dataDirectory }, bareRooms())).rejects.toMatchObject({ _tag: "DirectoryLocked" })
    expect(readServerInfo(dataDirectory)).toMatchObject({ url: first.url })
    await first.close()
    expect(readServerInfo(dataDirectory)).toBeUndefined()
  })

  it("ends the log of the server last", async () => {
    const written: Array<string> = []
    const log = Layer.effect(
      ServerLog,
      Effect.acquireRelease(
        Effect.succeed({
          level: "info" as const,
          write: (_level: string, message: string) => void written.push(message)
        }),
        () => Effect.sync(() => void written.push("end"))
      )
    )
    const broken = Layer.effectDiscard(
      Effect.gen(function* () {
        const { write } = yield* ServerLog
        yield* Effect.addFinalizer(() => Effect.sync(() => write("info", "closing")))
        return yield* Effect.die(new Error("a room that cannot be made"))
      })
    )
    const rooms = { ...bareRooms(), log, followers: broken }
    await expect(startTestServer({ dataDirectory: directory() }, rooms)).rejects.toThrow("a room that cannot be made")
    expect(written).toEqual(["closing", "end"])
  })
})
