// A new subscriber that catches up with a long conversation, beside reading the same bytes from their files.
import { readdirSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { openStore } from "../../support/store/openStore.ts"
import { collectGarbage } from "./garbage.ts"
import { openDoor, token } from "./openDoor.ts"
import { Sink } from "./Sink.ts"
import { conversationId, makeRune } from "./subjects.ts"

const BATCH = 500
const TRIES = 10

const writeLog = async (directory: string, runes: number): Promise<void> => {
  const store = await openStore({ directory, snapshotShape: "bench" })
  for (let first = 1; first <= runes; first += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, runes - first + 1) }, (_, index) => makeRune(first + index))
    await store.runes.appendNow(conversationId, batch as never)
  }
  await store.close()
}

const readFiles = async (directory: string): Promise<void> => {
  const folder = join(directory, "runelog", conversationId)
  for (const name of readdirSync(folder)) if (name.endsWith(".seg")) await readFile(join(folder, name))
}

const secondsOf = async (body: () => Promise<void>): Promise<number> => {
  const startedMs = performance.now()
  await body()
  return (performance.now() - startedMs) / 1000
}

/**
 * Runes a second of a new subscriber, and of whoever reads the files. The subscriptions follow each other on one
 * connection, so that neither the start of a process nor a cold receiver is part of what is measured.
 */
export const measureCatchUp = async (directory: string, runes: number) => {
  await writeLog(directory, runes)
  const door = await openDoor(directory)
  let files = Number.POSITIVE_INFINITY
  let subscriber = Number.POSITIVE_INFINITY
  const hello = JSON.stringify({ id: "0", op: "hello", protocol: 1 })
  const sink = await Sink.open({ port: door.server.port, token, connections: 1, frames: [hello] })
  for (let at = 1; at <= TRIES; at++) {
    files = Math.min(files, await secondsOf(() => readFiles(directory)))
    // What one side leaves behind is not the other's to tidy up.
    collectGarbage()
    const took = await secondsOf(async () => {
      sink.send({ id: "1", op: "subscribe", conversation_id: conversationId })
      await sink.until(() => sink.least >= at * runes)
    })
    subscriber = Math.min(subscriber, took)
  }
  await sink.close()
  await door.close()
  return { filesPerSecond: runes / files, subscriberPerSecond: runes / subscriber }
}
