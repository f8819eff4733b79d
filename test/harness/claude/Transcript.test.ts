/** Goal: the end of a transcript is read from its last whole entry, whatever bookkeeping, cut or half-written lines are around it. */
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { endOf, readTranscriptEnd } from "#src/harness/claude/Transcript.ts"
import { harnessLimits } from "#src/harness/HarnessLimits.ts"

const line = (type: string, timestamp: string, text: string): string =>
  JSON.stringify({ type, timestamp, message: { content: [{ type: "text", text }] } })

const said = line("assistant", "2026-11-18T10:00:00.000Z", "hello")
const stopped = line("user", "2026-11-18T10:00:05.000Z", "[Request interrupted by user for tool use]")

describe("the end of a transcript", () => {
  it("is the last thing said, not the last line written", () => {
    const tail = ["cut off}", said, stopped, JSON.stringify({ type: "cost-state" }), '{"type":"user","timest'].join(
      "\n"
    )
    expect(endOf(tail)).toEqual({ lastMs: Date.parse("2026-11-18T10:00:05.000Z"), isInterrupted: true })
    expect(endOf(said)).toMatchObject({ isInterrupted: false })
    expect(endOf("nothing\n{}")).toBeUndefined()
  })

  it("is read from the tail of a large file; a missing or emptied one says nothing", () => {
    const path = join(mkdtempSync(join(tmpdir(), "transcript-")), "session.jsonl")
    writeFileSync(path, `${"x".repeat(harnessLimits.transcriptTailBytes * 2)}\n${stopped}\n`)
    expect(readTranscriptEnd(path)).toMatchObject({ isInterrupted: true })
    writeFileSync(path, "")
    expect(readTranscriptEnd(path)).toBeUndefined()
    expect(readTranscriptEnd(`${path}.gone`)).toBeUndefined()
  })
})
