// Goal: nothing large stays in a rune, nothing is lost by taking it out, and small drafts are not touched. Method: drafts
// of every kind that can carry much, at the limit and one above.
import * as fc from "fast-check"
import { beforeEach, describe, expect, it } from "vitest"
import { makeDiskMemory } from "#runelog/DiskMemory.ts"
import type { CallId } from "#src/rune/Ids.ts"
import type { RuneDraft } from "#src/rune/Rune.ts"
import { Blobs } from "#src/store/Blobs.ts"
import { limits } from "#src/store/Limits.ts"
import { needsOffload, offload, offloadContent, previewOf } from "#src/store/Offload.ts"
import { seedFor } from "../support/seed.ts"
import { agent } from "./support.ts"

let blobs: Blobs
beforeEach(() => {
  blobs = new Blobs({ disk: makeDiskMemory(), directory: "/blobs" })
})

const result = (output: string): RuneDraft => ({
  kind: "tool.result",
  payload: { call_id: "call_1" as CallId, status: "success", output, duration_ms: 1 }
})
const large = "é".repeat(limits.offloadBytes)

describe("a large output", () => {
  it("becomes a blob, and its beginning stays", async () => {
    const draft = (await offload(blobs, result(large))) as Extract<RuneDraft, { kind: "tool.result" }>
    const { output, output_blob: blob } = draft.payload
    expect(blob).toMatchObject({ bytes: Buffer.byteLength(large), media_type: "text/plain; charset=utf-8" })
    expect(Buffer.byteLength(output!)).toBeLessThanOrEqual(limits.previewBytes)
    expect(large.startsWith(output!)).toBe(true)
    expect((await blobs.readAll(blob!.sha256, { bytesMax: 1e7 })).toString("utf8")).toBe(large)
  })

  it("stays where it is up to the limit", async () => {
    for (const output of ["", "short", "x".repeat(limits.offloadBytes), "é".repeat(limits.offloadBytes / 2)]) {
      const draft = result(output)
      expect(needsOffload(draft)).toBe(false)
      expect(await offload(blobs, draft)).toBe(draft)
    }
    expect(needsOffload(result("x".repeat(limits.offloadBytes + 1)))).toBe(true)
    expect(needsOffload(result("é".repeat(limits.offloadBytes / 2 + 1)))).toBe(true)
  })

  it("is previewed without halving a character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }), (unit) => {
        const text = unit.toWellFormed().repeat(Math.ceil((2 * limits.previewBytes) / unit.length))
        const preview = previewOf(text)
        expect(text.startsWith(preview)).toBe(true)
        expect(preview.isWellFormed()).toBe(true)
        expect(Buffer.byteLength(preview)).toBeLessThanOrEqual(limits.previewBytes)
        expect(Buffer.byteLength(preview)).toBeGreaterThan(limits.previewBytes - 5)
      }),
      { seed: seedFor("preview") }
    )
    expect(previewOf("all of it")).toBe("all of it")
    expect(previewOf("é".repeat(limits.previewBytes - 1))).toBe("é".repeat(limits.previewBytes / 2))
  })
})

describe("a large attachment", () => {
  const image = { type: "image", media_type: "image/png", data: Buffer.alloc(100_000, 3).toString("base64") } as const
  const file = { type: "file", name: "log.txt", media_type: "text/plain", text: large } as const
  const text = { type: "text", text: "look at this" } as const

  it("becomes a blob wherever messages carry it", async () => {
    const input = [text, image, file, { type: "file", name: "raw", text: large } as const]
    const drafts: ReadonlyArray<RuneDraft> = [
      { kind: "turn.queued", payload: { input, mode: "queue" } },
      { kind: "turn.started", payload: { input, turn_id: "turn_1" as never, agent_id: agent } },
      { kind: "agent.message", payload: { to_agent_id: agent, content: input } }
    ]
    for (const draft of drafts) {
      const taken = await offload(blobs, draft)
      const payload = taken.payload as { readonly input?: unknown; readonly content?: unknown }
      const content = (payload.input ?? payload.content) as ReadonlyArray<Record<string, unknown>>
      expect(content[0]).toEqual(text)
      expect(content[1]).toMatchObject({ type: "image", blob: { bytes: 100_000, media_type: "image/png" } })
      expect(content[1]).not.toHaveProperty("data")
      expect(content[2]).toMatchObject({ type: "file", name: "log.txt", blob: { media_type: "text/plain" } })
      expect(content[3]).toMatchObject({ type: "file", name: "raw" })
      expect(JSON.stringify(taken).length).toBeLessThan(2000)
      const { blob } = content[1] as { readonly blob: { readonly sha256: string } }
      expect((await blobs.readAll(blob.sha256, { bytesMax: 1e6 })).toString("base64")).toBe(image.data)
    }
  })

  it("stays when it would not come back the same, and small ones stay anyway", async () => {
    const odd = { ...image, data: `${image.data}\n` }
    expect(await offloadContent(blobs, [odd])).toEqual([odd])
    const small = [text, { ...image, data: "AAAA" }, { type: "file", name: "a", text: "b" } as const]
    expect(await offloadContent(blobs, small)).toBe(small)
    expect(await offloadContent(blobs, large)).toBe(large)
    const other: RuneDraft = { kind: "session.paused", payload: { reason: large } }
    expect(await offload(blobs, other)).toBe(other)
  })
})
