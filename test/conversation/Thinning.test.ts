// Goal: a conversation that is over, and a large one that is out of memory, costs the disk its content and not the way
// there; nothing else about it changes, and nobody waits for it. Method: the real runtime on a disk in memory, and a
// thinner whose packing ends when the test says so.
// Verifies: INV-REPLAY-DETERMINISTIC
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { describe, expect, it } from "vitest"
import type { Disk } from "#runelog/disk/Disk.ts"
import { PACKED_VERSION } from "#runelog/segment/Segment.ts"
import { limits } from "#src/conversation/ConversationLimits.ts"
import { Thinning } from "#src/conversation/Thinning.ts"
import { canonicalHash } from "#src/machine/Canonical.ts"
import type { ConversationId } from "#src/rune/Ids.ts"
import { reportCount } from "../support/counts.ts"
import { makeDiskMemory } from "../support/disk/DiskMemory.ts"
import { always, say, scenarios } from "../support/runtime/scenarios.ts"
import { nextTurn } from "../support/runtime/sink.ts"
import { type Talk, useWorlds, type World } from "../support/runtime/World.ts"
import { randomFrom, seedFor } from "../support/seed.ts"

const worlds = useWorlds()

const words = "the parser keeps its place and the printer wraps every line that is too long "
const answer = words.repeat(40)
const streaming = scenarios({ talks: [always(say(answer, { chunk_chars: 16 }))] })

interface Pages {
  readonly kinds: ReadonlyArray<string>
  readonly text: string
  readonly bytes: number
  readonly gaps: ReadonlyArray<{ readonly from: number; readonly to: number }>
  readonly next: number
}

const readAll = async ({ store }: World, id: ConversationId): Promise<Pages> => {
  const kinds: Array<string> = []
  const gaps: Array<{ readonly from: number; readonly to: number }> = []
  let text = ""
  let bytes = 0
  let next = 0
  for await (const page of store.pagesNow(id, { after: 0 })) {
    for (const rune of page.runes) {
      kinds.push(rune.kind)
      bytes += JSON.stringify(rune).length
      if (rune.kind === "turn.assistant_final") text += (rune.payload as { readonly content: string }).content
    }
    gaps.push(...page.gaps)
    next = page.next
  }
  return { kinds, text, bytes, gaps, next }
}

const deltasIn = ({ kinds }: Pages): number => kinds.filter((kind) => kind === "turn.assistant_delta").length

const untilThinned = async (world: World, id: ConversationId): Promise<Pages> => {
  for (;;) {
    const pages = await readAll(world, id)
    if (deltasIn(pages) === 0) return pages
    await nextTurn()
  }
}

const readFile = async (disk: Disk, path: string): Promise<Buffer> => {
  const file = await disk.open(path, "read")
  const bytes = Buffer.alloc(await file.size())
  await file.read(bytes, 0, bytes.length, 0)
  await file.close()
  return bytes
}

/** Bytes of all files of the log, once it is packed. */
const untilPacked = async (disk: Disk, id: ConversationId): Promise<number> => {
  for (;;) {
    const directory = `/data/runelog/${id}`
    const entries = (await disk.exists(directory)) ? await disk.list(directory) : []
    const files = await Promise.all(entries.map(({ name }) => readFile(disk, `${directory}/${name}`)))
    const isPacked = files.some((file) => file.readUInt16LE(12) === PACKED_VERSION)
    if (isPacked) return files.reduce((sum, file) => sum + file.length, 0)
    await nextTurn()
  }
}

const spoken = async (world: World, turns: number): Promise<Talk> => {
  const talk = await world.create({ model: "scripted/talks" })
  for (let turn = 1; turn <= turns; turn++) {
    await talk.post("go on")
    await talk.turns(turn)
  }
  return talk
}

describe("a conversation that is closed", () => {
  it("keeps its text and loses the deltas it came in; every id is a rune or in a gap that says so", async () => {
    const world = await worlds.open({ scenarios: streaming })
    const talk = await spoken(world, 3)
    const before = await readAll(world, talk.id)
    expect(deltasIn(before)).toBeGreaterThan(100)
    await talk.submit({ _tag: "Close", reason: "done" })
    await talk.until("session.closed")
    const after = await untilThinned(world, talk.id)
    const { head } = await talk.state()
    expect(after.text).toBe(answer.repeat(3))
    expect(after.next).toBe(head)
    expect(after.kinds.length + after.gaps.reduce((sum, { from, to }) => sum + to - from + 1, 0)).toBe(head)
    expect(after.bytes).toBeLessThan(before.bytes / 3)
    expect(after.bytes).toBeLessThan(answer.length * 3 * 2.5)
  })

  it("takes no more than one and a half times its text on the disk, also of text that cannot be compressed", async () => {
    const chance = randomFrom(seedFor("text of a closed conversation"))
    const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ."
    const noise = Array.from({ length: 6000 }, () => letters[Math.floor(chance() * letters.length)]).join("")
    const disk = makeDiskMemory()
    const world = await worlds.open({
      scenarios: scenarios({ talks: [always(say(noise, { chunk_chars: 16 }))] }),
      disk
    })
    const talk = await spoken(world, 1)
    await talk.submit({ _tag: "Close", reason: "done" })
    await talk.until("session.closed")
    const bytes = await untilPacked(disk, talk.id)
    const ratio = bytes / (noise.length + "go on".length)
    reportCount("bytes of a closed conversation on the disk for 100 of its text", Math.round(100 * ratio))
    expect(ratio).toBeLessThan(1.5)
  })

  it("is the same to whoever loads it, and after a restart", async () => {
    const disk = makeDiskMemory()
    const world = await worlds.open({ scenarios: streaming, disk })
    const talk = await spoken(world, 2)
    await talk.submit({ _tag: "Close", reason: "done" })
    await talk.until("session.closed")
    await untilThinned(world, talk.id)
    const hash = canonicalHash(await talk.state())
    expect(world.conversations.unload(talk.id)).toBe(true)
    expect(canonicalHash(await talk.state())).toBe(hash)
    await world.close()
    const again = await worlds.open({ scenarios: streaming, disk, idSeed: 8 })
    expect(canonicalHash(await again.conversations.state(talk.id))).toBe(hash)
  })

  it("that a kill kept from being thinned is thinned when it next leaves memory", async () => {
    const disk = makeDiskMemory()
    const world = await worlds.open({ scenarios: streaming, disk, thinner: "none" })
    const talk = await spoken(world, 1)
    await talk.submit({ _tag: "Close", reason: "done" })
    await talk.until("session.closed")
    await world.close()
    const again = await worlds.open({ scenarios: streaming, disk, idSeed: 8 })
    await again.conversations.state(talk.id)
    expect(deltasIn(await readAll(again, talk.id))).toBeGreaterThan(0)
    again.conversations.unload(talk.id)
    await untilThinned(again, talk.id)
  })
})

describe("a conversation that goes on later", () => {
  it("is thinned when it leaves memory and holds much, left alone when it holds little, and goes on", async () => {
    const world = await worlds.open({ scenarios: streaming })
    const small = await spoken(world, 1)
    const large = await spoken(world, 4)
    expect((await readAll(world, large.id)).bytes).toBeGreaterThan(limits.thinBytesMin)
    for (const talk of [small, large]) while (!world.conversations.unload(talk.id)) await nextTurn()
    const thinned = await untilThinned(world, large.id)
    expect(thinned.text).toBe(answer.repeat(4))
    expect(deltasIn(await readAll(world, small.id))).toBeGreaterThan(0)
    await large.post("go on")
    await large.turns(5)
    expect((await readAll(world, large.id)).text).toBe(answer.repeat(5))
  })
})

describe("thinning", () => {
  const ids = ["a", "b", "c", "d"].map((name) => `conv_${name.repeat(16)}` as ConversationId)
  const [a, b, c, d] = ids as [ConversationId, ConversationId, ConversationId, ConversationId]

  const controlled = (bytes: number, waitingMax = 2) => {
    const packs: Array<{ readonly id: ConversationId } & PromiseWithResolvers<void>> = []
    const failed: Array<unknown> = []
    const thinned: Array<string> = []
    const scope = Scope.makeUnsafe()
    const making = Thinning.make({
      thinner: {
        unsealedBytes: () => bytes,
        pack: (id) => {
          const pack = { id, ...Promise.withResolvers<void>() }
          packs.push(pack)
          return pack.promise
        }
      },
      onThinned: (id) => thinned.push(id),
      onFailed: (id, cause) => failed.push([id, cause]),
      waitingMax
    })
    const thinning = Effect.runSync(Scope.provide(making, scope))
    const close = (): Promise<void> => Effect.runPromise(Scope.close(scope, Exit.void))
    return { thinning, packs, failed, thinned, close }
  }

  it("takes one at a time, as many as may wait, and goes on after one that failed", async () => {
    const { close, failed, packs, thinned, thinning } = controlled(1)
    expect([a, b, c, d].map((id) => thinning.add(id, { isOver: true }))).toEqual([true, true, true, false])
    expect(thinning.add(b, { isOver: true })).toBe(true)
    expect(packs.map(({ id }) => id)).toEqual([a])
    const reason = new Error("no room")
    packs[0]!.reject(reason)
    while (packs.length < 2) await nextTurn()
    expect(failed).toEqual([[a, reason]])
    packs[1]!.resolve()
    while (packs.length < 3) await nextTurn()
    expect(packs.map(({ id }) => id)).toEqual([a, b, c])
    expect(thinned).toEqual([a, b])
    packs[2]!.resolve()
    await close()
  })

  it("leaves alone what holds too little, and what holds nothing even where it is over", () => {
    const little = controlled(limits.thinBytesMin - 1).thinning
    expect(little.add(a, { isOver: false })).toBe(false)
    expect(little.add(a, { isOver: true })).toBe(true)
    expect(controlled(limits.thinBytesMin).thinning.add(a, { isOver: false })).toBe(true)
    expect(controlled(0).thinning.add(a, { isOver: true })).toBe(false)
  })

  it("ends with the one under way", async () => {
    const { close, packs, thinning } = controlled(1)
    for (const id of [a, b]) thinning.add(id, { isOver: true })
    const closing = close()
    expect(thinning.add(c, { isOver: true })).toBe(false)
    packs[0]!.resolve()
    await closing
    expect(packs.map(({ id }) => id)).toEqual([a])
  })
})
