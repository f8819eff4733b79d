// A server in a process of its own whose disk fails on command: a server that freezes then freezes nobody else. It is
// told what to do by messages of its parent, and answers each with `done`.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Disk, DiskFile } from "#runelog/disk/Disk.ts"
import { makeDiskNode } from "#runelog/disk/DiskNode.ts"
import { ConversationService } from "#src/conversation/ConversationService.ts"
import { say, scenarios, step, use } from "../runtime/scenarios.ts"
import { startTestServer } from "./graph.ts"

export type FaultCommand =
  | { readonly fault: "ENOSPC" | "EIO" | "none" }
  /** Begins to stop, and does not get to the end of it. */
  | { readonly close: true }
  /** Keeps the event loop busy for so long. */
  | { readonly blockMs: number }

const [dataDirectory = ""] = process.argv.slice(2)
let fault: "ENOSPC" | "EIO" | "none" = "none"

const failure = (): Error | undefined =>
  fault === "none" ? undefined : Object.assign(new Error(`${fault}: made to fail`), { code: fault })

const check = (): void => {
  const error = failure()
  if (error !== undefined) throw error
}

const faulty = (file: DiskFile): DiskFile => ({
  read: (target, offset, length, position) => file.read(target, offset, length, position),
  write: async (source, offset, length, position) => {
    check()
    await file.write(source, offset, length, position)
  },
  writeNow: (source, offset, length, position) => {
    check()
    file.writeNow(source, offset, length, position)
  },
  sync: async () => {
    if (fault === "EIO") check()
    await file.sync()
  },
  syncNow: () => {
    if (fault === "EIO") check()
    file.syncNow()
  },
  truncate: (length) => file.truncate(length),
  size: () => file.size(),
  close: () => file.close()
})

const node = makeDiskNode()
const disk: Disk = {
  ...node,
  open: async (path, mode) => {
    if (mode === "create") check()
    const file = await node.open(path, mode)
    return mode === "read" ? file : faulty(file)
  }
}

const options = {
  dataDirectory,
  disk,
  model: "scripted/echo",
  scenarios: scenarios({
    remote: [step(1, use("look_up", { word: "rune" })), step(2, say("done"))]
  }),
  // One at a time: whoever speaks to another conversation makes this one leave memory.
  runtime: { deltaEveryMs: 0, residentMax: 1 },
  drainMs: 600_000,
  writeLine: (line: string) => void process.stderr.write(`${line}\n`)
}

/** Conversations that close, and a stop that waits for them and does not hear of it. */
const neverClosed = Layer.effect(
  ConversationService,
  Effect.map(ConversationService, (conversations) =>
    Object.assign(conversations, { stop: Effect.andThen(conversations.stop, Effect.never) })
  )
).pipe(Layer.provideMerge(ConversationService.layer(options.runtime)))

const server = await startTestServer(options, { conversations: neverClosed })

const block = (ms: number): void => {
  const untilMs = performance.now() + ms
  while (performance.now() < untilMs);
}

process.on("message", (command: FaultCommand) => {
  if ("fault" in command) fault = command.fault
  if ("close" in command) void server.close()
  process.send?.("done")
  if ("blockMs" in command) setImmediate(() => block(command.blockMs))
})
process.on("disconnect", () => process.exit(0))
process.send?.({ url: server.url, token: server.token })
