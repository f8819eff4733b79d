// Goal: what is exported is what was on the wire, what is imported is checked line by line and capped, and a bad line
// leaves nothing behind. Method: round trips in chunks of every size, and one bad line of each kind.
import * as fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { Runelog } from "#runelog/Runelog.ts"
import { seededIdSource } from "#src/rune/IdSource.ts"
import { encode } from "#src/rune/Rune.ts"
import { exportLines, type ImportRequest, importLines } from "#src/store/runes/Export.ts"
import { RuneStore } from "#src/store/runes/RuneStore.ts"
import { makeDiskMemory } from "../../support/disk/DiskMemory.ts"
import { seedFor } from "../../support/seed.ts"
import { conversationIdOf, Scribe } from "../support.ts"

let runelog: Runelog
let store: RuneStore

beforeEach(async () => {
  runelog = await Runelog.open({ disk: makeDiskMemory(), directory: "/data" })
  store = new RuneStore({ runelog })
})
afterEach(() => runelog.close())

const textOf = async (lines: AsyncIterable<Buffer>): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of lines) chunks.push(chunk)
  return Buffer.concat(chunks).toString("utf8")
}

async function* chunksOf(text: string, size: number) {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

let imports = 1000
const bring = (text: string | AsyncIterable<Uint8Array>, change: Partial<ImportRequest> = {}) => {
  imports += 1
  return importLines(runelog, {
    lines: typeof text === "string" ? chunksOf(text, 1000) : text,
    conversationId: conversationIdOf(imports),
    ids: seededIdSource(imports),
    nowMs: 1_800_000_000_000,
    ...change
  })
}

const runesOf = async (id: string) => {
  const runes: Array<unknown> = []
  for await (const page of store.pagesNow(id, { after: 0 })) runes.push(...page.runes)
  return runes as Array<{ readonly kind: string; readonly payload: unknown; readonly ts_ms: number }>
}

describe("an export", () => {
  it("is one line a rune, exactly as on the wire", async () => {
    const { conversationId, runes } = new Scribe(1).begin().turn("größe")
    await store.appendNow(conversationId, runes)
    expect(await textOf(exportLines(store, conversationId))).toBe(runes.map((rune) => `${encode(rune)}\n`).join(""))
    const some = await textOf(exportLines(store, conversationId, { after: 3, families: ["tool"], bytesMax: 500 }))
    expect(some).toBe(
      runes
        .filter(({ kind }) => kind.startsWith("tool."))
        .map((rune) => `${encode(rune)}\n`)
        .join("")
    )
  })

  it("tells of what was thinned", async () => {
    const { conversationId, runes } = new Scribe(1).begin().turn()
    await store.appendNow(conversationId, runes)
    await runelog.seal(conversationId)
    const lines = (await textOf(exportLines(store, conversationId))).trimEnd().split("\n")
    const gaps = lines.map((line) => JSON.parse(line)).filter((line) => "gap" in line)
    expect(gaps[0]).toEqual({ gap: { from: 7, to: 9, reason: "thinned" } })
    expect(gaps).toHaveLength(3)
  })

  it("of an unknown conversation is a typed error", async () => {
    await expect(textOf(exportLines(store, conversationIdOf(7)))).rejects.toMatchObject({ _tag: "ConversationUnknown" })
  })
})

describe("an import", () => {
  it("makes the same conversation under another id, however the bytes arrive", async () => {
    const { conversationId, runes } = new Scribe(1).begin({ title: "é😀" }).turn()
    await store.appendNow(conversationId, runes)
    await runelog.seal(conversationId)
    const text = await textOf(exportLines(store, conversationId))
    const originals = await runesOf(conversationId)
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 700 }), async (size) => {
        const imported = await bring(chunksOf(text, size))
        const copies = await runesOf(imported.conversationId)
        expect(imported.eventId).toBe(copies.length)
        expect(copies.map(({ kind, payload, ts_ms: atMs }) => [kind, payload, atMs])).toEqual(
          originals.map(({ kind, payload, ts_ms: atMs }) => [kind, payload, atMs])
        )
      }),
      { seed: seedFor("import"), numRuns: 15 }
    )
  })

  it("needs no newline at its end and skips empty lines", async () => {
    const { runes } = new Scribe(1).begin()
    const imported = await bring(`\n${runes.map(encode).join("\n\r\n \n")}`)
    expect(imported.eventId).toBe(runes.length)
    const one = await bring(encode(runes[0]!))
    expect(one.eventId).toBe(1)
  })

  it("ends as whoever asked for it says", async () => {
    const { runes } = new Scribe(1).begin()
    const imported = await bring(runes.map(encode).join("\n"), {
      finish: () => [{ kind: "session.closing", payload: { reason: "imported" } }]
    })
    expect((await runesOf(imported.conversationId)).at(-1)?.kind).toBe("session.closing")
  })

  const good = new Scribe(1).begin().runes
  const [first, second] = good.map(encode) as [string, string]

  it.each<readonly [string, string, number, string]>([
    ["is not JSON", `${first}\n{"event_id":`, 2, "it is not JSON"],
    ["is no rune", `${first}\n{"event_id":2}`, 2, "Missing key"],
    ["is a bare value", `${first}\nnull`, 2, "Expected object"],
    [
      "belongs to another conversation",
      `${first}\n${second.replace(conversationIdOf(1), conversationIdOf(2))}`,
      2,
      "it belongs to"
    ],
    ["comes twice", `${first}\n${first}`, 2, "event 1 is out of order"],
    ["is too long", `${first}\n${"x".repeat(1024 * 1024 + 1)}`, 2, "it is longer than"],
    ["is too long and goes on", `${first}\n${"x".repeat(1024 * 1024 + 5000)}\n`, 2, "it is longer than"],
    ["is missing", '\n{"gap":{"from":1,"to":2}}\n', 2, "there is no rune"]
  ])("whose line %s is refused as a whole", async (_what, text, line, reason) => {
    const before = await runelog.list()
    const error = await bring(text).catch((thrown) => thrown)
    expect(error).toMatchObject({ _tag: "ImportInvalid", line })
    expect(error.reason).toContain(reason)
    expect(await runelog.list()).toEqual(before)
  })

  it("that is not UTF-8 or larger than allowed is refused", async () => {
    const bytes = Buffer.concat([Buffer.from(`${first}\n`), Buffer.from([0xff, 0xfe, 0x0a])])
    async function* bad() {
      yield bytes
    }
    await expect(bring(bad())).rejects.toMatchObject({ reason: "it is not UTF-8", line: 2 })
    const text = good.map(encode).join("\n")
    await expect(bring(text, { runesMax: 3 })).rejects.toThrow("more than 3 runes")
    await expect(bring(text, { bytesMax: 500 })).rejects.toThrow("more than 500 bytes")
    expect(await runelog.list()).toEqual([])
  })

  it("keeps keys that could harm as what they are: data", async () => {
    const evil = good[0]!
    const text = encode(evil).replace(
      '"config":{}',
      '"config":{"extra":{"__proto__":{"polluted":true},"constructor":1}}'
    )
    const imported = await bring(text)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
    expect(JSON.stringify(await runesOf(imported.conversationId))).toContain('"__proto__":{"polluted":true}')
  })
})
