// Goal: whatever an answer says about a conversation is on disk: an event id that a client was given is one from which it
// can follow, and nothing that was told is gone after a crash. Method: a server whose disk holds every sync until the test
// lets it go; each operation that tells of a conversation is asked for while runes are on their way to the disk.
import { afterEach, describe, expect, it } from "vitest"
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import { useExtendedServers } from "../../support/extended.ts"
import { standing } from "../../support/runtime/sink.ts"
import type { Json, Socket } from "../../support/server/Socket.ts"

let held: HeldDisk
const servers = useExtendedServers()
// Before the servers are closed: those hooks run in the reverse of the order in which they were given.
afterEach(() => held.release())

const slowSyncMs = 50

/** The machine's disk; while it is held no sync of a file ends. */
class HeldDisk {
  private gate: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined
  private readonly node = makeDiskNode()

  hold(): void {
    this.gate = Promise.withResolvers<void>()
  }

  release(): void {
    this.gate?.resolve()
    this.gate = undefined
  }

  private held(file: DiskFile): DiskFile {
    return {
      read: (...part) => file.read(...part),
      write: (...part) => file.write(...part),
      writeNow: (...part) => file.writeNow(...part),
      sync: async () => {
        await this.gate?.promise
        await file.sync()
      },
      syncNow: () => {
        // Slow enough for the log to leave the thread alone from then on: what runs on the thread cannot be held.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, slowSyncMs)
        file.syncNow()
      },
      truncate: (length) => file.truncate(length),
      size: () => file.size(),
      close: () => file.close()
    }
  }

  readonly disk: Disk = { ...this.node, open: async (path, mode) => this.held(await this.node.open(path, mode)) }
}

const pay = { name: "pay", description: "pays an invoice", parameters: { type: "object" } }

const asked: ReadonlyArray<readonly [op: string, more: Json, eventIdOf: (answer: Json) => unknown]> = [
  ["conversation.get", {}, (answer) => answer["last_event_id"]],
  ["stats", {}, (answer) => answer["last_event_id"]],
  ["tool.register", { tools: [pay] }, (answer) => answer["event_id"]],
  ["agent.list", {}, () => 0],
  ["approval.list", {}, () => 0]
]

/** A conversation of which something is on its way to a disk that does not take it yet. */
const onTheWay = async (socket: Socket, workspace: string) => {
  const id = await socket.create({ workspace })
  const { last_event_id: before } = await socket.ok("conversation.get", { conversation_id: id })
  held.hold()
  const posted = socket.ok("message.post", { conversation_id: id, content: "hello" })
  // Answered in order and without the disk: the message has been taken when this comes.
  await socket.ok("stats", {})
  return { before: Number(before), id, posted }
}

describe("an answer about a conversation", () => {
  it.each(asked)("is given by %s when all it tells of is on disk", async (op, more, eventIdOf) => {
    held = new HeldDisk()
    const server = await servers.open({ disk: held.disk })
    const socket = await server.connect()
    const { before, id, posted } = await onTheWay(socket, server.workspace)
    const answered = socket.ok(op, { conversation_id: id, ...more })
    await socket.ok("stats", {})
    expect(await standing(posted)).toBe("pending")
    expect(await standing(answered)).toBe("pending")
    held.release()
    const after = eventIdOf(await answered)
    if (after === 0) return
    expect(Number(after)).toBeGreaterThan(before)
    await socket.ok("subscribe", { conversation_id: id, after })
  })
})
