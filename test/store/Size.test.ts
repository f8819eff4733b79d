// Goal: a finished conversation takes at most one and a half times its final content. Method: typical conversations,
// streamed in small deltas, with tool output; the bytes on the real disk after the seal and in the archive.
import { randomBytes } from "node:crypto"
import { readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { reportCount } from "../support/counts.ts"
import { type OpenStore, openStore } from "../support/store/openStore.ts"
import { type Place, realPlace, Scribe } from "./support.ts"

let place: Place
let store: OpenStore
beforeEach(async () => {
  place = realPlace()
  store = await openStore({ directory: place.directory, snapshotShape: "1" })
})
afterEach(async () => {
  await store.close()
  place.dispose()
})

const bytesBelow = (directory: string): number =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)

/** Text that does not compress to nothing: hexadecimal noise between words. */
const prose = (bytes: number): string => {
  const words: Array<string> = []
  for (let length = 0; length < bytes; length += 17) words.push(`word ${randomBytes(5).toString("hex")}`)
  return words.join(" ").slice(0, bytes)
}

interface Shape {
  readonly turns: number
  readonly answerBytes: number
  readonly deltas: number
  readonly outputBytes: number
  readonly pieces: number
}

/** What somebody wrote, what the model said and what tools gave: every word of it once. */
const write = ({ answerBytes, deltas, outputBytes, pieces, turns }: Shape) => {
  const scribe = new Scribe(1).begin({ title: "typical" })
  let contentBytes = 0
  const count = (text: string): string => {
    contentBytes += Buffer.byteLength(text)
    return text
  }
  for (let turn = 0; turn < turns; turn++) {
    const place = scribe.startTurn(count(prose(400)))
    scribe.answer(place, count(prose(answerBytes / 4)), Math.ceil(deltas / 4))
    scribe.call(place, count(prose(outputBytes)), pieces)
    const final = count(prose(answerBytes))
    scribe.answer(place, final, deltas)
    scribe.endTurn(place, final.slice(0, 200))
  }
  return { scribe: scribe.close(), contentBytes }
}

const shapes: ReadonlyArray<readonly [string, Shape]> = [
  ["coding, with long tool output", { turns: 20, answerBytes: 2400, deltas: 40, outputBytes: 12_000, pieces: 30 }],
  ["talk, with long answers", { turns: 20, answerBytes: 6000, deltas: 120, outputBytes: 2000, pieces: 4 }],
  ["a stream of tiny deltas", { turns: 10, answerBytes: 8000, deltas: 800, outputBytes: 4000, pieces: 200 }]
]

describe("a finished conversation", () => {
  it.each(shapes)("of %s takes at most 1.5 times its content, sealed and archived", async (name, shape) => {
    const { contentBytes, scribe } = write(shape)
    const id = scribe.conversationId
    for (let at = 0; at < scribe.runes.length; at += 50)
      await store.runes.appendNow(id, scribe.runes.slice(at, at + 50))
    await store.runelog.checkpoint()
    const live = bytesBelow(join(place.directory, "runelog"))
    const prepared = await store.archive.prepare(id)
    await store.runes.appendNow(id, [scribe.add("session.archived", prepared)])
    await store.runelog.seal(id)
    const sealed = bytesBelow(join(place.directory, "runelog"))
    await store.archive.commit(id)
    const archived = bytesBelow(join(place.directory, "archive"))
    const percent = (bytes: number) => Math.round((100 * bytes) / contentBytes)
    reportCount(`${name}: live % of content`, percent(live))
    reportCount(`${name}: sealed % of content`, percent(sealed))
    reportCount(`${name}: archived % of content`, percent(archived))
    expect(sealed).toBeLessThanOrEqual(1.5 * contentBytes)
    expect(archived).toBeLessThanOrEqual(contentBytes)
    expect(live).toBeGreaterThan(sealed)
    expect(bytesBelow(join(place.directory, "runelog"))).toBe(0)
  })
})
