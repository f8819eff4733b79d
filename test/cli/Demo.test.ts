// Goal: the demo can fail. Method: writers that misbehave (fixture/writer.ts) and logs that forget, in place of the real
// ones; the demo with the real ones is run by test/docs and test/package.
import { existsSync, readdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { type DemoLog, demoEntry, demoLogs, parseReceipt, showReceipt } from "#src/cli/demo/DemoLog.ts"
import { makeDemo } from "#src/cli/demo.ts"
import type { VerifyReport } from "#src/cli/verify.ts"
import { recordingTerminal } from "../support/terminal.ts"

const writer = fileURLToPath(new URL("./fixture/writer.ts", import.meta.url))
const sound: VerifyReport = {
  logs: 4,
  segments: 4,
  sealed: 0,
  entries: 9,
  batches: 0,
  bytes: 900,
  problems: [],
  notes: []
}

/** A log that holds this many entries of every name, one of them changed if asked. */
const logHolding = (entries: number, options: { readonly alteredEventId?: number } = {}): DemoLog => ({
  append: () => Promise.reject(new Error("not for writing")),
  head: async () => entries,
  read: async function* (name) {
    for (let eventId = 1; eventId <= entries; eventId += 1) {
      const entry = demoEntry(name, eventId)
      if (eventId === options.alteredEventId) entry[0] = 0
      yield entry
    }
  },
  close: async () => {}
})

const runDemo = async (options: {
  readonly way?: string
  readonly log?: DemoLog
  readonly verified?: VerifyReport
  readonly args?: ReadonlyArray<string>
  readonly interruptAfterMs?: number
}) => {
  const terminal = recordingTerminal()
  const seen: Array<string> = []
  const demo = makeDemo({
    openLog: async (directory) => {
      seen.push(directory)
      return options.log ?? logHolding(0)
    },
    verify: async () => options.verified ?? sound,
    command: [process.execPath, writer, options.way ?? "careless"]
  })
  if (options.interruptAfterMs !== undefined) setTimeout(terminal.interrupt, options.interruptAfterMs)
  const code = await demo.run(options.args ?? ["--json"], terminal)
  return { code, output: terminal.output(), complaints: terminal.complaints(), directory: seen[0] }
}

describe("the demo", () => {
  it("fails when an acknowledged entry is missing", async () => {
    const { code, output } = await runDemo({})
    expect(code).toBe(1)
    const report = JSON.parse(output)
    expect(report.survived).toBe(false)
    expect(report.rounds[0].acknowledged).toBeGreaterThanOrEqual(300)
    expect(report.rounds[0].missing).toBe(report.rounds[0].acknowledged)
  })

  it("fails when an entry is altered", async () => {
    const { code, output } = await runDemo({ log: logHolding(100_000 / 20, { alteredEventId: 17 }) })
    expect(code).toBe(1)
    expect(JSON.parse(output).rounds[0]).toMatchObject({ missing: 0, altered: demoLogs.length })
  })

  it("fails when the log is damaged", async () => {
    const problems = [{ file: "journal/1", offset: 12, reason: "checksum" }]
    const { code, output } = await runDemo({ log: logHolding(5_000), verified: { ...sound, problems }, args: [] })
    expect(code).toBe(1)
    expect(output).toContain("journal/1 at byte 12: checksum")
    expect(output).toContain("Something that was acknowledged is lost.")
  })

  it("passes when everything is there, and removes its directory", async () => {
    const { code, output, directory } = await runDemo({ log: logHolding(5_000), args: [] })
    expect(code).toBe(0)
    expect(output).toContain("Nothing that was acknowledged is lost")
    expect(directory).toContain("echs-demo-")
    expect(existsSync(directory ?? "")).toBe(false)
  })

  it.each([
    ["quits", /ended by itself, code 4: the disk is on fire/],
    ["babbles", /the writer said "hello"/]
  ])("says so when the writer %s", async (way, message) => {
    const { code, output, complaints } = await runDemo({ way })
    expect(code).toBe(1)
    expect(output).toBe("")
    expect(complaints).toMatch(message)
  })

  it("ends in good order when interrupted", async () => {
    const before = readdirSync(tmpdir()).filter((name) => name.startsWith("echs-demo-"))
    expect(await runDemo({ way: "hangs", interruptAfterMs: 200 })).toMatchObject({ code: 130, output: "" })
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith("echs-demo-"))).toEqual(before)
  })

  it("refuses an option it does not have", async () => {
    const { code, complaints } = await runDemo({ args: ["--fast"] })
    expect(code).toBe(2)
    expect(complaints).toContain("--fast")
  })
})

describe("a receipt", () => {
  it("is read as it was said", () => {
    expect(parseReceipt(showReceipt("conv_ada", 12).trimEnd())).toEqual({ log: "conv_ada", eventId: 12 })
  })

  it.each(["", "durable", "durable conv_ada", "durable conv_ada x", "durable conv_ada 1 2"])('is not "%s"', (line) => {
    expect(parseReceipt(line)).toBeUndefined()
  })
})
